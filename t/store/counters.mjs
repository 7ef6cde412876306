// Counters with a Redis that works: exact over workers and nodes, the rolling window and
// its edges, what lies in Redis, greeting, configuration.

import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Fake, Nginx, Redis, dir, modes, passed, sleep, until } from './harness.mjs';

let redis, nginx;

before(async () => {
    redis = await new Redis().start();
    nginx = await new Nginx({
        unix: `store_probe_redis ${redis.unix} prefix=t:;`,
        tcp: `store_probe_redis redis://127.0.0.1:${redis.port}/2 prefix=t:;`,
        name: `store_probe_redis localhost:${redis.port} db=3;`,
        local: 'store_probe_redis off;',
    }).start();
});

after(async () => {
    await nginx.stop();
    await redis.stop();
});

test('30 at once over two workers pass exactly 20 (C048)', async () => {
    const results = await nginx.takes(30, 'unix', 'user:1', 20, 60);

    assert.equal(passed(results), 20);
    assert.equal(modes(results), 'store');
    assert.equal(new Set(results.map((r) => r.pid)).size, 2, 'both workers had some');

    const remaining = results.filter((r) => r.allowed).map((r) => r.remaining).sort((a, b) => a - b);
    assert.deepEqual(remaining, Array.from({ length: 20 }, (_, i) => i));

    for (const r of results.filter((x) => !x.allowed)) {
        assert.ok(Number.isInteger(r.retry_after) && r.retry_after >= 50 && r.retry_after <= 60, `${r.retry_after}`);
        assert.equal(r.remaining, 0);
    }
});

test('one key with a hash tag, bounded, always with an expiry (C045)', async () => {
    await nginx.takes(30, 'unix', 'user:2', 20, 60);

    assert.equal(await redis.call('LLEN', 't:w:{user:2}'), 20);
    const ttl = await redis.call('PTTL', 't:w:{user:2}');
    assert.ok(ttl > 50000 && ttl <= 60000, `${ttl}`);

    // a key that lost it gets it back, even from a refused take
    await redis.call('PERSIST', 't:w:{user:2}');
    assert.equal((await nginx.take('unix', 'user:2', 20, 60)).allowed, false);
    assert.ok(await redis.call('PTTL', 't:w:{user:2}') > 50000);
});

test('two nodes on one Redis pass exactly 20 in sum (C048)', async () => {
    const other = await new Nginx({ unix: `store_probe_redis ${redis.unix} prefix=t:;` }).start();
    const results = (await Promise.all([nginx.takes(20, 'unix', 'user:3'), other.takes(20, 'unix', 'user:3')])).flat();

    assert.equal(passed(results), 20);
    assert.equal(new Set(results.map((r) => r.pid)).size, 4);
    await other.stop();
});

test('no stamp of ours goes to Redis: the window is on its clock (C048)', async () => {
    const fake = await new Fake(() => '*3\r\n:1\r\n:4\r\n:0\r\n').start();
    const node = await new Nginx({ x: `store_probe_redis ${fake.url};` }, { workers: 1 }).start();
    const result = await node.take('x', 'who', 5, 60);

    assert.deepEqual([result.allowed, result.remaining, result.mode], [true, 4, 'store']);
    assert.equal(fake.commands.length, 1);
    const [name, sha, ...rest] = fake.commands[0];
    const script = fs.readFileSync(new URL('../../conf/redis/counter_take.lua', import.meta.url));
    assert.equal(name, 'EVALSHA');
    assert.equal(sha, crypto.createHash('sha1').update(script).digest('hex'));
    assert.deepEqual(rest, ['1', 'tg:w:{who}', '5', '60', '1']);
    await node.stop();
    await fake.stop();
});

