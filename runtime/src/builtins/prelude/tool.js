async function tool_parallel(receiver, items, worker, options) {
  const jobs = $parallel_jobs(items, worker);
  const each = typeof worker === 'function';
  const width = $parallel_width(each ? options : worker, jobs.length);
  const results = [...jobs];
  const failures = [];
  let next = 0;
  const lane = async () => {
    while (next < jobs.length) {
      const index = next;
      next += 1;
      try {
        const job = jobs[index];
        results[index] = await (each ? worker(job, index) : job());
      } catch (error) {
        failures.push([index, error]);
      }
    }
  };
  const lanes = [];
  while (lanes.length < width) {
    lanes.push(lane());
  }
  for (const one of lanes) {
    await one;
  }
  if (failures.length > 0) {
    throw $parallel_failed(failures, results);
  }
  return results;
}


function tool_call_tool(receiver, server, tool, args) {
  const answer = $call_tool(server, tool, args);
  return $wait(answer);
}

function tool_wait_for(receiver, promise) {
  return $wait(promise);
}

function tool_call_tools(receiver, calls) {
  const answers = $call_tools(calls);
  const results = [];
  for (const answer of answers) {
    const result = $wait(answer);
    results.push(result);
  }
  return results;
}
