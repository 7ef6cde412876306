// Responses in the background: begun, looked at, cancelled, their events from any place on;
// the same run asked for again.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { CH, DONE, FIN, assertError, callsTurn, order, startFixture, textTurn } from './fixture.mjs';
import { PATIENT } from './nginx.mjs';
import { assertObject, assertStream, outline } from './responses-wire.mjs';
import { startRedis } from '../lib/redis.mjs';

const PATH = '/v1/responses';
const LIVE = ['queued', 'in_progress'];
const cart = { type: 'function', name: 'get_cart', parameters: { type: 'object', properties: {} } };

let f;
let redis;
let n = 0;

before(async () => {
  redis = await startRedis();
  f = await startFixture({
    workers: 2, runHost: 'toolgate_run_timeout 10s;',
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_redis unix:${redis.socket} prefix=t: ${PATIENT};`,
    api: 'toolgate_sse_ping 200ms;',
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
const body = (more) => ({ model: 'a', input: 'where is 8812?', background: true, ...more });
const post = (more, options = {}) => f.nginx.request(PATH, { body: body(more), ...options });
const get = (id, options = {}) => f.nginx.request(`${PATH}/${id}`, options);
const cancel = (id, options = {}) => get(`${id}/cancel`, { method: 'POST', ...options });
const fresh = () => `inv-${process.pid}-${++n}`;

async function begun(more, options) {
  const { status, json, text } = await post(more, options);
  assert.equal(status, 200, text);
  assertObject(json);
  assert.ok(LIVE.includes(json.status), json.status);
  assert.equal(json.background, true);
  assert.equal(json.store, true);
  assert.deepEqual(json.output, []);
  return json;
}

async function ended(id, options) {
  for (let i = 0; i < 500; i += 1) {
    const { status, json, text } = await get(id, options);
    assert.equal(status, 200, text);
    if (!LIVE.includes(json.status)) return json;
    await sleep(20);
  }
  throw new Error(`response ${id} does not end`);
}

/** GET of a stream to its end. */
async function events(id, query = '') {
  const { openSse } = await import('../lib/sse-client.mjs');
  const { KEY } = await import('./nginx.mjs');
  const client = await openSse(`${f.nginx.url}${PATH}/${id}?stream=true${query}`, { key: KEY, method: 'GET' });
  await client.end();
  return client;
}

test('begun, looked at, gone on from', async () => {
  plan(callsTurn({ id: 'c', n: 'order_status', a: order('8812') }), textTurn('It is ', 'on its way.'));
  const one = await begun({ metadata: { a: 'b' } });
  const whole = await ended(one.id);
  assertObject(whole);
  assert.equal(whole.status, 'completed');
  assert.deepEqual(outline(whole), [['mcp_call', 'order_status', 'ok'], ['message', 'It is on its way.']]);
  assert.deepEqual(whole.metadata, { a: 'b' });
  assert.equal(whole.created_at, one.created_at);
  assert.ok(whole.completed_at >= whole.created_at);

  plan(textTurn('next'));
  const next = await f.nginx.request(PATH, { body: { model: 'a', previous_response_id: one.id, input: 'and?' } });
  assert.equal(next.status, 200, next.text);
  assert.deepEqual(f.model.request().json.messages.slice(1).map((m) => m.role), ['user', 'assistant', 'tool', 'assistant', 'user']);
});

test('its events, from the first one or from any other on', async () => {
  plan(callsTurn({ id: 'c', n: 'order_status', a: order('8812') }), textTurn('It is ', 'on its way.'));
  const one = await begun();
  const whole = await ended(one.id);
  const all = assertStream(await events(one.id));
  assert.deepEqual(all.response.output, whole.output);
  assert.equal(all.response.status, 'completed');
  assert.equal(all.response.completed_at, whole.completed_at, 'shown again, not ended again');
  for (const after of [0, 4, all.events.length - 2]) {
    const rest = (await events(one.id, `&starting_after=${after}`)).events.filter((e) => e.json);
    assert.deepEqual(rest.map((e) => e.json), all.events.slice(after + 1));
  }
  assertError(await get(`${one.id}?stream=true&starting_after=x`), 400, 'invalid_value', 'starting_after');
});

test('a stream in the background is that of its run', async () => {
  plan([{ send: CH({ content: 'a' }) }, { wait: 300 }, { send: CH({ content: 'b' }) + FIN('stop') + DONE }]);
  const client = await f.nginx.stream(body(), { pathname: PATH });
  const { response } = assertStream(client);
  assert.deepEqual(outline(response), [['message', 'ab']]);
  const whole = await ended(response.id);
  assert.deepEqual(whole.output, response.output);
});

test('the client of a stream leaves, and the response comes all the same', async () => {
  plan([{ send: CH({ content: 'a' }) }, { wait: 500 }, { send: CH({ content: 'b' }) + FIN('stop') + DONE }]);
  const client = await f.nginx.open(body(), { pathname: PATH });
  const first = await client.next();
  client.leave();
  const whole = await ended(first.json.response.id);
  assert.deepEqual(outline(whole), [['message', 'ab']]);
});

test('cancelled: the model is let go, and it is said so again', async () => {
  plan([{ send: CH({ content: 'a' }) }, { hang: true }]);
  const one = await begun();
  await f.model.until(() => f.model.journal.length === 1);
  const answer = await cancel(one.id);
  assert.equal(answer.status, 200, answer.text);
  assertObject(answer.json);
  assert.equal(answer.json.status, 'cancelled');
  await f.model.until(() => f.model.request().closedAt !== undefined);
  for (let i = 0; i < 3; i += 1) {
    assert.equal((await get(one.id)).json.status, 'cancelled');
    assert.equal((await cancel(one.id)).json.status, 'cancelled');
    await sleep(50);
  }
});

test('a model that fails fails the response', async () => {
  plan([{ status: 500 }, { send: 'no' }]);
  const one = await begun();
  const whole = await ended(one.id);
  assert.equal(whole.status, 'failed');
  assert.equal(whole.error.code, 'model_unavailable');
});

test('calls of the request\'s own tools are handed out when it is looked at', async () => {
  plan(callsTurn({ id: 'x', n: 'get_cart', a: '{}' }));
  const one = await begun({ tools: [cart] });
  const whole = await ended(one.id);
  assert.deepEqual(outline(whole), [['function_call', 'get_cart']]);
  assert.match(whole.output[0].call_id, /^call_/);
});

test('deleted while it goes on: it does not come back', async () => {
  plan([{ send: CH({ content: 'a' }) }, { wait: 400 }, { send: CH({ content: 'b' }) + FIN('stop') + DONE }]);
  const one = await begun();
  assert.equal((await get(one.id, { method: 'DELETE' })).status, 200);
  await sleep(700);
  assertError(await get(one.id), 404, 'not_found');
});

test('one that goes on cannot be gone on from', async () => {
  plan([{ send: CH({ content: 'a' }) }, { hang: true }]);
  const one = await begun();
  assertError(await f.nginx.request(PATH, { body: { model: 'a', previous_response_id: one.id, input: 'x' } }),
    409, 'response_in_progress', 'previous_response_id');
  await cancel(one.id);
});

test('what cannot be in the background', async () => {
  f.clear();
  assertError(await post({ model: 'm' }), 400, 'invalid_value', 'background');
  assertError(await post({ store: false }), 400, 'invalid_value', 'background');
  assertError(await post({ background: 1 }), 400, 'invalid_type', 'background');
  plan(textTurn('x'));
  const plain = (await f.nginx.request(PATH, { body: { model: 'a', input: 'x' } })).json;
  assertError(await cancel(plain.id), 400, 'invalid_value');
  assertError(await get(`${plain.id}?stream=true`), 400, 'invalid_value', 'stream');
  assertError(await cancel(`resp_${'0'.repeat(22)}`), 404, 'not_found');
  assertError(await cancel(plain.id, { headers: { 'x-account-id': 'acme' } }), 404, 'not_found');
  const wrong = await get(`${plain.id}/cancel`);
  assertError(wrong, 405, 'method_not_allowed');
  assert.equal(wrong.headers.allow, 'POST');
});

test('the same invocation again is the same response', async () => {
  const invocation_id = fresh();
  const again = { model: 'a', input: 'where is 8812?', invocation_id };
  plan(callsTurn({ id: 'c', n: 'order_status', a: order('8812') }), textTurn('Found ', 'it.'));
  const one = await f.nginx.request(PATH, { body: again });
  const two = await f.nginx.request(PATH, { body: again });
  assert.equal(two.status, 200, two.text);
  assert.equal(two.json.id, one.json.id);
  assert.deepEqual(two.json.output, one.json.output);
  const { response } = assertStream(await f.nginx.stream(again, { pathname: PATH }));
  assert.deepEqual(response.output, one.json.output);
  assert.equal(f.model.journal.length, 2, 'the model was asked once');
  assertError(await f.nginx.request(PATH, { body: { ...again, input: 'other' } }), 409, 'invocation_conflict');
  assert.deepEqual((await get(one.json.id)).json, one.json);
});
