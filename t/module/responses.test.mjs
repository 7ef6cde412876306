// POST /v1/responses on top of a chat model: what the model is asked, the object and the
// stream of events, for agents and for models that are passed through. Field cases C020,
// C021, C040, C042 and C043.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { CH, DONE, FIN, assertError, callsTurn, order, startFixture, textTurn } from './fixture.mjs';
import { assertObject, assertStream, outline } from './responses-wire.mjs';

const PATH = '/v1/responses';
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,'
  + '"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}\n\n';
const weather = { type: 'function', name: 'weather', description: 'Of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } }, strict: false };

let f;
before(async () => { f = await startFixture(); });
after(() => f?.stop());

const plan = (...turns) => {
  f.clear();
  f.model.plan(...turns.map((t) => (typeof t === 'string' ? [{ send: t }] : t)));
};

async function ask(turns, body, options = {}) {
  plan(...turns);
  return f.nginx.request(PATH, { ...options, body: { model: 'm', input: 'hello', ...body } });
}

async function stream(turns, body, options = {}) {
  plan(...turns);
  return f.nginx.stream({ model: 'm', input: 'hello', ...body }, { ...options, pathname: PATH });
}

const agentTools = async () => {
  await ask([textTurn('ok')], { model: 'a' });
  return asked().tools.length;
};
const asked = (n = -1) => f.model.request(n).json;

test('an agent\'s own tools by their label: it has them anyway', async () => {
  for (const tools of [[{ type: 'mcp', server_label: 'toolgate', require_approval: 'never', authorization: 'secret' }],
    [weather, { type: 'mcp', server_label: 'toolgate', server_description: 'x' }]]) {
    const answer = await ask([callsTurn({ n: 'order_status', a: order('8812') }), textTurn('ok')], { model: 'a', tools });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(outline(answer.json).map(([type]) => type), ['mcp_call', 'message']);
    assert.deepEqual(answer.json.tools.at(-1), { type: 'mcp', server_label: 'toolgate' });
    assert.ok(!answer.text.includes('secret'));
    const told = asked(0).tools.length;
    assert.equal(told, (await agentTools()) + tools.length - 1);
  }
});

test('a model passed through: one object with every field', async () => {
  const answer = await ask([CH({ content: 'Hi' }) + CH({ content: ' there' }, 'stop') + USAGE + DONE],
    { instructions: 'Be brief.', temperature: 0.5, max_output_tokens: 99, metadata: { a: 'b' },
      reasoning: { effort: 'low' }, user: 'u1', tools: [weather], some_new_field: { x: 1 } });
  assert.equal(answer.status, 200, answer.text);
  assertObject(answer.json);
  assert.equal(answer.json.status, 'completed');
  assert.equal(answer.json.model, 'm');
  assert.deepEqual(outline(answer.json), [['message', 'Hi there']]);
  assert.deepEqual(answer.json.usage, {
    input_tokens: 7, input_tokens_details: { cached_tokens: 2 }, output_tokens: 3,
    output_tokens_details: { reasoning_tokens: 1 }, total_tokens: 10,
  });
  for (const [field, value] of Object.entries({ instructions: 'Be brief.', temperature: 0.5, top_p: 1,
    max_output_tokens: 99, metadata: { a: 'b' }, reasoning: { effort: 'low' }, user: 'u1',
    tools: [weather], tool_choice: 'auto', text: { format: { type: 'text' } }, store: false,
    truncation: 'disabled', error: null, incomplete_details: null, service_tier: 'default' })) {
    assert.deepEqual(answer.json[field], value, field);
  }
  assert.deepEqual(asked(), {
    model: 'm',
    messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'hello' }],
    stream: true, stream_options: { include_usage: true }, temperature: 0.5,
    max_completion_tokens: 99, reasoning_effort: 'low', user: 'u1',
    tools: [{ type: 'function', function: { name: 'weather', description: 'Of a city.',
      parameters: weather.parameters, strict: false } }],
    some_new_field: { x: 1 },
  });
});

