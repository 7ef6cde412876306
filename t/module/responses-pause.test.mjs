// Responses whose runs wait: for the caller's app that runs the agent's client tools, and
// for a person who approves calls. Both go on with a response of their own.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { CH, assertError, callsTurn, order, startFixture, textTurn } from './fixture.mjs';
import { KEY, PATIENT } from './nginx.mjs';
import { assertObject, assertStream, outline } from './responses-wire.mjs';
import { startRedis } from '../lib/redis.mjs';
import { openSse } from '../lib/sse-client.mjs';

const PATH = '/v1/responses';
const RUNNER = 'runs-only-key-0123456789';
const NOTE = '{"body":"x"}';
const LIVE = ['queued', 'in_progress'];
const sha256 = (text) => createHash('sha256').update(text).digest('hex');

const http = [{ tool: 'order_status' }, { tool: 'add_note' }];
const client = [{ name: 'get_cart', description: 'The cart.', effect: 'read',
  parameters: { type: 'object', properties: {}, additionalProperties: false } },
{ name: 'open_screen', effect: 'read', parameters: { type: 'object', properties: { name: { type: 'string' } }, additionalProperties: false } }];
const agents = [
  { name: 'a', model: 'm', tools: { allow_anonymous_actions: true, http, client } },
  { name: 'strict', model: 'm', tools: { allow_anonymous_actions: true, http, client, toolset: { approval_mode: 'strict' } } },
];

