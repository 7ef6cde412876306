// Connections: clients that leave, read slowly, speak HTTP/2, send in pieces or send what
// is refused before it is read; keep-alive; another site in the same nginx.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http2 from 'node:http2';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CH, assertError, assertWhole, callsTurn, order, startFixture, textTurn } from './fixture.mjs';
import { KEY, SLOW } from './nginx.mjs';
import { freePort } from '../lib/stack.mjs';

let f;
let h2port;
const OK = textTurn('ok');
const chat = '/v1/chat/completions';

before(async () => {
  h2port = await freePort();
  f = await startFixture({
    server: `
      listen 127.0.0.1:${h2port} http2;
      location /small/v1/ { rewrite ^/small(.*) $1 break; toolgate_api; toolgate_max_body 1k; }
      location /slow/v1/ { rewrite ^/slow(.*) $1 break; toolgate_api; client_body_timeout 300ms; send_timeout 60s; }
      location /hurry/v1/ { rewrite ^/hurry(.*) $1 break; toolgate_api; send_timeout 1s; }
      location = /hello.html { root @DIR@; }
      location /echo { return 200 "$request_method $http_x_mark\\n"; }`,
    models: { hurry: [{ conf: 'proxy_pass http://127.0.0.1:@MODEL@/v1/chat/completions; proxy_http_version 1.1; send_timeout 1s;' }] },
    files: { 'hello.html': 'hello from another site\n' },
  });
});
after(() => f.stop());

/** Sends raw bytes on one connection, in pieces; what came back when it was closed or quiet. */
function raw(pieces, { port = f.nginx.port, quiet = 400 * SLOW, gap = 20, half = false } = {}) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    let got = '';
    let timer;
    const done = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(got);
    };
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(done, quiet);
    };
    socket.setEncoding('latin1');
    socket.on('data', (part) => {
      got += part;
      wait();
    });
    socket.on('close', done);
    socket.on('error', (error) => (got === '' ? reject(error) : done()));
    socket.on('connect', async () => {
      for (const piece of [pieces].flat()) {
        socket.write(piece);
        await sleep(gap);
      }
      if (half) socket.end();
      wait();
    });
  });
}

