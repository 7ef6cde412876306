// Runs in sessions: what is replayed to the model and how, segments and their list of
// tools, who may go on with a session, and what becomes of the run that had it.

import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertError, assertWhole, callsTurn, order, textTurn } from './fixture.mjs';
import { soon, startWorld, toolOf } from './control.mjs';
import { makeKey, token as signed } from '../lib/jwt.mjs';

const ISSUER = makeKey('HS256');
const OK = textTurn('ok');
const UNKNOWN = `sess_${'0'.repeat(22)}`;
const user = (text) => ({ role: 'user', content: text });
const answer = (text) => ({ role: 'assistant', content: text });
const token = (sub) => signed(ISSUER, { sub, exp: Math.floor(Date.now() / 1000) + 60 });

let w;
let f;

before(async () => {
  w = await startWorld({
    nodes: 2, agents: undefined, workers: 2, runHost: 'toolgate_run_timeout 5s;',
    http: 'toolgate_max_history 8k; toolgate_segment_idle 3s;', api: 'toolgate_sse_ping 200ms;',
    catalog: { end_user_keys: [{ name: 'app', alg: 'HS256', ...ISSUER.register }] },
  });
  f = w.node;
});
after(() => w?.stop());

const plan = (...turns) => {
  f.clear();
  f.model.plan(...turns.map((t) => (typeof t === 'string' ? [{ send: t }] : t)));
};
const create = async (body = {}, options = {}) => (await w.make('/v1/sessions', body, options)).id;
const messages = async (id, options = {}) => (await f.nginx.request(`/v1/sessions/${id}/messages?limit=100`, options)).json.data;
const body = (session, text, more = {}) => ({ model: 'a', session_id: session, messages: [user(text)], ...more });
/** One answer in a session; the turns are what the model says. */
async function say(session, text, turns = [OK], more = {}, options = {}) {
  plan(...turns);
  return f.nginx.chat(body(session, text, more), options);
}
const ok = async (...a) => {
  const got = await say(...a);
  assert.equal(got.status, 200, got.text);
  return got;
};
/** The messages that the model got, without the agent's instructions. */
const got = (n = -1) => f.model.request(n).json.messages.filter((m) => m.role !== 'system');
const offered = (n = -1) => (f.model.request(n).json.tools ?? []).map((t) => t.function.name);
const look = (id, n) => ({ id, n: 'order_status', a: order(String(n)) });
const note = (id, text) => ({ id, n: 'add_note', a: JSON.stringify({ body: text }) });
const runOf = (a) => a.headers['x-toolgate-run'];
const run = async (id, options) => (await f.nginx.request(`/v1/runs/${id}`, options)).json;
/** A change of the control plane, and the time until every worker has seen it. */
const change = async (...a) => {
  await w.ok(...a);
  await sleep(500);
};
const steps = async (id) => (await f.nginx.request(`/v1/runs/${id}/steps`)).json.data;

test('the history goes in front, to the byte, as each model request was before', async () => {
  const id = await create();
  await ok(id, 'where is 8812?', [callsTurn(look('c1', 8812), look('c2', 8813)), textTurn('on its ', 'way "now" ü')]);
  const first = [0, 1].map((n) => f.model.request(n).body.toString());
  await ok(id, 'and 8814?', [callsTurn(look('c3', 8814)), textTurn('lost')]);
  const second = [0, 1].map((n) => f.model.request(n).body.toString());
  const { data } = { data: got(0) };
  assert.deepEqual(data.map((m) => m.role), ['user', 'assistant', 'tool', 'tool', 'assistant', 'user']);
  assert.equal(data[4].content, 'on its way "now" ü');

  // each request begins with all of the one before it
  const inner = (text) => text.slice(0, text.indexOf('],"stream":true'));
  const all = [...first, ...second].map(inner);
  for (let i = 1; i < all.length; i++) assert.ok(all[i].startsWith(all[i - 1]), `${i}: ${all[i]}`);
  const tail = (text) => text.slice(text.indexOf('],"stream":true'));
  assert.equal(new Set([...first, ...second].map(tail)).size, 1, 'and the list of tools is the same');

  const kept = await messages(id);
  assert.deepEqual(kept.map((m) => m.role), ['user', 'assistant', 'tool', 'tool', 'assistant', 'user', 'assistant', 'tool', 'assistant']);
  assert.deepEqual(kept.map((m) => m.segment), Array(9).fill(1));
  const [question, call, result, other, said] = kept;
  assert.equal(question.content, 'where is 8812?');
  assert.match(call.tool_calls[0].id, /^call_[0-9A-Za-z]{22}$/);
  assert.deepEqual([result.call_id, other.call_id], call.tool_calls.map((c) => c.id));
  assert.deepEqual([result.name, result.status, result.error, JSON.parse(result.content).ok], ['order_status', 'ok', null, true]);
  assert.equal(said.content, 'on its way "now" ü');
  assert.equal(new Set(kept.slice(0, 5).map((m) => m.run)).size, 1);
  const shown = (await f.nginx.request(`/v1/sessions/${id}`)).json;
  assert.deepEqual([shown.message_count, shown.segment, shown.run], [9, 1, null]);
});

