// Counters with a Redis that does not: absent, killed, hanging, refusing, talking
// nonsense; clients that leave, reloads, a zone that is full.

import test from 'node:test';
import assert from 'node:assert/strict';
import { Fake, Nginx, Redis, freePort, modes, passed, slowest, sleep, until } from './harness.mjs';

// nothing waits over 250 ms; the rest is for a busy machine
const BOUND_MS = 1000;
const AT_ONCE_MS = 150;
const LEAVE_MS = 8000;

test('absent from the start: the local cap holds over both workers (C049)', async () => {
    const nginx = await new Nginx({
        tcp: `store_probe_redis 127.0.0.1:${await freePort()};`,
        unix: 'store_probe_redis unix:/nonexistent/redis.sock;',
    }).start();

    for (const where of ['tcp', 'unix']) {
        const results = await nginx.takes(30, where, where, 20);
        assert.equal(modes(results), 'local');
        assert.equal(passed(results), 20);
        assert.ok(slowest(results) < BOUND_MS);
        assert.equal(new Set(results.map((r) => r.pid)).size, 2);
        assert.ok(results.filter((r) => !r.allowed).every((r) => r.retry_after >= 1 && r.retry_after <= 60));
    }

    assert.equal(nginx.lines(/cannot count/).length, 1, 'one line, not one a call or worker');
    assert.ok(nginx.lines(/is away/).length <= 4, 'one a worker and server');
    await nginx.stop();
});

test('killed and back: at once local, then the store again, two lines in the log', async () => {
    const redis = await new Redis().start();
    const nginx = await new Nginx({ x: `store_probe_redis ${redis.unix};` }).start();

    assert.equal(modes(await nginx.takes(20, 'x', 'before')), 'store');
    await redis.stop();

    const first = await nginx.takes(30, 'x', 'during', 20);
    assert.equal(passed(first), 20);
    assert.ok(slowest(first) < BOUND_MS);

    for (let i = 0; i < 20; i++) {
        const r = await nginx.take('x', 'during', 20);
        assert.deepEqual([r.mode, r.allowed], ['local', false]);
        assert.ok(r.ms < AT_ONCE_MS, `${r.ms} ms`);
    }
    assert.equal(await nginx.up('x'), false);

    await redis.start();
    const back = Date.now();
    await until('both workers are back', async () => modes(await nginx.takes(16, 'x', `back${Date.now()}`)) === 'store');
    assert.ok(Date.now() - back < 6000, 'the probe found it');

    // the line of the return waits for some quiet
    await sleep(3200);
    assert.equal(modes(await nginx.takes(16, 'x', 'after')), 'store');
    assert.equal(await nginx.up('x'), true);
    assert.equal(nginx.lines(/cannot count/).length, 1);
    assert.equal(nginx.lines(/counts again/).length, 1);
    assert.ok(nginx.lines(/is away/).length <= 2);
    await nginx.stop();
    await redis.stop();
});

test('restarted in full flight: every call is answered once (C051)', async () => {
    const redis = await new Redis().start();
    const nginx = await new Nginx({ x: `store_probe_redis ${redis.unix};` }).start();
    const results = [];

    for (let round = 0; round < 3; round++) {
        const some = Promise.all([nginx.takes(50, 'x', `r${round}`, 1000), redis.stop()]);
        results.push(...(await some)[0]);
        results.push(...await nginx.takes(50, 'x', `r${round}`, 1000));
        await redis.start();
        await until('back', async () => modes(await nginx.takes(8, 'x', `b${round}`, 1000)) === 'store');
    }

    assert.equal(results.length, 300);
    assert.equal(passed(results), 300);
    assert.ok(slowest(results) < BOUND_MS);
    await nginx.stop();
    await redis.stop();
});

test('hanging: one bound for those who met it, none for those after', async () => {
    const redis = await new Redis().start();
    const nginx = await new Nginx({ x: `store_probe_redis 127.0.0.1:${redis.port};` }).start();

    await nginx.takes(10, 'x', 'warm');
    redis.signal('SIGSTOP');

    const met = await nginx.takes(50, 'x', 'hang', 20);
    assert.equal(modes(met), 'local');
    assert.equal(passed(met), 20);
    assert.ok(slowest(met) >= 200 && slowest(met) < BOUND_MS, `${slowest(met)} ms`);

    // probes hang too, and nobody waits for them
    const end = Date.now() + 2500;
    while (Date.now() < end) {
        const later = await nginx.takes(4, 'x', 'later', 1000);
        assert.equal(modes(later), 'local');
        assert.ok(slowest(later) < AT_ONCE_MS, `${slowest(later)} ms`);
        await sleep(20);
    }

    redis.signal('SIGCONT');
    await until('back', async () => modes(await nginx.takes(8, 'x', 'back', 1000)) === 'store');
    assert.equal(nginx.lines(/cannot count/).length, 1);
    await nginx.stop();
    await redis.stop();
});

