// A streamed call: the answer as it comes, in every framing; a taker that makes the peer
// wait or has had enough; a body from several buffers; silence in both directions.

import crypto from 'node:crypto';
import net from 'node:net';
import test from 'node:test';
import assert from 'node:assert/strict';
import { reply, serve, sleep } from './peers.mjs';

const MAX = 8 * 1024 * 1024;
const SILENCE_MS = 15_000;
const LATE_MS = 4000;        // on a busy machine
const PIECE = 100_000;

const md5 = (bytes) => crypto.createHash('md5').update(bytes).digest('hex');
const random = (n) => crypto.randomBytes(n);
const until = async (true_, what) => {
  for (let i = 0; i < 150; i++) {
    if (true_()) return;
    await sleep(20);
  }
  assert.fail(`${what} did not happen`);
};

function chunked(body, { trailers = '' } = {}) {
  const parts = [Buffer.from('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n')];
  for (let at = 0; at < body.length; at += PIECE) {
    const part = body.subarray(at, at + PIECE);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailers}\r\n`)]);
}

const framings = {
  'Content-Length': (socket, body) => socket.write(reply(body)),
  chunked: (socket, body) => socket.write(chunked(body)),
  'until close': (socket, body) => socket.end(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), body])),
};

export function streamCases({ probe, certs }) {
  for (const secure of [false, true]) {
    for (const [framing, send] of Object.entries(framings)) {
      const name = `${framing}${secure ? ', TLS' : ''}`;

      test(`a streamed answer, held up on its way or not: ${name}`, async () => {
        let body;
        const server = await serve({ tlsOptions: secure ? certs.good : undefined, answer: ({ socket }) => send(socket, body) });
        for (const [size, stream] of [[0, {}], [1, {}], [3_000_000, {}], [3_000_000, { hold_every: 300_000, hold_ms: 20 }],
          [200_000, { hold_every: 1, hold_ms: 0 }]]) {
          body = random(size);
          const got = await probe.call({ url: server.url('/', 'api.test'), method: 'POST', chain: ['a', '', 'b'], stream, timeout_ms: 20_000 });
          assert.equal(got.code, null, got.detail);
          assert.deepEqual([got.stream.taken, got.stream.md5], [size, md5(body)]);
          assert.equal(got.stream.heads, 1);
          assert.equal(got.stream.status, 200);
          assert.equal(got.body_len, 0);
          if (stream.hold_every > 1) assert.ok(got.stream.holds >= 8, `${got.stream.holds}`);
        }
        await server.close();
      });

      test(`8 MiB are taken and one byte more is not: ${name}`, async () => {
        let size = MAX;
        const server = await serve({ tlsOptions: secure ? certs.good : undefined, answer: ({ socket }) => send(socket, Buffer.alloc(size, 'a')) });
        const whole = await probe.call({ url: server.url('/', 'api.test'), stream: {}, timeout_ms: 20_000 });
        assert.equal(whole.code, null, whole.detail);
        assert.equal(whole.stream.taken, MAX);
        size = MAX + 1;
        const over = await probe.call({ url: server.url('/', 'api.test'), stream: {}, timeout_ms: 20_000 });
        assert.equal(over.code, 'unreadable');
        assert.match(over.detail, /size bound/);
        await server.close();
      });
    }
  }

  test('the head comes once: interim heads and trailers are none', async () => {
    const server = await serve({
      answer: ({ socket }) => socket.write(Buffer.concat([Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'),
        chunked(Buffer.from('hi'), { trailers: 'X-Sum: 1\r\n' })])),
    });
    const got = await probe.call({ url: server.url(), stream: {} });
    assert.equal(got.code, null, got.detail);
    assert.deepEqual({ ...got.stream, md5: 0 }, {
      heads: 1, status: 200, content_type: 'text/event-stream', retry_after: '', content_length: -1, holds: 0, taken: 2, md5: 0 });
    await server.close();
    const busy = await serve({ answer: ({ socket }) => socket.write(reply('{}', { status: '429 No', headers: ['RETRY-AFTER:  17 ', 'Content-Type: a/b'] })) });
    const limited = await probe.call({ url: busy.url(), stream: {} });
    assert.deepEqual([limited.stream.status, limited.stream.retry_after, limited.stream.content_type, limited.stream.content_length], [429, '17', 'a/b', 2]);
    await busy.close();
  });

  test('an encoded answer is none, though tools may take gzip', async () => {
    const server = await serve({ answer: ({ socket }) => socket.write(reply('x', { headers: ['Content-Encoding: gzip'] })) });
    const got = await probe.call({ url: server.url(), stream: {} }, { at: '/gzip' });
    assert.equal(got.code, 'unreadable');
    assert.equal(got.stream.heads, 0);
    assert.doesNotMatch(server.heads[0], /accept-encoding/i);
    await server.close();
  });

  test('a body from many buffers arrives as one, also at the second address', async () => {
    const bodies = [];
    const server = await serve({ tlsOptions: certs.good, answer: ({ socket, body, head }) => { bodies.push([body, head]); socket.write(reply('ok')); } });
    const chain = Array.from({ length: 700 }, (_, i) => (i % 7 === 0 ? '' : String(i % 10).repeat(i * 9)));
    const whole = chain.join('');
    for (const host of ['api.test', 'again.test']) {
      const got = await probe.call({ url: server.url('/', host), method: 'POST', chain, stream: {} });
      assert.equal(got.code, null, got.detail);
      const [body, head] = bodies.pop();
      assert.ok(body.equals(Buffer.from(whole)), host);
      assert.match(head, new RegExp(`^Content-Length: ${whole.length}$`, 'm'));
      assert.doesNotMatch(head, /^(expect|transfer-encoding):/im);
    }
    const collected = await probe.call({ url: server.url('/', 'api.test'), method: 'POST', chain, action: true });
    assert.equal(collected.body, 'ok');
    assert.equal(bodies.pop()[0].toString(), whole, 'a collected call takes a chain as well');
    await server.close();
  });

  test('a kept connection that gives no answer: nothing is sent twice', async () => {
    const server = await serve({ answer: ({ socket, nth }) => { if (nth === 1) socket.write(reply('ok')); else socket.destroy(); } });
    const order = { url: server.url(), method: 'POST', chain: ['x'.repeat(300_000)], stream: {} };
    assert.equal((await probe.call(order)).code, null);
    const got = await probe.call(order);
    assert.equal(got.code, 'upstream_failed');
    assert.match(got.detail, /without an answer/);
    assert.equal(server.requests, 2);
    await server.close();
  });

  test('a taker that has had enough ends the call, in the flow and after a pause', async () => {
    for (const stream of [{ refuse_after: 1 }, { refuse_after: 200_000, hold_every: 200_000, hold_ms: 50 }]) {
      for (const tlsOptions of [undefined, certs.good]) {
        const server = await serve({ tlsOptions, answer: ({ socket }) => socket.write(chunked(random(2_000_000))) });
        const began = Date.now();
        const got = await probe.call({ url: server.url('/', 'api.test'), stream, timeout_ms: 20_000 });
        assert.equal(got.code, 'unreadable');
        assert.match(got.detail, /not taken/);
        assert.ok(Date.now() - began < LATE_MS);
        await until(() => server.closed === 1, 'the close');
        await server.close();
      }
    }
  });

  test('a peer that leaves while it has to wait, and a client that does', async () => {
    const cut = await serve({ answer: ({ socket }) => socket.end(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n'), random(400_000)])) });
    const got = await probe.call({ url: cut.url(), stream: { hold_every: 1, hold_ms: 300 }, timeout_ms: 3000 });
    assert.equal(got.code, 'upstream_failed');
    await cut.close();

    const server = await serve({ tlsOptions: certs.good, answer: ({ socket }) => socket.write(chunked(random(6_000_000))) });
    const leave = new AbortController();
    const call = probe.call({ url: server.url('/', 'api.test'), stream: { hold_every: 1, hold_ms: 20_000 }, timeout_ms: 25_000 }, { signal: leave.signal });
    call.catch(() => {});
    await until(() => server.requests === 1, 'the request');
    await sleep(200);
    leave.abort();
    await until(() => server.closed === 1, 'the close');
    await assert.rejects(call);
    await server.close();
  });

  test('the bound of a streamed call is its own, not that of tools; it holds while it waits', async () => {
    const server = await serve({ answer: ({ socket }) => socket.write(chunked(random(400_000))) });
    const began = Date.now();
    const got = await probe.call({ url: server.url(), stream: { hold_every: 1, hold_ms: 10_000 }, timeout_ms: 700 });
    assert.equal(got.code, 'upstream_failed');
    assert.equal(got.timed_out, true);
    assert.ok(Date.now() - began < 700 + LATE_MS);
    await until(() => server.closed === 1, 'the close');
    await server.close();
  });

  test('15 s of silence end a streamed call, but not those of its own taker', async () => {
    const silent = await serve({ answer: () => {} });
    const middle = await serve({ answer: ({ socket }) => socket.write('HTTP/1.1 200 OK\r\n\r\nabc') });
    const slow = await serve({
      tlsOptions: certs.good,
      answer: async ({ socket }) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n');
        for (const byte of 'abcd') { await sleep(5000); socket.write(byte); }
      },
    });
    const held = await serve({ answer: ({ socket }) => socket.write(reply(random(200_000))) });
    // takes the head of the request and then nothing of its body
    const deafTo = net.createServer((socket) => { socket.on('error', () => {}); socket.pause(); }).listen(0, '127.0.1.1');
    await new Promise((done) => deafTo.once('listening', done));
    const order = { stream: {}, timeout_ms: 28_000, method: 'POST', chain: ['x'] };
    const began = Date.now();
    const [first, between, alive, waited, upload] = await Promise.all([
      probe.call({ ...order, url: silent.url() }), probe.call({ ...order, url: middle.url() }),
      probe.call({ ...order, url: slow.url('/', 'api.test') }),
      probe.call({ ...order, url: held.url(), stream: { hold_every: 150_000, hold_ms: SILENCE_MS + 1500 } }),
      probe.call({ ...order, url: `http://127.0.1.1:${deafTo.address().port}/`, chain: Array(3).fill('y'.repeat(1_000_000)) }),
    ]);
    for (const got of [first, between, upload]) {
      assert.equal(got.code, 'upstream_failed');
      assert.equal(got.timed_out, true);
      assert.ok(got.took >= SILENCE_MS - 100 && got.took < SILENCE_MS + LATE_MS, `${got.took}`);
    }
    assert.equal(first.stream.heads, 0);
    assert.equal(between.stream.taken, 3);
    assert.equal(alive.code, null, alive.detail);
    assert.equal(alive.stream.taken, 4);
    assert.equal(waited.code, null, waited.detail);
    assert.equal(waited.stream.taken, 200_000);
    assert.ok(waited.took > SILENCE_MS);
    assert.ok(Date.now() - began < 25_000);
    deafTo.close();
    for (const server of [silent, middle, slow, held]) await server.close();
  });
}