test('streamed, and on the other node', async () => {
  const id = await create();
  plan(textTurn('one'));
  assertWhole(await f.nginx.stream(body(id, 'a')));
  const other = w.nodes[1];
  other.clear();
  other.model.plan([{ send: OK }]);
  assert.equal((await other.nginx.chat(body(id, 'b'))).status, 200);
  assert.deepEqual(other.model.request(-1).json.messages.filter((m) => m.role !== 'system'), [user('a'), answer('one'), user('b')]);
});

test('what models must not get as it came is kept as they get it', async () => {
  const id = await create();
  plan(OK);
  const odd = { role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] };
  assert.equal((await f.nginx.chat({ ...body(id, ''), messages: [{ role: 'developer', content: 'short' }, odd] })).status, 200);
  await ok(id, 'b');
  assert.deepEqual(f.model.request(-1).json.messages.slice(1), [{ role: 'system', content: 'short' }, odd, answer('ok'), user('b')]);
});

test('ids of calls that a model gives again are made unique over the session', async () => {
  const id = await create();
  await ok(id, 'a', [callsTurn(look('same', 1)), OK]);
  await ok(id, 'b', [callsTurn(look('same', 2)), OK]);
  await ok(id, 'c');
  const ids = got().filter((m) => m.role === 'tool').map((m) => m.tool_call_id);
  assert.deepEqual([ids[0], new Set(ids).size], ['same', 2]);
  assert.match(ids[1], /^call_/);
});

test('what is wrong with a session in a request', async () => {
  const id = await create();
  const theirs = await create({}, { headers: { 'x-account-id': 'acme' } });
  const cases = [
    [{ session_id: UNKNOWN }, 404, 'session_not_found'],
    [{ session_id: 'a/b' }, 404, 'session_not_found', 'session_id'],
    [{ session_id: '' }, 404, 'session_not_found', 'session_id'],
    [{ session_id: 'x'.repeat(65) }, 404, 'session_not_found', 'session_id'],
    [{ session_id: 7 }, 400, 'invalid_type', 'session_id'],
    [{ session_id: theirs }, 404, 'session_not_found'],
    [{ session_id: id, account_id: 'acme' }, 404, 'session_not_found'],
    [{ session_id: id, model: 'm' }, 400, 'invalid_value', 'session_id'],
    [{ session_id: id, store: false }, 400, 'invalid_value', 'store'],
    [{ session_id: id, if_busy: 'wait' }, 400, 'invalid_value', 'if_busy'],
    [{ session_id: id, if_busy: true }, 400, 'invalid_value', 'if_busy'],
    [{ session_id: id, new_segment: 'yes' }, 400, 'invalid_type', 'new_segment'],
  ];
  for (const [more, status, code, param] of cases) {
    plan();
    const refused = await f.nginx.chat(body(id, 'x', more));
    assertError(refused, status, code, param);
    assert.equal(f.model.journal.length, 0, 'no model is asked');
    assert.equal((await f.nginx.request(`/v1/runs/${runOf(refused)}`)).status, 404, 'and there is no run');
  }
  assert.deepEqual(await messages(id), []);
  plan(OK);
  assert.equal((await f.nginx.chat(body(theirs, 'x', { account_id: 'acme' }))).status, 200);
  plan(OK);
  const none = await f.nginx.chat(body(undefined, 'x', { session_id: null, if_busy: 'reject' }));
  assert.equal(none.status, 200, 'null is as good as absent');
});

