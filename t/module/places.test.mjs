// A model's places and connections: the next place in any turn until that turn has shown
// something, connections that are kept, other peers of one upstream, big bodies to a model
// that does not read them.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CH, DONE, FIN, assertBroken, assertError, assertWhole, callsTurn, order, startFixture, textTurn,
} from './fixture.mjs';
import { KEY, SLOW } from './nginx.mjs';
import { startMockModel } from '../lib/mock-model.mjs';

let f;
let second;
let deaf;
const deafSockets = new Set();
const OK = textTurn('ok');
const call = () => callsTurn({ id: 'c', n: 'order_status', a: order('1') });
const conf = (upstream, more = '') => `proxy_pass http://${upstream}/v1/chat/completions; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_read_timeout 2s; ${more}`;

before(async () => {
  second = await startMockModel();
  // accepts and never reads
  deaf = net.createServer((socket) => {
    socket.pause();
    deafSockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => deafSockets.delete(socket));
  });
  await new Promise((resolve) => deaf.listen(0, '127.0.0.1', resolve));
  const model = await startMockModel();
  const port = model.port;
  await model.close();
  f = await startFixture({
    api: 'toolgate_sse_ping 100ms;',
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http;
      upstream kept { server 127.0.0.1:@MODEL@; keepalive 4; }
      upstream pair { server 127.0.0.1:@MODEL@ max_fails=0; server 127.0.0.1:${second.port} backup; }
      upstream half { server 127.0.0.1:${port}; server 127.0.0.1:@MODEL@; }`,
    models: {
      kept: [{ conf: conf('kept', 'proxy_buffering off;') }],
      pair: [{ conf: conf('pair', 'proxy_buffering off; proxy_next_upstream error timeout http_500 non_idempotent;') }],
      half: [{ conf: conf('half') }],
      two: [{ conf: conf('127.0.0.1:@MODEL@', 'proxy_buffering off;') }, { conf: conf(`127.0.0.1:${second.port}`, 'proxy_buffering off;') }],
      deaf: [{ conf: conf(`127.0.0.1:${deaf.address().port}`, 'proxy_send_timeout 600ms;') }],
    },
    agents: ['kept', 'pair', 'half', 'two', 'deaf'].map((model) => (
      { name: `a-${model}`, model, tools: { http: [{ tool: 'order_status' }] } })),
  });
});
after(async () => {
  await f?.stop();
  await second.close();
  for (const socket of deafSockets) socket.destroy();
  deaf.close();
});

/** Plans for the first and the second place of "two"; then a chat. */
async function two(first, next, more) {
  f.clear();
  second.clear();
  f.model.plan(...first);
  second.plan(...next);
  return more.stream ? f.nginx.stream(f.body({ model: 'a-two', ...more })) : f.nginx.chat(f.body({ model: 'a-two', ...more }));
}

const fail = [{ status: 503 }];
const send = (bytes) => [{ send: bytes }];

test('a later turn goes to the next place when the first fails, also after text was shown', async () => {
  for (const stream of [false, true]) {
    const answer = await two([send(CH({ content: 'Let me look.' }) + call()), fail], [send(OK)], { stream });
    const text = stream ? answer.content : answer.json.choices[0].message.content;
    assert.equal(text, 'Let me look.\n\nok');
    assert.equal(f.model.journal.length, 2);
    assert.equal(second.journal.length, 1);
    assert.deepEqual(second.request().json.messages, f.model.request().json.messages);
    if (stream) assertWhole(answer);
  }
});

test('a ping before the first byte does not tie a turn to its place', async () => {
  const answer = await two([[{ wait: 250 }, ...fail]], [send(OK)], { stream: true });
  assertWhole(answer);
  assert.ok(answer.comments.length >= 1);
  assert.equal(answer.content, 'ok');
  const relay = await (async () => {
    f.clear();
    second.clear();
    f.model.plan([{ wait: 250 }, ...fail]);
    second.plan(send(OK));
    return f.nginx.stream(f.body({ model: 'two' }));
  })();
  assertWhole(relay);
  assert.equal(relay.content, 'ok');
});

test('what a turn has shown is not shown again by another place', async () => {
  for (const delta of [{ content: 'half' }, { reasoning_content: 'half' }, { refusal: 'half' }]) {
    for (const stream of [false, true]) {
      const answer = await two([send(CH(delta))], [send(OK)], { stream });
      if (stream) assertBroken(answer, 'model_stream_broken');
      else assertError(answer, 502, 'model_stream_broken');
      assert.equal(second.journal.length, 0);
    }
  }
  // calls are not shown: nothing of them can be doubled
  const answer = await two([send(CH({ tc: [{ i: 0, id: 'c', n: 'order_status', a: '{"order' }] }))], [send(call()), send(OK)], {});
  assert.equal(answer.status, 200, answer.text);
  assert.equal(f.tool.count(), 1);
});

test('all places fail: the last one\'s fault is told', async () => {
  const limited = [{ status: 429, headers: { 'retry-after': '9' } }];
  const answer = await two([fail], [limited], {});
  assertError(answer, 429, 'model_rate_limited');
  assert.equal(answer.headers['retry-after'], '9');
});

test('connections to the model are kept between turns and runs', async () => {
  f.clear();
  for (let n = 0; n < 3; n++) {
    f.model.plan(send(call()), [{ send: OK }, { wait: 30 }]);
    const answer = await f.nginx.stream(f.body({ model: 'a-kept' }));
    assertWhole(answer);
  }
  assert.equal(f.model.journal.length, 6);
  assert.equal(new Set(f.model.journal.map((e) => e.connection)).size, 1);
});

test('a kept connection that is given up is not used again', async () => {
  f.clear();
  f.model.plan(send(CH({ content: 'a' }) + 'data: {"error":{"message":"x"}}\n\n'), send(OK));
  assertBroken(await f.nginx.stream(f.body({ model: 'a-kept' })), 'model_stream_broken');
  f.model.plan();
  assertWhole(await f.nginx.stream(f.body({ model: 'a-kept' })));
  f.clear();
  f.model.plan([{ send: CH({ content: 'a' }) }, { hang: true }], send(OK));
  const client = await f.nginx.open(f.body({ model: 'a-kept' }));
  await client.next();
  client.leave();
  await f.model.until(() => f.model.request().closedAt !== undefined);
  const after2 = await f.nginx.stream(f.body({ model: 'a-kept' }));
  assertWhole(after2);
  assert.equal(after2.content, 'ok');
  assert.notEqual(f.model.request(0).connection, f.model.request(1).connection);
});

test('another peer of the same upstream gets the whole body again', async () => {
  const big = 'x'.repeat(3_000_000);
  for (const model of ['a-pair', 'pair']) {
    for (const script of [[{ raw: '' }, { reset: true }], [{ status: 500 }]]) {
      f.clear();
      second.clear();
      f.model.plan(script);
      second.plan(send(OK));
      const client = await f.nginx.stream(f.body({ model, messages: [{ role: 'user', content: big }, { role: 'developer', content: 'd' }] }));
      assertWhole(client);
      const [one, other] = [f.model.request(), second.request()];
      assert.ok(one.body.equals(other.body), `${one.body.length} and ${other.body.length} bytes`);
      assert.equal(other.json.messages[0].content.length, big.length);
    }
  }
  const half = await f.ask([OK], { model: 'a-half', messages: [{ role: 'user', content: big }] });
  assert.equal(half.status, 200);
});

test('a model that does not read a big body: a time-out, and a client that leaves', async () => {
  const body = f.body({ model: 'a-deaf', messages: [{ role: 'user', content: 'x'.repeat(7_900_000) }] });
  const start = performance.now();
  assertError(await f.nginx.chat(body), 504, 'model_timeout');
  assert.ok(performance.now() - start < 4000 * SLOW);

  const payload = JSON.stringify({ ...body, model: 'deaf' });
  const socket = net.connect(f.nginx.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: ${payload.length}\r\n\r\n`);
  await new Promise((resolve) => socket.write(payload, resolve));
  await sleep(100);
  socket.destroy();
  await sleep(100);
  assert.equal((await f.nginx.request('/v1/models')).status, 200);
});

