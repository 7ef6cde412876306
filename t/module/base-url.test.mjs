// Agents whose model is named by a base URL: called by the protected client over TLS,
// streamed, with a secret that goes to its own hosts only. What the model does wrong,
// what a slow or a leaving client does, what may not be called at all.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http2 from 'node:http2';
import {
  CH, DONE, FIN, assertBroken, assertError, assertWhole, callsTurn, order, startFixture, stepsOf, textTurn,
} from './fixture.mjs';
import { KEY, SLOW } from './nginx.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { makeTestCa, startMockTool } from '../lib/mock-tool.mjs';
import { openSse, openSseH2 } from '../lib/sse-client.mjs';
import { freePort, tempDir } from '../lib/stack.mjs';

const SILENCE_MS = 15_000;
const STREAM_MAX = 8 * 1024 * 1024;
const SECRET = 'sk-open-sesame-8812';

let dir;
let f;
let vendor;   // the model behind the base URL
let other;    // whoever must not be called
let second;   // a port that speaks HTTP/2
let tight;    // a port whose connections hold little in the kernel

const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);

before(async () => {
  dir = tempDir();
  const ca = makeTestCa(dir, ['model.test', 'wide.test']);
  vendor = await startMockModel({ tls: ca });
  other = await startMockTool({ ca });
  fs.writeFileSync(`${dir}/key`, `${SECRET}\n`);
  const closed = await freePort();
  tight = await freePort();
  second = await freePort();
  const base = (host, port = vendor.port) => `https://${host}:${port}/v1`;
  const agent = (name, model) => ({
    name, model: { name: 'vendor-7b', ...model },
    tools: { allow_anonymous_actions: true, http: [{ tool: 'order_status' }] },
  });
  f = await startFixture({
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_netguard_allow 127.0.0.1/32 ${vendor.port} ${other.port} ${closed};
      toolgate_ca ${ca.file}; toolgate_hosts @DIR@/hosts; toolgate_own_host own.test;`,
    api: 'toolgate_sse_ping 150ms;',
    server: `listen 127.0.0.1:${tight} sndbuf=64k; listen 127.0.0.1:${second} http2;
      location /short/v1/ { rewrite ^/short(.*) $1 break; toolgate_api; toolgate_run_timeout 400ms; }`,
    files: { hosts: ['127.0.0.1 model.test wide.test stranger.test', '127.0.0.2 inner.test', '169.254.169.254 meta.test',
      '127.0.0.1 mixed.test', '10.0.0.1 mixed.test', ''].join('\n') },
    catalog: {
      secrets: [
        { name: 'KEY', value_file: `${dir}/key`, allowed_hosts: ['Model.Test.'] },
        { name: 'PORT_KEY', value_file: `${dir}/key`, allowed_hosts: [`wide.test:${vendor.port}`] },
        { name: 'OTHER_PORT_KEY', value_file: `${dir}/key`, allowed_hosts: ['model.test:443'] },
      ],
    },
    agents: [
      agent('a', { base_url: base('model.test'), secret: 'KEY' }),
      agent('slash', { base_url: `${base('model.test')}/`, secret: 'KEY' }),
      agent('bare', { base_url: `https://model.test:${vendor.port}` }),
      agent('ported', { base_url: base('wide.test'), secret: 'PORT_KEY' }),
      agent('wrong-host', { base_url: base('wide.test'), secret: 'KEY' }),
      agent('wrong-port', { base_url: base('model.test'), secret: 'OTHER_PORT_KEY' }),
      agent('stranger', { base_url: base('stranger.test') }),
      agent('inner', { base_url: base('inner.test') }),
      agent('meta', { base_url: base('meta.test') }),
      agent('mixed', { base_url: base('mixed.test') }),
      agent('no-dns', { base_url: base('nowhere.test') }),
      agent('refused', { base_url: base('model.test', closed) }),
      agent('plain', { base_url: 'http://127.0.0.1:@MODEL@/v1' }),
    ],
  });
});
after(async () => {
  await f?.stop();
  await vendor?.close();
  await other?.close();
  fs.rmSync(dir, { recursive: true, force: true });
});

const OK = textTurn('ok');
const script = (turn) => (typeof turn === 'string' ? [{ send: turn }] : turn);
const question = (more = {}) => ({ model: 'a', messages: [{ role: 'user', content: 'where is 8812?' }], ...more });
const json = (status, value, headers = {}) => [
  { status, headers: { 'content-type': 'application/json', ...headers } }, { send: typeof value === 'string' ? value : JSON.stringify(value) }];

