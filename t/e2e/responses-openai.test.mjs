// The official openai client with the Responses API, as it is: an answer and its stream
// of events, a tool that runs here shown as a call of a server, a tool of the caller's,
// answered by previous_response_id or by the whole conversation, and parsed answers.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import { npm } from '../lib/npm.mjs';
import { callTurn, textTurn } from '../lib/openai-wire.mjs';
import { SHIPPED, asking, startShop, weatherTool } from './shop.mjs';

const OpenAI = npm('openai');
const { zodResponsesFunction, zodTextFormat } = npm('openai/helpers/zod');
const { z } = npm('zod');

let shop;
let client;

before(async () => {
  shop = await startShop();
  client = new OpenAI({
    baseURL: shop.stack.baseURL, apiKey: shop.stack.key, maxRetries: 0, timeout: 20_000,
  });
});

beforeEach(() => shop.reset());

after(() => shop?.close());

const weather = weatherTool();
const tools = [zodResponsesFunction({
  name: weather.name, description: weather.description, parameters: z.object({ city: z.string() }),
})];

const answers = async (response) => Promise.all(response.output
  .filter((item) => item.type === 'function_call')
  .map(async (call) => ({
    type: 'function_call_output', call_id: call.call_id,
    output: await weather.run(JSON.parse(call.arguments)),
  })));

test('a tool that runs here: one call of a server, and the text', async () => {
  const response = await client.responses.create({
    model: 'shop', input: asking({ order_status: { number: '8812' } }),
  });
  assert.equal(response.status, 'completed');
  assert.match(response.output_text, SHIPPED);
  assert.deepEqual(response.output.map((item) => item.type), ['mcp_call', 'message']);
  assert.equal(response.output[0].name, 'order_status');
  assert.equal(response.output[0].server_label, 'toolgate');
  assert.match(response.output[0].output, SHIPPED);
  assert.ok(response.usage.total_tokens > 0);
  assert.equal(shop.tool.count('/orders/8812'), 1);
});

test('the stream helper: its events, its snapshot and its final response agree', async () => {
  const types = [];
  let said = '';
  const stream = client.responses.stream({
    model: 'shop', input: asking({ order_status: { number: '7' } }),
  });
  stream.on('event', (event) => types.push(event.type));
  stream.on('response.output_text.delta', (event) => {
    said += event.delta;
    assert.equal(event.snapshot, said);
  });
  const response = await stream.finalResponse();
  assert.match(said, SHIPPED);
  assert.equal(response.output_text, said);
  assert.equal(types[0], 'response.created');
  assert.equal(types.at(-1), 'response.completed');
  assert.deepEqual(response.output.map((item) => item.type), ['mcp_call', 'message']);
});

test('raw events: numbers rise by one, and each says its own name', async () => {
  const events = [];
  for await (const event of await client.responses.create({
    model: 'shop', input: asking({ get_weather: { city: 'Taif' } }), tools, stream: true,
  })) events.push(event);
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((event, n) => n));
  const done = events.find((event) => event.type === 'response.function_call_arguments.done');
  assert.deepEqual(JSON.parse(done.arguments), { city: 'Taif' });
});

for (const way of ['previous_response_id', 'the whole conversation']) {
  test(`a tool of the caller's, answered by ${way}`, async () => {
    const input = [{ role: 'user', content: 'Order 3, and the weather?' }];
    weather.asked.length = 0;
    shop.model.plan(
      [{ send: callTurn([{ name: 'order_status', args: { number: '3' } }]) }],
      [{ send: callTurn([{ name: 'get_weather', args: { city: 'Abha' } }]) }],
      [{ send: textTurn('It is on its way.') }],
    );
    const first = await client.responses.create({ model: 'shop', input, tools });
    assert.deepEqual(first.output.map((item) => item.type), ['mcp_call', 'function_call']);
    const outputs = await answers(first);
    const second = await client.responses.create({
      model: 'shop', tools,
      ...(way === 'previous_response_id'
        ? { previous_response_id: first.id, input: outputs }
        : { input: [...input, ...first.output, ...outputs] }),
    });
    assert.equal(second.output_text, 'It is on its way.');
    assert.deepEqual(weather.asked, ['Abha']);
    assert.equal(shop.tool.count('/orders/3'), 1, 'ours is not called again');

    // the model has seen all of it, in its order
    const { messages } = shop.model.request().json;
    assert.deepEqual(messages.map((message) => message.role),
      ['system', 'user', 'assistant', 'tool', 'assistant', 'tool']);
    assert.match(messages.at(-1).content, /"sky":"clear"/);
  });
}

