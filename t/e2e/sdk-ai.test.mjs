// The AI SDK (ai and @ai-sdk/openai), as it is: generateText and streamText with a loop
// of their own around tools of the caller, an object as the answer, over chat
// completions of an agent which has a tool that runs here.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import { npm } from '../lib/npm.mjs';
import { callTurn, text, textTurn } from '../lib/openai-wire.mjs';
import { SHIPPED, asking, startShop, weatherTool } from './shop.mjs';

const {
  APICallError, Output, generateText, stepCountIs, streamText, tool,
} = npm('ai');
const { createOpenAI } = npm('@ai-sdk/openai');
const { z } = npm('zod');

let shop;
let model;

before(async () => {
  shop = await startShop();
  model = createOpenAI({ baseURL: shop.stack.baseURL, apiKey: shop.stack.key }).chat('shop');
});

beforeEach(() => shop.reset());

after(() => shop?.close());

const toolsOf = (weather) => ({
  [weather.name]: tool({
    description: weather.description, inputSchema: z.object({ city: z.string() }),
    execute: weather.run,
  }),
});

test('generateText: a tool that runs here is one step, one that runs there is two', async () => {
  const weather = weatherTool();
  const options = { model, tools: toolsOf(weather), stopWhen: stepCountIs(5), maxRetries: 0 };
  const ours = await generateText({ ...options, prompt: asking({ order_status: { number: '8812' } }) });
  assert.match(ours.text, SHIPPED);
  assert.equal(ours.steps.length, 1);
  assert.equal(ours.finishReason, 'stop');
  assert.ok(ours.usage.totalTokens > 0);
  assert.equal(shop.tool.count('/orders/8812'), 1);

  const theirs = await generateText({ ...options, prompt: asking({ get_weather: { city: 'Riyadh' } }) });
  assert.match(theirs.text, /"sky":"clear"/);
  assert.deepEqual(theirs.steps.map((step) => step.finishReason), ['tool-calls', 'stop']);
  assert.deepEqual(theirs.steps[0].toolCalls.map((call) => [call.toolName, call.input]),
    [['get_weather', { city: 'Riyadh' }]]);
  assert.deepEqual(weather.asked, ['Riyadh']);
});

test('streamText: both, one after the other; text as it comes', async () => {
  const weather = weatherTool();
  shop.model.plan(
    [{ send: callTurn([{ name: 'order_status', args: { number: '3' } }]) }],
    [{ send: callTurn([{ name: 'get_weather', args: { city: 'Abha' } }]) }],
    [{ send: text('It is ') }, { until: 'seen' }, { send: textTurn('on its way.') }],
  );
  const stream = streamText({
    model, tools: toolsOf(weather), stopWhen: stepCountIs(5), maxRetries: 0,
    prompt: 'Order 3, and the weather?',
  });
  const kinds = new Set();
  let said = '';
  for await (const part of stream.fullStream) {
    kinds.add(part.type);
    assert.notEqual(part.type, 'error');
    if (part.type === 'text-delta') {
      said += part.text;
      shop.model.signal('seen');
    }
  }
  assert.equal(said, 'It is on its way.');
  assert.equal(await stream.text, 'It is on its way.');
  assert.equal((await stream.steps).length, 2);
  for (const kind of ['tool-input-start', 'tool-call', 'tool-result', 'text-start', 'text-end', 'finish']) {
    assert.ok(kinds.has(kind), kind);
  }
  assert.equal(shop.tool.count('/orders/3'), 1);
  assert.deepEqual(weather.asked, ['Abha']);
});

test('an object as the answer: its schema goes to the model', async () => {
  shop.model.plan([{ send: textTurn('{"city":"Abha",', '"degrees":19.5}') }]);
  const { output } = await generateText({
    model, prompt: 'The weather in Abha.', maxRetries: 0,
    output: Output.object({ schema: z.object({ city: z.string(), degrees: z.number() }) }),
  });
  assert.deepEqual(output, { city: 'Abha', degrees: 19.5 });
  assert.equal(shop.model.request().json.response_format.type, 'json_schema');
});

test('errors: before the first byte, and in the midst of a stream', async () => {
  shop.model.plan([{ status: 500 }, { send: 'oops' }]);
  await assert.rejects(generateText({ model, prompt: 'x', maxRetries: 0 }),
    (error) => APICallError.isInstance(error) && error.statusCode === 502 && error.isRetryable);

  shop.model.plan([{ send: text('half') }, { wait: 30 }, { cut: true }]);
  const seen = [];
  const stream = streamText({
    model, prompt: 'x', maxRetries: 0, onError: ({ error }) => seen.push(error),
  });
  let said = '';
  for await (const part of stream.fullStream) {
    if (part.type === 'text-delta') said += part.text;
  }
  assert.equal(said, 'half');
  assert.match(JSON.stringify(seen), /model_stream_broken/);
});

test('a retry after the model was busy: its Retry-After is heeded', async () => {
  shop.model.plan([{ status: 429, headers: { 'content-type': 'application/json', 'retry-after': '0' } },
    { send: '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}' }]);
  const answer = await generateText({ model, prompt: 'Hello', maxRetries: 1 });
  assert.equal(answer.text, 'You said: Hello');
  assert.equal(shop.model.journal.length, 2);
});
