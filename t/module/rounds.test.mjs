// The loop of an agent's run: rounds and their bound, calls side by side, sameness, the
// caller's own tools, what is offered and refused, and the deadline.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CH, DONE, FIN, assertBroken, assertError, assertWhole, callsTurn, closing, order, startFixture, stepsOf, textTurn,
} from './fixture.mjs';
import { SLOW } from './nginx.mjs';

let f;
before(async () => {
  f = await startFixture({
    server: `location /short/v1/ { rewrite ^/short(.*) $1 break; toolgate_api; toolgate_run_timeout 400ms; }`,
  });
});
after(() => f.stop());

const OK = textTurn('ok');
const look = (n, id = `c${n}`) => ({ id, n: 'order_status', a: order(String(n)) });
const note = (body, id) => ({ id, n: 'add_note', a: JSON.stringify({ body }) });
const lookup = (kind, n, id = `${kind}${n}`) => ({ id, n: 'lookup', a: JSON.stringify({ kind, n: String(n) }) });
const doIt = (kind, n, id = `${kind}${n}`) => ({ id, n: 'do_it', a: JSON.stringify({ kind, n: String(n) }) });
const cart = [{ type: 'function', function: { name: 'get_cart', description: 'd', parameters: { type: 'object' } } }];

for (const [agent, rounds] of [['rounds1', 1], ['rounds2', 2], ['plain', 3], ['rounds4', 4], ['rounds5', 5]]) {
  test(`${rounds} rounds, then one turn with tool_choice none`, async () => {
    const turns = Array.from({ length: 8 }, (_, n) => callsTurn(look(n)));
    const client = await f.stream(turns, { model: agent });
    assertWhole(client);
    assert.equal(f.model.journal.length, rounds + 1);
    assert.equal(f.tool.count(), rounds);
    f.model.journal.forEach((e, n) => {
      assert.equal(e.json.tool_choice, n === rounds ? 'none' : undefined);
      assert.equal(JSON.stringify(e.json.tools), JSON.stringify(f.model.request(0).json.tools));
    });
    // a call that comes all the same is dropped
    assert.equal(closing(client).finish, 'stop');
    assert.deepEqual(stepsOf(client), [...Array(rounds).fill(['order_status', 'ok']), ['order_status', 'round_limit']]);
  });
}

test('a round counts also when all its calls were refused', async () => {
  const client = await f.stream([1, 2, 3, 4, 5].map(() => callsTurn({ id: 'x', n: 'nothing', a: '{}' })), { model: 'plain' });
  assertWhole(client);
  assert.equal(f.model.journal.length, 4);
  assert.deepEqual(stepsOf(client).map((s) => s[1]), ['tool_not_available', 'tool_not_available', 'tool_not_available', 'round_limit']);
});

