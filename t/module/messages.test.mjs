// What goes upstream for what a client sent, and what a whole (not streamed) answer of a
// model becomes. Cases C023 to C032 and C035, decisions on system text and on parts.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import {
  CH, FIN, DONE, assertError, assertWhole, callsTurn, closing, order, startFixture, stepsOf, textTurn,
} from './fixture.mjs';

let f;
before(async () => {
  f = await startFixture();
});
after(() => f.stop());

const OK = textTurn('ok');
const system = 'Help customers of Acme "North" and {{x}}.';

/** What the model was sent for these messages. */
async function sent(messages, more = {}) {
  const answer = await f.ask([OK], { messages, ...more });
  assert.equal(answer.status, 200, answer.text);
  return f.model.request().json;
}

const whole = (message, reason = 'tool_calls') => [{
  json: { id: 'x', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: reason }],
    usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } },
}];

test('C023 assistant turns with null, no and empty content', async () => {
  const calls = [{ id: 'c1', type: 'function', function: { name: 'get_cart', arguments: '{}' } }];
  const result = { role: 'tool', tool_call_id: 'c1', content: '[]' };
  for (const content of [null, undefined, '']) {
    const turn = { role: 'assistant', content, tool_calls: calls };
    const messages = [{ role: 'user', content: 'x' }, turn, result];
    const up = await sent(messages);
    assert.deepEqual(up.messages.slice(1), JSON.parse(JSON.stringify(messages)));
  }
});

test('C024 a hidden round without text is replayed with content null', async () => {
  await f.ask([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), OK]);
  const [turn, result] = f.model.request(1).json.messages.slice(-2);
  assert.equal(turn.content, null);
  assert.equal(turn.role, 'assistant');
  assert.deepEqual(turn.tool_calls, [{ id: 'c', type: 'function', function: { name: 'order_status', arguments: order('1') } }]);
  assert.equal(typeof result.content, 'string');
  await f.ask([CH({ content: '' }) + callsTurn({ id: 'c', n: 'order_status', a: order('1') }), OK]);
  assert.equal(f.model.request(1).json.messages.at(-2).content, null);
});

test('C025 arguments given as an object, in an answer that is no stream', async () => {
  const message = { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function',
    function: { name: 'order_status', arguments: { order_number: '8812' } } }] };
  const answer = await f.ask([whole(message), whole({ role: 'assistant', content: 'done' }, 'stop')]);
  assert.equal(answer.json.choices[0].message.content, 'done');
  assert.deepEqual(f.codes(), ['ok']);
  assert.deepEqual(JSON.parse(f.told()[0].args), { order_number: '8812' });
  assert.equal(answer.json.usage.total_tokens, 14);

  const streamed = await f.stream([whole(message), whole({ role: 'assistant', content: 'done' }, 'stop')]);
  assertWhole(streamed);
  assert.equal(streamed.content, 'done');

  // the same for the caller's own tool: a string, encoded once
  const tools = [{ type: 'function', function: { name: 'get_cart', parameters: {} } }];
  const own = { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'get_cart', arguments: { a: 'x' } } }] };
  const handed = await f.ask([whole(own)], { tools });
  assert.equal(handed.json.choices[0].finish_reason, 'tool_calls');
  assert.deepEqual(JSON.parse(handed.json.choices[0].message.tool_calls[0].function.arguments), { a: 'x' });
});

test('C026 one id twice in a turn: made unique, each result to its own call', async () => {
  await f.ask([callsTurn({ id: 'c1', n: 'no_such', a: '{}' }, { id: 'c1', n: 'order_status', a: order('8812') }), OK]);
  const told = f.told();
  assert.equal(new Set(told.map((c) => c.id)).size, 2);
  assert.equal(told[0].id, 'c1');
  assert.match(told[1].id, /^call_[0-9A-Za-z]{22}$/);
  assert.deepEqual(f.codes(), ['tool_not_available', 'ok']);
  // and over rounds
  await f.ask([callsTurn({ id: 'c1', n: 'order_status', a: order('1') }), callsTurn({ id: 'c1', n: 'order_status', a: order('2') }), OK]);
  const ids = f.model.request(2).json.messages.filter((m) => m.role === 'tool').map((m) => m.tool_call_id);
  assert.equal(new Set(ids).size, 2);
});