function plan(...turns) {
  f.clear();
  vendor.clear();
  other.clear();
  vendor.plan(...turns.map(script));
}

const ask = (turns, more, options) => {
  plan(...turns);
  return f.nginx.chat(question(more), options);
};
const stream = (turns, more, options) => {
  plan(...turns);
  return f.nginx.stream(question(more), options);
};

test('the whole loop, not streamed: path, headers, body, answer', async () => {
  const answer = await ask([callsTurn({ id: 'c', n: 'order_status', a: order('8812') }), textTurn('It ', 'left.')]);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.choices[0].message.content, 'It left.');
  assert.equal(answer.json.model, 'a');
  assert.deepEqual(stepsOf(answer), [['order_status', 'ok']]);
  assert.deepEqual(f.asked, ['/orders/8812']);
  assert.equal(vendor.journal.length, 2);
  assert.equal(f.model.journal.length, 0, 'the configured model is not asked');

  const [first, second] = vendor.journal;
  assert.equal(first.method, 'POST');
  assert.equal(first.path, '/v1/chat/completions');
  assert.deepEqual(Object.keys(first.headers).sort(),
    ['accept', 'authorization', 'content-length', 'content-type', 'host', 'user-agent'], 'nothing else, and no signature');
  assert.equal(first.headers.host, `model.test:${vendor.port}`);
  assert.equal(first.headers.authorization, `Bearer ${SECRET}`);
  assert.equal(first.headers.accept, 'text/event-stream');
  assert.equal(first.headers['content-type'], 'application/json');
  assert.equal(first.json.model, 'vendor-7b');
  assert.equal(first.json.stream, true);
  assert.equal(first.json.tools[0].function.name, 'order_status');
  assert.deepEqual(JSON.parse(second.json.messages.at(-1).content).items, [{ Order: '8812', Status: 'shipped' }]);
  assert.equal(second.headers.authorization, `Bearer ${SECRET}`);
  assert.equal(second.connection, first.connection, 'the connection is kept for the next turn');
});

test('the whole loop, streamed: text comes as it is written', async () => {
  plan([{ send: CH({ content: 'One ' }) }, { until: 'go' }, { send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }], textTurn('two'));
  const client = await f.nginx.open(question());
  let item = await client.next();
  while (!item.json?.choices?.[0]?.delta?.content) item = await client.next();
  assert.equal(item.json.choices[0].delta.content, 'One ');
  vendor.signal('go');
  await client.end();
  assertWhole(client);
  assert.equal(client.content, 'One \n\ntwo');
});

test('split anywhere', async () => {
  for (const split of [1, 7]) {
    const client = await stream([[{ send: textTurn('h\u00e9llo', ' \u0633\u0644\u0627\u0645'), split }]]);
    assertWhole(client);
    assert.equal(client.content, 'h\u00e9llo \u0633\u0644\u0627\u0645');
  }
});

test('an answer that is no stream is taken as well', async () => {
  const whole = { choices: [{ index: 0, message: { role: 'assistant', content: 'whole' }, finish_reason: 'stop' }] };
  for (const body of [whole]) {
    const answer = await ask([json(200, body)]);
    assert.equal(answer.json.choices[0].message.content, 'whole');
    const client = await stream([json(200, body)]);
    assertWhole(client);
    assert.equal(client.content, 'whole');
  }
});

test('where the base URL ends does not matter', async () => {
  assert.equal((await ask([OK], { model: 'slash' })).status, 200);
  assert.equal(vendor.request().path, '/v1/chat/completions');
  assert.equal((await ask([OK], { model: 'bare' })).status, 200);
  assert.equal(vendor.request().path, '/chat/completions');
  assert.equal(vendor.request().headers.authorization, undefined);
});

test('plain http where the operator permits it', async () => {
  f.clear();
  f.model.plan([{ send: textTurn('plain') }]);
  const answer = await f.nginx.chat(question({ model: 'plain' }));
  assert.equal(answer.json.choices[0].message.content, 'plain');
  assert.equal(f.model.request().headers.authorization, undefined);
});

test('the secret goes to its own hosts only, and into no log', async () => {
  assert.equal((await ask([OK], { model: 'ported' })).status, 200);
  assert.equal(vendor.request().headers.authorization, `Bearer ${SECRET}`);
  for (const model of ['wrong-host', 'wrong-port']) {
    const answer = await ask([OK], { model });
    assertError(answer, 502, 'model_auth_failed');
    assert.match(answer.json.error.message, /allowed_hosts/);
    assertBroken(await stream([OK], { model, stream: true }, {}).then(asBroken), 'model_auth_failed');
    assert.equal(vendor.journal.length, 0);
  }
  assert.match(f.nginx.log(), /model call not begun: secret_host_not_allowed: wide\.test/);
  assert.ok(!f.nginx.log().includes('sesame'));
});

