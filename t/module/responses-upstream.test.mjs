// A model upstream that speaks the Responses API (toolgate_model … api=responses): what
// it is asked in the form of items, and its events and objects as turns of agents and of
// models that are passed through.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import {
  assertBroken, assertError, assertWhole, callsTurn, order, startFixture, stepsOf, textTurn,
} from './fixture.mjs';
import { assertObject, assertStream, outline } from './responses-wire.mjs';
import { startNginx } from './nginx.mjs';
import {
  call, callItem, completed, created, failed, incomplete, message, messageItem, reasoning, say, turn, whole,
} from '../lib/responses-upstream-wire.mjs';

const RESPONSES = '/v1/responses';
const weather = { type: 'function', function: { name: 'weather', description: 'Of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } } } };
const user = (content) => [{ role: 'user', content }];
const json = (status, value) => [
  { status, headers: { 'content-type': 'application/json' } }, { send: JSON.stringify(value) }];

let f;
before(async () => {
  f = await startFixture({
    models: {
      r: [{ url: '@MODEL@', api: 'responses', model: 'vendor-9' }],
      'chat-first': [{ url: 'http://127.0.0.1:9' }, { url: '@MODEL@', api: 'responses' }],
      'responses-first': [{ url: 'http://127.0.0.1:9', api: 'responses' }, { url: '@MODEL@' }],
    },
    agents: ['r', 'chat-first', 'responses-first'].map((model) => ({
      name: `a-${model}`, model, instructions: 'Be "brief".',
      tools: { max_tool_rounds: 2, allow_anonymous_actions: true, http: [{ tool: 'order_status' }] },
    })),
  });
});
after(() => f?.stop());

const chunksOf = (client) => client.events.flatMap((e) => (e.json === undefined ? [] : [e.json]));
const asked = (n = -1) => f.model.request(n).json;
const rounds = [turn(call('order_status', order('8812'))), turn(message(['It ', 'shipped.']))];

for (const stream of [false, true]) {
  test(`an agent runs its tool${stream ? ', streamed' : ''}: the model is asked in items`, async () => {
    const answer = stream
      ? await f.stream(rounds, { model: 'a-r', temperature: 0.5, stream_options: { include_usage: true } })
      : await f.ask(rounds, { model: 'a-r', temperature: 0.5 });
    assert.equal(answer.status, 200, answer.text);
    if (stream) assertWhole(answer);
    assert.equal(stream ? answer.content : answer.json.choices[0].message.content, 'It shipped.');
    assert.deepEqual(stepsOf(answer), [['order_status', 'ok']]);
    const usage = stream ? chunksOf(answer).findLast((e) => e.usage).usage : answer.json.usage;
    assert.equal(usage.total_tokens, 20, 'of both turns');

    assert.equal(f.model.request().path, '/v1/responses');
    const first = asked(0);
    assert.deepEqual(first.input, [
      { type: 'message', role: 'system', content: 'Be "brief".' },
      { type: 'message', role: 'user', content: 'where is 8812?' },
    ]);
    assert.equal(first.model, 'vendor-9');
    assert.equal(first.stream, true);
    assert.equal(first.store, false, 'the vendor keeps nothing');
    assert.equal(first.temperature, 0.5);
    assert.deepEqual(Object.keys(first).sort(), ['input', 'model', 'store', 'stream', 'temperature', 'tools']);
    const [tool] = first.tools;
    assert.equal(tool.name, 'order_status');
    assert.equal(tool.strict, false, 'the API takes a function for strict that says nothing');
    assert.equal(tool.parameters.type, 'object');
    assert.ok(!('function' in tool));

    const second = asked(1);
    assert.deepEqual(second.tools, first.tools);
    assert.deepEqual(second.input.slice(0, 2), first.input);
    const [made, result] = second.input.slice(2);
    assert.deepEqual([made.type, made.name, JSON.parse(made.arguments)], ['function_call', 'order_status', { order_number: '8812' }]);
    assert.deepEqual([result.type, result.call_id], ['function_call_output', made.call_id]);
    assert.equal(JSON.parse(result.output).ok, true);
  });
}

test('several calls of one turn, and tools off in the last one', async () => {
  const two = turn(message(['Looking.']), call('order_status', order('1'), { at: 1 }), call('order_status', order('2'), { at: 2, split: 1000 }));
  const answer = await f.ask([two, two, turn(message(['Done.']))], { model: 'a-r' });
  assert.equal(stepsOf(answer).length, 4);
  assert.equal(asked(0).tool_choice, undefined);
  assert.equal(asked(2).tool_choice, 'none');
  const items = asked(2).input.slice(2).map((i) => i.type);
  const round = ['message', 'function_call', 'function_call', 'function_call_output', 'function_call_output'];
  assert.deepEqual(items, [...round, ...round]);
  assert.deepEqual(asked(2).input[2], { type: 'message', role: 'assistant', content: 'Looking.' });
});

test('passed through: a chat of all that there is, in items', async () => {
  const answer = await f.ask([turn(message(['ok']))], {
    model: 'r', allow_actions: undefined, tools: [weather, { type: 'function', function: { name: 'strict_one', strict: true } }],
    tool_choice: { type: 'function', function: { name: 'weather' } }, parallel_tool_calls: false, n: 1,
    max_tokens: 50, reasoning_effort: 'low', verbosity: 'low', metadata: { a: 'b' }, logprobs: true, top_logprobs: 2,
    response_format: { type: 'json_schema', json_schema: { name: 's', strict: true, schema: { type: 'object' } } },
    vendor_field: [1], messages: [
      { role: 'developer', content: [{ type: 'text', text: 'rules' }] },
      { role: 'user', name: 'ann', content: [
        { type: 'text', text: 'see \u00e9\n"' },
        { type: 'image_url', image_url: { url: 'https://x/y.png', detail: 'low' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA' } },
        { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
      ] },
      { role: 'assistant', content: 'looking', tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rom"}' } },
        { id: 'c2', type: 'function', function: { name: 'weather', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
      { role: 'tool', tool_call_id: 'c2', content: [{ type: 'text', text: 'ra' }, { type: 'text', text: 'in"' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'fine' }] },
      { role: 'assistant', content: null, refusal: 'no' },
      { role: 'assistant', content: '' },
      { role: 'user', content: 'and?' },
    ],
  });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.choices[0].message.content, 'ok');
  assert.equal(answer.json.choices[0].finish_reason, 'stop');
  assert.equal(answer.json.model, 'r');
  assert.equal(answer.json.toolgate, undefined, 'no agent was at work');
  assert.deepEqual(asked(), {
    model: 'vendor-9', stream: true, store: false,
    input: [
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'rules' }] },
      { type: 'message', role: 'user', content: [
        { type: 'input_text', text: 'see \u00e9\n"' },
        { type: 'input_image', image_url: 'https://x/y.png', detail: 'low' },
        { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA' },
        { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
      ] },
      { type: 'message', role: 'assistant', content: 'looking' },
      { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{"city":"Rom"}' },
      { type: 'function_call', call_id: 'c2', name: 'weather', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'sunny' },
      { type: 'function_call_output', call_id: 'c2', output: 'rain"' },
      { type: 'message', role: 'assistant', content: 'fine' },
      { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
      { type: 'message', role: 'user', content: 'and?' },
    ],
    tools: [
      { type: 'function', strict: false, ...weather.function },
      { type: 'function', name: 'strict_one', strict: true },
    ],
    tool_choice: { type: 'function', name: 'weather' }, parallel_tool_calls: false,
    max_output_tokens: 50, reasoning: { effort: 'low' }, metadata: { a: 'b' },
    text: { format: { type: 'json_schema', name: 's', strict: true, schema: { type: 'object' } }, verbosity: 'low' },
    vendor_field: [1],
  });
});

for (const stream of [false, true]) {
  test(`passed through: its calls are the caller's${stream ? ', streamed' : ''}`, async () => {
    const turns = [turn(reasoning(['Hm.', 'So.']), message(['I look. '], { at: 1 }), call('weather', { city: 'Rom' }, { at: 2, callId: 'v1' }), call('weather', '', { at: 3, callId: 'v2' }))];
    const answer = stream ? await f.stream(turns, { model: 'r', tools: [weather] }) : await f.ask(turns, { model: 'r', tools: [weather] });
    assert.equal(answer.status, 200, answer.text);
    const want = [['v1', '{"city":"Rom"}'], ['v2', '{}']];
    const seen = (calls) => calls.map((c) => [c.id, c.function.arguments]);
    if (stream) {
      assertWhole(answer);
      const deltas = chunksOf(answer).flatMap((e) => e.choices).map((c) => c?.delta ?? {});
      assert.deepEqual(seen(deltas.flatMap((d) => d.tool_calls ?? [])), want);
      assert.equal(deltas.map((d) => d.reasoning_content ?? '').join(''), 'Hm.\n\nSo.');
      assert.equal(chunksOf(answer).flatMap((e) => e.choices).findLast((c) => c?.finish_reason).finish_reason, 'tool_calls');
      assert.ok(chunksOf(answer).every((e) => e.toolgate === undefined));
    } else {
      const [{ message: said, finish_reason: reason }] = answer.json.choices;
      assert.deepEqual(seen(said.tool_calls), want);
      assert.equal(said.reasoning_content, 'Hm.\n\nSo.');
      assert.equal(said.content, 'I look. ');
      assert.equal(reason, 'tool_calls');
    }
  });
}

test('text comes as it is said', async () => {
  for (const model of ['r', 'a-r']) {
    f.clear();
    f.model.plan([{ send: created() + say('response.output_text.delta', { output_index: 0, content_index: 0, delta: 'one' }) },
      { until: 'seen' }, { send: say('response.output_text.delta', { output_index: 0, content_index: 0, delta: ' two' }) + completed() }]);
    const client = await f.nginx.open(f.body({ model, stream: true }));
    while (!client.content.includes('one')) await client.next();
    f.model.signal('seen');
    await client.end();
    assertWhole(client);
    assert.equal(client.content, 'one two');
  }
});

test('/v1/responses on it, passed through and by an agent, with its reasoning', async () => {
  for (const stream of [false, true]) {
    f.clear();
    f.model.plan([{ send: turn(reasoning(['Hm.']), message(['Hi'], { at: 1 })) }]);
    const body = { model: 'r', input: 'hello', instructions: 'Short.', max_output_tokens: 20, reasoning: { effort: 'high' },
      tools: [{ type: 'function', name: 'weather', parameters: { type: 'object' }, strict: true }] };
    const answer = stream ? await f.nginx.stream(body, { pathname: RESPONSES }) : await f.nginx.request(RESPONSES, { body });
    if (stream) assertStream(answer);
    else assertObject(answer.json);
    assert.deepEqual(outline(stream ? chunksOf(answer).at(-1).response : answer.json).map(([type]) => type), ['reasoning', 'message']);
    const { input, tools, max_output_tokens: most, reasoning: effort } = asked();
    assert.deepEqual(input, [{ type: 'message', role: 'system', content: 'Short.' }, { type: 'message', role: 'user', content: 'hello' }]);
    assert.deepEqual([tools[0].strict, most, effort], [true, 20, { effort: 'high' }]);
  }
  f.clear();
  f.model.plan(...rounds.map((send) => [{ send }]));
  const answer = await f.nginx.request(RESPONSES, { body: { model: 'a-r', input: 'where is it?', allow_actions: true } });
  assert.deepEqual(outline(answer.json).map(([type]) => type), ['mcp_call', 'message']);
});

test('a vendor that answers a stream with one object', async () => {
  for (const stream of [false, true]) {
    const turns = [json(200, whole([messageItem('Looking.'), callItem('order_status', order('8812'), 'v1')])), json(200, whole([messageItem('One.'), messageItem('Two.')]))];
    const answer = stream ? await f.stream(turns, { model: 'a-r' }) : await f.ask(turns, { model: 'a-r' });
    assert.deepEqual(stepsOf(answer), [['order_status', 'ok']]);
    const said = stream ? answer.content : answer.json.choices[0].message.content;
    assert.match(said, /One\.\n\nTwo\.$/);
  }
});

test('a vendor that sends no pieces, or no events of its calls', async () => {
  const bare = created() + completed(undefined, [messageItem('All of it.')]);
  assert.equal((await f.ask([bare], { model: 'r' })).json.choices[0].message.content, 'All of it.');
  const item = callItem('order_status', order('8812'), 'v1');
  const late = created() + say('response.output_item.done', { output_index: 0, item }) + completed() + 'data: [DONE]\n\n';
  assert.deepEqual(stepsOf(await f.ask([late, rounds[1]], { model: 'a-r' })), [['order_status', 'ok']]);
});

test('cut short, filtered, refused', async () => {
  for (const [reason, finish] of [['max_output_tokens', 'length'], ['content_filter', 'content_filter'], ['something_new', 'length']]) {
    const cut = created() + message(['half']) + call('order_status', order('1'), { at: 1 }) + incomplete(reason);
    const answer = await f.ask([cut], { model: 'a-r' });
    assert.equal(answer.json.choices[0].finish_reason, finish);
    assert.equal(f.tool.journal.length, 0, 'a call of a cut answer is not made');
  }
  const refused = turn(say('response.refusal.delta', { output_index: 0, content_index: 0, delta: 'I will not.' }));
  assert.equal((await f.ask([refused], { model: 'r' })).json.choices[0].message.refusal, 'I will not.');
});

test('what goes wrong on its side', async () => {
  const broken = {
    failed: created() + failed('server_error', 'overloaded db-7'),
    'an error event': created() + say('error', { code: 'server_error', message: 'db-7 went away' }),
    'an error without a type': created() + 'data: {"error":{"message":"db-7"}}\n\n',
    'no end': created() + message(['half']),
    'chat instead': textTurn('hello'),
    nonsense: `${created()}data: nonsense\n\n`,
  };
  for (const [name, script] of Object.entries(broken)) {
    for (const model of ['r', 'a-r']) {
      const answer = await f.ask([script], { model });
      assertError(answer, 502, 'model_stream_broken');
      assert.ok(!answer.text.includes('db-7'), name);
    }
    const client = await f.stream([created() + message(['half']) + script], { model: 'a-r' });
    assertBroken(client, 'model_stream_broken');
  }
  for (const value of [{}, { choices: [] }, whole([], { status: 'failed', error: { message: 'db-7' } }), []]) {
    assertError(await f.ask([json(200, value)], { model: 'a-r' }), 502, 'model_unavailable');
  }
  const refusal = { error: { message: 'Unsupported parameter: \'stop\'', type: 'invalid_request_error', param: 'stop', code: 'unsupported_parameter' } };
  const passed = await f.ask([json(400, refusal)], { model: 'r', stop: ['x'] });
  assert.equal(passed.status, 400);
  assert.deepEqual(passed.json, refusal, 'what has no counterpart is the vendor\'s to judge');
  assert.deepEqual(asked().stop, ['x']);
  assertError(await f.ask([json(429, {})], { model: 'a-r' }), 429, 'model_rate_limited');
});

test('no field of a caller stands in for the conversation', async () => {
  const evil = { input: [{ role: 'user', content: 'evil' }], instructions: 'evil', previous_response_id: 'resp_x',
    conversation: 'c', background: true, prompt: { id: 'p' }, include: ['x'] };
  for (const model of ['a-r', 'r']) {
    const answer = await f.ask([turn(message(['ok']))], { model, ...evil });
    assert.equal(answer.status, 200, answer.text);
    const { body, json: told } = f.model.request();
    assert.equal(told.input.at(-1).content, 'where is 8812?');
    assert.ok(!body.toString().includes('evil'));
    for (const field of Object.keys(evil)) assert.ok(field === 'input' || told[field] === undefined, field);
  }
});

test('a call of which the vendor tells under two ids is made once', async () => {
  const item = { ...callItem('order_status', '', 'call_a'), id: 'fc_1' };
  const twice = created() + say('response.output_item.added', { output_index: 1, item })
    + say('response.function_call_arguments.delta', { item_id: 'fc_1', output_index: 1, delta: order('8812') })
    + say('response.output_item.done', { output_index: 1, item: { ...item, id: undefined, item_id: 'fc_1', call_id: 'fc_other', arguments: order('8812') } })
    + completed(undefined, [callItem('order_status', order('8812'), 'call_c')]);
  assert.deepEqual(stepsOf(await f.ask([twice, rounds[1]], { model: 'a-r' })), [['order_status', 'ok']]);
  assert.equal(f.tool.journal.length, 1);
});

test('a call that began and of which nothing more came is not made', async () => {
  const open = created() + say('response.output_item.added', { output_index: 0, item: callItem('order_status', '', 'c') }) + completed();
  assertError(await f.ask([open], { model: 'a-r' }), 502, 'model_stream_broken');
  assert.equal(f.tool.journal.length, 0);
});

test('what is put together here is one answer with tool calls', async () => {
  for (const model of ['r', 'chat-first', 'a-r']) {
    assertError(await f.ask([], { model, n: 2 }), 400, 'invalid_value', 'n');
    assertError(await f.ask([], { model, functions: [{ name: 'f' }] }), 400, 'invalid_value', 'functions');
    assert.equal((await f.ask([turn(message(['ok']))], { model, n: 1 })).status, 200);
  }
});

test('places of one model that speak different APIs', async () => {
  for (const [model, text, path] of [['chat-first', turn(message(['ok'])), '/v1/responses'], ['responses-first', textTurn('ok'), '/v1/chat/completions']]) {
    for (const name of [model, `a-${model}`]) {
      for (const stream of [false, true]) {
        const answer = stream ? await f.stream([text], { model: name }) : await f.ask([text], { model: name });
        assert.equal(answer.status, 200, `${name}: ${answer.text}`);
        assert.equal(stream ? answer.content : answer.json.choices[0].message.content, 'ok', name);
        assert.equal(f.model.request().path, path);
      }
    }
  }
  const { messages, input, stream } = asked();
  assert.ok(messages.length > 0 && input === undefined && stream === true);
});

test('a chat place behind a Responses place still hands out calls', async () => {
  const answer = await f.ask([callsTurn({ id: 'c9', n: 'weather', a: '{}' })], { model: 'responses-first', tools: [weather] });
  assert.deepEqual(answer.json.choices[0].message.tool_calls.map((c) => [c.id, c.function.name]), [['c9', 'weather']]);
  assert.equal(answer.json.toolgate, undefined);
});

test('a body of megabytes, of large and of many small parts', async () => {
  const large = 'x'.repeat(3 << 20);
  const small = Array.from({ length: 5000 }, (_, n) => ({ role: n % 2 ? 'assistant' : 'user', content: `m${n}` }));
  const answer = await f.ask([turn(message(['ok']))], { model: 'r', messages: [...small, { role: 'user', content: large }] });
  assert.equal(answer.status, 200, answer.text);
  const { input } = asked();
  assert.equal(input.length, small.length + 1);
  assert.ok(input.slice(0, -1).every((item, n) => item.content === `m${n}` && item.role === small[n].role));
  assert.equal(input.at(-1).content, large);
});

test('nginx -t knows no other API', async () => {
  await assert.rejects(startNginx({ models: { x: [{ url: 'http://127.0.0.1:9', api: 'grpc' }] }, catalog: { agents: [] } }),
    /toolgate_model" has an unknown parameter "api=grpc"/);
});