for (const where of ['unix', 'local']) {
    test(`${where}: the window rolls, a refused take does not count (C046)`, async () => {
        const take = () => nginx.take(where, 'rolls', 3, 4);
        assert.equal((await take()).allowed, true);

        // margins of half a second and more, for a busy machine
        const start = Date.now();
        const at = (ms) => sleep(Math.max(0, start + ms - Date.now()));

        await at(2100);
        assert.equal((await take()).allowed, true);
        assert.equal((await take()).allowed, true);

        for (let i = 0; i < 5; i++) {
            const r = await take();
            assert.equal(r.allowed, false);
            assert.ok(r.retry_after === 1 || r.retry_after === 2, `${r.retry_after}`);
        }

        // only the first has dropped out, although five were refused meanwhile
        await at(4400);
        assert.equal((await take()).allowed, true);
        assert.equal((await take()).allowed, false);
        await at(7000);
        assert.deepEqual([(await take()).allowed, (await take()).allowed, (await take()).allowed], [true, true, false]);
    });

    test(`${where}: several at once, as many as fit pass`, async () => {
        const take = (takes, limit = 7) => nginx.request(where, { key: 'several', limit, window: 60, takes })
            .then((r) => JSON.parse(r.text));
        const facts = (r) => [r.passed, r.allowed, r.remaining];

        assert.deepEqual(facts(await take(3)), [3, true, 4]);
        assert.deepEqual(facts(await take(2)), [2, true, 2]);

        for (const passes of [2, 0]) {
            const r = await take(5);
            assert.deepEqual(facts(r), [passes, false, 0]);
            assert.ok(r.retry_after >= 50 && r.retry_after <= 60, `${r.retry_after}`);
        }

        // a raised limit gives what it gives, a lowered one nothing
        assert.deepEqual(facts(await take(1, 8)), [1, true, 0]);
        assert.deepEqual(facts(await take(2, 3)), [0, false, 0]);
        assert.equal((await nginx.request(where, { key: 'several', limit: 7, window: 60, takes: 0 })).status, 400);
        assert.equal((await nginx.request(where, { key: 'several', limit: 7, window: 60, takes: 1001 })).status, 400);
    });

    test(`${where}: bounds of limit, window and key`, async () => {
        const status = async (args) => (await nginx.request(where, args)).status;
        const key = 'k'.repeat(256);

        assert.equal(await status({ key, limit: 1000, window: 2678400 }), 200);
        assert.equal(await status({ key: `${key}k`, limit: 1, window: 1 }), 400);
        assert.equal(await status({ key: '', limit: 1, window: 1 }), 400);
        assert.equal(await status({ key, limit: 1001, window: 1 }), 400);
        assert.equal(await status({ key, limit: 0, window: 1 }), 400);
        assert.equal(await status({ key, limit: 1, window: 0 }), 400);
        assert.equal(await status({ key, limit: 1, window: 2678401 }), 400);
    });

    test(`${where}: a raised limit keeps what was taken, a lowered one holds`, async () => {
        assert.equal(passed(await nginx.takes(10, where, 'changed', 8, 60)), 8);
        assert.equal(passed(await nginx.takes(10, where, 'changed', 12, 60)), 4);
        const r = await nginx.take(where, 'changed', 3, 60);
        assert.equal(r.allowed, false);
        assert.ok(r.retry_after >= 50 && r.retry_after <= 60);
    });
}

test('seconds to wait are whole, rounded up, of the oldest (C047)', async () => {
    const now = await redis.now();
    await redis.call('RPUSH', 't:w:{ten}', now - 3590e6, now - 1e6);
    const r = await nginx.take('unix', 'ten', 2, 3600);

    assert.equal(r.allowed, false);
    assert.equal(r.retry_after, 10);

    // lowered to one: both have to go
    assert.equal((await nginx.take('unix', 'ten', 1, 3600)).retry_after, 3599);
});

test('a clock set back does not block for longer than one window', async () => {
    const now = await redis.now();
    await redis.call('RPUSH', 't:w:{future}', now - 1e6, now + 86400e6, now + 86401e6);
    const r = await nginx.take('unix', 'future', 3, 60);

    assert.equal(r.allowed, false);
    assert.equal(r.retry_after, 59);
    const stamps = (await redis.call('LRANGE', 't:w:{future}', 0, -1)).map(Number);
    assert.ok(stamps.every((s) => s < now + 5e6), `${stamps}`);
});

test('the database of the address and of db= is selected', async () => {
    await nginx.take('tcp', 'place');
    await nginx.take('name', 'place');

    const lengths = await redis.pipeline([['SELECT', 2], ['LLEN', 't:w:{place}'], ['SELECT', 3], ['LLEN', 'tg:w:{place}'],
        ['SELECT', 0], ['EXISTS', 't:w:{place}']]);
    assert.deepEqual(lengths, ['OK', 1, 'OK', 1, 'OK', 0]);
});

test('a reply larger than one read comes whole', async () => {
    await redis.call('SET', 'big', 'x'.repeat(3000000));
    assert.match(await nginx.command('unix', 'GET', 'big'), /^string 3000000 x{200}$/);
});

test('error replies come as they are', async () => {
    assert.match(await nginx.command('unix', 'NOSUCH', 'x'), /^error \d+ ERR unknown command/);
    await redis.call('SET', 't:w:{wrong}', 'text');

    const r = await nginx.take('unix', 'wrong');
    assert.equal(r.mode, 'local', 'a key of another type cannot count');
    assert.equal((await nginx.take('unix', 'right')).mode, 'store');
});

test('scripts flushed in full flight: every take counts once', async () => {
    const results = [];

    for (let i = 0; i < 5; i++) {
        const some = nginx.takes(40, 'unix', 'flushed', 1000, 60);
        await redis.call('SCRIPT', 'FLUSH');
        results.push(...await some);
    }

    assert.equal(modes(results), 'store');
    assert.equal(passed(results), 200);
    assert.equal(await redis.call('LLEN', 't:w:{flushed}'), 200);
});