test('an id that was refused may be used again, and an invocation that comes again adds nothing', async () => {
  const id = await create();
  plan();
  assertError(await f.nginx.chat(body(UNKNOWN, 'x', { invocation_id: 'again-1' })), 404, 'session_not_found');
  const once = await ok(id, 'x', [OK], { invocation_id: 'again-1' });
  const twice = await say(id, 'x', [], { invocation_id: 'again-1' });
  assert.equal(twice.json.choices[0].message.content, 'ok');
  assert.equal(runOf(twice), runOf(once));
  assert.deepEqual((await messages(id)).map((m) => m.content), ['x', 'ok']);
});

test('a session belongs to its first verified user', async () => {
  const id = await create();
  await ok(id, 'a', [OK], { model: 'careful' });
  assert.deepEqual(offered(), ['lookup', 'order_status']);
  await ok(id, 'b', [OK], { model: 'careful', end_user: { token: token('u-1') } });
  assert.deepEqual(offered(), ['add_note', 'do_it', 'lookup', 'order_status'], 'a new segment');
  assert.deepEqual(got(), [user('a'), answer('ok'), user('b')]);
  for (const more of [{ end_user: { token: token('u-2') } }, {}]) {
    const refused = await say(id, 'c', [], { model: 'careful', ...more });
    assertError(refused, 403, 'end_user_mismatch');
    assert.ok(!refused.text.includes('u-1'));
  }
  await ok(id, 'c', [OK], { model: 'careful', end_user: { token: token('u-1') } });
  assert.deepEqual((await messages(id)).filter((m) => m.role === 'user').map((m) => [m.content, m.segment]), [['a', 1], ['b', 2], ['c', 2]]);
  const bound = await create({ end_user: { token: token('u-3') } });
  assertError(await say(bound, 'x', [], { end_user: { token: token('u-1') } }), 403, 'end_user_mismatch');
});

test('the list is fixed for the segment: switches refuse at call time, a new segment takes them in', async () => {
  const tool = await w.make('/v1/tools', toolOf('segment_read', `${f.tool.url}/orders/1`));
  const act = await w.make('/v1/tools', toolOf('segment_act', `${f.tool.url}/notes`, { method: 'POST', body: {} }));
  const agent = await w.agent('segments', ['segment_read', 'segment_act']);
  const id = await create();
  const call = (name) => callsTurn({ id: 'c', n: name, a: '{}' });
  const both = ['segment_act', 'segment_read'];
  const more = { model: 'segments' };
  const list = () => f.model.request(-1).body.toString().match(/"tools":\[.*?\]\}\}\]|"tools":.*$/s)?.[0];

  await ok(id, 'a', [call('segment_read'), OK], more);
  assert.deepEqual([offered(), f.codes()], [both, ['ok']]);
  const before = list();
  const refused = async (patch, path, name, code) => {
    await change('PATCH', path, patch[0]);
    await ok(id, 'b', [call(name), OK], more);
    assert.deepEqual([offered(), f.codes(), f.tool.count()], [both, [code], 0], code);
    assert.equal(list(), before, 'to the byte');
    await change('PATCH', path, patch[1]);
  };
  await refused([{ actions_paused: true }, { actions_paused: false }], `/v1/agents/${agent.id}`, 'segment_act', 'actions_paused');
  await refused([{ tools: { enabled: false } }, { tools: { enabled: true } }], `/v1/agents/${agent.id}`, 'segment_read', 'tools_disabled');
  await refused([{ enabled: false }, { enabled: true }], `/v1/tools/${tool.id}`, 'segment_read', 'tool_not_available');

  await change('PATCH', `/v1/agents/${agent.id}`, { actions_paused: true });
  await ok(id, 'c', [OK], { ...more, new_segment: true });
  assert.deepEqual(offered(), ['segment_read'], 'a new segment by request');
  await change('PATCH', `/v1/agents/${agent.id}`, { actions_paused: false });
  await ok(id, 'd', [OK], more);
  assert.deepEqual(offered(), ['segment_read']);
  await sleep(4200);
  await ok(id, 'e', [OK], more);
  assert.deepEqual(offered(), both, 'after idle time');

  await change('PATCH', `/v1/agents/${agent.id}`, { tools: { http: [{ tool: 'segment_read' }] } });
  await ok(id, 'f', [OK], more);
  assert.deepEqual(offered(), both, 'a draft is nobody\'s business');
  await change('POST', `/v1/agents/${agent.id}/publish`);
  await ok(id, 'g', [OK], more);
  assert.deepEqual(offered(), ['segment_read'], 'another version');
  await ok(id, 'h', [OK]);
  assert.deepEqual(offered(), ['add_note', 'do_it', 'lookup', 'order_status'], 'another agent');
  assert.equal(got().length, 27);
  assert.deepEqual((await messages(id)).filter((m) => m.role === 'user').map((m) => m.segment), [1, 1, 1, 1, 2, 2, 3, 3, 4, 5]);
  assert.equal(act.name, 'segment_act');
});

