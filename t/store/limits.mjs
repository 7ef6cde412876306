// The script of request limits, asked directly: exact counts on the clock of Redis, all
// or none, what a value looks like and how large it gets, expiry, a clock set back.

import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { Redis, sleep } from './harness.mjs';

const SCRIPT = fs.readFileSync(new URL('../../conf/redis/limit_take.lua', import.meta.url), 'utf8');
const MINUTE = 60000;
const HOUR = 60 * MINUTE;

let redis;

before(async () => { redis = await new Redis().start(); });
after(() => redis.stop());

// the script takes and gives packed numbers, which texts of this harness cannot hold
const WRAPPED = `local list, ARGV = ARGV, {}
for i = 1, #KEYS do
    ARGV[2 * i - 1] = struct.pack('<I4I4I4', list[3 * i - 2], list[3 * i - 1], list[3 * i])
    ARGV[2 * i] = string.format('%d', list[3 * i - 1] + math.ceil(list[3 * i - 1] / 60))
end
local answer, numbers = (function()
${SCRIPT}
end)(), {}
for at = 1, #answer, 4 do
    numbers[#numbers + 1] = (struct.unpack('<I4', answer, at))
end
return numbers`;

const words = (limits) => ['EVAL', WRAPPED, limits.length, ...limits.map((l) => l.key),
    ...limits.flatMap((l) => [l.limit, l.window ?? MINUTE, l.dry ? 1 : 0])];

function told([passed, ...rest]) {
    const states = [];
    assert.equal(rest.length % 3, 0);
    for (let i = 0; i < rest.length; i += 3) {
        states.push({ remaining: rest[i], wait: rest[i + 1], reset: rest[i + 2] });
    }
    return { passed: passed === 1, states };
}

const take = async (...limits) => told(await redis.call(...words(limits)));
const takes = async (n, ...limits) => (await redis.pipeline(Array(n).fill(words(limits)))).map(told);
const passed = (answers) => answers.filter((a) => a.passed).length;

// a value as another clock would have made it: [[stamp in ms, takes]], oldest first
async function put(key, slices) {
    const bytes = Buffer.alloc(4 + 12 * slices.length);
    bytes.writeUInt32LE(slices.reduce((sum, [, n]) => sum + n, 0));
    [slices.at(-1), ...slices.slice(0, -1)].forEach(([stamp, n], i) => {
        bytes.writeDoubleLE(stamp, 4 + 12 * i);
        bytes.writeUInt32LE(n, 12 + 12 * i);
    });
    const text = [...bytes].map((b) => `\\${b}`).join('');
    await redis.call('EVAL', `return redis.call('SET', KEYS[1], "${text}")`, 1, key);
}

async function read(key) {
    const [text] = await redis.call('EVAL', `return { (string.gsub(redis.call('GET', KEYS[1]), '.',
        function(c) return string.format('%02x', string.byte(c)) end)) }`, 1, key);
    const bytes = Buffer.from(text, 'hex');
    const slices = [];
    for (let at = 4; at < bytes.length; at += 12) {
        slices.push([bytes.readDoubleLE(at), bytes.readUInt32LE(at + 8)]);
    }
    slices.push(slices.shift());
    return { size: bytes.length, total: bytes.readUInt32LE(0), slices };
}

const now = async () => Math.floor(await redis.now() / 1000);

test('exactly the limit passes, and what is left is told', async () => {
    const answers = await takes(5, { key: 'a', limit: 3 });

    assert.deepEqual(answers.map((a) => a.passed), [true, true, true, false, false]);
    assert.deepEqual(answers.map((a) => a.states[0].remaining), [2, 1, 0, 0, 0]);
    assert.deepEqual(answers.slice(0, 3).map((a) => [a.states[0].wait, a.states[0].reset]), Array(3).fill([0, MINUTE]));
    for (const { states: [s] } of answers.slice(3)) {
        assert.ok(s.wait > MINUTE - 1500 && s.wait <= MINUTE, `${s.wait}`);
        assert.ok(s.reset >= s.wait && s.reset <= MINUTE, `${s.reset}`);
    }
});