test('hanging before the first connection', async () => {
    const redis = await new Redis().start();
    redis.signal('SIGSTOP');
    const nginx = await new Nginx({ x: `store_probe_redis ${redis.unix};` }).start();
    const results = await nginx.takes(30, 'x', 'cold', 20);

    assert.equal(modes(results), 'local');
    assert.equal(passed(results), 20);
    assert.ok(slowest(results) < BOUND_MS);
    await nginx.stop();
    await redis.stop();
});

for (const error of ['OOM command not allowed when used memory > \'maxmemory\'.',
    'READONLY You can\'t write against a read only replica.',
    'LOADING Redis is loading the dataset in memory', 'MOVED 1 127.0.0.1:1']) {
    test(`each command is answered -${error.split(' ')[0]}: the local cap holds (C050)`, async () => {
        const fake = await new Fake(() => `-${error}\r\n`).start();
        const nginx = await new Nginx({ x: `store_probe_redis ${fake.url};` }).start();
        const results = [];

        for (let i = 0; i < 5; i++) {
            results.push(...await nginx.takes(20, 'x', 'capped', 20));
        }

        assert.equal(results.length, 100);
        assert.equal(passed(results), 20);
        assert.equal(modes(results), 'local');
        assert.ok(slowest(results) < BOUND_MS);
        assert.equal(nginx.lines(/cannot count/).length, 1);
        await nginx.stop();
        await fake.stop();
    });
}

test('a real Redis out of memory, and a real read-only replica (C050)', async () => {
    const full = await new Redis().start();
    const replica = await new Redis(['--replicaof', '127.0.0.1', await freePort(),
        '--replica-serve-stale-data', 'yes']).start();
    await full.call('SET', 'ballast', 'x'.repeat(100000));
    await full.call('CONFIG', 'SET', 'maxmemory', '1000');
    const nginx = await new Nginx({
        full: `store_probe_redis ${full.unix};`,
        replica: `store_probe_redis ${replica.unix};`,
    }).start();

    for (const where of ['full', 'replica']) {
        const results = await nginx.takes(30, where, where, 20);
        assert.equal(modes(results), 'local');
        assert.equal(passed(results), 20);
    }

    await full.call('CONFIG', 'SET', 'maxmemory', '0');
    assert.equal((await nginx.take('full', 'again')).mode, 'store', 'at once, nothing was down');
    await nginx.stop();
    await full.stop();
    await replica.stop();
});

const ok = '*3\r\n:1\r\n:19\r\n:0\r\n';
const nonsense = {
    'garbage': () => 'HTTP/1.1 400 Bad Request\r\n\r\n',
    'half a reply': () => '*3\r\n:1\r\n:1',
    'nothing': () => null,
    'a close': (words, socket) => { socket.destroy(); return null; },
    'half a reply and a close': (words, socket) => { socket.end('*3\r\n:1\r\n'); return null; },
    'two replies for one': () => `+OK\r\n+OK\r\n`,
    'a reply and the start of another': () => `${ok}+OK`,
    'a nil': () => '$-1\r\n',
    'a short array': () => '*2\r\n:1\r\n:1\r\n',
    'an array of text': () => '*3\r\n+1\r\n+1\r\n+1\r\n',
    'negative numbers': () => '*3\r\n:1\r\n:-1\r\n:0\r\n',
    'refused without a time': () => '*3\r\n:0\r\n:0\r\n:0\r\n',
    'an absurd array': () => '*2147483647\r\n',
    'an absurd string': () => '$999999999999\r\n',
    'a deep array': () => '*1\r\n'.repeat(50),
    'binary': () => Buffer.from(Array.from({ length: 4000 }, (_, i) => i * 7 % 256)),
    'NOSCRIPT for ever': () => '-NOSCRIPT No matching script.\r\n',
};