test('history over toolgate_max_history: whole exchanges are dropped; what is too large itself is refused', async () => {
  const id = await create();
  const text = 'q'.repeat(600);
  const seen = [];
  for (let i = 0; i < 16; i++) {
    await ok(id, text, [callsTurn(look(`c${i}`, i)), textTurn('a'.repeat(200))]);
    const replayed = got(0);
    assert.ok(Buffer.byteLength(JSON.stringify(replayed)) <= 8192 + 16);
    assert.equal(replayed[0].role, 'user');
    const calls = replayed.flatMap((m) => m.tool_calls ?? []).map((c) => c.id);
    assert.deepEqual(replayed.filter((m) => m.role === 'tool').map((m) => m.tool_call_id), calls, 'no result without its call');
    seen.push(replayed.length);
  }
  assert.ok(Math.max(...seen) < 40 && seen.filter((n, i) => i > 0 && n < seen[i - 1]).length >= 2, seen.join());
  assert.equal((await messages(id)).length, 64, 'all of it can be read still');
  const large = await say(id, 'x'.repeat(8200), []);
  assertError(large, 413, 'request_too_large');
  assert.equal((await messages(id)).length, 64);
});

test('a new message takes the session from a run that is under way; its steps say so', async () => {
  const id = await create();
  await ok(id, 'zero');
  f.clear();
  f.model.plan([{ send: textTurn('half').slice(0, 200) }, { hang: true }], [{ send: OK }]);
  const first = await f.nginx.open(body(id, 'first'));
  await f.model.until(() => f.model.journal.length === 1);
  await soon(async () => (await f.nginx.request(`/v1/sessions/${id}`)).json.run === runOf(first), 'the session has a run');
  const second = await f.nginx.chat(body(id, 'second'));
  assert.equal(second.status, 200, second.text);
  await first.end();
  assert.deepEqual([first.events.at(-1).json.error.code, first.done], ['run_superseded', false]);
  assert.deepEqual(got(), [user('zero'), answer('ok'), user('first'), user('second')], 'what was said is not forgotten');
  assert.equal((await run(runOf(first))).status, 'superseded');
  assert.equal((await run(runOf(second))).status, 'completed');
  assert.deepEqual((await messages(id)).map((m) => m.content), ['zero', 'ok', 'first', 'second', 'ok']);
  const [step] = await steps(runOf(first));
  assert.deepEqual([step.type, step.ok, step.code], ['model_call', false, 'run_superseded']);
});

test('C084 if_busy reject: 409 that names the run, until it is over; stop, then send works at once', async () => {
  const id = await create();
  f.clear();
  f.model.plan([{ hang: true }], [{ send: OK }], [{ send: OK }]);
  const first = f.nginx.chat(body(id, 'first'));
  await f.model.until(() => f.model.journal.length === 1);
  const busy = await f.nginx.chat(body(id, 'second', { if_busy: 'reject' }));
  assertError(busy, 409, 'session_busy');
  const [name] = busy.json.error.message.match(/run_\w{22}/);
  assert.equal((await run(name)).status, 'running');
  assert.equal((await f.nginx.request(`/v1/runs/${name}/cancel`, { method: 'POST' })).status, 200);
  const second = await f.nginx.chat(body(id, 'second', { if_busy: 'reject' }));
  assert.equal(second.status, 200, second.text);
  assertError(await first, 409, 'run_cancelled');
  assert.deepEqual(got(), [user('first'), user('second')]);
  assert.equal((await f.nginx.chat(body(id, 'third', { if_busy: 'reject' }))).status, 200);
});

