// What lies between a client and us, and what a client breaks off: buffering and gzip on
// the way (C071), requests without a body and resets in the middle of one (C072), the
// count of connections after all of it (C073).

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CH, assertWhole, startFixture, textTurn } from './fixture.mjs';
import { KEY, SLOW } from './nginx.mjs';
import { freePort } from '../lib/stack.mjs';
import { openSse } from '../lib/sse-client.mjs';

let f;
let front;
let h2;
const chat = '/v1/chat/completions';

before(async () => {
  front = await freePort();
  h2 = await freePort();
  f = await startFixture({
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http;
      gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;`,
    server: `
      listen 127.0.0.1:${h2} http2;
      location = /count { stub_status; }
      location /slow/v1/ { rewrite ^/slow(.*) $1 break; toolgate_api; client_body_timeout 200ms; toolgate_max_body 1k; }
    }
    server {
      listen 127.0.0.1:${front};
      gzip off; # its own business, and no means of ours is against it
      location / { proxy_pass http://127.0.0.1:@API@; }
    `,
  });
});
after(() => f.stop());

const head = (path, more = '') => `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n${more}\r\n`;

/** Active connections, this one not counted. */
async function active() {
  const { text } = await f.nginx.request('/count');
  return Number(/Active connections: (\d+)/.exec(text)[1]) - 1;
}

/** Waits until no more connections are open than before. */
async function settled(base) {
  const deadline = Date.now() + 5000 * SLOW;
  for (;;) {
    const now = await active();
    if (now <= base) return;
    assert.ok(Date.now() < deadline, `${now} connections, ${base} before`);
    await sleep(50);
  }
}

/** A model that sends the next piece only when the client has said that it saw the last. */
const paced = (n) => [...Array.from({ length: n }, (_, k) => [{ send: CH({ content: `t${k}` }) }, { until: `seen${k}` }]).flat(),
  { send: textTurn('.') }];

for (const model of ['m', 'plain']) {
  for (const via of ['direct', 'another nginx']) {
    test(`C071 each token is through before the next is sent: ${model}, ${via}, gzip on`, async () => {
      f.clear();
      f.model.plan(paced(5));
      const port = via === 'direct' ? f.nginx.port : front;
      const client = await openSse(`http://127.0.0.1:${port}${chat}`, { key: KEY, headers: { 'accept-encoding': 'gzip' },
        body: { model, stream: true, messages: [{ role: 'user', content: 'x' }] } });
      assert.equal(client.headers['content-encoding'], undefined);
      assert.equal(client.headers['cache-control'], 'no-cache');
      if (via === 'direct') assert.equal(client.headers['x-accel-buffering'], 'no');
      for (let k = 0; k < 5;) {
        const { json } = await client.next(2000 * SLOW);
        if (json.choices[0].delta.content === `t${k}`) f.model.signal(`seen${k++}`);
      }
      await client.end();
      assertWhole(client);
    });
  }

  test(`C071 the same over HTTP/2: ${model}`, async () => {
    f.clear();
    f.model.plan(paced(5));
    const session = http2.connect(`http://127.0.0.1:${h2}`);
    const req = session.request({ ':method': 'POST', ':path': chat, authorization: `Bearer ${KEY}`, 'accept-encoding': 'gzip' });
    req.setEncoding('utf8');
    req.end(JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'x' }] }));
    const headers = await new Promise((resolve) => req.once('response', resolve));
    assert.equal(headers['content-encoding'], undefined);
    let text = '';
    for await (const part of req) {
      text += part;
      for (let k = 0; k < 5; k++) if (text.includes(`"t${k}"`)) f.model.signal(`seen${k}`);
    }
    session.close();
    assert.ok(text.endsWith('data: [DONE]\n\n'));
  });
}

test('an answer that is no stream may be packed', async () => {
  f.clear();
  f.model.plan([{ send: textTurn('z'.repeat(5000)) }]);
  const answer = await f.nginx.chat({ model: 'plain', messages: [{ role: 'user', content: 'x' }] }, { headers: { 'accept-encoding': 'gzip' } });
  assert.equal(answer.headers['content-encoding'], 'gzip');
  assert.ok(answer.bytes.length < 1000);
});

/** Opens a connection, sends text, and resets or closes it after ms. */
function breakOff(text, ms, how = 'resetAndDestroy') {
  return new Promise((resolve) => {
    const socket = net.connect(f.nginx.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('data', () => {});
    socket.on('connect', () => {
      socket.write(text);
      setTimeout(() => socket[how](), ms);
    });
    socket.on('close', resolve);
  });
}

test('C072 resets after "Expect: 100-continue", beside good traffic; POST without a body', async () => {
  f.clear();
  const base = await active();
  const worker = f.nginx.worker();
  const good = (async () => {
    for (let n = 0; n < 20; n++) {
      const answer = await f.nginx.chat({ model: 'plain', messages: [{ role: 'user', content: 'x' }] });
      assert.equal(answer.status, 200);
    }
  })();
  for (let round = 0; round < 15; round++) {
    await Promise.all(Array.from({ length: 40 }, (_, n) =>
      breakOff(head(chat, 'Content-Length: 100\r\nExpect: 100-continue\r\n'), n % 4)));
  }
  await good;
  for (const more of ['Content-Length: 0\r\n', '']) {
    const text = await new Promise((resolve) => {
      const socket = net.connect(f.nginx.port, '127.0.0.1');
      socket.once('data', (part) => {
        socket.destroy();
        resolve(part.toString());
      });
      socket.write(head(chat, more));
    });
    assert.match(text, /^HTTP\/1\.1 400 /);
    assert.match(text, /"code":"invalid_json"/);
  }
  assert.equal(f.nginx.worker(), worker, 'the worker is the same');
  await settled(base);
});

test('C073 no connection is left after 413, 408, 400 and clients that close in each phase', async () => {
  f.clear();
  const base = await active();
  const body = JSON.stringify({ model: 'plain', stream: true, messages: [{ role: 'user', content: '@call order_status {"order_number":"1"}\n@slow 10' }] });
  const whole = head(chat, `Content-Length: ${body.length}\r\n`) + body;
  const broken = [
    head(`/slow${chat}`, 'Content-Length: 5000\r\n') + 'x'.repeat(5000),
    `${head(`/slow${chat}`, 'Transfer-Encoding: chunked\r\n')}1000\r\n${'x'.repeat(0x1000)}\r\n`,
    `${head(`/slow${chat}`, 'Content-Length: 50\r\n')}{`,
    `${head(chat, 'Transfer-Encoding: chunked\r\n')}1\r\n{\r\nzz\r\n`,
    whole.slice(0, 20), whole.slice(0, -10), whole, head(chat, 'Content-Length: 100\r\n'),
  ];
  for (const how of ['resetAndDestroy', 'destroySoon', 'destroy']) {
    await Promise.all(broken.flatMap((text) => [0, 2, 10, 30, 60, 300].map((ms) => breakOff(text, ms, how))));
  }
  await settled(base);
  assert.ok(!/http request count is zero|\[alert\]/.test(f.nginx.log()));
  assertWhole(await f.nginx.stream({ model: 'plain', messages: [{ role: 'user', content: 'x' }] }));
});