test('a model passed through: events, and the object at their end', async () => {
  const client = await stream([CH({ content: 'Hi' }) + CH({ content: ' "there"\n' }, 'stop') + USAGE + DONE]);
  const { response, events } = assertStream(client);
  assert.deepEqual(outline(response), [['message', 'Hi "there"\n']]);
  assert.deepEqual(events.map((e) => e.type.slice(9)), [
    'created', 'in_progress', 'output_item.added', 'content_part.added', 'output_text.delta',
    'output_text.delta', 'output_text.done', 'content_part.done', 'output_item.done', 'completed',
  ]);
  assert.equal(client.headers['x-toolgate-run'].slice(4), response.id.slice(5));
});

test('C043: text, reasoning and a call are items of their own, each at its place', async () => {
  const turn = CH({ content: 'Let me' }) + CH({ reasoning_content: 'hm' }) + CH({ content: ' see' })
    + CH({ tc: [{ i: 0, id: 'c.1', n: 'weather', a: '{"city":' }] }) + CH({ tc: [{ i: 0, a: '"Oslo"}' }] })
    + FIN('tool_calls') + DONE;
  const { response } = assertStream(await stream([turn], { tools: [weather] }));
  assert.deepEqual(outline(response), [['message', 'Let me'], ['reasoning', 'hm'], ['message', ' see'],
    ['function_call', 'weather']]);
  const call = response.output.at(-1);
  assert.equal(call.call_id, 'c.1', 'the model gets its own id back');
  assert.equal(call.arguments, '{"city":"Oslo"}');
  assert.equal(call.status, 'completed');
  assert.equal(new Set(response.output.map((i) => i.id)).size, 4);
});

test('C042: with calls of the server in between, the numbers have no gap', async () => {
  const client = await stream([
    CH({ content: 'I look.' }) + callsTurn({ id: 'x', n: 'order_status', a: order('1') },
      { id: 'y', n: 'order_status', a: order('2') }),
    textTurn('Both', ' found.')], { model: 'a' });
  const { response, events } = assertStream(client);
  assert.deepEqual(outline(response), [['message', 'I look.'], ['mcp_call', 'order_status', 'ok'],
    ['mcp_call', 'order_status', 'ok'], ['message', 'Both found.']]);
  const [, first] = response.output;
  assert.equal(first.arguments, order('1'));
  assert.equal(first.status, 'completed');
  assert.equal(JSON.parse(first.output).ok, true);
  const of = events.filter((e) => e.item_id === first.id).map((e) => e.type.slice(9));
  assert.deepEqual(of, ['mcp_call.in_progress', 'mcp_call_arguments.delta', 'mcp_call_arguments.done',
    'mcp_call.completed']);
});

test('a call that was refused shows why; what the model was told is its output', async () => {
  const answer = await ask([callsTurn({ id: 'x', n: 'order_status', a: '{"nope":1}' }), textTurn('Sorry.')],
    { model: 'a' });
  assert.deepEqual(outline(answer.json), [['mcp_call', 'order_status', 'invalid_arguments'],
    ['message', 'Sorry.']]);
  const [call] = answer.json.output;
  assert.equal(call.status, 'failed');
  assert.equal(JSON.parse(call.output).error.code, 'invalid_arguments');
});

test('an agent: ours run first, the caller\'s own calls are handed out under ids of ours', async () => {
  const { response } = assertStream(await stream([callsTurn(
    { id: 'x', n: 'weather', a: '{"city":"Oslo"}' }, { id: 'y', n: 'order_status', a: order('8812') })],
  { model: 'a', tools: [weather] }));
  assert.deepEqual(outline(response), [['mcp_call', 'order_status', 'ok'], ['function_call', 'weather']]);
  assert.match(response.output[1].call_id, /^call_[0-9A-Za-z]{22}$/);
  assert.equal(response.status, 'completed');
});