test('a client that leaves: its run is over, its question stays, and the session is free', async () => {
  const id = await create();
  f.clear();
  f.model.plan([{ hang: true }], [{ send: OK }]);
  const first = await f.nginx.open(body(id, 'first'));
  await f.model.until(() => f.model.journal.length === 1);
  first.leave();
  await soon(async () => (await f.nginx.request(`/v1/sessions/${id}`)).json.run === null, 'the session is free');
  assert.equal((await f.nginx.chat(body(id, 'second', { if_busy: 'reject' }))).status, 200);
  assert.deepEqual(got(), [user('first'), user('second')]);
});

test('a model that fails before anything was done leaves nothing; after a round it is kept', async () => {
  const id = await create();
  const broken = [{ status: 500 }, { send: '{}' }];
  assertError(await say(id, 'a', [broken]), 502, 'model_unavailable');
  assert.deepEqual(await messages(id), []);
  assertError(await say(id, 'a', [callsTurn(note('c', 'x')), broken], {}), 502, 'model_unavailable');
  assert.deepEqual((await messages(id)).map((m) => m.role), ['user', 'assistant', 'tool']);
  await ok(id, 'b');
  assert.deepEqual(got().map((m) => m.role), ['user', 'assistant', 'tool', 'user'], 'the model knows that it was done');
});

test('an action under way when the session is taken: the model is told, and it is not lost', async () => {
  const id = await create();
  f.clear();
  f.tool.answer = async () => {
    await sleep(400);
    return false;
  };
  f.model.plan([{ send: callsTurn(look('r', 1), note('c', 'x')) }], [{ send: OK }]);
  const first = f.nginx.chat(body(id, 'first'));
  await soon(() => f.tool.count() === 2, 'both calls are under way');
  const second = await f.nginx.chat(body(id, 'second'));
  assert.equal(second.status, 200, second.text);
  const told = got();
  assert.deepEqual(told.map((m) => m.role), ['user', 'assistant', 'tool', 'tool', 'user']);
  assert.deepEqual(told.filter((m) => m.role === 'tool').map((m) => JSON.parse(m.content).error.code), ['run_superseded', 'outcome_unknown']);
  assertError(await first, 409, 'run_superseded');
  const of = (await run(runOf(second))).session_id;
  assert.equal(of, id);
  const { json: list } = await f.nginx.request(`/v1/runs?session=${id}`);
  assert.deepEqual(list.data.map((r) => r.status), ['completed', 'superseded']);
  const call = (await steps(list.data[1].id)).find((s) => s.tool === 'add_note');
  assert.deepEqual([call.ok, call.upstream?.status], [true, 200], 'it was let finish, and is recorded');
  assert.equal(f.tool.count(), 2);
});

test('the caller\'s own tools: the next request answers the calls, or they have no result', async () => {
  const tools = [{ type: 'function', function: { name: 'get_cart', parameters: { type: 'object' } } }];
  const handed = async (id) => {
    const out = await ok(id, 'cart?', [callsTurn({ id: 'c', n: 'get_cart', a: '{}' }, look('d', 1))], { tools });
    assert.equal(out.json.choices[0].finish_reason, 'tool_calls');
    return out.json.choices[0].message.tool_calls[0].id;
  };
  const result = (call, content = '["pen"]') => ({ role: 'tool', tool_call_id: call, content });
  const answers = async (id, list) => {
    plan(OK);
    return f.nginx.chat({ ...body(id, ''), tools, messages: list });
  };

  let id = await create();
  const call = await handed(id);
  assert.match(call, /^call_/);
  assertError(await answers(id, [result('call_0000000000000000000000')]), 400, 'unknown_tool_call');
  assertError(await answers(id, [result('a b')]), 400, 'unknown_tool_call');
  assert.equal((await answers(id, [result(call)])).status, 200);
  const told = got();
  assert.deepEqual(told.map((m) => m.role), ['user', 'assistant', 'tool', 'tool']);
  assert.deepEqual(told.at(-1), result(call));
  assert.deepEqual(told[1].tool_calls.map((c) => c.id), [call, 'd']);
  assertError(await answers(id, [result(call)]), 400, 'unknown_tool_call');

  id = await create();
  const other = await handed(id);
  await ok(id, 'never mind', [OK], { tools });
  const kept = got();
  assert.deepEqual(kept.map((m) => m.role), ['user', 'assistant', 'tool', 'tool', 'user']);
  assert.deepEqual([kept[3].tool_call_id, JSON.parse(kept[3].content).error.code], [other, 'client_tool_failed']);
  assertError(await answers(id, [result(other)]), 400, 'unknown_tool_call');
});

