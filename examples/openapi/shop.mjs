// The service that shop.yaml describes, on 127.0.0.1 at the port of the first argument (8123).
import { createServer } from 'node:http';

const orders = [
  { id: 1, customer: 'Ada', total: 120, status: 'open' },
  { id: 2, customer: 'Grace', total: 80.5, status: 'paid' },
  { id: 3, customer: 'Ada', total: 19.9, status: 'sent' },
];
const pageSize = 2;

const server = createServer(async (request, response) => {
  const reply = (status, data) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(data));
  };
  const url = new URL(request.url, 'http://shop');
  if (request.headers['x-api-key'] !== 'key-of-the-shop') {
    return reply(401, { message: 'the key is wrong' });
  }
  if (url.pathname === '/orders' && request.method === 'GET') {
    const wanted = url.searchParams.getAll('status');
    const found = orders.filter((order) => wanted.length === 0 || wanted.includes(order.status));
    const from = (Number(url.searchParams.get('page') ?? 1) - 1) * pageSize;
    return reply(200, found.slice(from, from + pageSize));
  }
  if (url.pathname === '/orders' && request.method === 'POST') {
    let text = '';
    for await (const piece of request) text += piece;
    const order = { id: orders.length + 1, status: 'open', ...JSON.parse(text) };
    orders.push(order);
    return reply(201, order);
  }
  const order = orders.find((order) => url.pathname === `/orders/${order.id}`);
  return order ? reply(200, order) : reply(404, { message: 'there is no such order' });
});
server.listen(Number(process.argv[2] ?? 8123), '127.0.0.1');