/** A refusal before the first byte of a stream is a plain error answer: both are fine. */
function asBroken(client) {
  if (client.status === 200) return client;
  const error = JSON.parse(client.raw).error;
  return { status: 200, events: [{ json: { error }, data: client.raw }], raw: client.raw };
}

test('addresses that may not be called: nothing is sent', async () => {
  for (const model of ['inner', 'meta', 'mixed']) {
    assertError(await ask([OK], { model }), 502, 'model_unavailable');
  }
  assert.equal(vendor.journal.length, 0);
  assert.match(f.nginx.log(), /address_not_allowed/);
});

test('no name, no listener, a certificate of another name', async () => {
  for (const model of ['no-dns', 'refused', 'stranger']) {
    assertError(await ask([OK], { model }), 502, 'model_unavailable');
    assert.equal(vendor.journal.length, 0, model);
  }
});

test('a redirect is not followed', async () => {
  for (const status of [301, 302, 307, 308]) {
    assertError(await ask([json(status, '{}', { location: `${other.url}/v1/chat/completions` })]), 502, 'model_unavailable');
    assert.equal(vendor.journal.length, 1);
  }
  assert.equal(other.connections, 0);
});

test('statuses of the model', async () => {
  const vendorError = { error: { message: 'Invalid \'temperature\': 9 is too high', code: 'too_high' } };
  const page = [{ status: 502, headers: { 'content-type': 'text/html' } }, { send: '<html>cache-17</html>' }];
  for (const [answered, status, code] of [
    [json(401, { error: { message: 'bad key sk-proj-abc' } }), 502, 'model_auth_failed'],
    [json(403, '{}'), 502, 'model_auth_failed'],
    [json(429, { error: {} }, { 'Retry-After': '17' }), 429, 'model_rate_limited'],
    [json(400, vendorError), 400, 'model_rejected_request'],
    [json(404, vendorError), 400, 'model_rejected_request'],
    [json(408, '{}'), 504, 'model_timeout'],
    [json(504, '{}'), 504, 'model_timeout'],
    [json(500, { error: { message: 'db-7 down' } }), 502, 'model_unavailable'],
    [json(503, ''), 502, 'model_unavailable'],
    [page, 502, 'model_unavailable'],
    [[{ ...page[0], status: 200 }, page[1]], 502, 'model_unavailable'],
    [[{ status: 204, headers: { 'content-type': 'application/json' } }], 502, 'model_unavailable'],
    [json(200, 'no json'), 502, 'model_unavailable'],
    [json(200, '{"choices":[]}'), 502, 'model_unavailable'],
    [json(200, textTurn('packed'), { 'content-encoding': 'gzip' }), 502, 'model_unavailable'],
    [[{ raw: 'hello\r\n' }, { end: true }], 502, 'model_unavailable'],
    [[{ raw: '' }, { reset: true }], 502, 'model_unavailable'],
    [[{ raw: '' }, { end: true }], 502, 'model_unavailable'],
    [[{ raw: 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{' }, { end: true }], 502, 'model_unavailable'],
  ]) {
    const answer = await ask([answered]);
    assert.equal(answer.status, status, `${JSON.stringify(answered)}: ${answer.text}`);
    assert.equal(answer.json.error.code, code, JSON.stringify(answered));
    assertError(answer, status, code);
    assert.ok(!/sk-proj|db-7|cache-17/.test(answer.text));
    if (status === 429) assert.equal(answer.headers['retry-after'], '17');
    if (code === 'model_rejected_request') assert.match(answer.json.error.message, /9 is too high.*too_high/);
    assert.ok(vendor.journal.length <= 1, 'asked once');
  }
});

test('an answer that breaks off', async () => {
  for (const tail of [[{ end: true }], [{ reset: true }], [{ cut: true }], [{ send: 'data: {"choices":' }, { end: true }]]) {
    const turn = [{ send: CH({ content: 'one' }) }, { wait: 20 }, ...tail];
    const client = await stream([turn]);
    assertBroken(client, 'model_stream_broken');
    assert.equal(client.content, 'one');
    assertError(await ask([turn]), 502, 'model_stream_broken');
  }
});

test('a call that is cut does not run', async () => {
  const cut = CH({ tc: [{ i: 0, id: 'c', n: 'order_status', a: order('1') }] });
  assertError(await ask([[{ send: cut }, { wait: 20 }, { cut: true }]]), 502, 'model_stream_broken');
  assert.deepEqual(f.asked, []);
});

test('a model that stays after [DONE], and one that breaks after it', async () => {
  for (const tail of [{ hang: true }, { reset: true }, { cut: true }]) {
    const start = performance.now();
    const client = await stream([[{ send: OK }, { wait: 20 }, tail]]);
    assertWhole(client);
    assert.equal(client.content, 'ok');
    assert.ok(performance.now() - start < 1500 * SLOW);
  }
});

test('what is no event stream ends the turn at once', async () => {
  const start = performance.now();
  assertBroken(await stream([[{ send: CH({ content: 'one' }) }, { send: `data: {broken\n\n${CH({ content: 'two' })}` }, { hang: true }]]), 'model_stream_broken');
  assert.ok(performance.now() - start < 1500 * SLOW);
  await vendor.until(() => vendor.request().closedAt !== undefined, 1000 * SLOW, 'the close');
});

test('8 MiB of an answer are taken and one byte more is not', async () => {
  const comment = (n) => `:${' '.repeat(n - 3)}\n\n`;
  const rest = STREAM_MAX - Buffer.byteLength(OK);
  const pieces = [...Array(7).fill(comment(1 << 20)), comment(rest - 7 * (1 << 20))];
  assertWhole(await stream([[{ send: pieces }, { send: OK }]]));
  const over = await stream([[{ send: CH({ content: 'x' }) }, { send: pieces }, { send: comment(100) }, { send: OK }, { end: true }]]);
  assertBroken(over, 'model_stream_broken');
  assert.match(f.nginx.log(), /model call: unreadable: the answer is over the size bound/);
  const announced = json(200, '{}', { 'content-length': String(STREAM_MAX + 1) });
  assertError(await ask([announced]), 502, 'model_unavailable');
});

test('a request of megabytes arrives as it is', async () => {
  const content = 'a "b" \u00e9\n'.repeat(400_000);
  const answer = await ask([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), OK],
    { messages: [{ role: 'user', content }] });
  assert.equal(answer.status, 200, answer.text.slice(0, 300));
  for (const seen of vendor.journal) assert.equal(seen.json.messages[0].content, content);
  assert.equal(vendor.journal.length, 2);
});

test('a model that answers before it has read the request', async () => {
  const content = 'x'.repeat(6_000_000);
  const answer = await ask([[{ status: 413, headers: { 'content-type': 'application/json', connection: 'close' } },
    { send: '{"error":{"message":"too long"}}' }]], { messages: [{ role: 'user', content }] });
  assertError(answer, 400, 'model_rejected_request');
});

test('a slow client makes the model wait, and costs no memory', async () => {
  const piece = CH({ content: 'y'.repeat(16_000) });
  const times = 500;                                     // about 8 MB
  plan([{ send: piece, times }, { send: FIN('stop') + DONE }]);
  const worker = f.nginx.worker();
  const before = rss(worker);
  const client = await openSse(`http://127.0.0.1:${tight}/v1/chat/completions`,
    { key: KEY, body: question({ stream: true }) });
  client.response.pause();
  await new Promise((resolve) => { setTimeout(resolve, 1000); });
  const held = vendor.request().bytesSent;
  const most = rss(worker);
  await new Promise((resolve) => { setTimeout(resolve, 500); });
  assert.equal(vendor.request().bytesSent, held, 'the model is stopped');
  assert.ok(held < 0.9 * piece.length * times, `${held} bytes left the model`);
  client.response.resume();
  await client.end(60_000);
  assertWhole(client);
  assert.equal(client.content.length, 16_000 * times);
  const grown = Math.max(most, rss(worker)) - before;
  console.log(`# ${held} of ${piece.length * times} bytes left the model, worker grew by ${grown} KiB`);
  assert.ok(SLOW > 1 || grown < 12 * 1024, `${grown} KiB`);
});

test('a client that leaves: the model sees the close within a second', async () => {
  for (const steps of [[{ hang: true }], [{ send: CH({ content: 'a' }) }, { hang: true }],
    [{ send: CH({ content: 'y'.repeat(16_000) }), times: 400 }, { hang: true }]]) {
    plan(steps);
    const client = await f.nginx.open(question());
    await vendor.until(() => vendor.journal.length === 1, 3000 * SLOW, 'the request');
    if (steps.length > 1) await client.next();
    if (steps[0].times) client.response.pause();
    await new Promise((resolve) => { setTimeout(resolve, 200); });
    const left = performance.now();
    client.leave();
    await vendor.until(() => vendor.request().closedAt !== undefined, 1000 * SLOW, 'the close');
    assert.ok(vendor.request().closedAt - left < 1000 * SLOW);
  }
});

test('over HTTP/2: the loop, a slow stream beside a fast one, one that is reset', async () => {
  plan(callsTurn({ id: 'c', n: 'order_status', a: order('1') }), textTurn('two'),
    [{ send: CH({ content: 'y'.repeat(16_000) }), times: 300 }, { send: FIN('stop') + DONE }], OK,
    [{ send: CH({ content: 'a' }) }, { hang: true }]);
  const session = http2.connect(`http://127.0.0.1:${second}`);
  const open = () => openSseH2(session, '/v1/chat/completions', { key: KEY, body: question({ stream: true }) });
  try {
    const loop = await open();
    await loop.end();
    assertWhole(loop);
    assert.equal(loop.content, 'two');

    const slow = await open();
    slow.response.pause();
    await vendor.until(() => vendor.journal.length === 3);
    const fast = await open();
    await fast.end();
    assertWhole(fast);
    slow.response.resume();
    await slow.end();
    assertWhole(slow);
    assert.equal(slow.content.length, 16_000 * 300);

    const leaving = await open();
    await leaving.next();
    const left = performance.now();
    leaving.request.close(http2.constants.NGHTTP2_CANCEL);
    await vendor.until(() => vendor.request().closedAt !== undefined, 1000 * SLOW, 'the close');
    assert.ok(vendor.request().closedAt - left < 1000 * SLOW);
  } finally {
    session.destroy();
  }
});

test('the run\'s deadline holds', async () => {
  for (const steps of [[{ hang: true }], [{ send: CH({ content: 'a' }) }, { hang: true }]]) {
    plan(steps);
    const short = await f.nginx.request('/short/v1/chat/completions', { body: question() });
    assertError(short, 504, 'run_timeout');
    await vendor.until(() => vendor.request().closedAt !== undefined, 1000 * SLOW, 'the close');
  }
});

test('15 s of silence before the first byte, and between two', async () => {
  plan([{ hang: true }], [{ send: CH({ content: 'one' }) }, { hang: true }],
    [{ send: CH({ content: 'a' }) }, { wait: 10_000 }, { send: ': alive\n\n' }, { wait: 10_000 }, { send: textTurn('b') }]);
  const begin = performance.now();
  const took = {};
  const noted = (name, promise) => promise.then((v) => { took[name] = performance.now() - begin; return v; });
  const first = noted('first', f.nginx.chat(question()));
  await vendor.until(() => vendor.journal.length === 1);
  const second = noted('second', f.nginx.stream(question(), { ms: 60_000 }));
  await vendor.until(() => vendor.journal.length === 2);
  const third = f.nginx.stream(question(), { ms: 60_000 });
  assertError(await first, 504, 'model_timeout');
  assertBroken(await second, 'model_stream_broken');
  for (const ms of Object.values(took)) {
    assert.ok(ms > SILENCE_MS - 200 && ms < SILENCE_MS + 3000 * SLOW, `${ms}`);
  }
  const alive = await third;
  assertWhole(alive);
  assert.equal(alive.content, 'ab', 'a byte now and then is enough');
});

test('agents of their own model are listed like all others', async () => {
  const { json: list } = await f.nginx.request('/v1/models');
  assert.deepEqual(list.data.find((m) => m.id === 'a').owned_by, 'toolgate');
  assert.equal(list.data.find((m) => m.id === 'vendor-7b'), undefined);
});

test('reload: a run in flight ends well on the old worker, which leaves nothing', async () => {
  plan([{ send: CH({ content: 'a' }) }, { until: 'go' }, { send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }], textTurn('b'));
  const old = f.nginx.worker();
  const client = await f.nginx.open(question());
  await client.next();
  f.nginx.child.kill('SIGHUP');
  for (const end = Date.now() + 5000 * SLOW; f.nginx.worker() === old && Date.now() < end;) {
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
  assert.notEqual(f.nginx.worker(), old);
  vendor.signal('go');
  await client.end();
  assertWhole(client);
  assert.equal(client.content, 'a\n\nb');
  for (const end = Date.now() + 5000 * SLOW; fs.existsSync(`/proc/${old}`) && Date.now() < end;) {
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
  assert.ok(!fs.existsSync(`/proc/${old}`), 'the old worker has left');
});
