// The Redis proxy, tested between a plain socket and a real Redis: bytes pass unchanged
// whatever they are and however they are split, and hooks are called at their moment.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis } from './redis.mjs';
import { startRedisProxy, parseReply } from './redis-proxy.mjs';
import { REPO } from './stack.mjs';

let redis;
let proxy;

before(async () => {
  redis = await startRedis();
  proxy = await startRedisProxy(redis.socket);
});

beforeEach(() => proxy.clear());

after(async () => {
  await proxy?.close();
  await redis?.stop();
});

const encode = (...words) => Buffer.concat([Buffer.from(`*${words.length}\r\n`),
  ...words.flatMap((word) => {
    const bytes = Buffer.from(word);
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')];
  })]);

/** A plain connection. */
async function connect(t, to = proxy.socket) {
  const socket = net.connect(to);
  const parts = [];
  let over = false;
  let last;             // answers come in the order of the commands
  socket.on('data', (part) => parts.push(part));
  socket.on('error', () => {});
  socket.on('close', () => { over = true; });
  t.after(() => socket.destroy());
  await new Promise((resolve) => socket.once('connect', resolve));
  const until = async (ok, ms = 5000) => {
    for (const end = Date.now() + ms; !ok();) {
      if (Date.now() > end) throw new Error('nothing more came');
      await sleep(2);
    }
  };
  return {
    send: (bytes) => socket.write(bytes),
    closed: () => until(() => over),
    leave: () => socket.destroy(),
    /** All bytes up to these, which come last. */
    async upTo(last) {
      let size = 0;
      await until(() => {
        const all = Buffer.concat(parts.splice(0));
        parts.push(all);
        size = all.length;
        return all.subarray(-last.length).equals(last);
      });
      return parts.splice(0)[0].subarray(0, size);
    },
    /** What is answered to a command: a value, or null when the connection is closed. */
    async say(...words) {
      socket.write(encode(...words));
      const before_ = last;
      let done;
      last = new Promise((resolve) => { done = resolve; });
      try {
        await before_;
        return await this.answer();
      } finally {
        done();
      }
    },
    async answer() {
      let found = null;
      await until(() => {
        const all = Buffer.concat(parts.splice(0));
        parts.push(all);
        try {
          found = parseReply(all);
        } catch {
          return over;
        }
        parts[0] = all.subarray(found.end);
        return true;
      });
      return found?.value ?? null;
    },
  };
}

const said = (value) => (Buffer.isBuffer(value) ? value.toString() : value);