test('a refused take writes nothing: neither the value nor its expiry', async () => {
    await takes(2, { key: 'b', limit: 2 });
    const before = await redis.call('EVAL', 'return redis.call("DUMP", KEYS[1])', 1, 'b');
    const expiry = await redis.call('PEXPIRETIME', 'b');
    await sleep(30);
    assert.equal(passed(await takes(50, { key: 'b', limit: 2 })), 0);
    assert.equal(await redis.call('EVAL', 'return redis.call("DUMP", KEYS[1])', 1, 'b'), before);
    assert.equal(await redis.call('PEXPIRETIME', 'b'), expiry);
});

test('the window rolls on the clock of Redis, refused attempts or not', async () => {
    const limit = { key: 'c', limit: 2, window: 1200 };
    const start = Date.now();
    assert.equal(passed(await takes(3, limit)), 2);
    while (Date.now() < start + 1100) {
        assert.equal((await take(limit)).passed, false);
        await sleep(50);
    }
    await sleep(start + 1350 - Date.now());
    assert.equal(passed(await takes(3, limit)), 2);
    await sleep(1300);
    assert.equal(await redis.call('EXISTS', 'c'), 0, 'and leaves nothing behind');
});

test('100,000 an hour: exact, in some bytes, with an expiry', async () => {
    const limit = { key: 'd', limit: 100000, window: HOUR };
    let n = 0;
    for (let i = 0; i < 12; i++) {
        n += passed(await takes(10000, limit));
    }
    assert.equal(n, 100000);
    const value = await read('d');
    assert.equal(value.total, 100000);
    assert.ok(value.size <= 4 + 2 * 12, `${value.size} bytes`);
    const ttl = await redis.call('PTTL', 'd');
    assert.ok(ttl > HOUR && ttl <= HOUR + MINUTE, `${ttl}`);
});

test('a value has at most 61 slices, and a slice drops out as a whole with its newest take', async () => {
    const at = await now();
    // five takes in each minute of the last hour and a half
    const slices = Array.from({ length: 90 }, (_, i) => [at - (90 - i) * MINUTE, 5]);
    await put('e', slices);
    const { states: [s] } = await take({ key: 'e', limit: 1000, window: HOUR });
    assert.ok(s.remaining === 1000 - 59 * 5 - 1 || s.remaining === 1000 - 60 * 5 - 1, `${s.remaining}`);
    const value = await read('e');
    assert.ok(value.slices.length <= 61, `${value.slices.length} slices`);
    assert.ok(value.size <= 740, `${value.size} bytes`);
    assert.equal(value.total, value.slices.reduce((sum, [, n]) => sum + n, 0));

    // the oldest slice has five seconds to go
    await put('f', [[at - HOUR + 5000, 7], [at - 1000, 3]]);
    const refused = await take({ key: 'f', limit: 10, window: HOUR });
    assert.equal(refused.passed, false);
    assert.ok(refused.states[0].wait > 3000 && refused.states[0].wait <= 5000, `${refused.states[0].wait}`);
    assert.ok(refused.states[0].reset > HOUR - 4000, `${refused.states[0].reset}`);
});

test('a slice that goes on is changed in place and lives for long enough', async () => {
    const limit = { key: 'p', limit: 1000, window: HOUR };
    // with older slices, some of them too old
    const at = await now();
    await put('p', [[at - HOUR - 1000, 3], [at - 40 * MINUTE, 5], [at - 10 * MINUTE, 7]]);
    assert.equal((await take(limit)).states[0].remaining, 1000 - 13);
    assert.deepEqual((await read('p')).slices.map(([, n]) => n), [5, 7, 1]);

    const before = await redis.call('PEXPIRETIME', 'p');
    assert.equal(passed(await takes(20, limit)), 20);
    const value = await read('p');
    assert.equal(value.total, 5 + 7 + 21);
    assert.ok(value.slices.length === 3 || value.slices.length === 4, `${value.slices.length}`);
    const expires = await redis.call('PEXPIRETIME', 'p');
    if (value.slices.length === 3) assert.equal(expires, before);
    assert.ok(expires >= value.slices.at(-1)[0] + HOUR, 'not before its newest take is a window old');

    // a slice that goes on while old ones drop out
    await put('q', [[at - HOUR - 1000, 3], [await now(), 2]]);
    assert.equal((await take({ ...limit, key: 'q' })).states[0].remaining, 1000 - 3);
    assert.equal((await read('q')).total, 3);
    assert.ok(await redis.call('PTTL', 'q') > HOUR - 5000);
});

