// What counts as an answer: status, size in each framing, encodings, left-over bytes.

import test from 'node:test';
import assert from 'node:assert/strict';
import zlib from 'node:zlib';
import { reply, serve, sleep } from './peers.mjs';

const MAX = 1024 * 1024;
const CHUNK = 60_000;

function chunked(body) {
  const parts = [];
  for (let at = 0; at < body.length; at += CHUNK) {
    const part = body.subarray(at, at + CHUNK);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'), ...parts, Buffer.from('0\r\n\r\n')]);
}

const framings = {
  'Content-Length': (socket, body) => socket.write(reply(body)),
  chunked: (socket, body) => socket.write(chunked(body)),
  'until close': (socket, body) => socket.end(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), body])),
};

const gzipped = (body) => reply(zlib.gzipSync(body), { headers: ['Content-Encoding: gzip'] });

export function answerCases({ probe, certs }) {
  for (const secure of [false, true]) {
    for (const [framing, send] of Object.entries(framings)) {
      test(`C077 1,048,576 bytes are taken and one more is not: ${framing}${secure ? ', TLS' : ''}`, async () => {
        let size = 0;
        const server = await serve({
          tlsOptions: secure ? certs.good : undefined,
          answer: ({ socket }) => send(socket, Buffer.alloc(size, 'a')),
        });
        for (const action of [false, true]) {
          size = MAX;
          const whole = await probe.call({ url: server.url('/', 'api.test'), action });
          assert.equal(whole.code, null, whole.detail);
          assert.equal(whole.body_len, MAX);
          size = MAX + 1;
          const over = await probe.call({ url: server.url('/', 'api.test'), action });
          assert.equal(over.code, 'unreadable');
          assert.equal(over.body_len, 0);
          assert.equal(over.status, 200);
        }
        assert.equal(server.requests, 4);
        await server.close();
      });
    }
  }

  test('an endless answer is dropped at the bound', async () => {
    const server = await serve({
      answer: ({ socket }) => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        const more = () => { while (!socket.destroyed && socket.write(Buffer.alloc(65536))); };
        socket.on('drain', more);
        more();
      },
    });
    const got = await probe.call({ url: server.url() });
    assert.equal(got.code, 'unreadable');
    await sleep(100);
    assert.equal(server.closed, 1);
    await server.close();
  });

  test('C077 gzip: not asked for, and refused when it comes', async () => {
    const bodies = [gzipped('{}'), reply('x', { headers: ['content-encoding:  BR '] }), reply('x', { headers: ['Content-Encoding: gzip, gzip'] }),
      Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n')];
    const server = await serve({ answer: ({ socket, n }) => socket.write(bodies[n - 1]) });
    for (let i = 0; i < bodies.length; i++) {
      const got = await probe.call({ url: server.url(), action: i % 2 === 1 });
      assert.equal(got.code, 'unreadable', String(i));
      assert.match(got.detail, /encoded/);
    }
    assert.doesNotMatch(server.heads.join('\n'), /accept-encoding/i);
    await server.close();
    const plain = await serve({ answer: ({ socket }) => socket.write(reply('ok', { headers: ['Content-Encoding: identity'] })) });
    assert.equal((await probe.call({ url: plain.url() })).body, 'ok');
    await plain.close();
  });

  test('C077 gzip where it is switched on: the bound counts what comes out', async () => {
    const bodies = [gzipped(Buffer.alloc(MAX, 'a')), gzipped(Buffer.alloc(MAX + 1, 'a')), gzipped(Buffer.alloc(200 * MAX)),
      reply('no gzip at all', { headers: ['Content-Encoding: gzip'] }), reply('x', { headers: ['Content-Encoding: br'] })];
    const want = [null, 'unreadable', 'unreadable', 'unreadable', 'unreadable'];
    const server = await serve({ answer: ({ socket, n }) => socket.write(bodies[n - 1]) });
    for (const code of want) {
      const got = await probe.call({ url: server.url() }, { at: '/gzip' });
      assert.equal(got.code, code, got.detail);
      assert.equal(got.body_len, code ? 0 : MAX);
    }
    assert.match(server.heads[0], /^accept-encoding: gzip$/im);
    await server.close();
  });

  test('a head over 64 KiB is not taken', async () => {
    const heads = [Array.from({ length: 70 }, (_, i) => `X-${i}: ${'a'.repeat(1000)}`), Array.from({ length: 55 }, (_, i) => `X-${i}: ${'a'.repeat(1000)}`)];
    const server = await serve({ answer: ({ socket, n }) => socket.write(reply('ok', { headers: heads[n - 1] })) });
    assert.equal((await probe.call({ url: server.url() })).code, 'unreadable');
    assert.equal((await probe.call({ url: server.url() })).code, null);
    await server.close();
    const endless = await serve({
      answer: ({ socket }) => { for (let i = 0; i < 4000; i++) socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'); },
    });
    assert.equal((await probe.call({ url: endless.url() })).code, 'unreadable');
    await endless.close();
  });

  test('C063 ng-0472 ng-0474 ng-0475 ng-0476 ng-0477 ng-0479 ng-0481 ng-0483 a redirect is only a status', async () => {
    const target = await serve({ answer: ({ socket }) => socket.write(reply('followed')) });
    const to = ['https://169.254.169.254/latest/meta-data/', 'https://127.0.0.1:8443/', target.url(), 'file:///etc/passwd', '/same'];
    const answers = [301, 302, 303, 307, 308].map((status, i) => reply('moved', { status: `${status} Moved`, headers: [`Location: ${to[i]}`] }));
    answers.push(reply('<meta http-equiv="refresh" content="0;url=/x">', { headers: [`Refresh: 0;url=${target.url()}`] }));
    const server = await serve({ answer: ({ socket, n }) => socket.write(answers[(n - 1) % answers.length]) });
    for (const method of ['GET', 'POST']) {
      for (const status of [301, 302, 303, 307, 308, 200]) {
        const got = await probe.call({ url: server.url(), method, action: method === 'POST' });
        assert.equal(got.code, null);
        assert.equal(got.status, status);
      }
    }
    await sleep(100);
    assert.equal(server.requests, 12);
    assert.equal(target.connections, 0);
    await server.close();
    await target.close();
  });

  test('statuses, empty bodies, content type, interim answers', async () => {
    const answers = [[reply('', { status: '204 No Content' }), 204, ''], [reply('e', { status: '404 Not Found' }), 404, 'e'],
      [reply('slow down', { status: '429 Too Many', headers: ['Content-Type: text/plain'] }), 429, 'slow down'], [reply('b', { status: '503 Busy' }), 503, 'b'],
      [Buffer.concat([Buffer.from('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n'), reply('late')]), 200, 'late'],
      [Buffer.from('HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold'), 200, 'old']];
    const server = await serve({ answer: ({ socket, n }) => socket.write(answers[n - 1][0]) });
    for (const [, status, body] of answers) {
      const got = await probe.call({ url: server.url() });
      assert.equal(got.code, null, got.detail);
      assert.equal(got.status, status);
      assert.equal(got.body, body);
      assert.equal(got.content_type, status === 429 ? 'text/plain' : '');
    }
    await server.close();
  });

  test('what is no HTTP/1.x is no answer', async () => {
    const answers = ['<html>hello</html>\r\n\r\n', 'HTTP/2 200\r\n\r\nhello', 'SSH-2.0-OpenSSH\r\n\r\n', '\x16\x03\x01\x00\x05\r\n\r\n'];
    const server = await serve({ answer: ({ socket, n }) => socket.end(answers[(n - 1) % answers.length]) });
    for (const text of answers) {
      const got = await probe.call({ url: server.url() });
      assert.equal(got.code, text.startsWith('HTTP/2') ? got.code : 'upstream_failed', text);
    }
    await server.close();
  });

  test('reads share a connection; a call never gets another one\'s', async () => {
    const server = await serve({ tlsOptions: certs.good, answer: ({ socket, n }) => socket.write(reply(String(n))) });
    for (let n = 1; n <= 5; n++) assert.equal((await probe.call({ url: server.url('/', 'api.test') })).body, String(n));
    assert.equal(server.connections, 1, 'kept');
    assert.equal((await probe.call({ url: server.url('/', 'two.test') })).body, '6');
    assert.equal(server.connections, 2, 'another name is another connection');
    assert.equal((await probe.call({ url: server.url('/', 'api.test') }, { at: '/foreign' })).code, 'upstream_failed');
    assert.equal(server.requests, 6, 'another CA does not borrow it');
    assert.equal((await probe.call({ url: server.url('/', 'api.test') }, { at: '/closed' })).code, 'address_not_allowed');
    await server.close();
  });

  test('actions go out on connections of their own', async () => {
    const server = await serve({ answer: ({ socket, n }) => socket.write(reply(String(n))) });
    for (let n = 1; n <= 3; n++) assert.equal((await probe.call({ url: server.url(), method: 'POST', body: '{}', action: true })).body, String(n));
    assert.equal(server.connections, 3);
    await server.close();
  });

  test('an action on a new connection resumes the TLS session of its peer', async () => {
    const resumed = [];
    const server = await serve({
      tlsOptions: certs.good,
      answer: ({ socket }) => { resumed.push(socket.isSessionReused()); socket.write(reply('ok')); },
    });
    for (let i = 0; i < 2; i++) assert.equal((await probe.call({ url: server.url('/', 'api.test'), action: true })).body, 'ok');
    assert.deepEqual(resumed, [false, true]);
    assert.equal((await probe.call({ url: server.url('/', 'api.test'), action: true }, { at: '/foreign' })).code, 'upstream_failed',
      'a session does not stand in for a certificate that is not trusted');
    assert.equal(server.requests, 2);
    await server.close();
  });

  const evil = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil';

  for (const secure of [false, true]) {
    for (const [how, send] of [
      ['in the same write', (socket) => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok${evil}`)],
      ['with the body in a second write', async (socket) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n'); await sleep(50); socket.write(`ok${evil}`);
      }],
      ['later', async (socket) => { socket.write(reply('ok')); await sleep(50); socket.write(evil); }],
      ['after an empty body', async (socket) => { socket.write(`${reply('', { status: '204 No Content' })}`); await sleep(50); socket.write(evil); }],
      ['after the last chunk', async (socket) => {
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'); await sleep(50); socket.write(evil);
      }],
    ]) {
      test(`C076 desync: bytes after the answer, ${how}${secure ? ', TLS' : ''}`, async () => {
        const server = await serve({
          tlsOptions: secure ? certs.good : undefined,
          answer: ({ socket, n }) => (n === 1 ? send(socket) : socket.write(reply(`own ${n}`))),
        });
        const url = server.url('/', 'api.test');
        const first = await probe.call({ url });
        assert.equal(first.code, null);
        assert.ok(['ok', ''].includes(first.body));
        await sleep(150);
        assert.equal((await probe.call({ url })).body, 'own 2');
        assert.equal((await probe.call({ url })).body, 'own 3');
        assert.equal(server.connections, 2, 'the first connection was given up');
        await server.close();
      });
    }
  }
}