for (const [what, answer] of Object.entries(nonsense)) {
    test(`answered with ${what}: the local cap holds, no worker dies (C051)`, async () => {
        const fake = await new Fake(answer).start();
        const nginx = await new Nginx({ x: `store_probe_redis ${fake.url};` }).start();
        const workers = nginx.pids().join();
        const results = [...await nginx.takes(30, 'x', 'n', 20), ...await nginx.takes(10, 'x', 'n', 20)];

        // a good one is good, whatever comes behind it
        if (answer !== nonsense['a reply and the start of another']) {
            assert.equal(modes(results), 'local');
            assert.equal(passed(results), 20);
        }
        assert.equal(results.length, 40);
        assert.ok(slowest(results) < BOUND_MS, `${slowest(results)} ms`);
        assert.equal(nginx.pids().join(), workers);
        assert.equal(nginx.lines(/cannot count/).length, 1);

        if (what.startsWith('NOSCRIPT')) {
            assert.ok(fake.commands.filter((c) => c[0] === 'EVAL').length >= 1);
            assert.equal(fake.commands.filter((c) => c[0] === 'EVAL').length,
                fake.commands.filter((c) => c[0] === 'EVALSHA').length, 'once more, not twice');
        }
        await nginx.stop();
        await fake.stop();
    });
}

const greetings = {
    'a refusal': () => '-ERR max number of clients reached\r\n',
    'LOADING': () => '-LOADING Redis is loading the dataset in memory\r\n',
    'garbage': () => 'SSH-2.0-OpenSSH_9.2\r\n',
    'nothing': () => null,
    'a close': (words, socket) => { socket.destroy(); return null; },
};

for (const [what, greeting] of Object.entries(greetings)) {
    test(`greeted with ${what}: local at once, until it gets better`, async () => {
        const fake = await new Fake(() => ok, greeting).start();
        const nginx = await new Nginx({ x: `store_probe_redis ${fake.url};` }, { workers: 1 }).start();

        const first = await nginx.takes(10, 'x', 'g', 1000);
        assert.equal(modes(first), 'local');
        assert.ok(slowest(first) < BOUND_MS);
        const later = await nginx.takes(10, 'x', 'g', 1000);
        assert.ok(slowest(later) < AT_ONCE_MS);
        assert.equal(fake.commands.length, 0, 'no command before the greeting is done');
        assert.ok(fake.connections <= 2, `${fake.connections} connections`);

        fake.greeting = () => '+PONG\r\n';
        await until('better', async () => (await nginx.take('x', 'g', 1000)).mode === 'store');
        await nginx.stop();
        await fake.stop();
    });
}

test('it talks on accept, and later without being asked', async () => {
    const fake = await new Fake(() => ok).start();
    fake.accepted = (socket) => socket.write('+hello\r\n');
    const nginx = await new Nginx({ x: `store_probe_redis ${fake.url};` }, { workers: 1 }).start();
    const worker = nginx.pids()[0];

    await nginx.takes(10, 'x', 'u', 1000);
    fake.accepted = null;
    await until('well', async () => (await nginx.take('x', 'u', 1000)).mode === 'store');

    for (const socket of fake.open) {
        socket.write('*3\r\n+message\r\n+a\r\n+b\r\n');
    }
    await until('it was heard', () => nginx.lines(/without being asked/).length === 1);
    assert.equal((await nginx.take('x', 'u', 1000)).mode, 'local');
    await until('well again', async () => (await nginx.take('x', 'u', 1000)).mode === 'store');
    assert.equal(nginx.pids()[0], worker);
    await nginx.stop();
    await fake.stop();
});

test('on_failure=closed refuses, open passes, local without a zone passes and says so once', async () => {
    const away = `127.0.0.1:${await freePort()}`;
    const nginx = await new Nginx({
        closed: `store_probe_redis ${away} on_failure=closed;`,
        open: `store_probe_redis ${away} on_failure=open;`,
        zoneless: `store_probe_redis ${away}; store_probe_zoneless on;`,
    }).start();

    const closed = await nginx.takes(10, 'closed', 'k', 5);
    assert.equal(modes(closed), 'closed');
    assert.equal(passed(closed), 0);
    assert.ok(closed.every((r) => r.retry_after >= 1));

    const open = await nginx.takes(10, 'open', 'k', 5);
    assert.equal(modes(open), 'open');
    assert.equal(passed(open), 10);

    const zoneless = await nginx.takes(10, 'zoneless', 'k', 5);
    assert.equal(modes(zoneless), 'open');
    assert.equal(passed(zoneless), 10);
    assert.ok(nginx.lines(/no zone to count in/).length <= 2, 'one a worker');
    await nginx.stop();
});

