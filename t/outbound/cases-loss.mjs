// Answers that do not come: silence, stalls, resets, and what is said about actions.

import test from 'node:test';
import assert from 'node:assert/strict';
import { reply, serve, sleep } from './peers.mjs';

const SLACK_MS = 500;
const near = (got, want) => assert.ok(Math.abs(got.took - want) < SLACK_MS, `${got.took} ms instead of ${want}`);

export function lossCases({ probe, certs, deaf, zone }) {
  const every = (socket, ms, text) => {
    const timer = setInterval(() => socket.write(text), ms);
    socket.on('close', () => clearInterval(timer));
  };

  const stalls = [
    ['accepts and is silent', {}, true],
    ['drips the head', { answer: ({ socket }) => { socket.write('HTTP/1.1 200 OK\r\n'); every(socket, 200, 'X: y\r\n'); } }, true],
    ['drips the body', { answer: ({ socket }) => { socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n'); every(socket, 200, 'z'); } }, true],
    ['drips chunks', { answer: ({ socket }) => { socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'); every(socket, 200, '1\r\nz\r\n'); } }, true],
    ['stalls in the TLS handshake', { raw: (socket) => socket.resume(), https: true }, false],
    ['drips into the TLS handshake', { raw: (socket) => { socket.resume(); every(socket, 200, '\x16'); }, https: true }, null],
  ];

  for (const [what, options, sent] of stalls) {
    test(`C080 a peer that ${what} ends with the call's time`, async () => {
      const server = await serve({ answer: () => {}, ...options });
      const url = options.https ? server.url().replace('http:', 'https:') : server.url();
      const calls = [false, true].map((action) => probe.call({ url, action, timeout_ms: 1500 }));
      const [read, action] = await Promise.all(calls);
      assert.equal(read.code, 'upstream_failed');
      assert.equal(action.code, sent ? 'outcome_unknown' : 'upstream_failed');
      if (sent !== null) {
        near(read, 1500);
        near(action, 1500);
        assert.equal(action.bytes_sent, sent);
        assert.match(action.detail, /timed out/);
      }
      await sleep(100);
      assert.equal(server.closed, server.connections, 'connections are closed');
      await server.close();
    });
  }

  test('C080 a TLS stall longer than the connect time-out is not cut by it', async () => {
    const server = await serve({ raw: (socket) => socket.resume() });
    const got = await probe.call({ url: server.url().replace('http:', 'https:'), timeout_ms: 4000 });
    assert.equal(got.code, 'upstream_failed');
    near(got, 4000);
    await server.close();
  });

  test('C080 an address that drops SYN: 3 s, not the whole call, and not twice', async () => {
    const [read, action, short] = await Promise.all([
      probe.call({ url: deaf.url, timeout_ms: 8000 }), probe.call({ url: deaf.url, timeout_ms: 8000, action: true }),
      probe.call({ url: deaf.url, timeout_ms: 1000 })]);
    for (const got of [read, action]) {
      assert.equal(got.code, 'upstream_failed');
      assert.match(got.detail, /connect timed out/);
      assert.equal(got.bytes_sent, false);
      near(got, 3000);
    }
    near(short, 1000);
  });

  test('an address that drops SYN beside one that answers', async () => {
    const port = Number(new URL(deaf.url).port);
    const server = await serve({ host: '127.0.1.2', port, answer: ({ socket }) => socket.write(reply('second')) });
    zone['half-deaf.test'] = (type) => (type === 'A' ? ['127.0.1.1', '127.0.1.2'] : []);
    const got = await probe.call({ url: server.url('/', 'half-deaf.test'), timeout_ms: 8000, action: true });
    assert.equal(got.body, 'second', got.detail);
    assert.ok(got.took < 3000 + SLACK_MS);
    await server.close();
  });

  test('no call is longer than 15 s', async () => {
    const server = await serve({ answer: () => {} });
    near(await probe.call({ url: server.url(), timeout_ms: 60_000 }), 15_000);
    await server.close();
  });

  const losses = [
    ['closes without an answer', (socket) => socket.end()],
    ['resets without an answer', (socket) => socket.resetAndDestroy()],
    ['resets in the head', (socket) => { socket.write('HTTP/1.1 200 OK\r\nX: '); setTimeout(() => socket.resetAndDestroy(), 50); }],
    ['resets in the body', (socket) => { socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789'); setTimeout(() => socket.resetAndDestroy(), 50); }],
    ['ends in the body', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789')],
    ['ends in a chunk', (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n0123')],
    ['ends before the last chunk', (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n')],
    ['sends a bad chunk size', (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n')],
    ['says continue and leaves', (socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n')],
    ['switches protocols', (socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n')],
  ];

  for (const [what, lose] of losses) {
    test(`C075 a peer that ${what}: said truly, and sent once`, async () => {
      const server = await serve({ answer: ({ socket }) => lose(socket) });
      const read = await probe.call({ url: server.url() });
      assert.equal(read.code, 'upstream_failed');
      assert.equal(read.bytes_sent, true);
      assert.equal(server.requests, 1);
      const action = await probe.call({ url: server.url(), method: 'POST', body: '{"a":1}', action: true });
      assert.equal(action.code, 'outcome_unknown');
      assert.equal(action.bytes_sent, true);
      assert.equal(action.body_len, 0);
      await sleep(100);
      assert.equal(server.requests, 2);
      await server.close();
    });
  }

  test('TLS: an answer until close needs the close to be said', async () => {
    // the TCP side is cut without a close_notify
    const server = await serve({
      tlsOptions: certs.good,
      answer: ({ socket }) => { socket.write('HTTP/1.1 200 OK\r\n\r\nhalf'); setTimeout(() => server.sockets.forEach((s) => s.destroy()), 50); },
    });
    const got = await probe.call({ url: server.url('/', 'api.test'), action: true });
    assert.equal(got.code, 'outcome_unknown', got.body);
    await server.close();
  });

  test('nobody listens: upstream_failed at once, also for an action', async () => {
    const server = await serve({ answer: () => {} });
    await server.close();
    for (const action of [false, true]) {
      const got = await probe.call({ url: server.url(), action });
      assert.equal(got.code, 'upstream_failed');
      assert.equal(got.bytes_sent, false);
      assert.ok(got.took < SLACK_MS);
    }
  });

  test('a read that could not connect is tried once more, an action is not', async () => {
    const server = await serve({ raw: (socket) => socket.resetAndDestroy() });
    const url = server.url().replace('http:', 'https:');
    assert.equal((await probe.call({ url })).code, 'upstream_failed');
    assert.equal(server.connections, 2);
    const action = await probe.call({ url, action: true });
    assert.equal(action.code, 'upstream_failed');
    assert.equal(action.bytes_sent, false);
    assert.equal(server.connections, 3);
    await server.close();
  });

  for (const secure of [false, true]) {
    for (const [how, drop] of [['closed', (s) => s.end()], ['reset', (s) => s.resetAndDestroy()]]) {
      test(`a read after the kept connection was ${how}${secure ? ', TLS' : ''}: sent once, on a new one`, async () => {
        const server = await serve({
          tlsOptions: secure ? certs.good : undefined,
          answer: ({ socket, n }) => socket.write(reply(String(n))),
        });
        const url = server.url('/', 'api.test');
        assert.equal((await probe.call({ url })).body, '1');
        server.sockets.forEach(drop);
        await sleep(100);
        const again = await probe.call({ url });
        assert.equal(again.body, '2', again.detail);
        assert.equal(server.connections, 2);
        assert.equal(server.requests, 2);
        await server.close();
      });
    }
  }

  test('a kept connection that closes on the second read: nothing is sent twice', async () => {
    const server = await serve({ answer: ({ socket, nth, n }) => (nth === 1 ? socket.write(reply(String(n))) : socket.end()) });
    assert.equal((await probe.call({ url: server.url() })).body, '1');
    const lost = await probe.call({ url: server.url() });
    assert.equal(lost.code, 'upstream_failed');
    assert.equal(lost.bytes_sent, true);
    await sleep(100);
    assert.equal(server.requests, 2);
    const action = await probe.call({ url: server.url(), action: true });
    assert.equal(action.body, '3', 'an action is not put on a kept connection');
    await server.close();
  });
}