test('calls of an anonymous session count together: 20 an hour', async () => {
  const id = await create();
  for (let i = 0; i < 4; i++) {
    await ok(id, 'x', [callsTurn(...Array.from({ length: 5 }, (_, n) => look(`c${i}${n}`, 100 + 5 * i + n))), OK]);
    assert.deepEqual(f.codes(), Array(5).fill('ok'));
  }
  await ok(id, 'x', [callsTurn(look('d', 500)), OK]);
  assert.deepEqual(f.codes(), ['rate_limited']);
  const other = await create();
  await ok(other, 'x', [callsTurn(look('d', 500)), OK]);
  assert.deepEqual(f.codes(), ['ok']);
});

test('runs of /v1/runs in a session: refused at once, or replayed and kept like all others', async () => {
  const id = await create();
  const post = (more) => f.nginx.request('/v1/runs', { body: { agent: 'a', input: 'hello', ...more } });
  plan();
  const missing = await post({ session_id: UNKNOWN, invocation_id: 'run-again-1' });
  assertError(missing, 404, 'session_not_found');
  assert.equal((await f.nginx.request('/v1/runs/run-again-1')).status, 404);
  plan(callsTurn(look('c', 1)), textTurn('one'));
  const first = await post({ session_id: id, invocation_id: 'run-again-1' });
  assert.deepEqual([first.status, first.json.status, first.json.session_id, first.json.output_text], [200, 'completed', id, 'one']);
  await ok(id, 'b');
  assert.deepEqual(got().map((m) => m.role), ['user', 'assistant', 'tool', 'assistant', 'user']);

  f.clear();
  f.model.plan([{ hang: true }], [{ send: OK }]);
  const slow = await post({ session_id: id, background: true });
  assert.equal(slow.status, 202);
  await f.model.until(() => f.model.journal.length === 1);
  const busy = await post({ session_id: id, if_busy: 'reject' });
  assertError(busy, 409, 'session_busy');
  assert.ok(busy.text.includes(slow.json.id));
  const next = await post({ session_id: id, input: 'next' });
  assert.equal(next.json.status, 'completed');
  await soon(async () => (await run(slow.json.id)).status === 'superseded', 'the other one is superseded');
  assert.deepEqual(got().slice(-2), [user('hello'), user('next')]);
  const list = (await f.nginx.request(`/v1/runs?session=${id}`)).json.data;
  assert.deepEqual(list.map((r) => r.status), ['completed', 'superseded', 'completed', 'completed']);
});

test('the runs of a session are found behind any number of others; of a refused request nothing stays', async () => {
  const id = await create();
  await ok(id, 'one');
  // newer ones of the account, that nobody may have to look at
  for (let from = 0; from < 1200; from += 200) {
    w.redis.cli('zadd', 't:r:{default/}:', ...Array.from({ length: 200 }, (_, i) => ['99999999999999', `run_other${from + i}`]).flat());
  }
  const list = (query) => f.nginx.request(`/v1/runs?${query}`);
  const { data, has_more: more } = (await list(`session=${id}`)).json;
  assert.deepEqual([data.length, data[0].session_id, more], [1, id, false]);
  assertError(await list('session=a%20b'), 400, 'invalid_value');
  assertError(await list(`session=${'x'.repeat(65)}`), 400, 'invalid_value');
  assert.deepEqual((await list('session=nobody')).json, { object: 'list', data: [], has_more: false });
  w.redis.cli('zremrangebyscore', 't:r:{default/}:', '99999999999999', '+inf');

  assertError(await f.nginx.chat(body('nobody', 'x')), 404, 'session_not_found');
  await soon(async () => w.redis.cli('exists', 't:r:{default/}:nobody/runs') === '0', 'no index of a session that is not there');
});