test('clients that leave while Redis hangs, again and again (C051)', async () => {
    const redis = await new Redis().start();
    const nginx = await new Nginx({ x: `store_probe_redis ${redis.unix};` }).start();
    const workers = nginx.pids().join();

    for (let round = 0; round < 4; round++) {
        await until('well', async () => modes(await nginx.takes(8, 'x', 'w', 1000)) === 'store');
        redis.signal('SIGSTOP');

        const calls = Array.from({ length: 50 }, (_, i) => i % 5
            ? nginx.request('x', { key: 'a', limit: 1000, window: 60 })
            : nginx.request('x', { command: 'PING' }));
        const ends = Promise.allSettled(calls);
        await sleep(60);
        calls.forEach((call, i) => i % 2 && call.abort());

        // some rounds: the answer comes for those who have left; others: it never does
        if (round % 2) {
            redis.signal('SIGCONT');
        }
        const settled = await ends;
        assert.equal(settled.filter((s) => s.status === 'fulfilled').length, 25);
        assert.ok(settled.every((s, i) => s.status === 'rejected' || s.value.status === 200), 'answered');
        redis.signal('SIGCONT');
    }

    assert.equal(nginx.pids().join(), workers);
    await nginx.stop();
    await redis.stop();
});

test('reload while calls wait: they are answered, the old workers leave', async () => {
    const redis = await new Redis().start();
    const nginx = await new Nginx({ x: `store_probe_redis ${redis.unix};` }).start();
    const old = nginx.pids();

    await nginx.takes(20, 'x', 'warm');
    redis.signal('SIGSTOP');
    const waiting = nginx.takes(20, 'x', 'reload', 5);
    await sleep(50);
    nginx.reload();

    const results = await waiting;
    assert.equal(modes(results), 'local');
    assert.equal(passed(results), 5);
    await until('the old ones are gone', () => !nginx.pids().some((pid) => old.includes(pid)), LEAVE_MS);

    // the zone and what it counted are kept
    redis.signal('SIGCONT');
    await redis.stop();
    assert.equal(passed(await nginx.takes(10, 'x', 'reload', 5)), 0);
    await nginx.stop();
});

test('reload with an idle connection, and with Redis away: nothing holds the old workers', async () => {
    const redis = await new Redis().start();
    const nginx = await new Nginx({ x: `store_probe_redis ${redis.unix};` }).start();

    for (const away of [false, true]) {
        const old = nginx.pids();
        if (away) {
            await redis.stop();
        }
        await nginx.takes(20, 'x', 'warm', 1000);
        await sleep(300);
        nginx.reload();
        await until('the old ones are gone', () => !nginx.pids().some((pid) => old.includes(pid)), LEAVE_MS);
        await until('new ones', () => nginx.pids().length === 2);
    }
    await nginx.stop();
});

test('a full zone forgets the least recently used, and says so once', async () => {
    const nginx = await new Nginx({ x: 'store_probe_redis off;' }, { zone: '64k' }).start();

    // eight kilobytes each: a handful fill the zone
    for (let i = 0; i < 40; i++) {
        const fresh = await nginx.take('x', `flood${i}`, 1000);
        assert.deepEqual([fresh.allowed, fresh.remaining, fresh.mode], [true, 999, 'local']);
        const kept = await nginx.take('x', 'in use', 1000);
        assert.equal(kept.remaining, 999 - i, 'the one in use is not evicted');
    }
    assert.equal((await nginx.take('x', 'flood0', 1000)).remaining, 999, 'the oldest was');
    assert.equal(nginx.lines(/no room for a counter/).length, 1);
    assert.equal(nginx.lines(/ngx_slab_alloc/).length, 0);
    await nginx.stop();
});

test('no room in spite of evictions: refused, for a cap that is not kept is none', async () => {
    const nginx = await new Nginx({ x: 'store_probe_redis off;' }, { zone: '32k' }).start();

    // small ones everywhere: three pages in a row take more evictions than one call may make
    for (let i = 0; i < 10; i++) {
        assert.equal(modes(await Promise.all(Array.from({ length: 40 },
            (_, j) => nginx.take('x', `small${i}-${j}`, 2)))), 'local');
    }

    const results = [];
    for (let i = 0; i < 10; i++) {
        results.push(await nginx.take('x', 'large', 1000));
    }
    assert.deepEqual([results[0].allowed, results[0].mode, results[0].retry_after], [false, 'closed', 1]);
    assert.equal(results.at(-1).mode, 'local', 'each try made some room');
    assert.equal(nginx.lines(/no room for a counter/).length, 1);
    await nginx.stop();
});
