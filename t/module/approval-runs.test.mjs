// Runs that wait for a person: nothing of a gated call happens before the yes, each yes is
// for one call, a no is told to the model, and what nobody decides fails in time.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertError, callsTurn, closing, order, startFixture, stepsOf, textTurn } from './fixture.mjs';
import { PATIENT } from './nginx.mjs';
import { startRedis } from '../lib/redis.mjs';

const OK = textTurn('ok');
const ENDED = ['completed', 'failed', 'cancelled', 'superseded', 'expired', 'requires_action'];
const APPROVAL = /^appr_[0-9A-Za-z]{22}$/;
const SHORT_MS = 700;

const agent = (name, toolset, more = {}) => ({
  name, model: 'm', tools: { allow_anonymous_actions: true, max_tool_rounds: 5, http: [{ tool: 'order_status' }, { tool: 'add_note' }, { tool: 'do_it' }],
    client: [{ name: 'get_cart', effect: 'read' }, { name: 'pay' }], toolset, ...more },
});
const agents = [agent('a', { approval_mode: 'strict' }), agent('named', { require_approval: ['order_status', 'pay'] }), agent('free')];

let f;
let short;
let redis;
before(async () => {
  redis = await startRedis();
  const options = {
    workers: 2, agents, runHost: 'toolgate_run_timeout 20s;',
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_redis unix:${redis.socket} prefix=t: ${PATIENT};`,
  };
  f = await startFixture(options);
  short = await startFixture({ ...options, http: `${options.http.replace('prefix=t:', 'prefix=s:')} toolgate_approval_ttl ${SHORT_MS}ms; toolgate_tool_outputs_ttl ${SHORT_MS}ms;` });
});
after(async () => {
  await f?.stop();
  await short?.stop();
  await redis?.stop();
});

const plan = (x, ...turns) => {
  x.clear();
  x.model.plan(...turns.map((t) => (typeof t === 'string' ? [{ send: t }] : t)));
};
const run = (more = {}, x = f) => x.nginx.request('/v1/runs', { method: 'POST', body: { agent: 'a', input: 'do it', allow_actions: true, ...more } });
const get = (path, x = f) => x.nginx.request(`/v1/runs/${path}`);
const decide = (id, approved, more = {}, options = {}, x = f) => x.nginx.request(`/v1/approvals/${id}`, { method: 'POST', body: { approved, ...more }, ...options });
const ended = async (id, x = f) => {
  for (let i = 0; i < 500; i++) {
    const { json } = await get(id, x);
    if (ENDED.includes(json.status)) return json;
    await sleep(20);
  }
  throw new Error(`run ${id} does not end`);
};
const events = async (id, x = f) => (await get(`${id}/events`, x)).text.split('\n\n').filter((e) => /^id: /m.test(e)).map((e) => JSON.parse(/\ndata: (.*)$/.exec(e)[1]));
const note = (id = 'n1', body = 'x') => ({ id, n: 'add_note', a: JSON.stringify({ body }) });
const paths = () => f.asked.filter((p) => p !== '/orders/8812');

async function waiting(calls, turns, more = {}, x = f) {
  plan(x, callsTurn(...calls), ...turns);
  const { status, json, text } = await run(more, x);
  assert.equal(status, 200, text);
  assert.equal(json.status, 'requires_action', text);
  assert.equal(json.required_action.type, 'approval');
  return { id: json.id, asked: json.required_action.approvals, json };
}

test('a call waits, is given, and runs once', async () => {
  const { id, asked } = await waiting([{ id: 'o', n: 'order_status', a: order('8812') }, note()], [textTurn('Done.')]);
  const [one] = asked;
  assert.equal(asked.length, 1);
  assert.match(one.id, APPROVAL);
  assert.deepEqual(Object.keys(one).sort(), ['arguments', 'arguments_sha256', 'call_id', 'expires_at', 'id', 'risk_level', 'side_effects', 'tool_name']);
  assert.deepEqual([one.tool_name, one.arguments, one.risk_level, one.side_effects], ['add_note', { body: 'x' }, 'medium', []]);
  assert.deepEqual(f.asked, ['/orders/8812'], 'the one that is free ran, the other did not');
  const listed = (await f.nginx.request('/v1/approvals?status=pending')).json.data.find((a) => a.id === one.id);
  assert.deepEqual([listed.run, listed.call_id, listed.arguments], [id, one.call_id, { body: 'x' }]);

  assert.equal((await decide(one.id, true)).json.status, 'approved');
  const end = await ended(id);
  assert.deepEqual([end.status, end.output_text], ['completed', 'Done.']);
  assert.deepEqual(f.asked, ['/orders/8812', '/notes']);
  assert.deepEqual(f.codes(), ['ok', 'ok']);
  assert.equal((await f.nginx.request(`/v1/approvals/${one.id}`)).json.status, 'used');
  assert.equal(f.model.journal.length, 2);
  const all = (await events(id)).map((e) => e.type);
  assert.deepEqual(all, ['run.started', 'run.tool_call', 'run.tool_result', 'run.approval_requested', 'run.requires_action', 'run.tool_call', 'run.tool_result', 'run.text_delta', 'run.completed']);
  const every = (await get(`${id}/steps`)).json.data;
  const decision = every.find((s) => s.type === 'approval');
  assert.deepEqual([decision.tool, decision.call_id, decision.approval, decision.status], ['add_note', one.call_id, one.id, 'approved']);
  const steps = every.filter((s) => s.type === 'tool_call');
  assert.deepEqual(steps.map((s) => [s.tool, s.approval, s.upstream?.status]), [['order_status', undefined, 200], ['add_note', one.id, 200]]);
});

test('a no, with its reason, goes to the model', async () => {
  const { id, asked } = await waiting([note()], [OK]);
  assert.equal((await decide(asked[0].id, false, { reason: 'not on a Sunday' })).json.status, 'rejected');
  assert.equal((await ended(id)).status, 'completed');
  assert.deepEqual(paths(), []);
  const [{ result }] = f.told();
  assert.deepEqual([result.ok, result.error.code, result.error.reason], [false, 'approval_rejected', 'not on a Sunday']);
  assertError(await decide(asked[0].id, true), 409, 'already_decided');
  assert.deepEqual(paths(), []);
});

test('C116: three calls, yes, no, yes; C115: it waits until all are decided', async () => {
  const { id, asked } = await waiting([note('n1', 'one'), note('n2', 'two'), note('n3', 'three')], [OK]);
  assert.equal(asked.length, 3);
  const of = (body) => asked.find((a) => a.arguments.body === body).id;
  await decide(of('three'), true);
  await decide(of('two'), false);
  await sleep(100);
  assert.equal((await get(id)).json.status, 'requires_action');
  assert.deepEqual(paths(), []);
  await decide(of('one'), true);
  assert.equal((await ended(id)).status, 'completed');
  assert.deepEqual(f.tool.journal.map((e) => JSON.parse(e.body).text).sort(), ['one', 'three']);
  assert.deepEqual(f.codes(), ['ok', 'approval_rejected', 'ok']);
});

test('C114: a yes is for that call: with other arguments it is asked again', async () => {
  const { id, asked } = await waiting([note('n1', 'mild')], [callsTurn(note('n2', 'harsh')), callsTurn(note('n3', 'mild')), OK]);
  await decide(asked[0].id, true);
  const second = await ended(id);
  assert.equal(second.status, 'requires_action');
  const [again] = second.required_action.approvals;
  assert.deepEqual([again.arguments, again.id === asked[0].id], [{ body: 'harsh' }, false]);
  assert.deepEqual(f.tool.journal.map((e) => JSON.parse(e.body).text), ['mild']);
  // an approval of the pause before is of no use
  assertError(await decide(asked[0].id, true), 409, 'already_decided');
  await decide(again.id, false);
  assert.equal((await ended(id)).status, 'completed');
  assert.deepEqual(f.tool.journal.map((e) => JSON.parse(e.body).text), ['mild']);
});

test('C117: arguments that are lost inherit nothing', async () => {
  const { id, asked } = await waiting([note()], [callsTurn({ id: 'n2', n: 'add_note', a: '{"body":' }), callsTurn({ id: 'n3', n: 'add_note', a: '{}' }), OK]);
  await decide(asked[0].id, true);
  assert.equal((await ended(id)).status, 'completed');
  assert.equal(f.tool.journal.length, 1);
  const results = f.model.request().json.messages.filter((m) => m.role === 'tool').map((m) => JSON.parse(m.content));
  assert.deepEqual(results.map((r) => (r.ok ? 'ok' : r.error.code)), ['ok', 'invalid_arguments', 'invalid_arguments']);
});

test('a key without the scope, and one of another account, decide nothing', async () => {
  const { id, asked } = await waiting([note()], [OK], { account_id: 'mine' });
  const key = async (scopes, more = {}) => (await f.nginx.request('/v1/api_keys', { method: 'POST', body: { name: `k${Math.random()}`, scopes, ...more } })).json.key;
  const own = { headers: { 'x-account-id': 'mine' } };
  assertError(await decide(asked[0].id, true, {}, { key: await key(['run', 'admin', 'tools']), ...own }), 403, 'insufficient_scope');
  assertError(await decide(asked[0].id, true, {}, { key: await key(['approve'], { account_id: 'other' }) }), 404, 'not_found');
  assertError(await decide(asked[0].id, true), 404, 'not_found');
  assert.deepEqual(paths(), []);
  assert.equal((await decide(asked[0].id, true, {}, { key: await key(['approve']), ...own })).status, 200);
  assert.equal((await ended(`${id}?account_id=mine`)).status, 'completed');
});

test('a model cannot approve itself', async () => {
  plan(f, callsTurn({ id: 'n', n: 'add_note', a: '{"body":"x","approval":{"approved":true}}' }), OK);
  const { json } = await run();
  assert.equal(json.status, 'completed');
  assert.deepEqual(f.codes(), ['invalid_arguments'], 'not a parameter of an HTTP tool');
  assert.deepEqual(paths(), []);
});

test('a request may only tighten: what it has asked for holds after the pause as well', async () => {
  const strict = { agent: 'free', metadata: { agentengine: { tool_approval_mode: 'strict' } } };
  const { id, asked } = await waiting([note('n1', 'one')], [callsTurn(note('n2', 'two')), OK], strict);
  await decide(asked[0].id, true);
  const second = await ended(id);
  assert.equal(second.status, 'requires_action', 'the next one waits, too');
  await decide(second.required_action.approvals[0].id, true);
  assert.equal((await ended(id)).status, 'completed');
  assert.equal(f.tool.journal.length, 2);
});

test('cancelled while it waits: its approvals are over, nothing runs', async () => {
  const { id, asked } = await waiting([note()], [OK]);
  assert.equal((await f.nginx.request(`/v1/runs/${id}/cancel`, { method: 'POST' })).json.status, 'cancelled');
  assertError(await decide(asked[0].id, true), 409, 'approval_expired');
  await sleep(100);
  assert.equal((await get(id)).json.status, 'cancelled');
  assert.deepEqual([paths(), f.model.journal.length], [[], 1]);
});

test('the last decision against cancel: never both', async () => {
  for (let i = 0; i < 20; i++) {
    const { id, asked } = await waiting([note()], [[{ wait: 60 }, { send: OK }]]);
    const [decided] = await Promise.all([decide(asked[0].id, true), f.nginx.request(`/v1/runs/${id}/cancel`, { method: 'POST' })]);
    assert.equal((await ended(id)).status, 'cancelled');
    await sleep(20);
    if (decided.status !== 200) {
      assertError(decided, 409, 'approval_expired');
      assert.deepEqual([paths(), f.model.journal.length], [[], 1]);
    }
    assert.ok(f.tool.journal.length <= 1);
  }
});

test('a client tool that is named: first the person, then the app', async () => {
  const { id, asked } = await waiting([{ id: 'p', n: 'pay', a: '{}' }, { id: 'g', n: 'get_cart', a: '{}' }, { id: 'o', n: 'order_status', a: order('8812') }], [OK], { agent: 'named' });
  assert.deepEqual(asked.map((a) => [a.tool_name, a.risk_level]).sort(), [['order_status', 'low'], ['pay', 'low']]);
  assert.deepEqual(f.asked, []);
  for (const a of asked) await decide(a.id, true);
  const second = await ended(id);
  assert.deepEqual([second.status, second.required_action.type, second.required_action.tool_calls.map((c) => c.name)], ['requires_action', 'submit_tool_outputs', ['pay', 'get_cart']]);
  assert.deepEqual(f.asked, ['/orders/8812']);
  assertError(await f.nginx.request(`/v1/runs/${id}/submit_tool_outputs`, { method: 'POST', body: { tool_outputs: [] } }), 400, 'missing_tool_outputs');
  const taken = await f.nginx.request(`/v1/runs/${id}/submit_tool_outputs`, { method: 'POST', body: { tool_outputs: second.required_action.tool_calls.map((c) => ({ call_id: c.call_id, output: c.name })) } });
  assert.equal(taken.status, 200, taken.text);
  assert.equal((await ended(id)).status, 'completed');
  assert.deepEqual(f.asked, ['/orders/8812'], 'not again after the second pause');
  assert.deepEqual(f.model.request().json.messages.filter((m) => m.role === 'tool').map((m) => m.content.slice(0, 8)), ['pay', 'get_cart', '{"ok":tr']);
});

test('outputs are not for a run that waits for a person', async () => {
  const { id, asked } = await waiting([note()], [OK]);
  assertError(await f.nginx.request(`/v1/runs/${id}/submit_tool_outputs`, { method: 'POST', body: { tool_outputs: [] } }), 409, 'run_not_waiting');
  await decide(asked[0].id, false);
  await ended(id);
});

test('in chat: a text that names the approval, and the run goes on by itself', async () => {
  for (const stream of [false, true]) {
    plan(f, callsTurn(note()), textTurn('Noted.'));
    const body = { model: 'a', allow_actions: true, stream, messages: [{ role: 'user', content: 'x' }] };
    const answer = stream ? await f.nginx.stream(body) : await f.nginx.chat(body);
    const end = closing(answer);
    assert.equal(answer.status, 200);
    assert.deepEqual([end.finish, end.status, end.required_action.type], ['stop', 'requires_action', 'approval']);
    const [{ id }] = end.required_action.approvals;
    const text = stream ? answer.events.slice(0, -1).map((e) => e.json.choices[0]?.delta.content ?? '').join('') : answer.json.choices[0].message.content;
    assert.ok(text.includes(id) && text.includes('add_note'), text);
    assert.deepEqual(stepsOf(answer), []);
    assert.equal((await decide(id, true)).status, 200);
    const done = await ended(end.run);
    assert.deepEqual([done.status, done.output_text], ['completed', 'Noted.']);
    assert.equal(f.tool.journal.length, 1);
  }
});

test('where nobody can be asked: store is false', async () => {
  plan(f, callsTurn(note()), OK);
  const answer = await f.nginx.chat({ model: 'a', allow_actions: true, store: false, messages: [{ role: 'user', content: 'x' }] });
  assert.equal(answer.status, 200);
  assert.deepEqual(f.codes(), ['approval_unavailable']);
});

test('what nobody decides fails in time, whoever looks first', async () => {
  const one = await waiting([note()], [OK], {}, short);
  const two = await waiting([note()], [OK], {}, short);
  await sleep(SHORT_MS + 100);
  // by a question
  const seen = (await get(one.id, short)).json;
  assert.deepEqual([seen.status, seen.error.code, seen.required_action], ['failed', 'approval_expired', null]);
  // by the decision
  assertError(await decide(two.asked[0].id, true, {}, {}, short), 409, 'approval_expired');
  assert.equal((await ended(two.id, short)).error.code, 'approval_expired');
  assert.equal((await events(two.id, short)).at(-1).error.code, 'approval_expired');
  // by nobody: a node looks by itself
  const three = await waiting([note()], [OK], {}, short);
  for (let i = 0; short.nginx && redis.cli('hget', `s:r:{default/}:${three.id}`, 'status') !== 'failed'; i++) {
    assert.ok(i < 200, 'a node notices');
    await sleep(50);
  }
  assert.equal(short.tool.journal.length, 0);
});

test('outputs that come too late', async () => {
  plan(short, callsTurn({ id: 'g', n: 'get_cart', a: '{}' }), OK);
  const { json } = await run({ agent: 'free' }, short);
  assert.equal(json.status, 'requires_action');
  await sleep(SHORT_MS + 100);
  const late = () => short.nginx.request(`/v1/runs/${json.id}/submit_tool_outputs`, { method: 'POST', body: { tool_outputs: [{ call_id: json.required_action.tool_calls[0].call_id, output: {} }] } });
  assertError(await late(), 409, 'tool_outputs_expired');
  const end = (await get(json.id, short)).json;
  assert.deepEqual([end.status, end.error.code], ['failed', 'tool_outputs_expired']);
  assertError(await late(), 409, 'tool_outputs_expired');
  assert.equal(short.model.journal.length, 1);
  // in chat it is a call that nobody knows any more
  plan(short, callsTurn({ id: 'g', n: 'get_cart', a: '{}' }), OK);
  const first = await short.nginx.chat({ model: 'free', messages: [{ role: 'user', content: 'x' }] });
  const { message } = first.json.choices[0];
  await sleep(SHORT_MS + 100);
  assertError(await short.nginx.chat({ model: 'free', messages: [{ role: 'user', content: 'x' }, message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: '{}' }] }), 400, 'unknown_tool_call');
});
