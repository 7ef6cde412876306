// Client tools: a run that pauses for its caller's app, the outputs that let it go on,
// what is refused of them, and the same the way that chat clients know.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertError, assertWhole, callsTurn, closing, order, startFixture, stepsOf, textTurn } from './fixture.mjs';
import { PATIENT } from './nginx.mjs';
import { startRedis } from '../lib/redis.mjs';

const OK = textTurn('ok');
const ENDED = ['completed', 'failed', 'cancelled', 'superseded', 'expired', 'requires_action'];
const CALL = /^call_[0-9A-Za-z]{22}$/;
const TTL_S = 600;

const agents = [
  { name: 'a', model: 'm', tools: { allow_anonymous_actions: true, max_tool_rounds: 3, http: [{ tool: 'order_status' }, { tool: 'add_note' }],
    client: [{ name: 'get_cart', description: 'The cart.', effect: 'read', rules: 'Look first.', parameters: { type: 'object', properties: {}, additionalProperties: false } },
      { name: 'open_screen', parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false } }] } },
];

let f;
let redis;
before(async () => {
  redis = await startRedis();
  f = await startFixture({
    workers: 2, runHost: 'toolgate_run_timeout 20s;', agents,
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_redis unix:${redis.socket} prefix=t: ${PATIENT};`,
  });
});
after(async () => {
  await f?.stop();
  await redis?.stop();
});

const plan = (...turns) => {
  f.clear();
  f.model.plan(...turns.map((t) => (typeof t === 'string' ? [{ send: t }] : t)));
};
const run = (more = {}) => f.nginx.request('/v1/runs', { method: 'POST', body: { agent: 'a', input: 'what is in it?', allow_actions: true, ...more } });
const get = (path) => f.nginx.request(`/v1/runs/${path}`);
const submit = (id, tool_outputs, more = {}) => f.nginx.request(`/v1/runs/${id}/submit_tool_outputs`, { method: 'POST', body: { tool_outputs, ...more } });
const cancel = (id) => f.nginx.request(`/v1/runs/${id}/cancel`, { method: 'POST' });
const ended = async (id) => {
  for (let i = 0; i < 500; i++) {
    const { json } = await get(id);
    if (ENDED.includes(json.status)) return json;
    await sleep(20);
  }
  throw new Error(`run ${id} does not end`);
};
const out = (call, output = { items: [] }, more = {}) => ({ call_id: call.call_id, output, ...more });
const cart = (id = 'call_a') => ({ id, n: 'get_cart', a: '{}' });
const events = async (id) => (await get(`${id}/events`)).text.split('\n\n').filter((e) => /^id: /m.test(e)).map((e) => JSON.parse(/\ndata: (.*)$/.exec(e)[1]));

/** A run that has paused with these calls of the model. */
async function paused(calls, ...turns) {
  plan(callsTurn(...calls), ...turns);
  const { status, json, text } = await run();
  assert.equal(status, 200, text);
  assert.equal(json.status, 'requires_action', text);
  return { id: json.id, open: json.required_action.tool_calls, json };
}

test('C006: a run pauses with our own id, and goes on with what the app has sent', async () => {
  const { id, open, json } = await paused([cart('call_a')], textTurn('It is empty.'));
  assert.deepEqual(Object.keys(json.required_action), ['type', 'tool_calls', 'expires_at']);
  assert.equal(json.required_action.type, 'submit_tool_outputs');
  assert.ok(Math.abs(json.required_action.expires_at - Date.now() / 1000 - TTL_S) < 10);
  assert.match(open[0].call_id, CALL);
  assert.deepEqual(open, [{ call_id: open[0].call_id, name: 'get_cart', arguments: {} }]);
  assert.deepEqual((await get(id)).json, json);
  const offered = f.model.request().json.tools.map((t) => t.function);
  assert.deepEqual(offered.map((t) => t.name), ['add_note', 'get_cart', 'open_screen', 'order_status']);
  assert.match(offered[1].description, /The cart\.[^]*Look first\./);

  const taken = await submit(id, [out(open[0], { items: [{ name: 'Cup' }] })]);
  assert.equal(taken.status, 200, taken.text);
  assert.equal(taken.json.id, id);
  assert.ok(['queued', 'running', 'completed'].includes(taken.json.status), taken.json.status);
  const end = await ended(id);
  assert.deepEqual([end.status, end.output_text, end.required_action], ['completed', 'It is empty.', null]);
  const [told] = f.told();
  assert.deepEqual([told.id, told.name, told.result], ['call_a', 'get_cart', { items: [{ name: 'Cup' }] }]);
  assert.equal(f.model.journal.length, 2, 'nothing was asked twice');

  const all = await events(id);
  assert.deepEqual(all.map((e) => e.type), ['run.started', 'run.tool_call', 'run.requires_action', 'run.tool_result', 'run.text_delta', 'run.completed']);
  assert.deepEqual(all[2].required_action.tool_calls, open);
  const steps = (await get(`${id}/steps`)).json.data;
  assert.deepEqual(steps.map((s) => [s.type, s.tool, s.code]), [['model_call', undefined, null], ['tool_call', 'get_cart', null], ['model_call', undefined, null]]);
});

test('a mixed round: ours run first, once, and stay as they were', async () => {
  const { id, open } = await paused([{ id: 'c1', n: 'order_status', a: order('8812') }, cart('c2'), { id: 'c3', n: 'add_note', a: '{"body":"x"}' }], OK);
  assert.deepEqual(open.map((c) => c.name), ['get_cart']);
  assert.deepEqual(f.asked.sort(), ['/notes', '/orders/8812']);
  assert.equal((await submit(id, [out(open[0])])).status, 200);
  assert.equal((await ended(id)).status, 'completed');
  assert.equal(f.asked.length, 2);
  assert.deepEqual(f.told().map((c) => [c.id, c.name, c.result.ok ?? c.result.items.length]), [['c1', 'order_status', true], ['c2', 'get_cart', 0], ['c3', 'add_note', true]]);
  const types = (await events(id)).map((e) => [e.type, e.name]);
  assert.equal(types.filter(([type]) => type === 'run.tool_result').length, 3, JSON.stringify(types));
  const steps = (await get(`${id}/steps`)).json.data;
  assert.deepEqual(steps.filter((s) => s.type === 'tool_call').map((s) => s.tool).sort(), ['add_note', 'get_cart', 'order_status']);
});

test('C026: calls with one id of the model are two', async () => {
  const { id, open } = await paused([cart('c1'), { id: 'c1', n: 'order_status', a: order('8812') }], OK);
  assert.equal(open.length, 1);
  assertError(await submit(id, [out(open[0]), { call_id: 'c1', output: 1 }]), 400, 'unknown_call_id', 'tool_outputs[1].call_id');
  assert.equal((await submit(id, [out(open[0])])).status, 200);
  await ended(id);
  assert.equal(new Set(f.told().map((c) => c.id)).size, 2);
});

test('C083: outputs that are not all, too many, foreign or doubled; a right one works after', async () => {
  const { id, open } = await paused([cart('c1'), { id: 'c2', n: 'open_screen', a: '{"name":"cart"}' }], callsTurn({ id: 'c3', n: 'open_screen', a: '{"name":"again"}' }), OK);
  const [one, two] = open;
  const missing = await submit(id, [out(one)]);
  assertError(missing, 400, 'missing_tool_outputs', 'tool_outputs');
  assert.ok(missing.json.error.message.includes(two.call_id) && !missing.json.error.message.includes(one.call_id));
  assertError(await submit(id, []), 400, 'missing_tool_outputs');
  assertError(await submit(id, [out(one), out(one), out(two)]), 400, 'duplicate_call_id', 'tool_outputs[1].call_id');
  assertError(await submit(id, [out(one), out(two), { call_id: 'call_zzz', output: 1 }]), 400, 'unknown_call_id', 'tool_outputs[2].call_id');
  assertError(await submit(id, [out(one, 'x'.repeat(65535)), out(two)]), 400, 'output_too_large', 'tool_outputs[0].output');
  assertError(await submit(id, undefined), 400, 'missing_parameter', 'tool_outputs');
  assert.equal((await get(id)).json.status, 'requires_action');
  const right = [out(one, 'a text'), out(two, { why: 'locked' }, { is_error: true })];
  assert.equal((await submit(id, right)).status, 200);
  const again = await ended(id);
  assert.equal(again.status, 'requires_action', 'it has asked once more');
  assert.deepEqual(f.model.request().json.messages.filter((m) => m.role === 'tool').map((m) => m.content), ['a text',
    JSON.stringify({ ok: false, error: { code: 'client_tool_failed', guidance: JSON.parse(f.model.request().json.messages.at(-1).content).error.guidance }, output: { why: 'locked' } })]);
  // the ids of the pause before are of no use now
  assertError(await submit(id, [out(one), out(two)]), 400, 'unknown_call_id');
  assert.equal((await submit(id, [out(again.required_action.tool_calls[0])])).status, 200);
  assert.equal((await ended(id)).status, 'completed');
});

test('the same body again is the same run; another one is too late', async () => {
  const { id, open } = await paused([cart()], [{ wait: 200 }, { send: OK }]);
  const first = await submit(id, [out(open[0])]);
  const second = await submit(id, [out(open[0])]);
  assert.deepEqual([first.status, second.status, second.json.id], [200, 200, id]);
  assertError(await submit(id, [out(open[0], 'other')]), 409, 'run_not_waiting');
  assert.equal((await ended(id)).status, 'completed');
  assert.equal((await submit(id, [out(open[0])])).json.status, 'completed');
  assertError(await submit(id, [out(open[0], 'other')]), 409, 'run_not_waiting');
  assert.equal(f.model.journal.length, 2);
});

test('C081: cancel against submit: one of them wins, and it stays so', async () => {
  const won = { cancelled: 0, submitted: 0 };
  for (let i = 0; i < 30; i++) {
    const { id, open } = await paused([cart()], [{ wait: 100 }, { send: OK }]);
    const both = [() => submit(id, [out(open[0])]), () => cancel(id)];
    if (i % 2) both.reverse();
    const answers = await Promise.all(both.map((act) => act()));
    if (i % 2) answers.reverse();
    const [submitted, cancelled] = answers;
    assert.equal(cancelled.status, 200, cancelled.text);
    const end = await ended(id);
    assert.equal(end.status, 'cancelled', 'the run had time to be cancelled either way');
    if (submitted.status === 200) won.submitted++;
    else {
      assertError(submitted, 409, 'run_not_waiting');
      won.cancelled++;
      assert.equal(f.model.journal.length, 1, 'no further model call');
    }
    assert.equal((await get(id)).json.status, 'cancelled');
    assertError(await submit(id, [out(open[0], 'late')]), 409, 'run_not_waiting');
  }
  assert.ok(won.cancelled + won.submitted === 30);
});

test('C082: a run that waits is cancelled, twice, and not by another account', async () => {
  const { id, open } = await paused([cart()], OK);
  const foreign = await f.nginx.request(`/v1/runs/${id}/cancel`, { method: 'POST', headers: { 'x-account-id': 'other' } });
  assertError(foreign, 404, 'not_found');
  const elsewhere = await f.nginx.request(`/v1/runs/${id}/submit_tool_outputs`, { method: 'POST', headers: { 'x-account-id': 'other' }, body: { tool_outputs: [out(open[0])] } });
  assertError(elsewhere, 404, 'not_found');
  for (let i = 0; i < 2; i++) assert.equal((await cancel(id)).json.status, 'cancelled');
  assertError(await submit(id, [out(open[0])]), 409, 'run_not_waiting');
  assertError(await submit(`run_${'0'.repeat(22)}`, [out(open[0])]), 404, 'not_found');
  assertError(await submit('never', [out(open[0])]), 404, 'not_found');
  assert.equal((await events(id)).at(-1).type, 'run.cancelled');
});

test('arguments that do not fit are refused before anybody is asked', async () => {
  plan(callsTurn({ id: 'c', n: 'open_screen', a: '{"name":5}' }), OK);
  const { json } = await run();
  assert.equal(json.status, 'completed');
  assert.deepEqual(f.codes(), ['invalid_arguments']);
});

test('the same call again is already done; identical ones of a round wait for one answer', async () => {
  const { id, open } = await paused([cart('c1'), cart('c2')], callsTurn(cart('c3')), OK);
  assert.equal(open.length, 1);
  assert.equal((await submit(id, [out(open[0], 'not JSON')])).status, 200);
  assert.equal((await ended(id)).status, 'completed');
  const tools = f.model.request().json.messages.filter((m) => m.role === 'tool').map((m) => m.content);
  assert.equal(tools[0], 'not JSON');
  for (const text of tools.slice(1)) assert.deepEqual([JSON.parse(text).error.code, JSON.parse(text).error.result], ['already_done', 'not JSON']);
});

test('nothing of a waiting run is in a worker: old ones leave at a reload, new ones go on with it', async () => {
  const { id, open } = await paused([cart()], OK);
  const old = f.nginx.children();
  process.kill(f.nginx.child.pid, 'SIGHUP');
  for (let i = 0; f.nginx.children().some((pid) => old.includes(pid)); i++) {
    assert.ok(i < 250, 'the old workers leave');
    await sleep(20);
  }
  assert.equal((await submit(id, [out(open[0])])).status, 200);
  assert.equal((await ended(id)).status, 'completed');
});

const chat = (messages, more = {}) => f.nginx.chat({ model: 'a', allow_actions: true, messages, ...more });
const user = { role: 'user', content: 'what is in it?' };
const answers = (message, ...contents) => message.tool_calls.map((c, i) => ({ role: 'tool', tool_call_id: c.id, content: contents[i] ?? '{"items":[]}' }));

test('chat: handed out as tool_calls; the answer continues the same run with its hidden rounds', async () => {
  plan(callsTurn({ id: 'c1', n: 'order_status', a: order('8812') }), callsTurn(cart('c2')), textTurn('Both ', 'fine.'));
  const first = await chat([user]);
  assert.equal(first.status, 200, first.text);
  const [choice] = first.json.choices;
  assert.equal(choice.finish_reason, 'tool_calls');
  assert.match(choice.message.tool_calls[0].id, CALL);
  assert.deepEqual(choice.message.tool_calls[0].function, { name: 'get_cart', arguments: '{}' });
  assert.equal(first.json.toolgate.status, 'requires_action');
  assert.equal(first.json.toolgate.required_action.tool_calls[0].call_id, choice.message.tool_calls[0].id);

  const second = await chat([user, choice.message, ...answers(choice.message, '{"items":["cup"]}')]);
  assert.equal(second.status, 200, second.text);
  assert.equal(second.json.choices[0].message.content, 'Both fine.');
  assert.equal(second.json.toolgate.run, first.json.toolgate.run);
  assert.deepEqual(stepsOf(second), [['order_status', 'ok'], ['get_cart', 'ok']]);
  const sent = f.model.request().json.messages;
  assert.deepEqual(sent.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant', 'tool']);
  assert.equal(sent.at(-1).content, '{"items":["cup"]}');
  assert.equal(sent.at(-1).tool_call_id, 'c2');
  // sent again after a broken connection: the same answer, and nothing runs twice
  const third = await chat([user, choice.message, ...answers(choice.message, '{"items":["cup"]}')]);
  assert.equal(third.json.choices[0].message.content, 'Both fine.');
  assert.equal(f.model.journal.length, 3);
});

test('chat, streamed', async () => {
  plan(callsTurn(cart('c1')), callsTurn({ id: 'c2', n: 'open_screen', a: '{"name":"x"}' }), textTurn('one ', 'two'));
  const ask = (messages) => f.nginx.stream({ model: 'a', allow_actions: true, stream: true, stream_options: { include_usage: true }, messages });
  const collect = (client) => {
    const calls = [];
    for (const chunk of assertWhole(client)) for (const c of chunk.choices[0]?.delta.tool_calls ?? []) calls[c.index] = { id: c.id, type: 'function', function: c.function };
    return { role: 'assistant', content: null, tool_calls: calls };
  };
  const first = await ask([user]);
  assert.equal(closing(first).finish, 'tool_calls');
  const one = collect(first);
  const messages = [user, one, ...answers(one)];
  const second = await ask(messages);
  const two = collect(second);
  assert.deepEqual([closing(second).finish, two.tool_calls[0].function], ['tool_calls', { name: 'open_screen', arguments: '{"name":"x"}' }]);
  const third = await ask([...messages, two, ...answers(two)]);
  assert.equal(closing(third).finish, 'stop');
  assert.equal(assertWhole(third).map((c) => c.choices[0]?.delta.content ?? '').join(''), 'one two');
  assert.equal(new Set([first, second, third].map((c) => closing(c).run)).size, 1);
});

test('chat: a round of the agent\'s tools and of the caller\'s own', async () => {
  const tools = [{ type: 'function', function: { name: 'mine', parameters: { type: 'object', properties: {} } } }];
  plan(callsTurn({ id: 'c1', n: 'mine', a: '{}' }, cart('c2')), OK);
  const first = await chat([user], { tools });
  const { message } = first.json.choices[0];
  assert.deepEqual(message.tool_calls.map((c) => c.function.name), ['mine', 'get_cart']);
  assertError(await chat([user, message, ...answers(message).slice(1)], { tools }), 400, 'missing_tool_outputs', 'messages');
  const second = await chat([user, message, ...answers(message, 'one', 'two')], { tools });
  assert.equal(second.json.choices[0].message.content, 'ok', second.text);
  assert.deepEqual(f.model.request().json.messages.filter((m) => m.role === 'tool').map((m) => [m.tool_call_id, m.content]), [[message.tool_calls[0].id, 'one'], ['c2', 'two']]);
});

test('chat: results of calls that are not open, of another account, or made up', async () => {
  plan(callsTurn(cart()), OK);
  const { message } = (await chat([user])).json.choices[0];
  const other = { headers: { 'x-account-id': 'other' } };
  assertError(await f.nginx.chat({ model: 'a', messages: [user, message, ...answers(message)] }, other), 400, 'unknown_tool_call', 'messages[2].tool_call_id');
  for (const id of [`call_${'0'.repeat(22)}`, 'call_1', '']) {
    const made = { ...message, tool_calls: [{ ...message.tool_calls[0], id }] };
    assertError(await chat([user, made, ...answers(made)]), 400, 'unknown_tool_call', 'messages[2].tool_call_id');
  }
  assertError(await chat([user, message, ...answers(message, 'x'.repeat(65535))]), 400, 'output_too_large', 'messages[2].content');
  assert.equal((await chat([user, message, ...answers(message)])).status, 200);
  assertError(await chat([user, message, ...answers(message, 'another')]), 400, 'unknown_tool_call');
  // without hidden rounds, when that is what the caller wants
  plan(OK);
  assert.equal((await chat([user, message, ...answers(message, 'another')], { store: false })).status, 200);
});

test('an invocation that comes again sees all of a run that has paused and gone on', async () => {
  const body = { invocation_id: `inv-${process.pid}`, input: 'x' };
  plan(callsTurn(cart('c1')), [{ wait: 300 }, { send: callsTurn({ id: 'c2', n: 'open_screen', a: '{"name":"x"}' }) }], textTurn('end'));
  const first = await run(body);
  assert.equal((await run(body)).json.required_action.tool_calls[0].name, 'get_cart', 'it waits');
  assert.equal((await submit(first.json.id, [out(first.json.required_action.tool_calls[0])])).status, 200);
  const second = await run(body);
  assert.equal(second.json.required_action?.tool_calls[0].name, 'open_screen', second.text);
  assert.equal((await submit(first.json.id, [out(second.json.required_action.tool_calls[0])])).status, 200);
  assert.equal((await run(body)).json.output_text, 'end');
  assert.equal((await run(body)).json.status, 'completed');
  // the same in chat
  const ask = () => chat([user], { invocation_id: `chat-${process.pid}` });
  plan(callsTurn(cart('c1')), textTurn('fine'));
  const { message } = (await ask()).json.choices[0];
  assert.deepEqual((await ask()).json.choices[0].message.tool_calls, message.tool_calls);
  assert.equal((await chat([user, message, ...answers(message)])).json.choices[0].message.content, 'fine');
  assert.equal((await ask()).json.choices[0].message.content, 'fine');
});

test('chat in a session: the results alone are enough, of the agent\'s tools and of the caller\'s', async () => {
  const { json: { id: session_id } } = await f.nginx.request('/v1/sessions', { method: 'POST', body: {} });
  const tools = [{ type: 'function', function: { name: 'mine', parameters: { type: 'object', properties: {} } } }];
  plan(callsTurn(cart('c1')), textTurn('empty'), callsTurn({ id: 'c2', n: 'mine', a: '{}' }), textTurn('all'));
  const first = await chat([user], { session_id });
  assert.equal(first.json.choices[0].finish_reason, 'tool_calls', first.text);
  const second = await chat(answers(first.json.choices[0].message), { session_id });
  assert.equal(second.json.choices[0].message.content, 'empty', second.text);
  assert.equal(second.json.toolgate.run, first.json.toolgate.run);
  const third = await chat([{ role: 'user', content: 'and mine?' }], { session_id, tools });
  const fourth = await chat(answers(third.json.choices[0].message), { session_id, tools });
  assert.equal(fourth.json.choices[0].message.content, 'all', fourth.text);
  assert.notEqual(fourth.json.toolgate.run, third.json.toolgate.run);
  assert.deepEqual(f.model.request().json.messages.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant', 'user', 'assistant', 'tool']);
});

test('C084: a new message takes the session from a run that waits', async () => {
  const { json: { id: session_id } } = await f.nginx.request('/v1/sessions', { method: 'POST', body: {} });
  plan(callsTurn(cart('c1')), textTurn('new'));
  const first = await run({ session_id });
  assert.equal(first.json.status, 'requires_action', first.text);
  const second = await run({ session_id, input: 'never mind' });
  assert.equal(second.json.status, 'completed', second.text);
  assert.equal((await get(first.json.id)).json.status, 'superseded');
  assertError(await submit(first.json.id, [out(first.json.required_action.tool_calls[0])]), 409, 'run_not_waiting');
  // no call without a result is in what the model gets
  const { messages } = f.model.request().json;
  const calls = messages.flatMap((m) => m.tool_calls ?? []).map((c) => c.id);
  assert.deepEqual(messages.filter((m) => m.role === 'tool').map((m) => m.tool_call_id), calls);
});

test('chat: a client that leaves while its run goes on ends it', async () => {
  plan(callsTurn(cart()), [{ wait: 3000 }, { send: OK }]);
  const first = await chat([user]);
  const { message } = first.json.choices[0];
  const controller = new AbortController();
  const gone = fetch(`${f.nginx.url}/v1/chat/completions`, {
    method: 'POST', signal: controller.signal, headers: { authorization: `Bearer ${f.nginx.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'a', allow_actions: true, messages: [user, message, ...answers(message)] }),
  }).catch(() => {});
  await f.model.until(() => f.model.journal.length === 2);
  controller.abort();
  await gone;
  assert.equal((await ended(first.json.toolgate.run)).status, 'cancelled');
});
