// The helpers of the official openai client, as they are: runTools with a loop of its
// own around tools of the caller, the stream helper with its events and snapshots, and
// answers that are parsed, all with an agent that has a tool which runs here.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import { npm } from '../lib/npm.mjs';
import { callTurn, textTurn } from '../lib/openai-wire.mjs';
import { SHIPPED, asking, startShop, weatherTool } from './shop.mjs';

const OpenAI = npm('openai');
const { zodFunction, zodResponseFormat } = npm('openai/helpers/zod');
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

const user = (content) => [{ role: 'user', content }];

const runnable = (weather) => zodFunction({
  name: weather.name, description: weather.description,
  parameters: z.object({ city: z.string() }), function: weather.run,
});

for (const stream of [false, true]) {
  test(`runTools, ${stream ? 'streamed' : 'not streamed'}: its own tool there, ours here`, async () => {
    const weather = weatherTool();
    const called = [];
    const runner = client.chat.completions.runTools({
      model: 'shop', stream, tools: [runnable(weather)],
      messages: user(asking({ get_weather: { city: 'Riyadh' } })),
      ...(stream ? { stream_options: { include_usage: true } } : {}),
    }).on('functionToolCall', (call) => called.push(call.name));
    assert.match(await runner.finalContent(), /results: .*"sky":"clear"/);
    assert.deepEqual(weather.asked, ['Riyadh']);
    assert.deepEqual(called, ['get_weather']);
    assert.equal(shop.model.journal.length, 2);
    const offered = shop.model.request(0).json.tools.map((tool) => tool.function.name);
    assert.deepEqual(offered.sort(), ['get_weather', 'order_status']);
    assert.ok((await runner.totalUsage()).total_tokens > 0);

    // what runs here is not seen as a call
    shop.reset();
    called.length = 0;
    const ours = client.chat.completions.runTools({
      model: 'shop', stream, tools: [runnable(weather)],
      messages: user(asking({ order_status: { number: '8812' } })),
    }).on('functionToolCall', (call) => called.push(call.name));
    assert.match(await ours.finalContent(), SHIPPED);
    assert.deepEqual(called, []);
    assert.deepEqual(weather.asked, ['Riyadh']);
    assert.equal(shop.tool.count('/orders/8812'), 1);
  });

  test(`runTools, ${stream ? 'streamed' : 'not streamed'}: a round of ours, then one of the caller's`, async () => {
    const weather = weatherTool();
    shop.model.plan(
      (entry) => turn(entry, [{ name: 'order_status', args: { number: '1' } }]),
      (entry) => turn(entry, [
        { name: 'get_weather', args: { city: 'Jeddah' } }, { name: 'get_weather', args: { city: 'Abha' } },
      ]),
      (entry) => turn(entry, 'Sent, and the sky is clear.'),
    );
    const runner = client.chat.completions.runTools({
      model: 'shop', stream, tools: [runnable(weather)], messages: user('Order 1, and the weather?'),
    });
    assert.equal(await runner.finalContent(), 'Sent, and the sky is clear.');
    assert.deepEqual(weather.asked, ['Jeddah', 'Abha']);
    assert.equal(shop.tool.count('/orders/1'), 1);
    assert.equal(shop.model.unplayed, 0);
    const calls = runner.messages.flatMap((message) => message.tool_calls ?? []);
    assert.equal(new Set(calls.map((call) => call.id)).size, 2);
    assert.deepEqual(runner.messages.filter((m) => m.role === 'tool').map((m) => m.tool_call_id),
      calls.map((call) => call.id));
  });
}

const turn = (entry, what) => {
  assert.equal(entry.json.stream, true, 'a model is always asked for a stream');
  return [{ send: typeof what === 'string' ? textTurn(what) : callTurn(what) }];
};

test('the stream helper: deltas, snapshots, usage and the final answer agree', async () => {
  const deltas = [];
  const stream = client.chat.completions.stream({
    model: 'shop', messages: user(asking({ order_status: { number: '7' } })),
    stream_options: { include_usage: true },
  });
  let snapshot = '';
  stream.on('content', (delta, all) => {
    deltas.push(delta);
    snapshot = all;
  });
  const answer = await stream.finalChatCompletion();
  assert.match(snapshot, SHIPPED);
  assert.ok(deltas.length > 1);
  assert.equal(deltas.join(''), snapshot);
  assert.equal(answer.choices[0].message.content, snapshot);
  assert.equal(answer.choices[0].finish_reason, 'stop');
  assert.ok(answer.usage.total_tokens > 0);
});

test('the stream helper: the caller\'s calls in pieces, with arguments parsed as they grow', async () => {
  const events = [];
  const stream = client.chat.completions.stream({
    model: 'shop', tools: [runnable(weatherTool())],
    messages: user(asking({ get_weather: { city: 'Taif' } })),
  });
  stream.on('tool_calls.function.arguments.delta', (event) => events.push(event));
  stream.on('tool_calls.function.arguments.done', (event) => events.push(event));
  const answer = await stream.finalChatCompletion();
  const [call] = answer.choices[0].message.tool_calls;
  assert.equal(answer.choices[0].finish_reason, 'tool_calls');
  assert.match(call.id, /^call_[0-9A-Za-z]+/);
  assert.deepEqual(call.function.parsed_arguments, { city: 'Taif' });
  assert.deepEqual(events.at(-1).parsed_arguments, { city: 'Taif' });
  assert.equal(events.at(-1).name, 'get_weather');
});

test('parse: response_format goes to the model, and its answer is parsed', async () => {
  const format = zodResponseFormat(z.object({ city: z.string(), degrees: z.number() }), 'report');
  shop.model.plan((entry) => turn(entry, '{"city":"Abha","degrees":19.5}'));
  const answer = await client.chat.completions.parse({
    model: 'shop', messages: user('The weather in Abha.'), response_format: format,
  });
  assert.deepEqual(answer.choices[0].message.parsed, { city: 'Abha', degrees: 19.5 });
  assert.deepEqual(shop.model.request().json.response_format.json_schema.name, 'report');
});

test('a runner that is aborted between its rounds asks for no more', async () => {
  const weather = weatherTool();
  const runner = client.chat.completions.runTools({
    model: 'shop', stream: true,
    tools: [runnable({ ...weather, run: async () => { runner.abort(); return '{}'; } })],
    messages: user(asking({ get_weather: { city: 'Riyadh' } })),
  });
  await assert.rejects(runner.finalContent(), OpenAI.APIUserAbortError);
  assert.equal(shop.model.journal.length, 1);
});
