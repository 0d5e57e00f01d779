// Tokens, and what a model reads and writes in a conversation.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { here } from '../../tests/node/serve.mjs';

const { encode } = createRequire(join(here, 'package.json'))('gpt-tokenizer/encoding/o200k_base');

const known = new Map();
export function tokens(text) {
  let count = known.get(text);
  if (count === undefined) known.set(text, count = encode(text).length);
  return count;
}

// A list of tools, as a host gives it to a model.
export const listTokens = (tools) => tokens(JSON.stringify(tools.map(({ name, description, inputSchema }) => ({ name, description, input_schema: inputSchema }))));
// Calls of one request: [{name, arguments}].
export const callTokens = (calls) => tokens(JSON.stringify(calls));

// A token from the provider's cache costs a tenth of one that is read anew, and a written one costs five times as much.
const [CACHED, WRITTEN] = [0.1, 5];

// A request reads the whole context. The context of the request before it is in the provider's cache.
export class Conversation {
  constructor(prefix) {
    this.context = prefix;
    this.cached = 0;
    Object.assign(this, { requests: 0, in: 0, out: 0, price: 0 });
  }

  read(count) {
    this.context += count;
  }

  say(count) {
    this.requests += 1;
    this.in += this.context;
    this.out += count;
    this.price += this.context - this.cached + CACHED * this.cached + WRITTEN * count;
    this.cached = this.context;
    this.context += count;
  }

  get sums() {
    return { requests: this.requests, in: this.in, out: this.out, total: this.in + this.out, price: Math.round(this.price) };
  }
}
