// The scripts of sessions, asked directly: who has a session, whose it is, segments on
// the clock of Redis, what is replayed and what is dropped, what stays of a run that was
// taken away, pages, bounds, expiry.

import test, { after, before, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { Redis } from './harness.mjs';

const script = (name) => fs.readFileSync(new URL(`../../conf/redis/session_${name}.lua`, import.meta.url), 'utf8');
const SESSION = 't:s:{p/a}:sess';
const MESSAGES = `${SESSION}/messages`;
const RUNS = 't:r:{p/a}:';
const HOUR = 3600;

let redis;

before(async () => { redis = await new Redis().start(); });
after(() => redis.stop());
beforeEach(() => redis.call('FLUSHALL'));

// lengths are packed numbers, which texts of this harness cannot hold
const RUN = `local function pack(list)
    local packed = ''
    for _, message in ipairs(cjson.decode(list)) do
        packed = packed .. struct.pack('<I4I4', #message[1], #message[2]) .. message[1] .. message[2]
    end
    return packed
end
ARGV[4] = pack(ARGV[4])
if ARGV[1] == 'keep' then
    ARGV[5] = pack(ARGV[5])
end
local answer = (function()
${script('run')}
end)()
if answer[7] then
    answer[7] = #answer[7]
end
return answer`;

const said = (text, role = 'user') => JSON.stringify({ role, content: text });
const packed = (run, messages) => JSON.stringify(messages.map((m) =>
    [`"run":"${run}","invocation_id":"${run}"`, typeof m === 'string' ? m : JSON.stringify(m)]));

const create = (...fields) => redis.call('EVAL', script('create'), 1, SESSION, HOUR, ...fields);
const remove = () => redis.call('EVAL', script('delete'), 2, SESSION, MESSAGES);
const field = (name) => redis.call('HGET', SESSION, name);
const stored = async () => (await redis.call('LRANGE', MESSAGES, 0, -1)).map((text) => JSON.parse(text));
const page = async (after = '', limit = 20, bytes = 1e6) =>
    redis.call('EVAL', script('messages'), 2, SESSION, MESSAGES, after, limit, bytes);
const live = (run, status = 'running', more = []) => redis.call('HSET', RUNS + run, 'status', status, ...more);

async function begin(run, messages = [], { user = '', agent = 'agent_1@1', offered = 'o', idle = 1800, fresh = false,
    reject = false, most = 400 * 1024, make = false, answers = '' } = {}) {
    const [state, ...rest] = await redis.call('EVAL', RUN, 2, SESSION, MESSAGES, 'begin', HOUR, run, packed(run, messages),
        user, agent, offered, idle, fresh ? '1' : '', reject ? '1' : '', most, make ? '1' : '', RUNS, answers);
    if (state !== 'ok') return { state, run: rest[0] };
    const [segment, has, started, history, taken, kept] = rest;
    return { state, segment, offered: has, started: started === 1, history, taken, kept };
}

const write = (verb) => (run, messages = [], open = []) =>
    redis.call('EVAL', RUN, 2, SESSION, MESSAGES, verb, HOUR, run, packed(run, messages), JSON.stringify(open));
const keep = write('keep');
/** Its end, with all that it has said. */
async function end(run, messages = [], open = []) {
    await keep(run, messages, open);
    return write('end')(run);
}

/** A whole exchange of one question and one answer. */
async function exchange(run, question, answer, options) {
    const begun = await begin(run, [said(question)], options);
    assert.equal(begun.state, 'ok');
    assert.equal(await end(run, [said(question), said(answer, 'assistant')]), 'ok');
    return begun;
}

test('a session is made once, and is kept for as long as it is said', async () => {
    const [now] = await redis.call('TIME');
    const made = await create('agent', 'a', 'user', '', 'metadata', '{}');
    assert.ok(Math.abs(made - now) <= 1);
    assert.equal(await create('agent', 'b'), null);
    assert.equal(await field('agent'), 'a');
    const ttl = await redis.call('TTL', SESSION);
    assert.ok(ttl > HOUR - 5 && ttl <= HOUR);
});

test('a session that is not there: nobody begins, keeps or ends in it, unless it is to be made', async () => {
    assert.equal((await begin('r1', [said('x')])).state, 'none');
    assert.equal(await keep('r1', [said('x')]), 'none');
    assert.equal(await end('r1', [said('x')]), 'none');
    assert.equal(await redis.call('DBSIZE'), 0, 'and nothing is left behind');
    assert.equal((await begin('r1', [said('x')], { make: true })).state, 'ok');
    assert.ok(Number(await field('created_at')) > 0);
});

test('what was said comes back to the byte, in order, and once', async () => {
    await create();
    const odd = '{ "role" : "user",\n "content":[{"type":"text","text":"\\u0041\\/ü"}] }';
    const first = await begin('r1', [odd]);
    assert.deepEqual([first.history, first.segment, first.started, first.taken], ['', 1, true, '']);
    const call = '{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function"}]}';
    const result = '{"role":"tool","tool_call_id":"c","content":"{\\"message\\":1,\\"bytes\\":2}"}';
    assert.equal(await end('r1', [odd, call, result, said('done', 'assistant')]), 'ok');
    assert.equal(await end('r1', [odd]), 'gone', 'an end is the only one');
    assert.equal(await keep('r1', [odd]), 'gone');
    const second = await begin('r2', [said('next')]);
    assert.equal(Buffer.from(second.history, 'latin1').toString(), [odd, call, result, said('done', 'assistant')].join(','));
    assert.deepEqual([second.segment, second.started], [1, false]);

    const entries = await stored();
    assert.deepEqual(entries.map((e) => e.message.role), ['user', 'assistant', 'tool', 'assistant']);
    for (const [i, e] of entries.entries()) {
        assert.match(e.id, /^msg_[0-9A-Za-z]{22}$/);
        assert.ok(e.id.startsWith(`msg_0000000${i + 1}`));
        assert.deepEqual([e.run, e.segment, e.bytes], ['r1', 1, Buffer.byteLength([odd, call, result, said('done', 'assistant')][i])]);
    }
    assert.equal(new Set(entries.map((e) => e.id)).size, 4);
});

test('a begin that is said again for the same run changes nothing', async () => {
    await create();
    await exchange('r1', 'a', 'b');
    const once = await begin('r2', [said('c')]);
    await keep('r2', [said('c'), said('half', 'assistant')]);
    const again = await begin('r2', [said('c')], { fresh: true, offered: 'other' });
    assert.deepEqual({ ...again, kept: 0 }, { ...once, started: false, kept: 0 });
    assert.ok(once.kept === 0 && again.kept > said('c').length + said('half', 'assistant').length, 'it hears what it had kept');
    assert.equal((await begin('r3')).history, [said('a'), said('b', 'assistant'), said('c'), said('half', 'assistant')].join(','),
        'what was kept is still kept');
});

test('a run that fails before anything was done leaves nothing', async () => {
    await create();
    await begin('r1', [said('a')]);
    assert.equal(await end('r1', []), 'ok');
    assert.equal((await begin('r2', [said('a')])).history, '');
});

test('the end user: bound by the first, nobody else, not even an anonymous one', async () => {
    await create();
    assert.equal((await begin('r1', [said('a')])).segment, 1);
    await end('r1', [said('a')]);
    const bound = await begin('r2', [said('b')], { user: 'u-1', offered: 'more' });
    assert.deepEqual([bound.state, bound.segment, bound.started, bound.offered], ['ok', 2, true, 'more'], 'from anonymous to verified: a segment');
    assert.equal(bound.history, said('a'));
    await end('r2', [said('b')]);
    for (const user of ['u-2', '', 'u-1 ']) {
        assert.deepEqual(await begin('r3', [said('c')], { user }), { state: 'user', run: undefined });
    }
    assert.equal(await field('run'), null, 'a refused one has not got the session');
    assert.deepEqual(await begin('r3', [], { user: 'u-1' }).then((b) => [b.state, b.segment]), ['ok', 2]);
});

test('segments: the agent, its version, by request, after idle time; what is offered stays otherwise', async () => {
    await create();
    const next = async (options) => {
        const begun = await begin(`r${Math.random()}`, [], options);
        return [begun.segment, begun.offered, begun.started];
    };
    assert.deepEqual(await next({ offered: 'one' }), [1, 'one', true]);
    assert.deepEqual(await next({ offered: 'two' }), [1, 'one', false]);
    assert.deepEqual(await next({ offered: 'two', agent: 'agent_1@2' }), [2, 'two', true]);
    assert.deepEqual(await next({ offered: 'three', agent: 'agent_2@2' }), [3, 'three', true]);
    assert.deepEqual(await next({ offered: 'four', agent: 'agent_2@2', fresh: true }), [4, 'four', true]);
    const now = Number((await redis.call('TIME'))[0]);
    await redis.call('HSET', SESSION, 'at', now - 1795);
    assert.deepEqual(await next({ offered: 'five', agent: 'agent_2@2' }), [4, 'four', false]);
    await redis.call('HSET', SESSION, 'at', now - 1802);
    assert.deepEqual(await next({ offered: 'five', agent: 'agent_2@2' }), [5, 'five', true]);
    assert.deepEqual(await next({ offered: '', agent: 'agent_2@2', fresh: true }), [6, '', true]);
});

test('a session that is busy: refused with its run, or taken; never by a run that is over', async () => {
    await create();
    await begin('r1', [said('a')]);
    for (const status of ['queued', 'running', 'requires_action']) {
        await live('r1', status);
        assert.deepEqual(await begin('r2', [said('b')], { reject: true }), { state: 'busy', run: 'r1' });
    }
    const taken = await begin('r2', [said('b')]);
    assert.deepEqual([taken.taken, taken.history], ['r1', said('a')], 'its question is part of the history');
    assert.equal(await keep('r1', [said('a')]), 'gone', 'it hears of it when it goes on');
    assert.equal(await end('r1', [said('a'), said('late', 'assistant')]), 'gone');

    for (const status of ['completed', 'failed', 'cancelled', 'superseded', 'expired']) {
        await live('r2', status);
        const after = await begin(`r-${status}`, [], { reject: true });
        assert.deepEqual([after.state, after.taken], ['ok', ''], status);
        await redis.call('HSET', SESSION, 'run', 'r2');
    }
    await redis.call('DEL', `${RUNS}r2`);
    assert.equal((await begin('r4', [], { reject: true })).state, 'ok', 'nor by one that nobody knows any more');
});

test('a run that was ended, or has lost the session, does not get it again', async () => {
    await create();
    await begin('r1', [said('a')]);
    await live('r1');
    await begin('r2', [said('b')]);
    assert.equal((await begin('r1', [said('a')])).state, 'gone', 'before its end was written down');
    await end('r2', [said('b')]);
    assert.equal((await begin('r1', [said('a')])).state, 'gone');
    for (const status of ['cancelled', 'superseded', 'failed']) {
        await live('r3', status);
        assert.equal((await begin('r3', [said('c')])).state, 'gone', status);
    }
    await live('r4');
    assert.equal((await begin('r4', [said('c')])).history, [said('a'), said('b')].join(','));
});

test('calls that were handed out are answered by who begins next, or get the result that was left for them', async () => {
    const call = JSON.stringify({ role: 'assistant', content: null, tool_calls: [{ id: 'call_1' }, { id: 'call_2' }] });
    const result = (id, content) => JSON.stringify({ role: 'tool', tool_call_id: id, content });
    const open = ['call_1', 'call_2'].map((id) => [`"run":"r1","call_id":"${id}"`, result(id, 'none')]);
    for (const [answers, left] of [['call_1 call_2', []], ['call_2', ['call_1']], ['', ['call_1', 'call_2']]]) {
        await redis.call('FLUSHALL');
        await create();
        await begin('r1', [said('a')]);
        assert.equal(await end('r1', [said('a'), call], open), 'ok');
        assert.deepEqual(await begin('r2', [], { answers: `${answers} call_3` }), { state: 'call', run: 'call_3' });
        assert.equal(await field('run'), null, 'one that is refused has not got the session');
        const begun = await begin('r2', answers.split(' ').filter(Boolean).map((id) => result(id, 'x')), { answers });
        assert.equal(begun.history, [said('a'), call, ...left.map((id) => result(id, 'none'))].join(','));
        assert.equal((await begin('r3', [], { answers: 'call_1' })).state, 'call', 'once');
    }
});

test('a run that waits for its caller holds the session until its time is over', async () => {
    await create();
    await begin('r1', [said('a')]);
    const now = Number((await redis.call('TIME'))[0]) * 1000;
    await live('r1', 'requires_action', ['waits_until', now + 60000]);
    assert.equal((await begin('r2', [], { reject: true })).state, 'busy');
    await live('r1', 'requires_action', ['waits_until', now - 1000]);
    const begun = await begin('r2', [], { reject: true });
    assert.deepEqual([begun.state, begun.taken], ['ok', '']);
});

test('what a run has kept last stays of it, and what comes later does not', async () => {
    await create();
    await begin('r1', [said('a')]);
    await live('r1');
    await keep('r1', [said('a'), said('one', 'assistant')]);
    await keep('r1', [said('a'), said('one', 'assistant'), said('two', 'assistant')]);
    assert.deepEqual(await stored(), [], 'not yet part of the session');
    const begun = await begin('r2', [said('b')]);
    assert.equal(begun.history, [said('a'), said('one', 'assistant'), said('two', 'assistant')].join(','));
    await end('r1', [said('a'), said('late', 'assistant')]);
    await end('r2', [said('b'), said('c', 'assistant')]);
    assert.deepEqual((await stored()).map((e) => [e.run, e.message.content]),
        [['r1', 'a'], ['r1', 'one'], ['r1', 'two'], ['r2', 'b'], ['r2', 'c']]);
});

test('history over the bound: the oldest exchanges go whole, stay gone, and the rest begins the same', async () => {
    await create();
    const text = 'x'.repeat(1000);
    const size = said(text).length + said(text, 'assistant').length;
    const most = 10 * size;
    const seen = [];
    for (let n = 0; n < 30; n++) {
        const begun = await begin(`r${n}`, [said(text)], { most });
        const messages = begun.history ? begun.history.split(/,(?=\{"role")/) : [];
        assert.ok(begun.history.length + said(text).length <= most);
        assert.ok(messages.length === 0 || messages[0] === said(text), 'begins with a question');
        seen.push(messages.length / 2);
        await end(`r${n}`, [said(text), said(text, 'assistant')]);
    }
    assert.deepEqual(seen.slice(0, 14), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 8, 9, 7]);
    const drops = seen.filter((n, i) => i > 0 && n <= seen[i - 1]).length;
    assert.equal(drops, 7, 'more is dropped than needed, so that it happens seldom');
    assert.equal((await stored()).length, 60, 'all can be read still');
    const wide = await begin('r-wide', [], { most: 1e6 });
    assert.equal(wide.history.split(/,(?=\{"role")/).length / 2, seen.at(-1) + 1, 'dropped is dropped');
});

test('an exchange larger than the bound is dropped whole, calls and results together', async () => {
    await create();
    const call = JSON.stringify({ role: 'assistant', tool_calls: [{ id: 'c' }] });
    const result = JSON.stringify({ role: 'tool', tool_call_id: 'c', content: 'y'.repeat(9000) });
    await begin('r1', [said('a')]);
    await end('r1', [said('a'), call, result, said('b', 'assistant')]);
    assert.equal((await begin('r2', [said('c')], { most: 8192 })).history, '');
    await end('r2', [said('c'), call, said('z'.repeat(4000), 'tool')]);
    await exchange('r3', 'd', 'e', { most: 8192 });
    const { history } = await begin('r4', [said('q'.repeat(4000))], { most: 8192 });
    assert.equal(history, [said('d'), said('e', 'assistant')].join(','));
});

test('pages: after a message, as many as are wanted, as many bytes as are wanted', async () => {
    await create();
    assert.deepEqual(await page(), [0]);
    await begin('r1');
    await end('r1', Array.from({ length: 25 }, (_, n) => said(`m${n}`)));
    const ids = (await stored()).map((e) => e.id);
    const texts = (p) => p.slice(1).map((e) => JSON.parse(e).message.content);
    const first = await page();
    assert.deepEqual([first[0], texts(first).length, texts(first)[0]], [1, 20, 'm0']);
    assert.deepEqual(await page(ids[19]).then((p) => [p[0], ...texts(p)]), [0, 'm20', 'm21', 'm22', 'm23', 'm24']);
    assert.deepEqual(await page(ids[3], 2).then((p) => [p[0], ...texts(p)]), [1, 'm4', 'm5']);
    assert.deepEqual(await page(ids[24]), [0]);
    assert.deepEqual(await page('', 100, 1).then((p) => [p[0], ...texts(p)]), [1, 'm0'], 'one at least');
    const length = (await redis.call('LINDEX', MESSAGES, 0)).length;
    assert.deepEqual((await page('', 100, 3 * length)).length, 4);
    for (const other of [ids[3].slice(0, -1) + (ids[3].endsWith('x') ? 'y' : 'x'), 'msg_00000026aaaaaaaaaaaaaa', 'msg_00000000aaaaaaaaaaaaaa', 'msg_x']) {
        assert.deepEqual(await page(other), [-1], other);
    }
    await remove();
    assert.equal(await page(), null);
});

test('a session has at most 10,000 messages and 32 MiB: the oldest go', async () => {
    await create();
    for (let n = 0; n < 3; n++) {
        await begin(`r${n}`);
        await end(`r${n}`, Array.from({ length: 4000 }, (_, i) => said(`m${n}.${i}`)));
    }
    assert.equal(await redis.call('LLEN', MESSAGES), 10000);
    const oldest = JSON.parse(await redis.call('LINDEX', MESSAGES, 0));
    assert.deepEqual([oldest.message.content, oldest.id.slice(0, 12)], ['m0.2000', 'msg_00002001']);
    assert.deepEqual(await page('msg_00000001aaaaaaaaaaaaaa'), [-1]);
    assert.equal((await page(oldest.id, 1)).length, 2);
    assert.equal((await begin('s', [], { most: 1e7 })).history.split(/,(?=\{"role")/).length, 10000);
    const big = said('z'.repeat(15 * 1024 * 1024));
    await end('s', [big, big, said('last')]);
    assert.deepEqual((await stored()).map((e) => e.message.content.length).slice(-3), [big.length - said('').length, big.length - said('').length, 4]);
    assert.ok(Number(await field('bytes')) <= 32 * 1024 * 1024);
    await begin('t', [], { most: 1e9 });
    await end('t', [big]);
    assert.equal(await redis.call('LLEN', MESSAGES), 3);
});

test('deleted with all that belongs to it; the run that had it does not bring it back', async () => {
    await create('agent', 'a');
    await exchange('r1', 'a', 'b');
    await begin('r2', [said('c')]);
    assert.equal(await remove(), 'r2');
    assert.equal(await redis.call('DBSIZE'), 0);
    assert.equal(await keep('r2', [said('c')]), 'none');
    assert.equal(await end('r2', [said('c')]), 'none');
    assert.equal(await redis.call('DBSIZE'), 0);
    assert.equal(await remove(), null);
});

test('both keys live for as long as the session was last used', async () => {
    await create();
    await exchange('r1', 'a', 'b');
    for (const key of [SESSION, MESSAGES]) await redis.call('EXPIRE', key, 5);
    await begin('r2', [said('c')]);
    for (const key of [SESSION, MESSAGES]) assert.ok(await redis.call('TTL', key) > HOUR - 5);
    for (const key of [SESSION, MESSAGES]) await redis.call('EXPIRE', key, 5);
    await keep('r2', [said('c')]);
    for (const key of [SESSION, MESSAGES]) assert.ok(await redis.call('TTL', key) > HOUR - 5);
});