let f;
let redis;
before(async () => {
  redis = await startRedis();
  f = await startFixture({
    workers: 2, runHost: 'toolgate_run_timeout 20s;', agents,
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_redis unix:${redis.socket} prefix=t: ${PATIENT};`,
    catalog: { api_keys: [{ name: 'runner', sha256: sha256(RUNNER), scopes: ['run'] }] },
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
const post = (more, options = {}) => f.nginx.request(PATH, { ...options, body: { model: 'a', allow_actions: true, ...more } });
const get = (id) => f.nginx.request(`${PATH}/${id}`);

async function ok(more, options) {
  const answer = await post(more, options);
  assert.equal(answer.status, 200, answer.text);
  assertObject(answer.json);
  return answer.json;
}

const output = (call, text = '[]') => ({ type: 'function_call_output', call_id: call.call_id, output: text });
const approval = (item, approve = true, more = {}) => ({ type: 'mcp_approval_response', approval_request_id: item.id, approve, ...more });

test('C041: a client tool is handed out, and its output has the same run go on', async () => {
  plan(CH({ content: 'I look.' }) + callsTurn({ id: 'x', n: 'order_status', a: order('1') }, { id: 'y', n: 'get_cart', a: '{}' }),
    callsTurn({ id: 'z', n: 'order_status', a: order('2') }), textTurn('All ', 'is well.'));
  const one = await ok({ input: 'q' });
  assert.deepEqual(outline(one), [['message', 'I look.'], ['mcp_call', 'order_status', 'ok'], ['function_call', 'get_cart']]);
  assert.equal(one.status, 'completed');
  const call = one.output.at(-1);
  const two = await ok({ previous_response_id: one.id, input: [output(call, '["Cup"]')] });
  assert.notEqual(two.id, one.id);
  assert.equal(two.previous_response_id, one.id);
  assert.deepEqual(outline(two), [['mcp_call', 'order_status', 'ok'], ['message', 'All is well.']]);
  assert.equal(f.model.journal.length, 3, 'it went on, and was not asked again');
  assert.deepEqual(f.model.request(1).json.messages.map((m) => [m.role, m.tool_call_id]),
    [['user', undefined], ['assistant', undefined], ['tool', 'x'], ['tool', 'y']]);
  assert.deepEqual((await get(one.id)).json, one, 'what was said stays as it was');
  assert.deepEqual((await get(two.id)).json, two);

  // and on from there, with all that was said
  plan(textTurn('Bye.'));
  await ok({ previous_response_id: two.id, input: 'thanks' });
  const { messages } = f.model.request().json;
  assert.deepEqual(messages.map((m) => [m.role, m.content?.length ? m.content.slice(0, 7) : m.tool_calls?.length ?? '']), [
    ['user', 'q'], ['assistant', 'I look.'], ['tool', '{"ok":t'], ['tool', '["Cup"]'],
    ['assistant', 1], ['tool', '{"ok":t'], ['assistant', 'All is '], ['user', 'thanks'],
  ]);
});

test('the same as streams, and twice in one run', async () => {
  plan(callsTurn({ id: 'x', n: 'get_cart', a: '{}' }), callsTurn({ id: 'y', n: 'open_screen', a: '{"name":"pay"}' }), textTurn('Done.'));
  const stream = (more) => f.nginx.stream({ model: 'a', allow_actions: true, ...more }, { pathname: PATH });
  const one = assertStream(await stream({ input: 'q' })).response;
  assert.deepEqual(outline(one), [['function_call', 'get_cart']]);
  const two = assertStream(await stream({ previous_response_id: one.id, input: [output(one.output[0])] })).response;
  assert.deepEqual(outline(two), [['function_call', 'open_screen']]);
  assert.notEqual(two.output[0].call_id, one.output[0].call_id);
  const three = assertStream(await stream({ previous_response_id: two.id, input: [output(two.output[0])] })).response;
  assert.deepEqual(outline(three), [['message', 'Done.']]);
  assert.deepEqual((await get(three.id)).json.output, three.output);
});

test('outputs that are not those that the run waits for', async () => {
  plan(callsTurn({ id: 'x', n: 'get_cart', a: '{}' }, { id: 'y', n: 'open_screen', a: '{"name":"pay"}' }), textTurn('Done.'));
  const one = await ok({ input: 'q' });
  const calls = one.output.filter((i) => i.type === 'function_call');
  assert.equal(calls.length, 2);
  const to = (...input) => post({ previous_response_id: one.id, input });
  assertError(await to(output(calls[0])), 400, 'missing_tool_outputs');
  assertError(await to(output(calls[0]), output(calls[0]), output(calls[1])), 400, 'duplicate_call_id');
  assertError(await to(output(calls[0], 'x'.repeat(70_000)), output(calls[1])), 400, 'output_too_large');
  assert.equal(f.model.journal.length, 1);
  const two = await ok({ previous_response_id: one.id, input: calls.map((c) => output(c)) });
  assert.deepEqual(outline(two), [['message', 'Done.']]);
  // the same again is the same run, to its end
  assert.deepEqual(outline(await ok({ previous_response_id: one.id, input: calls.map((c) => output(c)) })), [['message', 'Done.']]);
  assert.equal(f.model.journal.length, 2);
});

test('with store:false no client tool is offered', async () => {
  plan(textTurn('ok'));
  await ok({ input: 'q', store: false });
  assert.deepEqual(f.model.request().json.tools.map((t) => t.function.name), ['add_note', 'order_status']);
});

test('in the background: the call is there to be seen, the run goes on in another response', async () => {
  plan(callsTurn({ id: 'x', n: 'get_cart', a: '{}' }), textTurn('Done.'));
  let one = await ok({ input: 'q', background: true });
  for (let i = 0; LIVE.includes(one.status); i += 1) {
    assert.ok(i < 300);
    await sleep(20);
    one = (await get(one.id)).json;
  }
  assert.deepEqual(outline(one), [['function_call', 'get_cart']]);
  const two = await ok({ previous_response_id: one.id, input: [output(one.output[0])] });
  assert.deepEqual(outline(two), [['message', 'Done.']]);
  await sleep(100);
  assert.deepEqual((await get(one.id)).json, one);
  // its stream ends where it ended, whatever its run did later
  const again = await openSse(`${f.nginx.url}${PATH}/${one.id}?stream=true`, { key: KEY, method: 'GET' });
  await again.end();
  assert.deepEqual(assertStream(again).response.output, one.output);
});

test('an approval is asked for, given, and the call runs once', async () => {
  plan(callsTurn({ id: 'x', n: 'order_status', a: order('1') }, { id: 'y', n: 'add_note', a: NOTE }), textTurn('Noted.'));
  const one = await ok({ model: 'strict', input: 'q' });
  assert.deepEqual(outline(one), [['mcp_call', 'order_status', 'ok'], ['mcp_approval_request', 'add_note']]);
  const request = one.output[1];
  assert.match(request.id, /^appr_[0-9A-Za-z]{22}$/);
  assert.deepEqual([request.server_label, JSON.parse(request.arguments)], ['toolgate', { body: 'x' }]);
  assert.ok(!f.asked.includes('/notes'));

  const two = await ok({ model: 'strict', previous_response_id: one.id, input: [approval(request)] });
  assert.deepEqual(outline(two), [['mcp_call', 'add_note', 'ok'], ['message', 'Noted.']]);
  assert.equal(f.asked.filter((p) => p === '/notes').length, 1);
  assertError(await post({ model: 'strict', previous_response_id: one.id, input: [approval(request)] }), 409, 'already_decided');
  assert.equal(f.asked.filter((p) => p === '/notes').length, 1);

  plan(textTurn('ok'));
  await ok({ model: 'strict', previous_response_id: two.id, input: 'and?' });
  assert.deepEqual(f.model.request().json.messages.map((m) => [m.role, m.tool_calls?.map((c) => c.function.name)]), [
    ['user', undefined], ['assistant', ['order_status']], ['tool', undefined], ['assistant', ['add_note']], ['tool', undefined],
    ['assistant', undefined], ['user', undefined]]);
});

test('an approval that is refused reaches the model as such', async () => {
  plan(callsTurn({ id: 'y', n: 'add_note', a: NOTE }), textTurn('As you like.'));
  const one = await ok({ model: 'strict', input: 'q' });
  const { response } = assertStream(await f.nginx.stream({ model: 'strict', previous_response_id: one.id,
    input: [approval(one.output[0], false, { reason: 'not "now"' })] }, { pathname: PATH }));
  assert.deepEqual(outline(response).at(-1), ['message', 'As you like.']);
  assert.ok(!f.asked.includes('/notes'));
  assert.match(JSON.stringify(f.model.request().json.messages.at(-1)), /not .*now/);
});

test('nobody approves without the scope, nor what is not there', async () => {
  plan(callsTurn({ id: 'y', n: 'add_note', a: NOTE }), textTurn('Noted.'));
  const one = await ok({ model: 'strict', input: 'q' }, { key: RUNNER });
  const to = (input, options) => post({ model: 'strict', previous_response_id: one.id, input }, options);
  assertError(await to([approval(one.output[0])], { key: RUNNER }), 403, 'insufficient_scope');
  assertError(await to([approval({ id: `appr_${'0'.repeat(22)}` })]), 404, 'not_found');
  assertError(await to([approval({ id: 'x' })]), 404, 'not_found');
  assertError(await to([{ type: 'mcp_approval_response', approval_request_id: one.output[0].id, approve: 'true' }]),
    400, 'invalid_value', 'input[0].approve');
  assert.ok(!f.asked.includes('/notes'));
  assert.deepEqual(outline(await ok({ model: 'strict', previous_response_id: one.id, input: [approval(one.output[0])] })).at(-1),
    ['message', 'Noted.']);
});

test('two approvals of one round: it goes on when both are given', async () => {
  plan(callsTurn({ id: 'x', n: 'add_note', a: NOTE }, { id: 'y', n: 'add_note', a: '{"body":"y"}' }), textTurn('Both.'));
  const one = await ok({ model: 'strict', input: 'q' });
  assert.equal(one.output.length, 2);
  const half = await ok({ model: 'strict', previous_response_id: one.id, input: [approval(one.output[0])] });
  assert.ok(half.output.every((i) => i.type === 'mcp_approval_request'), JSON.stringify(half.output));
  assert.ok(half.output.some((i) => i.id === one.output[1].id));
  const two = await ok({ model: 'strict', previous_response_id: half.id, input: [approval(one.output[1])] });
  assert.deepEqual(outline(two), [['mcp_call', 'add_note', 'ok'], ['mcp_call', 'add_note', 'ok'], ['message', 'Both.']]);
});