test('C027 long ids are kept apart; ids of ours are short', async () => {
  const ids = ['1', '2'].map((n) => `call_${'a'.repeat(90)}${n}`);
  await f.ask([callsTurn({ id: ids[0], n: 'order_status', a: order('1') }, { id: ids[1], n: 'order_status', a: order('2') }), OK]);
  assert.deepEqual(f.told().map((c) => c.id), ids);
  assert.deepEqual(f.codes(), ['ok', 'ok']);
  for (const { headers } of f.tool.journal) assert.match(headers['webhook-id'], /^call_[A-Za-z0-9_-]{1,35}$/);
});

test('C028 odd characters in ids; no id at all', async () => {
  const id = 'call_x|fc_0123/÷ 9';
  await f.ask([callsTurn({ id, n: 'order_status', a: order('1') }), OK]);
  assert.equal(f.told()[0].id, id);
  assert.ok(!f.nginx.log().includes(id));
  await f.ask([callsTurn({ n: 'order_status', a: order('1') }, { n: 'order_status', a: order('2') }), OK]);
  const told = f.told();
  for (const c of told) assert.match(c.id, /^call_[0-9A-Za-z]{22}$/);
  assert.notEqual(told[0].id, told[1].id);
  assert.deepEqual(f.codes(), ['ok', 'ok']);
});

test('C029 system text: ours first, the caller\'s in place, developer becomes system', async () => {
  const messages = [{ role: 'system', content: 'one' }, { role: 'user', content: 'two' },
    { role: 'developer', content: 'three' }, { content: 'four', role: 'user' },
    { role: 'd\u0065veloper', content: [{ type: 'text', text: 'five' }] }];
  const up = await sent(messages);
  assert.deepEqual(up.messages, [{ role: 'system', content: system }, messages[0], messages[1],
    { role: 'system', content: 'three' }, messages[3],
    { role: 'system', content: [{ type: 'text', text: 'five' }] }]);
  // written with an escape
  const answer = await f.nginx.chat('{"model":"bare","messages":[{"role":"\\u0064eveloper","content":"x"}]}');
  assert.equal(answer.status, 200);
  assert.deepEqual(f.model.request().json.messages, [{ role: 'system', content: 'x' }]);
});

test('C030 C031 tool results in parts, and null, become one string', async () => {
  const turn = (content) => [{ role: 'user', content: 'x' },
    { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: 'c1', content }, { role: 'user', content: 'and?' }];
  const seen = async (content) => (await sent(turn(content))).messages.at(-2).content;
  assert.equal(await seen([{ type: 'text', text: '13 boxes' }, { type: 'text', text: ' left' }]), '13 boxes left');
  assert.equal(await seen(null), '');
  assert.equal(await seen('plain'), 'plain');
  assert.equal(await seen([]), '');
  assert.equal(await seen([{ type: 'text', text: 'a "b" \u0001 طلب' }]), 'a "b" \u0001 طلب');
  assert.equal((await sent(turn('x'))).messages.at(-1).content, 'and?');

  const many = Array.from({ length: 3 }, () => ({ type: 'text', text: 'x'.repeat(700_000) }));
  assert.equal((await seen(many)).length, 2_100_000, 'nothing is cut off silently');

  // user parts are the model's business
  const parts = [{ type: 'text', text: 'see' }, { type: 'image_url', image_url: { url: 'https://x.test/a.png' } }];
  assert.deepEqual((await sent([{ role: 'user', content: parts }])).messages.at(-1).content, parts);
});

test('C032 null inside a part of an answer', async () => {
  const message = { role: 'assistant', content: [{ type: 'text', text: null }, { type: 'text', text: 'ok' }] };
  const answer = await f.ask([whole(message, 'stop')]);
  assert.equal(answer.json.choices[0].message.content, 'ok');
});