test('an agent keeps its instructions before the caller\'s, and its tools beside the caller\'s', async () => {
  await ask([textTurn('ok')], { model: 'a', instructions: 'In verse.', tools: [weather],
    allow_actions: true, tool_choice: { type: 'function', name: 'weather' }, store: false, metadata: { a: 'b' } });
  const body = asked();
  assert.deepEqual(body.messages.map((m) => m.role), ['system', 'system', 'user']);
  assert.match(body.messages[0].content, /^Help customers/);
  assert.equal(body.messages[1].content, 'In verse.');
  assert.deepEqual(body.tools.map((t) => t.function.name),
    ['add_note', 'do_it', 'lookup', 'order_status', 'weather']);
  assert.deepEqual(body.tool_choice, { type: 'function', function: { name: 'weather' } });
  for (const field of ['store', 'metadata', 'input', 'instructions', 'allow_actions']) assert.ok(!(field in body), field);
});

test('metadata tightens approvals as in chat: a gated call is refused', async () => {
  const answer = await ask([callsTurn({ id: 'x', n: 'do_it', a: '{"kind":"ok","n":"1"}' }), textTurn('No.')],
    { model: 'a', allow_actions: true, metadata: { agentengine: { tool_approval_mode: 'strict' } } });
  assert.deepEqual(outline(answer.json), [['mcp_call', 'do_it', 'approval_unavailable'], ['message', 'No.']]);
  assert.ok(!('metadata' in asked()));
});

test('items of an earlier answer become the messages that the model knows', async () => {
  await ask([textTurn('ok')], { input: [
    { role: 'developer', content: 'Be kind.' },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'a\u00e9"b' }] },
    { type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content: [
      { type: 'output_text', text: 'one ', annotations: [] }, { type: 'output_text', text: 'two\n', annotations: [] }] },
    { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'f', arguments: '{"a":1}' },
    { type: 'function_call', id: 'fc_2', call_id: 'c2', name: 'g', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'r1' },
    { type: 'function_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'r' }, { type: 'input_text', text: '2' }] },
    { type: 'mcp_call', id: 'mcp_1', server_label: 'toolgate', name: 'h', arguments: '{}', output: 'r3', error: null },
    { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
    { role: 'user', content: [
      { type: 'input_text', text: 'see' }, { type: 'input_image', image_url: 'https://x/i.png', detail: 'low' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:…' }] },
  ] });
  const call = (id, name, args) => ({ id, type: 'function', function: { name, arguments: args } });
  assert.deepEqual(asked().messages, [
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'aé"b' },
    { role: 'assistant', content: 'one two\n', tool_calls: [call('c1', 'f', '{"a":1}'), call('c2', 'g', '{}')] },
    { role: 'tool', tool_call_id: 'c1', content: 'r1' },
    { role: 'tool', tool_call_id: 'c2', content: 'r2' },
    { role: 'assistant', content: null, tool_calls: [call('mcp_1', 'h', '{}')] },
    { role: 'tool', tool_call_id: 'mcp_1', content: 'r3' },
    { role: 'assistant', content: '', refusal: 'no' },
    { role: 'user', content: [{ type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url: 'https://x/i.png', detail: 'low' } },
      { type: 'file', file: { file_data: 'data:…', filename: 'a.pdf' } }] },
  ]);
});

test('C040: reasoning of an earlier answer is dropped, ids of its items mean nothing', async () => {
  const answer = await ask([textTurn('ok')], { store: false, input: [
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: null },
    { type: 'message', id: 'msg_unknown', role: 'user', content: 'hi' }] });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(asked().messages, [{ role: 'user', content: 'hi' }]);
});

test('text.format is response_format, and comes back as it was sent', async () => {
  const schema = { type: 'object', properties: {}, additionalProperties: false };
  const text = { format: { type: 'json_schema', name: 'n', strict: true, schema }, verbosity: 'low' };
  const answer = await ask([textTurn('{}')], { text });
  assert.deepEqual(asked().response_format,
    { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } });
  assert.equal(asked().verbosity, 'low');
  assert.deepEqual(answer.json.text, text);
  await ask([textTurn('{}')], { text: { format: { type: 'json_object' } } });
  assert.deepEqual(asked().response_format, { type: 'json_object' });
  await ask([textTurn('{}')], { text: { format: { type: 'text' } } });
  assert.ok(!('response_format' in asked()));
});

