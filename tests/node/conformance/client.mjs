// The client that the conformance suite of MCP starts for a scenario: `client.mjs URL`, with the scenario in
// MCP_CONFORMANCE_SCENARIO. It is CodeCall with the server as its upstream, and a person who logs in.

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { codecall, environment, folder } from '../serve.mjs';

const APP = 'server';
// A person gives up after so many logins for one request.
const LOGINS = 2;
const NEEDS_LOGIN = /needs login|LOGIN_REQUIRED/;

const url = process.argv[2];
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

// What a person writes into the configuration for a scenario.
const AUTH = {
  'auth/basic-cimd': () => ({ clientMetadataUrl: 'https://conformance-test.local/client-metadata.json' }),
  'auth/pre-registration': () => ({ clientId: context.client_id, clientSecret: context.client_secret }),
  'auth/client-credentials-jwt': () => ({ type: 'client_credentials', clientId: context.client_id, clientPrivateKey: context.private_key_pem }),
  'auth/wif-jwt-bearer': () => ({ type: 'jwt_bearer', clientId: context.client_id, assertion: context.valid_jwt }),
  'auth/enterprise-managed-authorization': () => ({
    type: 'jwt_bearer', clientId: context.client_id, clientSecret: context.client_secret, assertion: context.idp_id_token,
    identityProvider: { tokenEndpoint: context.idp_token_endpoint, clientId: context.idp_client_id },
  }),
  'auth/client-credentials-basic': () => ({ type: 'client_credentials', clientId: context.client_id, clientSecret: context.client_secret }),
};
const auth = AUTH[scenario]?.();

const home = folder();
const config = join(home, 'codecall.json');
writeFileSync(config, JSON.stringify({ mcpServers: { [APP]: { url, ...auth && { auth } } }, expose: 'direct' }));
const env = environment(home);

// `codecall auth login`, with a browser that follows the redirect of the authorization server.
async function login() {
  const child = spawn(codecall, ['auth', 'login', APP, '--config', config], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let [stderr, visited] = ['', undefined];
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
    const address = /to log in: (\S+)/.exec(stderr)?.[1];
    if (address) visited ??= fetch(address).catch((error) => console.error(`the browser: ${error.message}`));
  });
  const status = await new Promise((resolve) => child.once('exit', resolve));
  await visited;
  console.error(`login: ${status === 0 ? 'done' : stderr.trim()}`);
  return status === 0;
}

// Uses all that the server has. Returns the failures.
async function use() {
  const failures = [];
  const client = new Client({ name: 'conformance', version: '1' }, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { confirmed: true } }));
  const transport = new StdioClientTransport({ command: codecall, args: ['serve', '--config', config], env, stderr: 'inherit' });
  await client.connect(transport);
  const attempt = async (what, request) => {
    try {
      const result = await request();
      console.log(`${what}: ${JSON.stringify(result)}`);
      // Some scenarios end with the list.
      if (result.isError && !/Method not found/.test(JSON.stringify(result))) failures.push(JSON.stringify(result));
      return result;
    } catch (error) {
      failures.push(`${what}: ${error.message}`);
      console.log(`${what}: ${error.message}`);
      return {};
    }
  };
  const about = client.getServerCapabilities();
  // It waits until the server has answered, so the list has its tools.
  const meta = await client.callTool({ name: 'codecall_search', arguments: { query: 'all', filter: { appIds: [APP] } } });
  const { tools = [] } = await attempt('tools/list', () => client.listTools());
  const own = tools.filter(({ name }) => !name.startsWith('codecall_'));
  // Without tools the answer says why.
  if (own.length === 0 && NEEDS_LOGIN.test(JSON.stringify(meta))) failures.push(JSON.stringify(meta));
  for (const tool of own) {
    const told = context.toolCalls?.filter(({ name }) => name === tool.name).map((call) => call.arguments);
    for (const input of told ?? [inputOf(tool, own)]) {
      await attempt(`tools/call ${tool.name}`, () => client.callTool({ name: tool.name, arguments: input }));
    }
  }
  if (about.resources) {
    const { resources = [] } = await attempt('resources/list', () => client.listResources());
    for (const { uri } of resources) await attempt(`resources/read ${uri}`, () => client.readResource({ uri }));
  }
  if (about.prompts) {
    const { prompts = [] } = await attempt('prompts/list', () => client.listPrompts());
    for (const { name } of prompts) await attempt(`prompts/get ${name}`, () => client.getPrompt({ name }));
  }
  await client.close();
  return failures;
}

// Tools whose schemas want more than a value of each required member.
const INPUTS = { lookup_user: { id: 'a' }, json_schema_2020_12_tool: { contactMethod: 'email', email: 'a@example.com' } };

// An input that fits the schema of a tool of the suite.
function inputOf({ name, inputSchema }, tools) {
  if (INPUTS[name]) return INPUTS[name];
  if (name === 'json_schema_echo') return { schema: tools.find((tool) => tool.name === 'json_schema_2020_12_tool').inputSchema };
  const input = {};
  for (const [property, { type }] of Object.entries(inputSchema.properties ?? {})) {
    if (!inputSchema.required?.includes(property)) continue;
    input[property] = { number: 5, integer: 5, boolean: true, string: 'text' }[type];
  }
  return input;
}

for (let logins = 0; ; logins += 1) {
  const failures = await use();
  const needsLogin = failures.some((failure) => NEEDS_LOGIN.test(failure));
  if (!needsLogin || logins === LOGINS || !(await login())) {
    // The suite counts what the server has seen; the status says whether the client is served.
    process.exitCode = failures.length > 0 ? 1 : 0;
    break;
  }
}