test('several limits: all are taken, or none', async () => {
    const [small, large] = [{ key: 'g', limit: 2 }, { key: 'h', limit: 5, window: HOUR }];
    const answers = await takes(4, small, large);
    assert.deepEqual(answers.map((a) => a.passed), [true, true, false, false]);
    assert.deepEqual(answers.map((a) => a.states[1].remaining), [4, 3, 3, 3]);
    assert.deepEqual(answers.map((a) => a.states[1].wait), [0, 0, 0, 0]);
    assert.equal((await read('h')).total, 2);

    // and the other way round
    const first = await takes(3, { key: 'i', limit: 9 }, { key: 'j', limit: 1 });
    assert.deepEqual(first.map((a) => a.states[0].remaining), [8, 8, 8]);
    assert.equal((await read('i')).total, 1);
});

test('one that is only tried out is counted up to its limit, and refuses nothing', async () => {
    const answers = await takes(4, { key: 'k', limit: 2, dry: true }, { key: 'l', limit: 3 });
    assert.deepEqual(answers.map((a) => a.passed), [true, true, true, false]);
    assert.deepEqual(answers.map((a) => a.states[0].wait > 0), [false, false, true, true]);
    assert.deepEqual(answers.map((a) => a.states[1].remaining), [2, 1, 0, 0]);
    assert.equal((await read('k')).total, 2);
    assert.equal((await read('l')).total, 3);
});

test('a clock set back does not block for longer than one window', async () => {
    const at = await now();
    await put('m', [[at - 1000, 1], [at + 24 * HOUR, 2], [at + 25 * HOUR, 3]]);
    const refused = await take({ key: 'm', limit: 6 });
    assert.equal(refused.passed, false);
    assert.ok(refused.states[0].wait > MINUTE - 5000 && refused.states[0].wait <= MINUTE);

    const value = await read('m');
    assert.equal(value.total, 6);
    assert.deepEqual(value.slices.map(([, n]) => n), [1, 5]);
    assert.ok(value.slices[1][0] <= await now());
    assert.ok(await redis.call('PTTL', 'm') > 0);

    // what is as old as now is no older with the next attempt
    await sleep(100);
    await take({ key: 'm', limit: 6 });
    assert.deepEqual((await read('m')).slices, value.slices);
});

test('a value of another shape or type is an error, and is left alone', async () => {
    await redis.call('SET', 'n', 'xy');
    await assert.rejects(() => take({ key: 'n', limit: 6 }), /ERR|data string too short/);
    assert.equal(await redis.call('GET', 'n'), 'xy');
    await redis.call('RPUSH', 'o', 'x');
    await assert.rejects(() => take({ key: 'o', limit: 6 }), /WRONGTYPE/);
    assert.equal(await redis.call('LLEN', 'o'), 1);
});

test('nothing but the keys it was given is touched: a cluster would run it', async () => {
    const text = SCRIPT.replace(/--.*/g, '');
    const commands = [...text.matchAll(/call\('(\w+)', ?(\w+(?:\[i\]|\(KEYS\))?)?/g)].map((m) => `${m[1]} ${m[2] ?? ''}`.trim());
    assert.deepEqual(new Set(commands), new Set(['GET KEYS[i]', 'SET KEYS[i]', 'SETRANGE KEYS[i]']));
    assert.match(text, /call\('TIME'\)/);
});
