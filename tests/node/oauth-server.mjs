// An MCP server of the official SDK that wants tokens, and the authorization server that issues them: `oidc-provider`, which is
// certified by the OpenID Foundation. `oauth.mjs` starts it.

import { createHash } from 'node:crypto';
import http from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { Provider } from 'oidc-provider';

const listen = (handler) => new Promise((resolve) => {
  const server = http.createServer(handler).listen(0, '127.0.0.1', () => resolve(server));
});
const origin = (server) => `http://127.0.0.1:${server.address().port}`;

// The addresses are known before the handlers.
let [authorize, answer] = [];
const issuerServer = await listen((request, response) => authorize(request, response));
const resourceServer = await listen((request, response) => answer(request, response));
const issuer = origin(issuerServer);
const resource = `${origin(resourceServer)}/mcp`;
const SCOPES = ['boxes:read', 'boxes:write'];
const seconds = Number(process.argv[2] ?? 60);

const provider = new Provider(issuer, {
  clients: [
    { client_id: 'service', client_secret: 'the-secret-of-the-service', grant_types: ['client_credentials'], redirect_uris: [], response_types: [], scope: SCOPES.join(' ') },
  ],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    deviceFlow: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, indicator) => ({
        scope: SCOPES.join(' '), audience: indicator, accessTokenFormat: 'jwt', accessTokenTTL: seconds, jwt: { sign: { alg: 'RS256' } },
      }),
      useGrantedResource: () => true,
    },
  },
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access', ...SCOPES],
  rotateRefreshToken: true,
  ttl: { RefreshToken: 3_600, Session: 3_600, Grant: 3_600, Interaction: 600, DeviceCode: 600, ClientCredentials: seconds },
});
authorize = provider.callback();
for (const kind of ['grant.success', 'grant.error', 'grant.revoked', 'registration_create.success', 'server_error', 'authorization.error', 'registration_create.error']) {
  provider.on(kind, (ctx, error) => {
    const { grant_type, resource, scope } = ctx.oidc?.params ?? {};
    console.error(JSON.stringify({ kind, grant_type, resource, scope, error: error instanceof Error ? `${error.message}: ${error.error_description}` : undefined }));
  });
}

const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
const metadata = `${origin(resourceServer)}/.well-known/oauth-protected-resource/mcp`;

function refuse(response, status, error, more = '') {
  response.writeHead(status, { 'www-authenticate': `Bearer error="${error}", resource_metadata="${metadata}"${more}` }).end();
}

answer = async (request, response) => {
  if (request.url === new URL(metadata).pathname) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ resource, authorization_servers: [issuer], scopes_supported: ['boxes:read'], bearer_methods_supported: ['header'] }));
    return;
  }
  let claims;
  try {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    ({ payload: claims } = await jwtVerify(token, keys, { issuer, audience: resource }));
  } catch {
    refuse(response, 401, 'invalid_token', ', scope="boxes:read"');
    return;
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  const body = text ? JSON.parse(text) : undefined;
  if (body?.params?.name === 'write' && !claims.scope.split(' ').includes('boxes:write')) {
    refuse(response, 403, 'insufficient_scope', ', scope="boxes:read boxes:write"');
    return;
  }
  const server = new Server({ name: 'boxes', version: '1' }, { capabilities: { tools: {} } });
  const tool = (name) => ({ name, description: `${name} a box`, inputSchema: { type: 'object' } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: ['read', 'write'].map(tool) }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    const token = createHash('sha256').update(request.headers.authorization).digest('hex').slice(0, 8);
    return { content: [{ type: 'text', text: JSON.stringify({ did: params.name, client: claims.client_id, person: claims.sub, scope: claims.scope, token }) }] };
  });
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  response.on('close', () => { transport.close(); server.close(); });
  await server.connect(transport);
  await transport.handleRequest(request, response, body);
};

console.log(`ready ${JSON.stringify({ issuer, resource })}`);
