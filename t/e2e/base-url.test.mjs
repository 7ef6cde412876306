// The official openai client against an agent whose model is an API of its own, named by
// a base URL: over TLS, with a key, an HTTP tool in between, streamed and not, an abort.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { npm } from '../lib/npm.mjs';
import { startStack, tempDir } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { makeTestCa, startMockTool } from '../lib/mock-tool.mjs';
import { text } from '../lib/openai-wire.mjs';

const OpenAI = npm('openai');
const SECRET = 'sk-e2e-sesame';

let dir;
let vendor;
let shop;
let stack;
let client;

before(async () => {
  dir = tempDir();
  const ca = makeTestCa(dir);
  vendor = await startMockModel({ tls: ca });
  shop = await startMockTool({ ca });
  fs.writeFileSync(`${dir}/key`, `${SECRET}\n`);
  const own = (host) => ({ base_url: vendor.baseUrl, name: 'vendor-7b', secret: host });
  stack = await startStack({
    allow: ['127.0.0.1/32'], ca: ca.file,
    catalog: {
      secrets: [{ name: 'KEY', value_file: `${dir}/key`, allowed_hosts: ['127.0.0.1'] },
        { name: 'OTHER', value_file: `${dir}/key`, allowed_hosts: ['api.example.com'] }],
      tools: [{
        name: 'order_status', description: 'State of an order.',
        config: {
          method: 'GET', url: `${shop.url}/orders/{{args.order_number}}`,
          parameters: { type: 'object', properties: { order_number: { type: 'string' } }, required: ['order_number'], additionalProperties: false },
          response: { items_path: 'data', fields: [{ path: 'status', label: 'Status' }] },
        },
      }],
      agents: [{ name: 'own', model: own('KEY'), tools: { http: [{ tool: 'order_status' }] } }, { name: 'misplaced', model: own('OTHER') }],
    },
  });
  client = new OpenAI({ baseURL: stack.baseURL, apiKey: stack.key, maxRetries: 0, timeout: 20_000 });
});
after(async () => {
  await vendor?.close();
  await shop?.close();
  await stack?.stop();
  fs.rmSync(dir, { recursive: true, force: true });
});

const messages = [{ role: 'user', content: '@call order_status {"order_number":"8812"}' }];

test('a tool loop, not streamed and streamed', async () => {
  const answer = await client.chat.completions.create({ model: 'own', messages });
  assert.match(answer.choices[0].message.content, /results: .*shipped/);
  assert.deepEqual(answer.toolgate.steps.map((s) => [s.tool, s.ok]), [['order_status', true]]);
  assert.ok(answer.usage.total_tokens > 0);
  let said = '';
  for await (const chunk of await client.chat.completions.create({ model: 'own', messages, stream: true })) {
    said += chunk.choices[0]?.delta?.content ?? '';
  }
  assert.match(said, /results: .*shipped/);
  assert.equal(vendor.journal.length, 4);
  for (const seen of vendor.journal) {
    assert.equal(seen.headers.authorization, `Bearer ${SECRET}`);
    assert.equal(seen.json.model, 'vendor-7b');
  }
  assert.deepEqual(shop.journal.map((e) => [e.path, e.headers.authorization]), Array(2).fill(['/orders/8812', undefined]));
});

test('a key that may not go there is an error, and no request', async () => {
  vendor.clear();
  await assert.rejects(client.chat.completions.create({ model: 'misplaced', messages }),
    (error) => error instanceof OpenAI.InternalServerError && error.code === 'model_auth_failed');
  assert.equal(vendor.journal.length, 0);
});

test('an aborted stream ends the model call within a second', async () => {
  vendor.clear();
  vendor.plan([{ send: text('first') }, { hang: true }]);
  const stream = await client.chat.completions.create({ model: 'own', messages, stream: true });
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta?.content) break;
  }
  const left = performance.now();
  stream.controller.abort();
  await vendor.until(() => vendor.request().closedAt !== undefined, 3000, 'the close');
  assert.ok(vendor.request().closedAt - left < 1000);
});

test('no log has the key', () => {
  for (const file of fs.readdirSync(`${stack.state}/logs`)) {
    assert.ok(!fs.readFileSync(`${stack.state}/logs/${file}`, 'utf8').includes('sesame'), file);
  }
});