test('five calls in a round; more are refused with too_many_calls', async () => {
  const answer = await f.ask([callsTurn(...[1, 2, 3, 4, 5, 6, 7].map((n) => look(n))), OK]);
  assert.deepEqual(f.codes(), ['ok', 'ok', 'ok', 'ok', 'ok', 'too_many_calls', 'too_many_calls']);
  assert.equal(f.tool.count(), 5);
  assert.deepEqual(f.told().map((c) => c.id), ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7']);
  assert.equal(answer.json.choices[0].message.content, 'ok');
});

test('64 calls in a turn, over the bound of one turn', async () => {
  const many = (n) => callsTurn(...Array.from({ length: n }, (_, i) => look(i)));
  const answer = await f.ask([many(64), OK]);
  assert.equal(answer.status, 200);
  // those that check 8 refuses have been counted by check 7, up to its limit
  const codes = f.codes();
  assert.deepEqual(codes.slice(0, 5), Array(5).fill('ok'));
  assert.deepEqual(codes.slice(5, 20), Array(15).fill('too_many_calls'));
  assert.deepEqual(codes.slice(20), Array(44).fill('rate_limited'));
  const over = await f.ask([many(65), OK]);
  assertError(over, 502, 'model_stream_broken');
  assert.equal(f.tool.count(), 0);
});

test('calls of a round run side by side, results come in call order', async () => {
  f.clear();
  f.tool.answer = async (entry) => {
    await sleep(entry.path.endsWith('/1') ? 300 : 250);
    return false;
  };
  f.model.plan([{ send: callsTurn(look(1), look(2), note('x', 'n')) }], [{ send: OK }]);
  const start = performance.now();
  await f.nginx.chat(f.body());
  const took = performance.now() - start;
  const arrived = f.tool.journal.map((e) => e.at);
  assert.equal(arrived.length, 3);
  assert.ok(Math.max(...arrived) - Math.min(...arrived) < 200 * SLOW, 'all were asked before one had answered');
  assert.ok(took < 550 * SLOW, `two of 300 ms ended in ${took} ms`);
  assert.deepEqual(f.told().map((c) => c.id), ['c1', 'c2', 'n']);
});

test('identical calls of one round: the second waits and gets already_done', async () => {
  f.clear();
  f.tool.answer = async () => {
    await sleep(50);
    return false;
  };
  f.model.plan([{ send: callsTurn(note('x', 'a'), note('x', 'b'), { id: 'c', n: 'add_note', a: '{ "body" : "\\u0078" }' }) }], [{ send: OK }]);
  const answer = await f.nginx.chat(f.body());
  assert.equal(f.tool.count(), 1);
  assert.deepEqual(f.codes(), ['ok', 'already_done', 'already_done']);
  assert.deepEqual(f.told()[1].result.error.result, f.told()[0].result);
  assert.deepEqual(stepsOf(answer).map((s) => s[1]).sort(), ['already_done', 'already_done', 'ok']);
});

test('identical calls: when the first failed, the second runs', async () => {
  f.clear();
  f.tool.answer = async (entry, req, res) => {
    if (f.tool.count() > 1) return false;
    res.writeHead(500);
    res.end();
    return true;
  };
  f.model.plan([{ send: callsTurn(look(1, 'a'), look(1, 'b'), look(1, 'c')) }], [{ send: OK }]);
  await f.nginx.chat(f.body());
  assert.deepEqual(f.codes(), ['upstream_failed', 'ok', 'already_done']);
  assert.equal(f.tool.count(), 2);
});

test('the same call in a later round is already_done, whatever its spacing and digits', async () => {
  const again = { id: 'b', n: 'order_status', a: '{ "order_number" : "٨٨١٢" }' };
  await f.ask([callsTurn(look(8812, 'a')), callsTurn(again), callsTurn(look(8813, 'c')), OK]);
  assert.deepEqual(f.codes(2), ['already_done']);
  assert.deepEqual(f.codes(3), ['ok']);
  assert.deepEqual(f.told(2)[0].result.error.result.items, [{ Order: '8812', Status: 'shipped' }]);
  assert.equal(f.tool.count(), 2);
});

test('the limit of 20 in a run, also when the last one failed before its twin', async () => {
  f.clear();
  f.tool.answer = (entry, req, res) => {
    if (!entry.path.endsWith('/bad')) return false;
    res.writeHead(500);
    res.end();
    return true;
  };
  const bad = (id) => lookup('orders', 'bad', id);
  const round = (from, n) => Array.from({ length: n }, (_, k) => look(from + k));
  f.model.plan(...[round(0, 5), round(5, 5), round(10, 5), round(15, 4), [bad('x'), bad('y'), bad('z')]]
    .map((calls) => [{ send: callsTurn(...calls) }]), [{ send: OK }]);
  const answer = await f.nginx.chat(f.body({ model: 'rounds5' }));
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(f.codes(), ['upstream_failed', 'rate_limited', 'rate_limited']);
  assert.ok(f.told()[1].result.error.retry_after >= 1);
  assert.equal(f.tool.count(), 20);
  assert.equal(answer.json.choices[0].message.content, 'ok');
});

test('the caller\'s own tools are offered after ours and handed out, never run', async () => {
  const client = await f.stream([CH({ content: 'Let me see.' }) + callsTurn({ id: 'm1', n: 'get_cart', a: '{"b": 1}' },
    { id: 'm2', n: 'get_cart', a: '' })], { tools: cart, tool_choice: 'auto' });
  assertWhole(client);
  const { tools, tool_choice: choice } = f.model.request().json;
  assert.deepEqual(tools.at(-1), cart[0]);
  assert.equal(tools.length, 5);
  assert.equal(choice, 'auto');
  assert.equal(closing(client).finish, 'tool_calls');
  const calls = client.events.flatMap((e) => e.json?.choices?.[0]?.delta?.tool_calls ?? []);
  assert.deepEqual(calls.map((c) => [c.index, c.type, c.function]), [
    [0, 'function', { name: 'get_cart', arguments: '{"b": 1}' }], [1, 'function', { name: 'get_cart', arguments: '{}' }]]);
  assert.equal(client.content, 'Let me see.');
  assert.deepEqual(closing(client).steps, []);

  const whole = await f.ask([callsTurn({ id: 'm1', n: 'get_cart', a: '{}' })], { tools: cart });
  const { message } = whole.json.choices[0];
  assert.equal(message.content, null);
  assert.equal(message.tool_calls.length, 1);
  assert.equal(message.tool_calls[0].index, undefined);
});

test('both kinds in one round: ours run first, then the caller\'s are handed out', async () => {
  const client = await f.stream([callsTurn(look(1), { id: 'm', n: 'get_cart', a: '{}' }, { id: 'u', n: 'unknown', a: '{}' })],
    { tools: cart });
  assertWhole(client);
  assert.equal(f.tool.count(), 1);
  assert.equal(f.model.journal.length, 1);
  assert.equal(closing(client).finish, 'tool_calls');
  assert.deepEqual(stepsOf(client).sort(), [['order_status', 'ok'], ['unknown', 'tool_not_available']]);
});

test('the caller\'s call with cut arguments is not handed out', async () => {
  const answer = await f.ask([callsTurn({ id: 'm', n: 'get_cart', a: '{"a":' }), OK], { tools: cart });
  assert.equal(answer.json.choices[0].finish_reason, 'stop');
  assert.deepEqual(f.codes(), ['invalid_arguments']);
});

test('the caller\'s tools are not counted: six calls, no limit', async () => {
  const answer = await f.ask([callsTurn(...Array.from({ length: 7 }, (_, n) => ({ id: `m${n}`, n: 'get_cart', a: `{"n":${n}}` })))],
    { tools: cart, model: 'bare' });
  assert.equal(answer.json.choices[0].message.tool_calls.length, 7);
});

test('a name of the agent\'s in the caller\'s tools is a conflict; broken tools are named', async () => {
  const named = (name) => [...cart, { type: 'function', function: { name } }];
  assertError(await f.ask([], { tools: named('order_status') }), 400, 'tool_name_conflict', 'tools[1].function.name');
  // also when the agent's is not offered in this call
  assertError(await f.ask([], { tools: named('add_note'), allow_actions: false }), 400, 'tool_name_conflict');
  assertError(await f.ask([], { tools: named('') }), 400, 'invalid_value', 'tools[1].function.name');
  assertError(await f.ask([], { tools: [5] }), 400, 'invalid_value', 'tools[0].function.name');
  assertError(await f.ask([], { tools: {} }), 400, 'invalid_type', 'tools');
  assert.equal((await f.ask([OK], { tools: [] })).status, 200);
  assert.equal((await f.ask([OK], { tools: null })).status, 200);
  assert.equal(f.model.request().json.tools.length, 4);
});

test('a forced choice is for the first turn only', async () => {
  const choice = { type: 'function', function: { name: 'order_status' } };
  await f.ask([callsTurn(look(1)), OK], { tool_choice: choice });
  assert.deepEqual(f.model.journal.map((e) => e.json.tool_choice), [choice, undefined]);
});

const offered = () => (f.model.request().json.tools ?? []).map((t) => t.function.name);

test('which tools are offered: one-shot, anonymous, paused, off, verified', async () => {
  const all = ['add_note', 'do_it', 'lookup', 'order_status'];
  const reads = ['lookup', 'order_status'];
  for (const [model, more, want] of [
    ['plain', {}, all],
    ['plain', { allow_actions: false }, reads],
    ['plain', { allow_actions: undefined }, reads],
    ['plain', { allow_actions: null }, reads],
    ['careful', {}, reads],
    ['paused', {}, reads],
    ['off', {}, []],
    ['verified', {}, ['my_orders', 'order_status']],
    ['bare', {}, []],
  ]) {
    await f.ask([OK], { model, ...more });
    assert.deepEqual(offered(), want, `${model} ${JSON.stringify(more)}`);
    assert.equal('tools' in f.model.request().json, want.length > 0);
  }
  assertError(await f.ask([], { allow_actions: 'yes' }), 400, 'invalid_type', 'allow_actions');
});

test('a tool that is not offered never runs, whatever the model calls', async () => {
  for (const [model, more, name, a] of [
    ['plain', { allow_actions: false }, 'add_note', '{"body":"x"}'], ['careful', {}, 'add_note', '{"body":"x"}'],
    ['paused', {}, 'add_note', '{"body":"x"}'], ['off', {}, 'order_status', order('1')],
    ['verified', {}, 'my_orders', '{}'], ['verified', {}, 'switched_off', '{}'],
    ['bare', {}, 'order_status', order('1')],
  ]) {
    await f.ask([callsTurn({ id: 'c', n: name, a }), OK], { model, ...more });
    const [code] = f.codes();
    assert.ok(['tool_not_available', 'tools_disabled', 'actions_paused', 'verification_required'].includes(code), code);
    assert.equal(f.tool.count(), 0, `${model} ${name}`);
  }
});

test('refusals reach the model as {"ok":false,"error":{code,guidance}} and nothing else', async () => {
  await f.ask([callsTurn({ id: 'a', n: 'nothing', a: '{}' }, { id: 'b', n: 'order_status', a: '{}' }), OK]);
  for (const { result } of f.told()) {
    assert.deepEqual(Object.keys(result), ['ok', 'error']);
    assert.deepEqual(Object.keys(result.error), ['code', 'guidance']);
    assert.ok(result.error.guidance.length > 20);
  }
});

test('the run\'s deadline during a model call, before and after the first byte', async () => {
  for (const stream of [false, true]) {
    f.clear();
    f.model.plan([{ hang: true }]);
    const answer = await f.nginx.chat(f.body({ stream }), { headers: {} });
    assert.ok([502, 504].includes(answer.status), 'the model\'s own time-out');
    assert.equal(answer.json.error.code, 'model_timeout');

    f.clear();
    f.model.plan([{ hang: true }]);
    const start = performance.now();
    const short = await f.nginx.request('/short/v1/chat/completions', { body: f.body({ stream }) });
    assertError(short, 504, 'run_timeout');
    const took = performance.now() - start;
    assert.ok(took > 350 && took < 1000 * SLOW, `${took} ms`);
    await f.model.until(() => f.model.request().closedAt !== undefined, 1000, 'the model call to end');
  }
  f.clear();
  f.model.plan([{ send: CH({ content: 'a' }) }, { hang: true }]);
  const client = await f.nginx.stream(f.body(), { pathname: '/short/v1/chat/completions' });
  assertBroken(client, 'run_timeout');
  assert.equal(client.content, 'a');
  await f.model.until(() => f.model.request().closedAt !== undefined, 1000, 'the model call to end');
});

test('the run\'s deadline during a tool call ends that, too', async () => {
  for (const stream of [false, true]) {
    f.clear();
    f.model.plan([{ send: callsTurn(lookup('hang', 1), doIt('hang', 2), look(3)) }], [{ send: OK }]);
    const short = await f.nginx.request('/short/v1/chat/completions', { body: f.body({ stream }) });
    assertError(short, 504, 'run_timeout');
    await f.model.until(() => f.tool.journal.filter((e) => e.closedEarly).length === 2, 1000, 'both tool calls to end');
    assert.equal(f.model.journal.length, 1);
  }
});

test('a tool that takes longer than the model\'s connection lives', async () => {
  await f.ask([callsTurn(lookup('drip', '1?', 'x')), OK]);
  const answer = await f.ask([callsTurn(lookup('stall', 1)), OK]);
  assert.equal(answer.status, 200);
  assert.deepEqual(f.codes(), ['upstream_failed']);
});

test('many runs at once keep apart', async () => {
  f.clear();
  const runs = await Promise.all(Array.from({ length: 40 }, (_, n) => f.nginx.stream({
    model: 'plain', messages: [{ role: 'user', content: `@call order_status {"order_number":"${n}"}\n@call order_status {"order_number":"${n}x"}\n@rounds 2` }],
  })));
  runs.forEach((client, n) => {
    assertWhole(client);
    assert.ok(client.content.includes(`"Order":"${n}"`) || client.content.includes(`\\"Order\\":\\"${n}\\"`), client.content);
    assert.equal(client.content.split('"Order"').length - 1 >= 2, true);
  });
  assert.equal(new Set(runs.map((c) => c.headers['x-toolgate-run'])).size, 40);
});

test('the finish of a final turn that was cut', async () => {
  const turns = [callsTurn(look(1)), CH({ content: 'half' }) + FIN('length') + DONE];
  const answer = await f.ask(turns);
  assert.equal(answer.json.choices[0].finish_reason, 'length');
  assert.equal(answer.json.choices[0].message.content, 'half');
});
