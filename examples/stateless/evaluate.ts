// A client that owns its tools and lets the server run the code: it keeps the token and gives answers.
//
//   codecall serve --http 8931 &
//   node evaluate.ts http://127.0.0.1:8931

type Call = { id: string; name: string; input: Record<string, unknown>; timeoutMs: number };
type Step =
  | { status: 'calls'; calls: Call[]; token: string }
  | { status: 'done'; outcome: { status: string; result?: unknown; error?: unknown } }
  | { status: 'diverged' | 'deadlock'; error: { code: string; message: string } };
type Tool = { description: string; inputSchema: object; run(input: any): Promise<unknown> };

/** The tools, and what they do. They stay here: the server sees names and schemas only. */
const tools: Record<string, Tool> = {
  get_temperature: {
    description: 'Temperature in a city, in degrees Celsius',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    run: async ({ city }) => {
      const known: Record<string, number> = { Oslo: -4, Cairo: 24, Lima: 19 };
      if (!(city in known)) throw new Error(`There is no weather in ${city}`);
      return { city, celsius: known[city] };
    },
  },
};

async function run(server: string, code: string): Promise<unknown> {
  const request = {
    code,
    tools: Object.entries(tools).map(([name, { description, inputSchema }]) => ({ name, description, inputSchema })),
  };
  let more = {};
  for (;;) {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${server}/v1/evaluate`, { method: 'POST', headers, body: JSON.stringify({ ...request, ...more }) });
    const step = (await answer.json()) as Step;
    if (!answer.ok) throw new Error(JSON.stringify(step));
    if (step.status !== 'calls') return step.status === 'done' ? step.outcome : step;
    const results = step.calls.map(async ({ id, name, input }) => {
      try {
        return { id, result: await tools[name].run(input) };
      } catch (error) {
        return { id, error: { message: (error as Error).message } };
      }
    });
    more = { token: step.token, results: await Promise.all(results) };
  }
}

const code = `
  const cities = ['Oslo', 'Atlantis', 'Cairo', 'Lima'];
  const settled = await Promise.allSettled(cities.map((city) => getTemperature({ city })));
  const known = settled.filter((one) => one.status === 'fulfilled').map((one) => one.value);
  const missing = settled.filter((one) => one.status === 'rejected').map((one) => one.reason.message);
  const warmest = known.reduce((best, one) => (one.celsius > best.celsius ? one : best));
  const again = await getTemperature({ city: warmest.city });
  return { warmest: again, missing };`;
console.log(JSON.stringify(await run(process.argv[2] ?? 'http://127.0.0.1:8931', code)));