const head = (path, more = '', method = 'POST') =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n${more}\r\n`;
const statuses = (text) => [...text.matchAll(/HTTP\/1\.1 (\d\d\d)/g)].map((m) => Number(m[1]));

test('C074 the connection goes on after a request that was refused before its body was read', async () => {
  const json = JSON.stringify({ model: 'bare', messages: [{ role: 'user', content: 'x' }] });
  const good = head(chat, `Content-Type: application/json\r\nContent-Length: ${json.length}\r\nConnection: close\r\n`) + json;
  const body = 'x'.repeat(3000);
  for (const [first, status] of [
    [head(chat, `Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n`) + body, 415],
    [head('/v1/nothing', `Content-Length: ${body.length}\r\n`) + body, 404],
    [head('/v1/models', `Content-Length: ${body.length}\r\n`) + body, 405],
    [head('/v1/embeddings', `Content-Length: ${body.length}\r\n`) + body, 501],
    [head(chat, `Content-Length: ${body.length}\r\n`).replace(KEY, 'wrong-key-0123456789') + body, 401],
    [head(`/small${chat}`, `Content-Length: ${body.length}\r\n`) + body, 413],
    [head(chat, 'Content-Length: 1\r\n') + '{', 400],
  ]) {
    f.clear();
    const got = statuses(await raw([first + good]));
    assert.deepEqual(got, [status, 200], `${status} then the next one`);
    const late = statuses(await raw([first.slice(0, -1), first.slice(-1), good]));
    assert.equal(late[0], status);
    assert.ok(late.length === 1 || late[1] === 200);
  }
});

test('many requests on one connection, pipelined, streamed and not', async () => {
  f.clear();
  const one = (stream) => {
    const json = JSON.stringify({ model: 'plain', stream, messages: [{ role: 'user', content: '@call order_status {"order_number":"1"}' }] });
    return head(chat, `Content-Length: ${json.length}\r\n`) + json;
  };
  const got = await raw([one(false) + one(true) + one(false), one(true)]);
  assert.deepEqual(statuses(got), [200, 200, 200, 200]);
  assert.equal(got.split('data: [DONE]').length - 1, 2);
  assert.equal(f.model.journal.length, 8);
});

test('a client that leaves during a model call: the model sees it within a second', async () => {
  for (const model of ['plain', 'm']) {
    f.clear();
    f.model.plan([{ send: CH({ content: 'a' }) }, { hang: true }]);
    const client = await f.nginx.open(f.body({ model }));
    await client.next();
    client.leave();
    await f.model.until(() => f.model.request().closedAt !== undefined, 1000 * SLOW, 'the model call to end');
  }
});

/** A request whose client leaves as soon as leave() is called. */
function leaver(body, { path = chat } = {}) {
  const payload = JSON.stringify(body);
  const socket = net.connect(f.nginx.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.on('data', () => {});
  socket.write(head(path, `Content-Length: ${Buffer.byteLength(payload)}\r\n`) + payload);
  return { leave: () => socket.destroy(), reset: () => socket.resetAndDestroy() };
}

test('a client that leaves before the first byte, streamed and not', async () => {
  for (const model of ['plain', 'm']) {
    for (const stream of [true, false]) {
      for (const how of ['leave', 'reset']) {
        f.clear();
        f.model.plan([{ hang: true }]);
        const client = leaver(f.body({ model, stream }));
        await f.model.until(() => f.model.journal.length === 1);
        client[how]();
        await f.model.until(() => f.model.request().closedAt !== undefined, 1000 * SLOW, `the model call to end (${model} ${how})`);
      }
    }
  }
});

test('a client that leaves during a tool call: the tool sees it within a second', async () => {
  for (const stream of [true, false]) {
    f.clear();
    f.model.plan([{ send: callsTurn({ id: 'a', n: 'lookup', a: '{"kind":"hang","n":"1"}' }, { id: 'b', n: 'lookup', a: '{"kind":"stall","n":"2"}' },
      { id: 'c', n: 'order_status', a: order('1') }) }], [{ send: OK }]);
    const client = leaver(f.body({ model: 'plain', stream }));
    await f.model.until(() => f.tool.count() === 3, 3000, 'three tool calls');
    client.leave();
    await f.model.until(() => f.tool.journal.filter((e) => e.closedEarly).length === 2, 1000 * SLOW, 'the tool calls to end');
    assert.equal(f.model.journal.length, 1);
  }
});

test('a crowd of clients that leave at any moment harms nobody else', async () => {
  f.clear();
  const leavers = Array.from({ length: 60 }, async (_, n) => {
    const client = leaver({ model: n % 3 ? 'plain' : 'm', allow_actions: true, stream: n % 2 === 0,
      messages: [{ role: 'user', content: `@call order_status {"order_number":"${n}"}\n@call lookup {"kind":"drip","n":"1"}\n@slow 5` }] });
    await sleep(n * 3);
    client[n % 5 ? 'leave' : 'reset']();
  });
  const stayers = Array.from({ length: 5 }, () => f.nginx.stream({ model: 'plain', messages: [{ role: 'user', content: '@call order_status {"order_number":"7"}\n@slow 20' }] }));
  await Promise.all(leavers);
  for (const client of await Promise.all(stayers)) assertWhole(client);
});

test('a client that leaves while it sends its body', async () => {
  const socket = net.connect(f.nginx.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`${head(chat, 'Content-Length: 5000000\r\n')}{"messages":[`);
  socket.write('x'.repeat(300_000));
  await sleep(50);
  socket.resetAndDestroy();
  assert.equal((await f.nginx.request('/v1/models')).status, 200);
});

for (const [model, length, pad, rate] of [['m', 1000, 0, 16], ['buffered', 1000, 0, 16], ['plain', 200, 1000, 5]]) {
  test(`a slow client gets the stream byte for byte, and the model is held back: ${model}`, async () => {
    const count = 30_000;
    const content = 'z'.repeat(length);
    const turn = CH({ content, ...(pad ? { pad: 'p'.repeat(pad) } : {}) });
    f.clear();
    f.model.plan([{ send: turn, times: count }, { send: OK }]);
    const client = await f.nginx.open({ model, messages: [{ role: 'user', content: 'x' }] }, { bytesPerSecond: rate * 1e6 });
    await sleep(300);
    if (model !== 'buffered') {
      // what the sockets of both sides hold, and not all of it
      assert.ok(f.model.request().bytesSent < count * turn.length, `${f.model.request().bytesSent}`);
    }
    await client.end(60_000);
    assertWhole(client);
    assert.equal(client.content.length, count * length + 2);
    assert.ok(client.content.startsWith('zzz') && client.content.endsWith('zok'));
  });
}

test('a client that reads nothing is given up after send_timeout, the model with it', async () => {
  f.clear();
  // both locations set it: reading from the model takes the time-out of that one
  f.model.plan([{ send: CH({ content: 'z'.repeat(60_000) }), times: 400 }, { send: OK }]);
  const payload = JSON.stringify(f.body({ model: 'hurry', stream: true }));
  const socket = net.connect(f.nginx.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.pause();
  socket.write(head(`/hurry${chat}`, `Content-Length: ${Buffer.byteLength(payload)}\r\n`) + payload);
  await f.model.until(() => f.model.journal.length === 1);
  await f.model.until(() => f.model.request().closedAt !== undefined, 5000 * SLOW, 'the model call to end');
  socket.destroy();
});

test('bodies in pieces: split anywhere, chunked, broken chunks, too slow', async () => {
  const json = JSON.stringify({ model: 'bare', messages: [{ role: 'user', content: 'طلب 🚚' }] });
  const bytes = Buffer.from(json);
  f.clear();
  const pieces = Array.from({ length: 6 }, (_, n) => bytes.subarray(n * Math.ceil(bytes.length / 6), (n + 1) * Math.ceil(bytes.length / 6)));
  assert.deepEqual(statuses(await raw([head(chat, `Content-Length: ${bytes.length}\r\n`), ...pieces])), [200]);
  assert.equal(f.model.request().json.messages[0].content, 'طلب 🚚');

  const chunked = head(chat, 'Transfer-Encoding: chunked\r\n');
  const chunk = (part) => Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]);
  assert.deepEqual(statuses(await raw([chunked, ...pieces.map(chunk), '0\r\n\r\n'])), [200]);
  assert.equal(f.model.request().json.messages[0].content, 'طلب 🚚');
  const broken = await raw([chunked, chunk(pieces[0]), 'zz\r\nhello']);
  assert.deepEqual(statuses(broken), [400]);
  assert.match(broken, /"code":"invalid_json"/);
  assert.deepEqual(statuses(await raw([chunked, '-1\r\n'])), [400]);
  assert.deepEqual(statuses(await raw([chunked, chunk(Buffer.from('{')), '0\r\n\r\n'])), [400]);
  const slow = await raw([head(`/slow${chat}`, 'Content-Length: 100\r\n'), '{'], { quiet: 1500 * SLOW });
  assert.deepEqual(statuses(slow), [408]);
  assert.match(slow, /"code":"request_timeout"/);
});

test('the limit of the body: at it, one past it, with and without a length', async () => {
  const fill = (size) => {
    const frame = JSON.stringify({ model: 'bare', messages: [{ role: 'user', content: '' }] });
    return frame.replace('""', `"${'x'.repeat(size - frame.length)}"`);
  };
  const path = `/small${chat}`;
  assert.equal((await f.nginx.request(path, { body: fill(1024) })).status, 200);
  assertError(await f.nginx.request(path, { body: fill(1025) }), 413, 'request_too_large');
  const chunked = (size) => raw([head(path, 'Transfer-Encoding: chunked\r\n'), `${size.toString(16)}\r\n${fill(size)}\r\n`, '0\r\n\r\n']);
  assert.deepEqual(statuses(await chunked(1024)), [200]);
  const over = await chunked(1025);
  assert.deepEqual(statuses(over), [413]);
  assert.match(over, /"code":"request_too_large"/);
  f.clear();
  f.model.plan([{ send: OK }]);
  assert.equal((await f.nginx.chat(fill(8 << 20))).status, 200);
  assert.equal(f.model.request().body.length > 8 << 20, true);
  assertError(await f.nginx.chat(fill((8 << 20) + 1)), 413, 'request_too_large');
  assertError(await f.nginx.chat('', { method: 'POST', headers: { 'content-length': 0 } }), 400, 'invalid_json');
  assert.deepEqual(statuses(await raw([head(chat, '')])), [400]);
  assert.deepEqual(statuses(await raw([head(chat, `Content-Length: 99999999999\r\n`)])), [413]);
});

test('Expect: 100-continue', async () => {
  const json = JSON.stringify({ model: 'bare', messages: [{ role: 'user', content: 'x' }] });
  const got = await raw([head(chat, `Content-Length: ${json.length}\r\nExpect: 100-continue\r\n`), json]);
  assert.deepEqual(statuses(got), [100, 200]);
});

test('HTTP/1.0 and a client that closes its sending side after the request', async () => {
  const json = JSON.stringify({ model: 'bare', stream: true, messages: [{ role: 'user', content: 'x' }] });
  const got = await raw([`POST ${chat} HTTP/1.0\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: ${json.length}\r\n\r\n${json}`]);
  assert.match(got, /^HTTP\/1\.1 200/);
  assert.ok(got.endsWith('data: [DONE]\n\n'));
});

/** One request over HTTP/2 without TLS: { status, headers, text, at: times of pieces }. */
function overHttp2(path, body, { onData = () => {} } = {}) {
  return new Promise((resolve, reject) => {
    const session = http2.connect(`http://127.0.0.1:${h2port}`);
    session.on('error', reject);
    const req = session.request({ ':method': body === undefined ? 'GET' : 'POST', ':path': path, authorization: `Bearer ${KEY}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }) });
    let status;
    let headers;
    let text = '';
    const at = [];
    req.setEncoding('utf8');
    req.on('response', (h) => {
      status = h[':status'];
      headers = h;
    });
    req.on('data', (part) => {
      at.push(performance.now());
      text += part;
      onData(text);
    });
    req.on('end', () => {
      session.close();
      resolve({ status, headers, text, at });
    });
    req.on('error', reject);
    req.end(body);
  });
}

test('HTTP/2: a stream, event by event, with a tool', async () => {
  f.clear();
  f.model.plan([{ send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }],
    [{ send: CH({ content: 'a' }) }, { until: 'seen' }, { send: textTurn('b') }]);
  const answer = await overHttp2(chat, JSON.stringify(f.body({ model: 'plain', stream: true })), {
    onData: (text) => text.includes('"a"') && f.model.signal('seen'),
  });
  assert.equal(answer.status, 200);
  assert.ok(answer.text.endsWith('data: [DONE]\n\n'));
  assert.ok(answer.text.includes('"content":"b"'));
  assert.deepEqual(f.codes(), ['ok']);
});

test('HTTP/2: a body of 8 MB, and one that is too large', async () => {
  f.clear();
  const body = (size) => JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(size) }] });
  f.model.plan([{ json: { id: 'x', choices: [] } }]);
  const answer = await overHttp2(chat, body(8_000_000));
  assert.equal(answer.status, 200, answer.text);
  assert.equal(f.model.request().body.length, body(8_000_000).length);
  const over = await overHttp2(chat, body(9_000_000)).catch((error) => ({ error }));
  assert.ok(over.error || over.status === 413, `${over.status}`);
  assert.equal((await overHttp2('/v1/models')).status, 200);
});

test('HTTP/2: a client that leaves', async () => {
  f.clear();
  f.model.plan([{ send: CH({ content: 'a' }) }, { hang: true }]);
  const session = http2.connect(`http://127.0.0.1:${h2port}`);
  session.on('error', () => {});
  const req = session.request({ ':method': 'POST', ':path': chat, authorization: `Bearer ${KEY}` });
  req.on('error', () => {});
  req.end(JSON.stringify(f.body({ model: 'm', stream: true })));
  await new Promise((resolve) => req.once('data', resolve));
  req.close(http2.constants.NGHTTP2_CANCEL);
  await f.model.until(() => f.model.request().closedAt !== undefined, 1000 * SLOW, 'the model call to end');
  f.clear();
  f.model.plan([{ hang: true }]);
  const second = session.request({ ':method': 'POST', ':path': chat, authorization: `Bearer ${KEY}` });
  second.on('error', () => {});
  second.end(JSON.stringify(f.body({ model: 'plain', stream: false })));
  await f.model.until(() => f.model.journal.length === 1);
  session.destroy();
  await f.model.until(() => f.model.request().closedAt !== undefined, 1000 * SLOW, 'the model call to end');
});

test('another site in the same nginx is as it was', async () => {
  const page = await f.nginx.request('/hello.html', { key: null });
  assert.equal(page.status, 200);
  assert.equal(page.text, 'hello from another site\n');
  assert.deepEqual(Object.keys(page.headers).sort(),
    ['accept-ranges', 'connection', 'content-length', 'content-type', 'date', 'etag', 'last-modified', 'server']);
  assert.equal((await f.nginx.request('/echo', { key: null, headers: { 'x-mark': '5' } })).text, 'GET 5\n');
  assert.equal((await f.nginx.request('/none.html', { key: null })).status, 404);
});

test('a big body on another connection does not hold a stream up', async () => {
  f.clear();
  const pace = 10;
  const events = 80;
  f.model.plan([...Array.from({ length: events }, () => [{ send: CH({ content: 'a' }) }, { wait: pace }]).flat(), { send: OK }]);
  const client = await f.nginx.open({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
  f.model.plan([{ send: OK }], [{ send: OK }], [{ send: OK }]);
  const big = JSON.stringify({ model: 'bare', messages: [{ role: 'user', content: 'x"\\n'.repeat(1_000_000) }] });
  const answers = await Promise.all([1, 2, 3].map(() => f.nginx.chat(big)));
  await client.end();
  assert.ok(answers.every((a) => a.status === 200));
  const gaps = client.events.slice(1).map((e, n) => e.at - client.events[n].at);
  const worst = Math.max(...gaps.slice(2));
  console.log(`# worst gap ${worst.toFixed(1)} ms of a stream paced by ${pace} ms`);
  assert.ok(worst < 400 * SLOW, `${worst} ms`);
});

test('x-request-id is of each request, also of refused ones', async () => {
  const ids = new Set();
  for (const [path, options] of [['/v1/models', {}], ['/v1/none', {}], [chat, { body: '{' }], ['/v1/models', { key: null }]]) {
    const { headers } = await f.nginx.request(path, options);
    assert.match(headers['x-request-id'], /^[0-9a-f]{32}$/);
    ids.add(headers['x-request-id']);
  }
  assert.equal(ids.size, 4);
});

test('no key, prompt or result is in the log', async () => {
  f.clear();
  await f.nginx.chat({ model: 'plain', messages: [{ role: 'user', content: 'my secret prompt\n@call order_status {"order_number":"s3cretarg"}' }] });
  await f.nginx.chat('{"model":"plain", broken secret prompt');
  const log = f.nginx.log();
  for (const word of [KEY, 'secret prompt', 's3cretarg', 'wrong-key-0123456789', '0123456789abcdef0123']) {
    assert.ok(!log.includes(word), word);
  }
  assert.ok(fs.readdirSync(`${f.nginx.dir}/body`).length === 0, 'no body was written to a file');
});

