// The test pieces of this folder, tested without toolgate: a mock that does not do what
// its script says would make every test that rests on it worthless.

import test from 'node:test';
import assert from 'node:assert/strict';
import https from 'node:https';
import fs from 'node:fs';
import { startMockModel } from './mock-model.mjs';
import { startMockTool, makeTestCa } from './mock-tool.mjs';
import { openSse } from './sse-client.mjs';
import { text, DONE, textTurn } from './openai-wire.mjs';
import { tempDir } from './stack.mjs';

const ask = (model, body, options) =>
  openSse(`${model.baseUrl}/chat/completions`, { body, ...options });

test('mock model: the second event waits for the signal', async (t) => {
  const model = await startMockModel();
  t.after(() => model.close());
  model.plan([{ send: text('a') }, { until: 'go' }, { send: [text('b'), DONE] }]);
  const client = await ask(model, {});
  assert.equal((await client.next()).json.choices[0].delta.content, 'a');
  await assert.rejects(client.next(100), /no event/);
  model.signal('go');
  assert.equal((await client.next()).json.choices[0].delta.content, 'b');
  assert.equal((await client.next()).data, '[DONE]');
  assert.equal(await client.next(), null);
});

test('mock model: split, reset, cut, raw and a peer that leaves', async (t) => {
  const model = await startMockModel();
  t.after(() => model.close());
  model.plan([{ send: textTurn('x', 'y'), split: 1 }]);
  const split = await ask(model, {});
  await split.end();
  assert.equal(split.content, 'xy');
  assert.ok(split.done);

  model.plan([{ send: text('a') }, { wait: 20 }, { reset: true }]);
  const reset = await ask(model, {});
  await reset.end();
  assert.ok(reset.error);

  model.plan([{ raw: 'HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno' }, { end: true }]);
  const raw = await ask(model, {});
  assert.equal(raw.status, 500);

  model.plan([{ send: text('a') }, { hang: true }]);
  const leaver = await ask(model, {});
  await leaver.next();
  const left = performance.now();
  leaver.leave();
  await model.until(() => model.request().closedAt !== undefined);
  assert.ok(model.request().closedAt - left < 1000);
  assert.equal(model.journal.length, 4);
});

test('mock model: does what the last user message says', async (t) => {
  const model = await startMockModel();
  t.after(() => model.close());
  const messages = [{ role: 'user', content: '@call f {"a":1}\n@call g\n@rounds 1' }];
  const client = await ask(model, { stream: true, messages });
  await client.end();
  const names = client.events.flatMap((e) => e.json?.choices?.[0]?.delta?.tool_calls ?? [])
    .map((c) => c.function.name);
  assert.deepEqual(names, ['f', 'g']);
  messages.push({ role: 'assistant', tool_calls: [] }, { role: 'tool', content: '{"n":7}' });
  const second = await ask(model, { stream: true, messages });
  await second.end();
  assert.equal(second.content, 'results: {"n":7}');
});

test('sse client: a slow reader takes its time', async (t) => {
  const model = await startMockModel();
  t.after(() => model.close());
  model.plan([{ send: text('z'.repeat(1000)), times: 400 }, { send: DONE }]);
  const client = await ask(model, {}, { bytesPerSecond: 400_000 });
  await client.end();
  assert.ok(client.events.at(-1).since > 700, `took ${client.events.at(-1).since} ms`);
});

test('mock tool: its certificate holds for its names only, and it keeps count', async (t) => {
  const dir = tempDir();
  const ca = makeTestCa(dir, ['shop.test']);
  const tool = await startMockTool({ ca });
  t.after(() => tool.close());
  const get = (servername, path) => new Promise((resolve, reject) => {
    https.get({
      host: '127.0.0.1', port: tool.port, path, servername, ca: fs.readFileSync(ca.file),
      headers: { host: servername }, agent: false,
    }, (res) => {
      res.setEncoding('utf8');
      let body = '';
      res.on('data', (part) => { body += part; });
      res.on('end', () => resolve({ status: res.statusCode, body, headers: res.headers }));
    }).on('error', reject);
  });
  assert.equal(JSON.parse((await get('shop.test', '/orders/8812')).body).data[0].number, '8812');
  assert.equal((await get('shop.test', '/status/418')).status, 418);
  assert.equal((await get('shop.test', '/size/5000')).body.length, 5000);
  assert.equal((await get('shop.test', '/redirect?to=http://x/')).headers.location, 'http://x/');
  await assert.rejects(get('other.test', '/orders/1'), /altnames|hostname/i);
  await assert.rejects(get('shop.test', '/reset'));
  assert.equal(tool.count('/orders/'), 1);
  fs.rmSync(dir, { recursive: true });
});