test('the Responses API: session_id and conversation', async () => {
  const id = await create();
  await ok(id, 'one');
  const post = (more) => f.nginx.request('/v1/responses', { body: { model: 'a', input: 'two', ...more } });
  plan(OK, OK);
  assert.equal((await post({ session_id: id })).json.status, 'completed');
  assert.deepEqual(got(), [user('one'), answer('ok'), user('two')]);
  assert.equal((await post({ conversation: { id } })).json.status, 'completed');
  assert.equal((await post({ conversation: id, session_id: id, input: 'three' })).status, 200);
  assert.deepEqual((await messages(id)).filter((m) => m.role === 'user').map((m) => m.content), ['one', 'two', 'two', 'three']);
  plan();
  const wrong = [
    [{ conversation: 7 }, 400, 'invalid_type', 'conversation'],
    [{ conversation: {} }, 400, 'invalid_type', 'conversation'],
    [{ conversation: 'a/b' }, 404, 'session_not_found', 'conversation'],
    [{ conversation: UNKNOWN }, 404, 'session_not_found'],
    [{ conversation: id, session_id: UNKNOWN }, 400, 'invalid_value', 'conversation'],
    [{ conversation: id, model: 'm' }, 400, 'invalid_value', 'conversation'],
    [{ session_id: id, previous_response_id: `resp_${'0'.repeat(22)}` }, 400, 'invalid_value', 'previous_response_id'],
    [{ conversation: id, store: false }, 400, 'invalid_value', 'store'],
  ];
  for (const [more, status, code, param] of wrong) assertError(await post(more), status, code, param);
  assert.equal(f.model.journal.length, 0);
});

test('many messages at once: each takes the session from the one before, one is left', async () => {
  const id = await create();
  for (const node of w.nodes) {
    node.clear();
    node.model.plan(...Array.from({ length: 8 }, () => [{ wait: 400 }, { send: OK }]));
  }
  const all = await Promise.all(Array.from({ length: 8 }, (_, i) => w.nodes[i % 2].nginx.chat(body(id, `m${i}`))));
  const done = all.filter((a) => a.status === 200);
  assert.ok(done.length >= 1);
  for (const a of all.filter((x) => x.status !== 200)) assertError(a, 409, 'run_superseded');
  assert.equal((await f.nginx.request(`/v1/sessions/${id}`)).json.run, null);
  const kept = await messages(id);
  assert.deepEqual(kept.filter((m) => m.role === 'user').map((m) => m.content).sort(), Array.from({ length: 8 }, (_, i) => `m${i}`));
  assert.equal(kept.filter((m) => m.role === 'assistant').length, done.length);
});

test('a session that is deleted under a run: the run ends, and nothing comes back', async () => {
  const id = await create();
  f.clear();
  f.model.plan([{ hang: true }]);
  const first = f.nginx.chat(body(id, 'first'));
  await f.model.until(() => f.model.journal.length === 1);
  assert.equal((await f.nginx.request(`/v1/sessions/${id}`, { method: 'DELETE' })).status, 200);
  assertError(await first, 409, 'run_cancelled');
  assertError(await f.nginx.request(`/v1/sessions/${id}`), 404, 'session_not_found');
  assert.equal(w.redis.cli('keys', `t:s:{default/}:${id}*`), '');
});

test('Redis away: 503, and the model is not asked', async () => {
  const id = await create();
  plan(OK, OK);
  await w.redis.kill();
  try {
    await sleep(100);
    assertError(await f.nginx.chat(body(id, 'x')), 503, 'store_unavailable');
    assert.equal(f.model.journal.length, 0);
  } finally {
    await w.redis.start();
  }
  await soon(async () => (await f.nginx.chat(body(id, 'x'))).status === 200, 'it works again', 5000);
});
