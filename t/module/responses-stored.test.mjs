// Responses that are kept: shown again, deleted, their input listed, gone on from; what
// belongs to others, and what was said before, to the byte. Field cases C038 and C039.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { CH, DONE, FIN, assertError, callsTurn, order, startFixture, textTurn } from './fixture.mjs';
import { PATIENT } from './nginx.mjs';
import { assertObject, assertStream } from './responses-wire.mjs';
import { startRedis } from '../lib/redis.mjs';

const PATH = '/v1/responses';
const UNKNOWN = `resp_${'0'.repeat(22)}`;
const OTHER = 'other-key-0123456789';
const cart = { type: 'function', name: 'get_cart', parameters: { type: 'object', properties: {} } };
const sha256 = (text) => createHash('sha256').update(text).digest('hex');

let f;
let redis;

before(async () => {
  redis = await startRedis();
  f = await startFixture({
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http;
      toolgate_redis unix:${redis.socket} prefix=t: ${PATIENT || 'timeout=1s'};
      toolgate_retention 2h; toolgate_max_history 20k; toolgate_catalog @DIR@/other.json;`,
    files: { 'other.json': JSON.stringify({ project: 'other', agents: [{ name: 'theirs', model: 'm' }],
      api_keys: [{ name: 'other', sha256: sha256(OTHER), scopes: ['run'] }] }) },
  });
});
after(async () => {
  await f?.stop();
  await redis?.stop();
});

async function ask(turns, body = {}, options = {}) {
  f.clear();
  f.model.plan(...turns.map((t) => [{ send: t }]));
  return f.nginx.request(PATH, { ...options, body: { model: 'm', input: 'hello', ...body } });
}

async function ok(...a) {
  const answer = await ask(...a);
  assert.equal(answer.status, 200, answer.text);
  assertObject(answer.json);
  return answer.json;
}

const get = (id, options = {}) => f.nginx.request(`${PATH}/${id}`, options);
const asked = (n = -1) => f.model.request(n).json;
const inAccount = (account) => ({ headers: { 'x-account-id': account } });

test('C039: what is stored is shown again as it was; what is not, is not there', async () => {
  for (const stored of [{}, { store: true }]) {
    const made = await ok([textTurn('Hi')], { ...stored, metadata: { a: 'b' } });
    assert.equal(made.store, true);
    const shown = await get(made.id);
    assert.equal(shown.status, 200, shown.text);
    assert.deepEqual(shown.json, made);
  }
  const made = await ok([textTurn('Hi')], { store: false });
  assert.equal(made.store, false);
  const gone = await get(made.id);
  assertError(gone, 404, 'not_found');
  assert.match(gone.json.error.message, /"store": false/);
  const next = await ask([], { previous_response_id: made.id });
  assertError(next, 404, 'not_found', 'previous_response_id');
  assert.match(next.json.error.message, /"store": false/);
});

test('a stream is kept as its last event shows it', async () => {
  f.clear();
  f.model.plan([{ send: textTurn('a', 'b') }]);
  const { response } = assertStream(await f.nginx.stream({ model: 'm', input: 'hi' }, { pathname: PATH }));
  assert.deepEqual((await get(response.id)).json, response);
});

test('C038: context is rebuilt in order, each thing once', async () => {
  for (const model of ['m', 'bare']) {
    const one = await ok([callsTurn({ id: 'call_a', n: 'get_cart', a: '{}' })],
      { model, input: 'where is 8812?', tools: [cart], store: true });
    const [call] = one.output;
    assert.equal(call.type, 'function_call');
    const two = await ok([textTurn('It is empty.')], { model, previous_response_id: one.id, tools: [cart],
      input: [{ type: 'function_call_output', call_id: call.call_id, output: '[]' }] });
    assert.equal(two.previous_response_id, one.id);
    await ok([textTurn('Still.')], { model, previous_response_id: two.id, input: 'and now?' });
    assert.deepEqual(asked().messages, [
      { role: 'user', content: 'where is 8812?' },
      { role: 'assistant', content: null, tool_calls: [
        { id: call.call_id, type: 'function', function: { name: 'get_cart', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: call.call_id, content: '[]' },
      { role: 'assistant', content: 'It is empty.' },
      { role: 'user', content: 'and now?' },
    ]);
  }
});

test('rounds that the caller did not see are there again, to the byte', async () => {
  const one = await ok([CH({ content: 'I look.' }) + callsTurn({ id: 'x', n: 'order_status', a: order('8812') }),
    textTurn('Found ', 'it.')], { model: 'a', instructions: 'Only now.' });
  const before = f.model.request(-1).body.toString();
  const first = await ok([textTurn('x')], { model: 'a', previous_response_id: one.id, input: 'and?' });
  const after = f.model.request(-1).body.toString();
  // from the question to the end of the round
  const round = before.slice(before.indexOf('{"role":"user"'), before.indexOf('],"stream"'));
  assert.ok(after.includes(`${round},{"role":"assistant","content":"Found it."},{"role":"user","content":"and?"}]`), after);
  assert.ok(!after.includes('Only now.'), 'instructions are those of their own request');
  await ok([textTurn('y')], { model: 'a', previous_response_id: first.id, input: 'more' });
  const prefix = after.slice(after.indexOf('{"role":"user"'), after.indexOf('],"stream"'));
  assert.ok(f.model.request(-1).body.toString().includes(prefix), 'the same bytes again');
});

test('a mixed round: our result stays, the caller\'s is awaited', async () => {
  const one = await ok([callsTurn({ id: 'x', n: 'order_status', a: order('1') }, { id: 'y', n: 'get_cart', a: '{}' })],
    { model: 'a', tools: [cart] });
  const call = one.output.find((i) => i.type === 'function_call');
  await ok([textTurn('ok')], { model: 'a', tools: [cart], previous_response_id: one.id,
    input: [{ type: 'function_call_output', call_id: call.call_id, output: 'full' }] });
  const messages = asked().messages.slice(2);
  assert.deepEqual(messages.map((m) => [m.role, m.tool_call_id]),
    [['assistant', undefined], ['tool', 'x'], ['tool', call.call_id]]);
  assert.deepEqual(messages[0].tool_calls.map((c) => c.id), ['x', call.call_id]);
});

test('cut answers and failures are kept as well', async () => {
  const cut = await ok([CH({ content: 'So' }) + FIN('length') + DONE]);
  assert.equal((await get(cut.id)).json.status, 'incomplete');
  f.clear();
  f.model.plan([{ send: CH({ content: 'one' }) }, { reset: true }]);
  const { response } = assertStream(await f.nginx.stream({ model: 'm', input: 'hi' }, { pathname: PATH }), 'response.failed');
  assert.deepEqual((await get(response.id)).json, response);
});

test('deleted is deleted, and what goes on from it says so', async () => {
  const one = await ok([textTurn('1')]);
  const two = await ok([textTurn('2')], { previous_response_id: one.id });
  const deleted = await get(one.id, { method: 'DELETE' });
  assert.equal(deleted.status, 200);
  assert.deepEqual(deleted.json, { id: one.id, object: 'response', deleted: true });
  assertError(await get(one.id), 404, 'not_found');
  assertError(await get(one.id, { method: 'DELETE' }), 404, 'not_found');
  assertError(await get(`${one.id}/input_items`), 404, 'not_found');
  const next = await ask([], { previous_response_id: two.id });
  assertError(next, 404, 'not_found', 'previous_response_id');
  assert.match(next.json.error.message, /was deleted/);
  assert.equal((await get(two.id)).status, 200);
});

test('nobody reaches a response of another account or project', async () => {
  const mine = await ok([textTurn('1')], { account_id: 'acme' });
  const unknown = (await get(UNKNOWN)).json;
  for (const options of [{}, inAccount('acme2'), { key: OTHER }, { key: OTHER, ...inAccount('acme') }]) {
    assert.deepEqual((await get(mine.id, options)).json, unknown);
    assertError(await get(mine.id, { ...options, method: 'DELETE' }), 404, 'not_found');
    assertError(await get(`${mine.id}/input_items`, options), 404, 'not_found');
    if (options.key === undefined) {
      assertError(await ask([], { previous_response_id: mine.id }, options), 404, 'not_found', 'previous_response_id');
    }
  }
  assert.equal((await get(mine.id, inAccount('acme'))).status, 200);
  assert.equal((await get(`${mine.id}?account_id=acme`)).status, 200);
  await ok([textTurn('2')], { previous_response_id: mine.id, account_id: 'acme' });
  assert.equal(asked().messages.length, 3);
});

test('items that are named are those of the responses that they are of', async () => {
  const one = await ok([callsTurn({ id: 'x', n: 'order_status', a: order('1') }, { id: 'y', n: 'get_cart', a: '{}' })],
    { model: 'a', tools: [cart] });
  const [ours, call] = one.output;
  const named = ({ id }) => ({ type: 'item_reference', id });
  const input = [{ role: 'user', content: 'q' }, named(ours), named(call),
    { type: 'function_call_output', call_id: call.call_id, output: 'full' }];
  const two = await ok([textTurn('ok')], { model: 'm', input });
  assert.deepEqual(asked().messages.map((m) => [m.role, m.tool_call_id ?? m.tool_calls?.map((c) => c.function.name)]), [
    ['user', undefined], ['assistant', ['order_status']], ['tool', ours.id], ['assistant', ['get_cart']],
    ['tool', call.call_id]]);
  const items = (await get(`${two.id}/input_items?order=asc`)).json;
  assert.deepEqual(items.data.slice(1, 3), [ours, call]);
  // and once more, now that they are part of what was said
  await ok([textTurn('ok')], { model: 'm', previous_response_id: two.id, input: [named(two.output[0]), { role: 'user', content: 'z' }] });
  assert.deepEqual(asked().messages.slice(-3).map((m) => m.content), ['ok', 'ok', 'z']);

  for (const [id, options] of [[`${ours.id}9`, {}], ['msg_x', {}], [ours.id, inAccount('acme')]]) {
    assertError(await ask([], { input: [{ role: 'user', content: 'q' }, { type: 'item_reference', id }] }, options),
      404, 'not_found', 'input[1].id');
  }
  assertError(await ask([], { input: Array.from({ length: 257 }, () => named(ours)) }), 400, 'invalid_value', 'input');
});

test('input items: what was sent, with ids, page by page', async () => {
  const one = await ok([textTurn('ok')], { input: 'only "this"' });
  const list = await get(`${one.id}/input_items`);
  assert.deepEqual(list.json, { object: 'list', has_more: false,
    first_id: `msg_${one.id.slice(5)}_i0`, last_id: `msg_${one.id.slice(5)}_i0`,
    data: [{ type: 'message', id: `msg_${one.id.slice(5)}_i0`, status: 'completed', role: 'user',
      content: [{ type: 'input_text', text: 'only "this"' }] }] });

  const input = [{ role: 'user', content: 'a' }, { role: 'assistant', content: 'b' },
    { type: 'function_call', id: 'fc_own', call_id: 'c', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c', output: 'r' }];
  const two = await ok([textTurn('ok')], { input });
  const items = (await get(`${two.id}/input_items?order=asc`)).json;
  assert.deepEqual(items.data.map((i) => i.type), ['message', 'message', 'function_call', 'function_call_output']);
  assert.deepEqual(items.data[1].content, [{ type: 'output_text', text: 'b', annotations: [], logprobs: [] }]);
  assert.deepEqual(items.data[2], input[2]);
  assert.equal(items.data[3].output, 'r');
  const page = (await get(`${two.id}/input_items?order=asc&limit=2&after=${items.data[0].id}`)).json;
  assert.deepEqual([page.data.map((i) => i.id), page.has_more], [items.data.slice(1, 3).map((i) => i.id), true]);
  const newest = (await get(`${two.id}/input_items`)).json;
  assert.deepEqual(newest.data, items.data.toReversed());
  assertError(await get(`${two.id}/input_items?after=msg_x`), 400, 'invalid_value', 'after');
  assertError(await get(`${two.id}/input_items?order=up`), 400, 'invalid_value', 'order');
  assertError(await get(`${two.id}/input_items?limit=0`), 400, 'invalid_value', 'limit');
});

test('over toolgate_max_history whole responses are left out, the oldest first', async () => {
  const one = await ok([callsTurn({ id: 'a', n: 'get_cart', a: '{}' })], { input: 'x'.repeat(15_000), tools: [cart] });
  const two = await ok([textTurn('t'.repeat(3000))], { previous_response_id: one.id, tools: [cart],
    input: [{ type: 'function_call_output', call_id: one.output[0].call_id, output: '[]' }] });
  const three = await ok([textTurn('u'.repeat(3000))], { previous_response_id: two.id, input: 'three' });
  await ok([textTurn('end')], { previous_response_id: three.id, input: 'four' });
  assert.deepEqual(asked().messages.map((m) => [m.role, m.content.length]),
    [['user', 5], ['assistant', 3000], ['user', 4]], 'the answer to a call that is gone went with it');
});

test('a big input arrives in the store whole, in slices', async () => {
  const text = 'é"\n'.repeat(600_000);
  const one = await ok([textTurn('big')], { input: [{ role: 'user', content: text }] });
  for (let n = 0; ; n += 1) {
    const items = await get(`${one.id}/input_items`);
    if (items.status === 200) {
      assert.ok(items.json.data[0].content[0].text === text, 'never a piece of it');
      break;
    }
    assertError(items, 409, 'response_in_progress');
    assert.ok(n < 100, 'the input did not come');
    await new Promise((done) => { setTimeout(done, 50); });
  }
  assert.ok(Number(redis.cli('ttl', `t:o:{default/}:${one.id}:input`)) > 7000);
  assert.ok(Number(redis.cli('ttl', `t:o:{default/}:${one.id}`)) > 7000);
});

test('what is asked of no response', async () => {
  assertError(await get('resp_short'), 404, 'not_found');
  assertError(await get(`${UNKNOWN}/nothing`), 404, 'unknown_url');
  const put = await get(UNKNOWN, { method: 'POST', body: {} });
  assertError(put, 405, 'method_not_allowed');
  assert.equal(put.headers.allow, 'GET, DELETE');
  assertError(await ask([], { previous_response_id: 7 }), 400, 'invalid_type', 'previous_response_id');
  assertError(await ask([], { previous_response_id: 'resp_no' }), 404, 'not_found', 'previous_response_id');
  assertError(await ask([], { store: 'yes' }), 400, 'invalid_type', 'store');
});

test('a response that has not ended cannot be gone on from', async () => {
  redis.cli('hset', `t:o:{default/}:${UNKNOWN}`, 'status', 'in_progress', 'bytes', 0);
  assertError(await ask([], { previous_response_id: UNKNOWN }), 409, 'response_in_progress', 'previous_response_id');
  redis.cli('del', `t:o:{default/}:${UNKNOWN}`);
});

test('without the store nothing is promised', async () => {
  const one = await ok([textTurn('1')]);
  await redis.kill();
  assertError(await get(one.id), 503, 'store_unavailable');
  assertError(await ask([], { previous_response_id: one.id }), 503, 'store_unavailable', 'previous_response_id');
  await ok([textTurn('2')], { store: false });
  await redis.start();
});