test('C035 extra properties are refused and named, nothing is sent', async () => {
  const answer = await f.ask([callsTurn({ id: 'c', n: 'order_status', a: '{"order_number":"8812","status_filter":"late"}' }), OK]);
  assert.deepEqual(f.codes(), ['invalid_arguments']);
  assert.match(f.told()[0].result.error.guidance, /status_filter/);
  assert.deepEqual(f.asked, []);
  assert.deepEqual(stepsOf(answer), [['order_status', 'invalid_arguments']]);
});

test('C033 no coercion: a number for a string is refused', async () => {
  await f.ask([callsTurn({ id: 'c', n: 'order_status', a: '{"order_number":8812}' }), OK]);
  assert.deepEqual(f.codes(), ['invalid_arguments']);
  assert.match(f.told()[0].result.error.guidance, /\/order_number/);
  for (const a of ['null', '[]', '"x"', '{"order_number":"1"', '{"order_number":"1"}{"order_number":"2"}',
    '{"order_number":"1","order_number":"2"}', 'order_number: 1', '{"order_number":"\\ud800"}']) {
    await f.ask([callsTurn({ id: 'c', n: 'order_status', a }), OK]);
    assert.deepEqual(f.codes(), ['invalid_arguments'], a);
  }
  assert.deepEqual(f.asked, []);
});

test('arguments over 1 MiB never run', async () => {
  const a = JSON.stringify({ body: 'x'.repeat(1024 * 1024) });
  const pieces = a.match(/[\s\S]{1,60000}/g).map((part, n) =>
    CH({ tc: [{ i: 0, ...(n === 0 ? { id: 'c', n: 'add_note' } : {}), a: part }] })).join('');
  const answer = await f.ask([pieces + FIN('tool_calls') + DONE, OK]);
  assert.ok([200, 502].includes(answer.status));
  assert.deepEqual(f.asked, []);
  if (answer.status === 502) assert.equal(answer.json.error.code, 'model_stream_broken');
  else assert.deepEqual(f.codes(), ['invalid_arguments']);
});

test('instructions are filled from variables; the request overrides declared ones only', async () => {
  const user = [{ role: 'user', content: 'x' }];
  assert.equal((await sent(user)).messages[0].content, system);
  const up = await sent(user, { variables: { shop: 'Souq\n"2"', who: '{{var.shop}}' } });
  assert.equal(up.messages[0].content, 'Help {{var.shop}} of Souq\n"2" and {{x}}.');
  assert.equal(up.variables, undefined);
  assertError(await f.ask([], { variables: { color: 'red' } }), 400, 'unknown_variable', 'variables.color');
  assertError(await f.ask([], { variables: { shop: 5 } }), 400, 'invalid_type', 'variables.shop');
  assertError(await f.ask([], { variables: [] }), 400, 'invalid_type', 'variables');
  assert.equal(f.model.journal.length, 0);
});

test('extension fields stay here, unknown ones go to the model, for an agent', async () => {
  const up = await sent([{ role: 'user', content: 'x' }], {
    account_id: 'acme', allow_actions: false, store: true, metadata: { a: 'b' }, temperature: 0.5,
    seed: 12345678901234567890n.toString().length, vendor: { deep: [1, 2.50, null] }, response_format: { type: 'text' },
    n: 1, stream_options: { include_usage: false }, user: 'u',
  });
  assert.deepEqual(Object.keys(up).sort(), ['messages', 'model', 'response_format', 'seed', 'stream',
    'stream_options', 'temperature', 'tools', 'user', 'vendor']);
  assert.equal(up.model, 'm');
  assert.deepEqual(up.vendor, { deep: [1, 2.5, null] });
  assert.deepEqual(up.stream_options, { include_usage: true });
});

test('numbers and text of the conversation go upstream byte for byte', async () => {
  const raw = '{"messages" : [ {"role":"user", "content":"caf\\u00e9 \\ud83d\\ude9a", "x":1.0e2} ] ,\n "model":"bare","seed":12345678901234567890,"top_p":1.0}';
  assert.equal((await f.nginx.chat(raw)).status, 200);
  const body = f.model.request().body.toString('utf8');
  assert.ok(body.includes('{"role":"user", "content":"caf\\u00e9 \\ud83d\\ude9a", "x":1.0e2}'), body);
  assert.ok(body.includes('"seed":12345678901234567890'));
  assert.ok(body.includes('"top_p":1.0'));
  assert.equal(f.model.request().headers['content-type'], 'application/json');
});