test('bytes pass unchanged, split anywhere: binary, large, many in one write', async (t) => {
  const large = crypto.randomBytes(3 << 20);
  const last = encode('ECHO', 'the-end').subarray(-13);
  const sent = Buffer.concat([
    encode('FLUSHALL'), encode('SET', 'a\r\n*1\r\n', crypto.randomBytes(700)),
    encode('GET', 'a\r\n*1\r\n'), encode('GET', 'missing'), encode('NOSUCH', 'x'),
    encode('EVAL', "return {1, {'a', {2}}, false, 'x\\r\\n$5\\r\\n', {}}", '0'),
    encode('EVAL', "return redis.error_reply('ERR no')", '0'),
    encode('LRANGE', 'missing', '0', '-1'), encode('INCR', 'n'), encode('ECHO', ''),
    encode('SET', 'large', large), encode('GET', 'large'), encode('ECHO', 'the-end'),
  ]);
  const direct = await connect(t, redis.socket);
  direct.send(sent);
  const expected = await direct.upTo(last);
  assert.ok(expected.length > large.length);

  for (const split of [1, 50_021, sent.length]) {
    const through = await connect(t);
    for (let at = 0; at < sent.length;) {
      // not three million times
      const size = at < 3000 ? split : Math.max(split, 50_021);
      through.send(sent.subarray(at, at + size));
      at += size;
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok((await through.upTo(last)).equals(expected), `pieces of ${split} bytes`);
    assert.equal(proxy.count('ECHO'), 2);
    proxy.clear();
  }
  assert.deepEqual(proxy.errors, []);
});

test('a script has the name of its file, whether by its sum or by its text', async (t) => {
  const text = fs.readFileSync(path.join(REPO, 'conf/redis/counter_take.lua'));
  const sum = crypto.createHash('sha1').update(text).digest('hex');
  const client = await connect(t);
  const names = [];
  proxy.before = ({ name }) => { names.push(name); };
  const seen = proxy.once('after', ({ keys, args }) => keys?.[0] === 'window' && args[1] === '60', undefined, 2);
  redis.cli('script', 'flush');

  const unknown = await client.say('EVALSHA', sum, '1', 'window', '2', '60', '1');
  assert.match(unknown.message, /^NOSCRIPT/);
  assert.equal(proxy.count('script:counter_take'), 0, 'which has not run');
  assert.deepEqual(await client.say('EVAL', text, '1', 'window', '2', '60', '1'), [1, 1, 0]);
  assert.deepEqual(await client.say('evalsha', sum.toUpperCase(), '1', 'window', '2', '60', '1'), [1, 0, 0]);
  assert.equal(proxy.count('script:counter_take'), 2);
  assert.deepEqual((await seen).reply, [1, 0, 0]);
  await client.say('EVAL', 'return 1', '0');
  await client.say('get', 'x');
  assert.deepEqual(names, [...Array(3).fill('script:counter_take'),
    'script:e0e1f9fabfc9d4800c877a703b823ac0578ff8db', 'GET']);
});

test('held before: Redis has not got it, nor what comes behind it; others are served', async (t) => {
  const [held, other] = [await connect(t), await connect(t)];
  await other.say('SET', 'k', 'old');
  const hold = proxy.hold('before', 'SET');
  const answer = held.say('SET', 'k', 'new');
  const command = await hold.come;
  assert.deepEqual(command.words.map(said), ['SET', 'k', 'new']);
  const behind = held.say('GET', 'k');
  assert.equal(said(await other.say('GET', 'k')), 'old');
  assert.equal(proxy.count('SET'), 1);
  hold.release();
  assert.equal(await answer, 'OK');
  assert.equal(said(await behind), 'new');
});

test('held after: Redis has done it, and the answer waits', async (t) => {
  const [held, other] = [await connect(t), await connect(t)];
  const hold = proxy.hold('after', 'INCR', 2);
  assert.equal(await held.say('INCR', 'counter'), 1, 'the second one is meant');
  let heard = false;
  const answer = held.say('INCR', 'counter').then((value) => { heard = true; return value; });
  const command = await hold.come;
  assert.equal(command.reply, 2);
  assert.equal(said(await other.say('GET', 'counter')), '2');
  await sleep(20);
  assert.equal(heard, false);
  hold.release();
  assert.equal(await answer, 2);
});

test('dropped before: not done; dropped after: done, and nobody hears of it', async (t) => {
  const other = await connect(t);
  for (const [when, value] of [['before', null], ['after', 'x']]) {
    const client = await connect(t);
    const seen = proxy.once(when, /^SET$/, () => 'drop');
    assert.equal(await client.say('SET', `dropped-${when}`, 'x'), null);
    await client.closed();
    assert.equal((await seen).name, 'SET');
    assert.equal(said(await other.say('GET', `dropped-${when}`)), value);
  }
  assert.deepEqual(proxy.errors, []);
});

test('a hook that fails says so to the test, and the command passes', async (t) => {
  const client = await connect(t);
  const seen = proxy.once('before', 'PING', () => { throw new Error('of the test'); });
  seen.catch(() => {});
  assert.equal(await client.say('PING'), 'PONG');
  await assert.rejects(seen, /of the test/);
});

test('connections dropped and refused; a client that leaves while it is held', async (t) => {
  const client = await connect(t);
  assert.equal(await client.say('PING'), 'PONG');
  proxy.drop();
  await client.closed();
  proxy.refusing = true;
  const refused = await connect(t);
  assert.equal(await refused.say('PING'), null);
  proxy.refusing = false;

  const leaver = await connect(t);
  const hold = proxy.hold('before', 'SET');
  leaver.send(encode('SET', 'left', '1'));
  await hold.come;
  leaver.leave();
  await sleep(50);
  hold.release();
  await sleep(50);
  const other = await connect(t);
  assert.equal(await other.say('GET', 'left'), null, 'nobody asks for it any more');
  assert.deepEqual(proxy.errors, []);
});

test('Redis killed and started again; what is published passes', async (t) => {
  const client = await connect(t);
  assert.equal(await client.say('PING'), 'PONG');
  await redis.kill();
  await client.closed();
  const without = await connect(t);
  assert.equal(await without.say('PING'), null);
  await redis.start();
  const again = await connect(t);
  assert.equal(await again.say('PING'), 'PONG');

  const reader = await connect(t);
  assert.deepEqual((await reader.say('SUBSCRIBE', 'c', 'd')).map(said), ['subscribe', 'c', 1]);
  await again.say('PUBLISH', 'd', 'hello');
  const all = await reader.upTo(Buffer.from('hello\r\n'));
  assert.match(all.toString(), /subscribe\r\n\$1\r\nd\r\n:2\r\n.*message\r\n\$1\r\nd/s);
});