test('a model that answers before it has read the body', async () => {
  const early = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.pause();
      const said = '{"error":{"message":"too long for me","code":"context_length_exceeded"}}';
      socket.write(`HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${said.length}\r\nConnection: close\r\n\r\n${said}`);
      setTimeout(() => socket.resume(), 200);
    });
  });
  await new Promise((resolve) => early.listen(0, '127.0.0.1', resolve));
  const g = await startFixture({ models: { early: [{ url: `http://127.0.0.1:${early.address().port}` }] },
    agents: [{ name: 'a', model: 'early' }] });
  try {
    for (const model of ['a', 'early']) {
      const answer = await g.nginx.chat(g.body({ model, messages: [{ role: 'user', content: 'x'.repeat(4_000_000) }] }));
      assert.equal(answer.status, 400, answer.text);
      assert.match(answer.json.error.message, /too long for me/);
    }
  } finally {
    await g.stop();
    early.close();
  }
});

test('a conversation of ten thousand messages', async () => {
  const messages = Array.from({ length: 10_000 }, (_, n) => ({ role: n % 2 ? 'assistant' : 'user', content: `m${n}` }));
  messages.push({ role: 'developer', content: 'last' });
  const answer = await f.ask([call(), OK], { model: 'a-kept', messages });
  assert.equal(answer.status, 200);
  const up = f.model.request(1).json.messages;
  assert.equal(up.length, 10_003);
  assert.deepEqual(up.slice(-3).map((m) => m.role), ['system', 'assistant', 'tool']);
});

test('a turn of very many small pieces', async () => {
  const client = await f.stream([CH({ content: 'a' }).repeat(20_000) + FIN('stop') + DONE], { model: 'a-kept' });
  assertWhole(client);
  assert.equal(client.content.length, 20_000);
});

test('OPTIONS, HEAD and TRACE', async () => {
  for (const method of ['OPTIONS', 'HEAD', 'TRACE']) {
    const answer = await f.nginx.request('/v1/models', { method });
    assert.equal(answer.status, 405);
  }
});