for (const model of ['m', 'a']) {
  test(`${model}: an answer that was cut is incomplete, and none of its calls is shown`, async () => {
    const cut = CH({ content: 'So' }) + CH({ tc: [{ i: 0, id: 'x', n: 'order_status', a: '{"or' }] });
    const { response } = assertStream(await stream([cut + FIN('length') + DONE], { model }),
      'response.incomplete');
    assert.equal(response.status, 'incomplete');
    assert.deepEqual(response.incomplete_details, { reason: 'max_output_tokens' });
    assert.deepEqual(outline(response), [['message', 'So']]);
    assert.equal(response.output[0].status, 'incomplete');
    const filtered = await ask([CH({ content: 'So' }) + FIN('content_filter') + DONE], { model });
    assert.deepEqual(filtered.json.incomplete_details, { reason: 'content_filter' });
  });

  test(`${model}: a refusal is a part of its own`, async () => {
    const { response } = assertStream(await stream([CH({ refusal: 'I will' }) + CH({ refusal: ' not.' }, 'stop')
      + DONE], { model }));
    assert.deepEqual(response.output[0].content, [{ type: 'refusal', refusal: 'I will not.' }]);
  });

  test(`${model}: C021, a stream that breaks ends in response.failed`, async () => {
    const { response, events } = assertStream(await stream(
      [[{ send: CH({ content: 'one' }) + CH({ content: 'two' }) }, { reset: true }]], { model }), 'response.failed');
    assert.equal(response.status, 'failed');
    assert.equal(response.error.code, 'model_stream_broken');
    assert.equal(events.filter((e) => e.type === 'response.output_text.delta').length, 2);
    assert.deepEqual(outline(response), [['message', 'onetwo']]);
  });

  test(`${model}: C020, an error inside the stream is ours, not the vendor's words`, async () => {
    const client = await stream([`${CH({ content: 'Let me' })}data: {"choices":[],"error":{"message":"capacity 77",`
      + `"code":502}}\n\n${DONE}`], { model });
    const { response } = assertStream(client, 'response.failed');
    assert.equal(response.error.code, 'model_stream_broken');
    assert.ok(!client.raw.includes('capacity 77'));
  });

  test(`${model}: a model that fails before its first byte is an error with its status`, async () => {
    assertError(await ask([[{ status: 500 }, { send: 'no' }]], { model }), 502, 'model_unavailable');
    const limited = await stream([[{ status: 429, headers: { 'retry-after': '7' } }]], { model });
    assert.equal(limited.status, 429);
    assert.equal(limited.headers['retry-after'], '7');
  });

  test(`${model}: an empty answer is an empty text`, async () => {
    const { response } = assertStream(await stream([FIN('stop') + DONE], { model }));
    assert.deepEqual(outline(response), [['message', '']]);
  });
}

test('a model passed through: the vendor\'s refusal keeps its status and its object', async () => {
  const error = { message: 'no such parameter', type: 'invalid_request_error', param: 'x', code: 'unknown' };
  const answer = await ask([[{ status: 422, headers: { 'content-type': 'application/json' } },
    { send: JSON.stringify({ error }) }]]);
  assert.equal(answer.status, 422);
  assert.deepEqual(answer.json.error, error);
});

test('a model passed through: the next place answers when the first does not', async () => {
  const { response } = assertStream(await stream([textTurn('second')], { model: 'fallback' }));
  assert.equal(response.model, 'fallback');
  assert.equal(asked().model, 'second');
});