test('one connection a worker and server, remade after an idle close without a word', async () => {
    assert.equal((await nginx.takes(60, 'unix', 'many', 1000)).length, 60);
    assert.ok(await redis.clients() <= 6, 'three servers for two workers');

    await redis.call('CONFIG', 'SET', 'timeout', 1);
    await until('idle ones are closed', async () => await redis.clients() === 0);
    await redis.call('CONFIG', 'SET', 'timeout', 0);

    assert.equal(modes(await nginx.takes(10, 'unix', 'many', 1000)), 'store');
    assert.equal(nginx.lines(/is away/).length, 0);
});

test('at most 10000 commands are on their way, one more fails by itself', async () => {
    // the time-out is not the subject
    const node = await new Nginx({ x: `store_probe_redis ${redis.unix} timeout=5s;` }, { workers: 1 }).start();
    const flood = async (n) => (await node.request('x', { flood: n })).text;

    assert.equal(await flood(10000), 'replied 10000 undone 0');
    assert.equal(await flood(10003), 'replied 10000 undone 3');
    assert.equal((await node.take('x', 'after')).mode, 'store');
    await node.stop();
});

test('requirepass: with the password, with a wrong one, with none', async () => {
    const guarded = await new Redis(['--requirepass', 'correct horse'], 'correct horse').start();
    const right = path.join(dir, 'right');
    const wrong = path.join(dir, 'wrong');
    fs.writeFileSync(right, 'correct horse\n');
    fs.writeFileSync(wrong, 'battery staple');
    const node = await new Nginx({
        right: `store_probe_redis ${guarded.unix} password_file=${right};`,
        wrong: `store_probe_redis ${guarded.unix} password_file=${wrong};`,
        none: `store_probe_redis ${guarded.unix};`,
    }, { workers: 1 }).start();

    assert.equal((await node.take('right', 'a')).mode, 'store');
    assert.equal((await node.take('wrong', 'a')).mode, 'local');
    assert.equal((await node.take('none', 'a')).mode, 'local');
    assert.equal((await node.take('right', 'a')).mode, 'store', 'one server does not speak for another');
    assert.equal(node.lines(/is away: WRONGPASS/).length, 1);
    assert.equal(node.lines(/is away: NOAUTH/).length, 1);
    assert.equal(node.lines(/correct horse|battery/).length, 0, 'no password in the log');
    await node.stop();
    await guarded.stop();
});

test('what would fail later is refused by nginx -t', async () => {
    const long = path.join(dir, 'long');
    const empty = path.join(dir, 'empty');
    fs.writeFileSync(long, 'p'.repeat(513));
    fs.writeFileSync(empty, '\n');

    const cases = [
        ['unix:relative', /absolute path/],
        [`unix:/${'p'.repeat(106)}`, /at most 106 bytes/],
        ['rediss://127.0.0.1', /TLS to Redis is not supported/],
        ['redis://:secret@127.0.0.1', /no user or password/],
        ['redis://127.0.0.1/x', /invalid Redis database "x"/],
        ['127.0.0.1:99999', /invalid port/],
        ['127.0.0.1 db=65536', /invalid Redis database/],
        ['127.0.0.1 prefix={a}', /brace/],
        [`127.0.0.1 prefix=${'p'.repeat(65)}`, /longer than 64/],
        ['127.0.0.1 timeout=9ms', /not between 10ms and 5000ms/],
        ['127.0.0.1 timeout=5001ms', /not between/],
        ['127.0.0.1 on_failure=maybe', /"local", "closed" or "open", not "maybe"/],
        ['127.0.0.1 password_file=/nonexistent/file', /open\(\) "\/nonexistent\/file" failed/],
        [`127.0.0.1 password_file=${long}`, /one line of at most 512 bytes/],
        [`127.0.0.1 password_file=${empty}`, /one line of at most 512 bytes/],
        ['127.0.0.1 colour=red', /unknown parameter "colour=red"/],
    ];

    for (const [args, expected] of cases) {
        const { ok, text } = await new Nginx({ x: `store_probe_redis "${args.split(' ').join('" "')}";` }).check();
        assert.equal(ok, false, args);
        assert.match(text, expected);
        assert.match(text, /nginx\.conf:\d+/);
        assert.doesNotMatch(text, /secret/);
    }

    const good = ['[::1]:6379', '127.0.0.1', `unix:/${'p'.repeat(105)}`, 'redis://127.0.0.1:1/15',
        `127.0.0.1 db=65535 prefix=${'p'.repeat(64)} timeout=10ms on_failure=open`, '127.0.0.1 timeout=5s prefix='];
    for (const args of good) {
        const { ok, text } = await new Nginx({ x: `store_probe_redis "${args.split(' ').join('" "')}";` }).check();
        assert.equal(ok, true, text);
    }

    assert.match((await new Nginx({}, { zone: '16k' }).check()).text, /smaller than 32768 bytes/);
});
