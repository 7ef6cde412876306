// Where a call may go: names, addresses, TLS identity, and what it sends there.

import test from 'node:test';
import assert from 'node:assert/strict';
import { reply, serve, sleep } from './peers.mjs';

const QUIET_MS = 150; // how long a listener is watched for a connection that must not come

const ok = (server) => ({ socket }) => socket.write(reply(server ?? 'ok'));

export function addressCases({ probe, certs, dns, zone }) {
  const https = (cert, extra = {}) => serve({ tlsOptions: { ...cert, ...extra }, answer: ok() });

  test('https: the certificate is verified on the name, HTTP/1.1 alone is offered', async () => {
    const offered = [];
    const server = await serve({
      tlsOptions: {
        ...certs.good,
        ALPNCallback: ({ servername, protocols }) => { offered.push([servername, ...protocols]); return 'http/1.1'; },
      },
      answer: ok(),
    });
    const got = await probe.call({ url: server.url('/', 'api.test') });
    assert.equal(got.code, null, got.detail);
    assert.equal(got.status, 200);
    assert.equal(got.body, 'ok');
    assert.equal(got.address, '127.0.1.1');
    assert.equal(got.inside_start, false);
    assert.deepEqual(offered, [['api.test', 'http/1.1']]);
    assert.match(server.heads[0], new RegExp(`^host: api\\.test:${server.port}$`, 'im'));
    await server.close();
  });

  test('https: a literal address is verified as an address', async () => {
    const server = await https(certs.good);
    assert.equal((await probe.call({ url: server.url() })).code, null);
    await server.close();
    const named = await https(certs.other);
    assert.equal((await probe.call({ url: named.url() })).code, 'upstream_failed');
    assert.equal(named.requests, 0);
    await named.close();
  });

  for (const [what, cert, at, name] of [
    ['a foreign CA', 'good', '/foreign', 'api.test'],
    ['the system\'s bundle, which has not signed it', 'good', '/system', 'api.test'],
    ['another name', 'other', '/call', 'api.test'],
    ['a certificate that has expired', 'expired', '/call', 'api.test'],
  ]) {
    test(`https: refused with ${what}`, async () => {
      const server = await https(certs[cert]);
      const got = await probe.call({ url: server.url('/', name), method: 'POST', body: '{}', action: true }, { at });
      assert.equal(got.code, 'upstream_failed');
      assert.match(got.detail, /certificate/);
      assert.equal(got.bytes_sent, false);
      assert.equal(server.requests, 0);
      await server.close();
    });
  }

  test('https: TLS 1.1 is refused', async () => {
    const server = await https(certs.good,
      { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' });
    const got = await probe.call({ url: server.url('/', 'api.test') });
    assert.equal(got.code, 'upstream_failed');
    assert.equal(server.requests, 0);
    await server.close();
  });

  test('C066 a refused address is never connected to', async () => {
    const server = await serve({ host: '127.0.0.1', answer: ok() });
    const tls = await serve({ host: '127.0.0.1', tlsOptions: certs.good, answer: ok() });
    for (const url of [server.url(), tls.url(), tls.url('/', 'private.test'), tls.url('/', 'mixed.test')]) {
      for (const action of [false, true]) {
        const got = await probe.call({ url, action });
        assert.equal(got.code, 'address_not_allowed', url);
        assert.equal(got.bytes_sent, false);
        // which one it was, for the steps of the run
        assert.match(got.address, /^(127\.0\.0\.1|10\.|192\.168\.|172\.|169\.254\.|::1)/, url);
        assert.equal(got.inside_start, false);
      }
    }
    await sleep(QUIET_MS);
    assert.equal(server.connections + tls.connections, 0);
    await server.close();
    await tls.close();
  });

  test('loopback, IPv4 and IPv6, is refused where nothing opens it', async () => {
    const four = await serve({ answer: ok() });
    const six = await serve({ host: '::1', answer: ok() });
    for (const url of [four.url(), six.url()]) {
      assert.equal((await probe.call({ url }, { at: '/closed' })).code, 'address_not_allowed');
    }
    await sleep(QUIET_MS);
    assert.equal(four.connections + six.connections, 0);
    assert.equal((await probe.call({ url: six.url() })).body, 'ok');
    await four.close();
    await six.close();
  });

  test('plain http needs an allow entry that says so', async () => {
    const server = await serve({ answer: ok() });
    const got = await probe.call({ url: server.url() }, { at: '/https' });
    assert.equal(got.code, 'address_not_allowed');
    assert.match(got.detail, /http/);
    await sleep(QUIET_MS);
    assert.equal(server.connections, 0);
    await server.close();
  });

  test('a public address on a port that is not public is refused', async () => {
    const got = await probe.call({ url: 'https://93.184.216.34:9443/' });
    assert.equal(got.code, 'address_not_allowed');
    assert.equal(got.address, '93.184.216.34');
    assert.equal(got.bytes_sent, false);
  });

  test('C062 ng-0460 ng-0463 rebinding: the judged address is used, one look-up a call', async () => {
    const good = await serve({ answer: ok('good') });
    const evil = await serve({ host: '127.0.0.1', port: good.port, answer: ok('evil') });
    zone['rebind.test'] = (type, n) => (type === 'A' ? [n === 1 ? '127.0.1.1' : '127.0.0.1'] : []);

    const before = dns.asked.length;
    const first = await probe.call({ url: good.url('/', 'rebind.test') });
    assert.equal(first.body, 'good');
    assert.equal(first.address, '127.0.1.1');
    assert.deepEqual(dns.asked.slice(before).filter((q) => q.endsWith('/A')), ['rebind.test/A']);

    await sleep(1100); // the answer's time is over
    const second = await probe.call({ url: good.url('/', 'rebind.test') });
    assert.equal(second.code, 'address_not_allowed');
    await sleep(QUIET_MS);
    assert.equal(evil.connections, 0);
    assert.equal(good.requests, 1);
    await good.close();
    await evil.close();
  });

  test('ng-0461 ng-0462 rebinding the other way round and over IPv6', async () => {
    const server = await serve({ answer: ok() });
    zone['rebind6.test'] = (type) => (type === 'A' ? ['127.0.1.1'] : ['fe80::1']);
    zone['first-bad.test'] = (type, n) => (type === 'A' ? [n === 1 ? '127.0.0.1' : '127.0.1.1'] : []);
    for (const name of ['rebind6.test', 'first-bad.test']) {
      assert.equal((await probe.call({ url: server.url('/', name) })).code, 'address_not_allowed', name);
    }
    await sleep(QUIET_MS);
    assert.equal(server.connections, 0);
    await server.close();
  });

  test('a name that mixes allowed and refused addresses is refused whole', async () => {
    const server = await serve({ answer: ok() });
    zone['mixed-a.test'] = (type) => (type === 'A' ? ['127.0.1.1', '10.1.2.3'] : []);
    zone['mixed-aaaa.test'] = (type) => (type === 'A' ? ['127.0.1.1'] : ['fd00::1']);
    zone['many.test'] = (type) => (type === 'A' ? [...Array.from({ length: 20 }, (_, i) => `127.0.1.${i + 1}`), '10.0.0.1'] : []);
    for (const name of ['mixed-a.test', 'mixed-aaaa.test', 'many.test']) {
      assert.equal((await probe.call({ url: server.url('/', name) })).code, 'address_not_allowed', name);
    }
    await sleep(QUIET_MS);
    assert.equal(server.connections, 0);
    await server.close();
  });

  test('C060 C061 IPv4 in IPv6 answers and literals is judged as what it is', async () => {
    const server = await serve({ host: '127.0.0.1', answer: ok() });
    const answers = ['::ffff:127.0.0.1', '::ffff:ac10:101', '::ffff:7f00:9', '::ffff:0:c0a8:101', '64:ff9b::7f00:1',
      '2002:7f00:1::', '::127.0.0.1'];
    for (const [i, address] of answers.entries()) {
      zone[`mapped${i}.test`] = (type) => (type === 'A' ? [] : [address]);
      assert.equal((await probe.call({ url: server.url('/', `mapped${i}.test`) })).code, 'address_not_allowed', address);
    }
    for (const host of ['[::ffff:10.0.0.7]', '[::ffff:7f00:1]', '[::]', '[fe80::1]']) {
      assert.equal((await probe.call({ url: `https://${host}/` })).code, 'address_not_allowed', host);
    }
    await sleep(QUIET_MS);
    assert.equal(server.connections, 0);
    await server.close();
  });

  test('a mapped answer that is opened is connected to as such', async () => {
    const server = await serve({ host: '127.0.1.1', answer: ok() });
    zone['mapped-ok.test'] = (type) => (type === 'A' ? [] : ['::ffff:127.0.1.1']);
    const got = await probe.call({ url: server.url('/', 'mapped-ok.test') });
    assert.equal(got.code, null, got.detail);
    assert.equal(server.requests, 1);
    await server.close();
  });

  test('several addresses: the next one when nobody listens, for reads and actions', async () => {
    const server = await serve({ answer: ok() });
    zone['two-a.test'] = (type) => (type === 'A' ? ['127.0.1.8', '127.0.1.1'] : []);
    for (const name of ['again.test', 'two-a.test']) {
      for (const action of [false, true]) {
        const got = await probe.call({ url: server.url('/', name), action });
        assert.equal(got.code, null, `${name} ${got.detail}`);
        assert.equal(got.address, '127.0.1.1');
      }
    }
    assert.equal(server.requests, 4);
    await server.close();
  });

  test('names: none, no answer, no resolver', async () => {
    zone['silent.test'] = () => null;
    zone['empty.test'] = () => [];
    for (const [name, detail] of [['absent.test', /resolved/], ['empty.test', /resolved/]]) {
      const got = await probe.call({ url: `https://${name}/` });
      assert.equal(got.code, 'upstream_failed');
      assert.match(got.detail, detail);
    }
    const late = await probe.call({ url: 'https://silent.test/', action: true });
    assert.equal(late.code, 'upstream_failed');
    assert.ok(Math.abs(late.took - 2000) < 500, `${late.took}`);
    const early = await probe.call({ url: 'https://silent.test/', timeout_ms: 700 });
    assert.equal(early.code, 'upstream_failed');
    assert.ok(Math.abs(early.took - 700) < 500, `${early.took}`);
    const none = await probe.call({ url: 'https://api.test/' }, { at: '/nodns' });
    assert.equal(none.code, 'upstream_failed');
    assert.match(none.detail, /resolver/);
  });

  test('hosts file: bad lines are configuration errors with file and line', async () => {
    const fs = await import('node:fs');
    const cases = [['127.0.0.1 a.test\n::g b.test\n', 'invalid address', 2], ['127.0.0.1\n', 'without a host name', 1],
      ['\n\n1.2.3.4 bad/name\n', 'invalid host name', 3], ['127.0.0.01 x.test\n', 'invalid address', 1]];
    for (const [text, message, line] of cases) {
      fs.writeFileSync(`${probe.dir}/bad-hosts`, text);
      const said = probe.check('location / { probe_call; probe_hosts @DIR@/bad-hosts; }');
      assert.match(said, new RegExp(`${message} in ".*bad-hosts":${line} in `));
    }
    assert.match(probe.check('location / { probe_call; probe_hosts @DIR@/absent; }'), /absent" failed/);
    assert.match(probe.check('location / { probe_call; probe_hosts @DIR@; }'), /is no file/);
    fs.writeFileSync(`${probe.dir}/good-hosts`, '# c\n\r\n::1 localhost ip6-localhost\r\n127.0.0.1 localhost');
    assert.equal(probe.check('location / { probe_call; probe_hosts @DIR@/good-hosts; }'), '');
  });

  test('C078 what is sent: exact target, headers and bytes, Content-Length, nothing added that counts', async () => {
    const seen = [];
    const server = await serve({
      answer: ({ socket, head, body }) => { seen.push({ head, body: body.toString('utf8') }); socket.write(reply('{}')); },
    });
    const body = '{"text":"é漢字\u2028<>","n":1.0}';
    await probe.call({
      url: server.url('/a/b%2Fc;p/?q=1&r=%20x&&s=a+b', 'api.test'),
      method: 'POST', body, action: true,
      headers: [['Content-Type', 'application/json'], ['X-Empty', ''], ['X-Long', 'v'.repeat(4096)], ['webhook-id', 'call_1']],
    });
    assert.equal(seen[0].body, body);
    assert.match(seen[0].head, /^POST \/a\/b%2Fc;p\/\?q=1&r=%20x&&s=a\+b HTTP\/1\.1$/m);
    assert.match(seen[0].head, new RegExp(`^Content-Length: ${Buffer.byteLength(body)}$`, 'm'));
    assert.match(seen[0].head, /^User-Agent: K-Agent\/1$/m);
    assert.match(seen[0].head, /^Content-Type: application\/json$/m);
    assert.match(seen[0].head, /^X-Empty:\s*$/m);
    assert.match(seen[0].head, /^X-Long: v{4096}$/m);
    assert.match(seen[0].head, /^webhook-id: call_1$/m);
    assert.doesNotMatch(seen[0].head, /^(accept-encoding|expect|transfer-encoding|cookie|authorization|referer|te|upgrade):/im);

    for (const [method, given, want] of [['GET', undefined, null], ['DELETE', undefined, null], ['POST', undefined, '0'],
      ['PUT', '', '0'], ['PATCH', '[]', '2'], ['PUT', 'x'.repeat(2_000_000), '2000000'], ['DELETE', '{}', '2']]) {
      const got = await probe.call({ url: server.url(), method, action: method !== 'GET', ...(given === undefined ? {} : { body: given }) });
      assert.equal(got.code, null, `${method} ${got.detail}`);
      const { head, body: sent } = seen.at(-1);
      assert.match(head, new RegExp(`^${method} / HTTP/1.1`));
      assert.equal(/^content-length: (\d+)/im.exec(head)?.[1] ?? null, want, method);
      assert.equal(sent, given ?? '');
      assert.doesNotMatch(head, /^(content-type|expect):/im);
    }
    await server.close();
  });

  test('headers that would break the message are refused before anything is sent', async () => {
    const server = await serve({ answer: ok() });
    for (const header of [['X', 'a\r\nY: b'], ['X', 'a\nb'], ['X:', 'a'], ['X Y', 'a'], ['', 'a'], ['Host', 'evil.test'],
      ['transfer-encoding', 'chunked'], ['Content-Length', '1'], ['Connection', 'close'], ['Expect', '100-continue'], ['X', 'a\u007f']]) {
      const got = await probe.call({ url: server.url(), headers: [header] });
      assert.equal(got.code, 'upstream_failed', header[0]);
      assert.match(got.detail, /header/);
      assert.equal(got.inside_start, false);
    }
    await sleep(QUIET_MS);
    assert.equal(server.connections, 0);
    await server.close();
  });
}