test('what is kept: retrieved, its input listed, continued, deleted', async () => {
  const first = await client.responses.create({ model: 'shop', input: 'My name is Sara.' });
  assert.deepEqual((await client.responses.retrieve(first.id)).output, first.output);
  const items = [];
  for await (const item of client.responses.inputItems.list(first.id)) items.push(item);
  assert.equal(items.length, 1);
  assert.equal(items[0].content[0].text, 'My name is Sara.');

  const second = await client.responses.create({
    model: 'shop', input: 'Who am I?', previous_response_id: first.id,
  });
  assert.equal(second.previous_response_id, first.id);
  assert.deepEqual(shop.model.request().json.messages.slice(1).map((m) => [m.role, m.content]), [
    ['user', 'My name is Sara.'], ['assistant', first.output_text], ['user', 'Who am I?'],
  ]);

  await client.responses.delete(first.id);
  await assert.rejects(client.responses.retrieve(first.id), OpenAI.NotFoundError);
});

test('in the background: polled, and its stream read again from any event', async () => {
  shop.model.plan([{ send: textTurn('one ').slice(0, 2) }, { until: 'go' }, { send: textTurn('two') }]);
  const started = await client.responses.create({ model: 'shop', input: 'Count.', background: true });
  assert.match(started.status, /queued|in_progress/);
  shop.model.signal('go');
  let response = started;
  for (const end = Date.now() + 10_000; response.status !== 'completed' && Date.now() < end;) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    response = await client.responses.retrieve(started.id);
  }
  assert.equal(response.status, 'completed');
  assert.equal(response.output_text, 'one two');
});

test('cancelled in the background: the model call ends', async () => {
  shop.model.plan([{ send: textTurn('one ').slice(0, 2) }, { hang: true }]);
  const started = await client.responses.create({ model: 'shop', input: 'Count.', background: true });
  await shop.model.until(() => shop.model.journal.length === 1);
  const cancelled = await client.responses.cancel(started.id);
  assert.equal(cancelled.status, 'cancelled');
  await shop.model.until(() => shop.model.request().closedAt !== undefined, 3000, 'the close');
});

test('parse: text.format goes to the model, and its answer is parsed', async () => {
  shop.model.plan([{ send: textTurn('{"city":"Abha",', '"degrees":19.5}') }]);
  const response = await client.responses.parse({
    model: 'shop', input: 'The weather in Abha.',
    text: { format: zodTextFormat(z.object({ city: z.string(), degrees: z.number() }), 'report') },
  });
  assert.deepEqual(response.output_parsed, { city: 'Abha', degrees: 19.5 });
  assert.equal(shop.model.request().json.response_format.json_schema.name, 'report');
});

test('errors: an unknown response, a model that fails, one that dies in the midst', async () => {
  await assert.rejects(client.responses.retrieve('resp_0000000000000000000000'), OpenAI.NotFoundError);
  await assert.rejects(client.responses.create({
    model: 'shop', input: 'x', previous_response_id: 'resp_0000000000000000000000',
  }), (error) => error.status === 404 || error.status === 400);

  shop.model.plan([{ status: 500 }, { send: 'oops' }]);
  await assert.rejects(client.responses.create({ model: 'shop', input: 'x' }), OpenAI.InternalServerError);

  shop.model.plan([{ send: textTurn('half').slice(0, 2) }, { wait: 30 }, { cut: true }]);
  const types = [];
  for await (const event of await client.responses.create({ model: 'shop', input: 'x', stream: true })) {
    types.push(event.type);
  }
  assert.equal(types.at(-1), 'response.failed');
});