test('what cannot be understood is refused, with the place', async () => {
  const bad = async (body, code, param, status = 400) =>
    assertError(await ask([], body), status, code, param);
  await bad({ input: undefined }, 'missing_parameter', 'input');
  await bad({ input: 7 }, 'invalid_type', 'input');
  await bad({ input: [] }, 'invalid_value', 'input');
  await bad({ input: ['x'] }, 'invalid_type', 'input[0]');
  await bad({ input: [{ role: 'tool', content: 'x' }] }, 'invalid_value', 'input[0].role');
  await bad({ input: [{ role: 'user' }] }, 'missing_parameter', 'input[0].content');
  await bad({ input: [{ role: 'user', content: 5 }] }, 'invalid_type', 'input[0].content');
  await bad({ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'not_found', 'input[0].id', 404);
  await bad({ input: [{ type: 'item_reference', id: `msg_${'0'.repeat(22)}_0` }] }, 'store_unavailable', 'input', 503);
  await bad({ input: [{ id: 'msg_1' }] }, 'unsupported_item', 'input[0].id');
  await bad({ input: [{ type: 'computer_call' }] }, 'unsupported_item', 'input[0].type');
  await bad({ input: [{ type: 'function_call', name: 'f', arguments: '' }] }, 'missing_parameter', 'input[0].call_id');
  await bad({ input: [{ type: 'function_call_output', call_id: 'c', output: {} }] }, 'invalid_type', 'input[0].output');
  await bad({ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'x' }] }] },
    'unsupported_item', 'input[0].content[0]');
  await bad({ tools: [{ type: 'web_search' }] }, 'unsupported_tool', 'tools[0].type');
  await bad({ tools: [{ type: 'mcp', server_label: 'toolgate' }] }, 'unsupported_tool', 'tools[0].server_label');
  for (const [field, value] of Object.entries({ server_url: 'https://x', connector_id: 'c', allowed_tools: ['a'], require_approval: 'always' })) {
    await bad({ model: 'a', tools: [weather, { type: 'mcp', server_label: 'toolgate', [field]: value }] }, 'invalid_value', `tools[1].${field}`);
  }
  await bad({ model: 'a', tools: [{ type: 'mcp', server_label: 'other' }] }, 'unsupported_tool', 'tools[0].server_label');
  await bad({ tools: [weather, { type: 'function' }] }, 'missing_parameter', 'tools[1].name');
  await bad({ tool_choice: { type: 'file_search' } }, 'unsupported_tool', 'tool_choice.type');
  await bad({ instructions: ['x'] }, 'invalid_type', 'instructions');
  await bad({ temperature: 'hot' }, 'invalid_type', 'temperature');
  await bad({ prompt: { id: 'p' } }, 'invalid_value', 'prompt');
  await bad({ text: { format: { type: 'json_schema' } } }, 'missing_parameter', 'text.format.name');
  await bad({ model: 'nobody' }, 'model_not_found', 'model', 404);
  await bad({ model: 'a', tools: [{ ...weather, name: 'order_status' }] }, 'tool_name_conflict', 'tools[0].name');
  assert.equal(f.model.journal.length, 0, 'the model was not asked');
});

test('other methods and unknown accounts', async () => {
  const get = await f.nginx.request(PATH);
  assertError(get, 405, 'method_not_allowed');
  assert.equal(get.headers.allow, 'POST');
  assertError(await ask([], { account_id: 'not ok' }), 400, 'invalid_value', 'account_id');
});

test('a body of 8 MB arrives whole while another stream goes on', async () => {
  f.clear();
  const text = 'é"\n'.repeat(1_300_000);
  f.model.plan([{ send: CH({ content: 'x' }), times: 400, split: 400, gap: 1 }, { send: FIN('stop') + DONE }],
    [{ send: textTurn('big') }]);
  const beside = f.nginx.stream({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  const answer = await f.nginx.request(PATH, { body: { model: 'm', input: [{ role: 'user', content: [
    { type: 'input_text', text }, { type: 'input_text', text: 'b' }] }] } });
  assert.equal(answer.status, 200, answer.text.slice(0, 300));
  const [message] = f.model.journal.map((e) => e.json).find((b) => Array.isArray(b.messages[0].content)).messages;
  assert.ok(message.content[0].text === text, 'every byte');
  assert.ok((await beside).done);
});
