// The worker around the calls: cancel, many at once, too few connections, reload.

import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import assert from 'node:assert/strict';
import { reply, serve, sleep } from './peers.mjs';
import { Probe } from './probe.mjs';

const until = async (true_, what) => {
  for (let i = 0; i < 100; i++) {
    if (true_()) return;
    await sleep(20);
  }
  assert.fail(`${what} did not happen`);
};

export function workerCases({ probe, certs, zone, deaf, dir, module }) {
  test('a client that leaves ends its call at once, in each phase', async () => {
    zone['never.test'] = () => null;
    const silent = await serve({ answer: () => {} });
    const handshake = await serve({ raw: (socket) => socket.resume() });
    const body = await serve({ answer: ({ socket }) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc') });

    for (const [url, server] of [[silent.url(), silent], [handshake.url().replace('http:', 'https:'), handshake], [body.url(), body],
      ['https://never.test/', null], [deaf.url, null]]) {
      const leave = new AbortController();
      const call = probe.call({ url, timeout_ms: 10_000, action: true }, { signal: leave.signal });
      call.catch(() => {});
      if (server) await until(() => server.connections === 1, 'the connection');
      await sleep(100);
      const left = Date.now();
      leave.abort();
      if (server) {
        await until(() => server.closed === 1, 'the close');
        assert.ok(Date.now() - left < 500);
      }
      await assert.rejects(call);
    }
    assert.equal((await probe.ping()), true);
    for (const server of [silent, handshake, body]) await server.close();
  });

  test('while calls of every kind wait, others are answered as always', async () => {
    zone['waits.test'] = () => null;
    const silent = await serve({ answer: () => {} });
    const handshake = await serve({ raw: (socket) => socket.resume() });
    const urls = [silent.url(), handshake.url().replace('http:', 'https:'), deaf.url, 'https://waits.test/'];
    const calls = Array.from({ length: 40 }, (_, i) => probe.call({ url: urls[i % 4], timeout_ms: 2500, action: i % 8 < 4 }));
    const times = [];
    while (times.length < 100) {
      const began = performance.now();
      assert.equal(await probe.ping(), true);
      times.push(performance.now() - began);
      await sleep(20);
    }
    for (const got of await Promise.all(calls)) assert.notEqual(got.code, null);
    times.sort((a, b) => a - b);
    console.log(`# an answer beside 40 waiting calls: median ${times[50].toFixed(1)} ms, slowest ${times[99].toFixed(1)} ms`);
    assert.ok(times[50] < 100 && times[99] < 1500);
    await silent.close();
    await handshake.close();
  });

  test('clients leave at random moments, hundreds of times', async () => {
    const server = await serve({
      tlsOptions: certs.good,
      answer: ({ socket }) => setTimeout(() => socket.writable && socket.write(reply('ok')), Math.random() * 20),
    });
    const outcomes = { done: 0, left: 0 };
    const batch = (within) => Promise.all(Array.from({ length: 30 }, async () => {
      const leave = new AbortController();
      const timer = setTimeout(() => leave.abort(), Math.random() * within);
      const call = probe.call({ url: server.url('/', 'api.test'), action: Math.random() < 0.5 }, { signal: leave.signal });
      await call.then(() => outcomes.done++, () => outcomes.left++);
      clearTimeout(timer);
    }));
    const began = Date.now();
    await batch(60_000); // how long one takes that nobody leaves
    const took = Date.now() - began;
    for (let round = 0; round < 12; round++) await batch(took);
    console.log(`# ${outcomes.done} finished, ${outcomes.left} left early`);
    assert.ok(outcomes.left > 20 && outcomes.done >= 25);
    assert.equal((await probe.call({ url: server.url('/', 'api.test') })).body, 'ok');
    await server.close();
  });

  for (const secure of [false, true]) {
    test(`64 calls at one time, each gets its own answer${secure ? ', TLS' : ''}`, async () => {
      const server = await serve({
        tlsOptions: secure ? certs.good : undefined,
        answer: ({ socket, head }) => setTimeout(() => socket.write(reply(/^\S+ (\S+)/.exec(head)[1])), 50),
      });
      const began = Date.now();
      const all = await Promise.all(Array.from({ length: 64 }, (_, i) => probe.call({ url: server.url(`/${i}`, 'api.test'), action: i % 2 === 1 })));
      all.forEach((got, i) => assert.equal(got.body, `/${i}`));
      console.log(`# 64 calls in ${Date.now() - began} ms`);
      await server.close();
    });
  }

  test('the 513th call at one time is refused, the others are not', async () => {
    let waiting = [];
    const server = await serve({ answer: ({ socket }) => waiting.push(socket) });
    const calls = Array.from({ length: 512 }, () => probe.call({ url: server.url(), timeout_ms: 15_000 }));
    await until(() => waiting.length === 512, '512 requests');
    const over = await probe.call({ url: server.url() });
    assert.equal(over.code, 'upstream_failed');
    assert.match(over.detail, /too many/);
    // those that last are counted apart
    const lasting = probe.call({ url: server.url(), stream: {} });
    await until(() => waiting.length === 513, 'a streamed call');
    waiting.pop().write(reply('ok'));
    assert.equal((await lasting).stream.taken, 2);
    waiting.forEach((socket) => socket.write(reply('ok')));
    waiting = [];
    for (const got of await Promise.all(calls)) assert.equal(got.body, 'ok', got.detail);
    await server.close();
  });

  test('too few worker_connections: a call fails, the worker does not', async () => {
    const small = new Probe(path.join(dir, 'small'), module, {
      connections: 24,
      locations: 'location = /call { probe_call; probe_allow 127.0.1.0/24 insecure_http; }',
    });
    await small.start();
    const waiting = [];
    const server = await serve({ answer: ({ socket }) => waiting.push(socket) });
    const calls = [];
    const fillers = [];
    let failed;

    // each call takes two: its client and its peer. The last free one is to be the client's
    while (!failed) {
      assert.ok(calls.length < 24);
      const call = small.call({ url: server.url(), action: true, timeout_ms: 10_000 });
      const event = await Promise.race([call.catch(() => 'refused'),
        until(() => server.requests === calls.length + 1, 'a request').then(() => 'waits', () => 'nothing')]);
      if (event === 'waits') {
        calls.push(call);
      } else if (typeof event === 'object') {
        failed = event;
      } else {
        // one that has said nothing nginx would close for the next that comes
        const filler = net.connect(small.port, '127.0.0.1');
        fillers.push(filler);
        filler.on('error', () => {});
        waiting.shift().write(reply('ok'));
        await sleep(100);
        filler.write('GET / HTTP/1.1\r\n');
        await sleep(100);
      }
    }
    console.log(`# ${calls.length} calls had a connection, the next one had none`);
    assert.equal(failed.code, 'upstream_failed');
    assert.equal(failed.bytes_sent, false);
    assert.match(failed.detail, /connections/);

    waiting.forEach((socket) => socket.write(reply('ok')));
    for (const got of await Promise.all(calls)) assert.equal(got.body, 'ok');
    const after = small.call({ url: server.url() });
    await until(() => waiting.length > calls.length - 1 && server.requests > calls.length, 'the next request');
    waiting.at(-1).write(reply('again'));
    assert.equal((await after).body, 'again', 'and afterwards all is well');
    fillers.forEach((socket) => socket.destroy());
    await small.stop();
    assert.match(small.log(), /watches left: 0/);
    assert.doesNotMatch(small.log(), /open socket|Sanitizer|runtime error/);
    await server.close();
  });

  test('a worker that is told to end at once gives its sockets back', async () => {
    const other = new Probe(path.join(dir, 'term'), module, {
      locations: 'location = /call { probe_call; probe_ca @DIR@/../ca.pem; probe_allow 127.0.1.0/24 insecure_http; }',
    });
    await other.start();
    const server = await serve({ answer: () => {} });
    const handshake = await serve({ raw: (socket) => socket.resume() });
    const calls = [server.url(), handshake.url().replace('http:', 'https:')].map((url) => other.call({ url }).catch(() => 'gone'));
    await until(() => server.requests === 1 && handshake.connections === 1, 'the calls');
    await other.stop('SIGTERM');
    assert.deepEqual(await Promise.all(calls), ['gone', 'gone']);
    assert.match(other.log(), /watches left: 0/);
    assert.doesNotMatch(other.log(), /open socket|\[alert\]|Sanitizer|runtime error/);
    await server.close();
    await handshake.close();
  });

  test('reload with calls in flight: they end well, the old worker leaves', async () => {
    const server = await serve({
      tlsOptions: certs.good,
      answer: ({ socket }) => setTimeout(() => socket.write(reply('after all')), 2000),
    });
    const [old] = probe.worker();
    const calls = [false, true].map((action) => probe.call({ url: server.url('/', 'api.test'), action }));
    await until(() => server.requests === 2, 'the requests');
    probe.signal('SIGHUP');
    await until(() => !probe.worker().includes(old) || probe.worker().length > 1, 'the new worker');
    for (const got of await Promise.all(calls)) {
      assert.equal(got.body, 'after all', got.detail);
      assert.ok(got.took >= 1900);
    }
    await until(() => !fs.existsSync(`/proc/${old}`), 'the old worker\'s leaving');
    assert.equal((await probe.call({ url: server.url('/', 'api.test') })).body, 'after all');
    await server.close();
  });
}