test('the model gets none of the client\'s headers', async () => {
  f.clear();
  await f.nginx.chat(f.body(), { headers: { cookie: 'a=b', 'x-account-id': 'acme', 'x-secret': '1' } });
  const { headers, method } = f.model.request();
  assert.equal(method, 'POST');
  for (const name of ['authorization', 'cookie', 'x-account-id', 'x-secret', 'accept-encoding']) {
    assert.equal(headers[name], undefined, name);
  }
});

test('the tool list: sorted by name, the same bytes in each turn, rules in the description', async () => {
  await f.ask([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), OK]);
  const lists = f.model.journal.map((e) => /"tools":(\[.*\])/.exec(e.body.toString())[1]);
  assert.equal(lists[0], lists[1]);
  const names = f.model.request().json.tools.map((t) => t.function.name);
  assert.deepEqual(names, ['add_note', 'do_it', 'lookup', 'order_status']);
  await f.ask([OK], { model: 'ruled' });
  const [tool] = f.model.request().json.tools;
  assert.equal(tool.type, 'function');
  assert.ok(tool.function.description.startsWith('State of an order.'));
  assert.ok(tool.function.description.includes('Only on weekdays.'));
  assert.deepEqual(tool.function.parameters.required, ['order_number']);
});

test('agents by name, id, @draft, @version; the answer names what was asked for', async () => {
  const { json } = await f.nginx.request('/v1/models');
  assert.ok(json.data.some((m) => m.id === 'plain' && m.owned_by === 'toolgate'));
  for (const model of ['plain', 'plain@draft', 'plain@1']) {
    const answer = await f.ask([OK], { model });
    assert.equal(answer.status, 200);
    assert.equal(answer.json.model, model);
    assert.equal(f.model.request().json.model, 'm');
  }
  for (const model of ['plain@2', 'plain@', 'nobody', '', 'x'.repeat(300), '@draft', 'm@1']) {
    assertError(await f.ask([], { model }), 404, 'model_not_found', 'model');
  }
});

test('an agent gives one answer, and takes no old functions', async () => {
  assertError(await f.ask([], { n: 2 }), 400, 'invalid_value', 'n');
  assertError(await f.ask([], { functions: [{ name: 'x' }] }), 400, 'invalid_value', 'functions');
  assert.equal((await f.ask([OK], { n: 1 })).status, 200);
  assert.equal((await f.ask([OK], { n: null })).status, 200);
});

test('what this version cannot keep is refused before the model is asked', async () => {
  for (const [field, value] of [['test', {}]]) {
    assertError(await f.ask([], { [field]: value }), 501, 'not_implemented', field);
  }
  assert.equal(f.model.journal.length, 0);
});

test('the closing object of an answer', async () => {
  const answer = await f.ask([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), OK]);
  const { run, status, steps, required_action: action } = answer.json.toolgate;
  assert.match(run, /^run_[0-9A-Za-z]{22}$/);
  assert.equal(answer.headers['x-toolgate-run'], run);
  assert.equal(answer.json.id, `chatcmpl-${run.slice(4)}`);
  assert.equal(status, 'completed');
  assert.equal(action, null);
  assert.deepEqual(Object.keys(steps[0]), ['id', 'type', 'tool', 'ok', 'code']);
  assert.match(steps[0].id, /^step_[0-9A-Za-z]{22}$/);
  assert.deepEqual({ ...steps[0], id: 0 }, { id: 0, type: 'tool_call', tool: 'order_status', ok: true, code: null });
  const streamed = await f.stream([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), OK]);
  const chunks = assertWhole(streamed);
  assert.equal(chunks.filter((c) => c.toolgate).length, 1);
  assert.equal(closing(streamed).run, streamed.headers['x-toolgate-run']);
  assert.equal(streamed.headers['cache-control'], 'no-cache');
});
