// langchain and @langchain/openai, as they are: the chat model with tools bound and
// streamed, and an agent of langchain whose model is an agent here, over chat
// completions.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import { npm } from '../lib/npm.mjs';
import { callTurn, textTurn } from '../lib/openai-wire.mjs';
import { SHIPPED, asking, startShop, weatherTool } from './shop.mjs';

const { createAgent, tool } = npm('langchain');
const { ChatOpenAI } = npm('@langchain/openai');
const { z } = npm('zod');

let shop;

before(async () => {
  shop = await startShop();
});

beforeEach(() => shop.reset());

after(() => shop?.close());

const chat = (options = {}) => new ChatOpenAI({
  model: 'shop', apiKey: shop.stack.key, maxRetries: 0, timeout: 20_000,
  configuration: { baseURL: shop.stack.baseURL }, ...options,
});

const wrapped = (weather) => tool(weather.run, {
  name: weather.name, description: weather.description, schema: z.object({ city: z.string() }),
});

const asked = (content) => ({ messages: [{ role: 'user', content }] });

test('the chat model: an answer for which a tool ran here, whole and streamed', async () => {
  const said = asking({ order_status: { number: '8812' } });
  const whole = await chat().invoke(said);
  assert.match(whole.text, SHIPPED);
  assert.deepEqual(whole.tool_calls, []);
  assert.ok(whole.usage_metadata.total_tokens > 0);

  let all;
  let parts = 0;
  for await (const part of await chat({ streamUsage: true }).stream(said)) {
    all = all === undefined ? part : all.concat(part);
    parts += part.text === '' ? 0 : 1;
  }
  assert.match(all.text, SHIPPED);
  assert.ok(parts > 1);
  assert.ok(all.usage_metadata.total_tokens > 0);
  assert.equal(all.response_metadata.finish_reason, 'stop');
  assert.equal(shop.tool.count('/orders/8812'), 2);
});

test('the chat model with tools bound: the caller\'s calls, whole and in pieces', async () => {
  const bound = chat().bindTools([wrapped(weatherTool())]);
  const said = asking({ get_weather: { city: 'Taif' } });
  const whole = await bound.invoke(said);
  assert.deepEqual(whole.tool_calls.map((call) => [call.name, call.args]), [['get_weather', { city: 'Taif' }]]);
  let all;
  for await (const part of await bound.stream(said)) all = all === undefined ? part : all.concat(part);
  assert.deepEqual(all.tool_calls.map((call) => [call.name, call.args]), [['get_weather', { city: 'Taif' }]]);
  assert.match(all.tool_calls[0].id, /^call_/);
});

test('an agent: its tool there, ours here, one after the other', async () => {
  const weather = weatherTool();
  shop.model.plan(
    [{ send: callTurn([{ name: 'order_status', args: { number: '3' } }]) }],
    [{ send: callTurn([{ name: 'get_weather', args: { city: 'Abha' } }]) }],
    [{ send: textTurn('It is ', 'on its way.') }],
  );
  const agent = createAgent({ model: chat(), tools: [wrapped(weather)] });
  const done = await agent.invoke(asked('Order 3, and the weather?'));
  assert.equal(done.messages.at(-1).text, 'It is on its way.');
  assert.deepEqual(done.messages.map((message) => message.type), ['human', 'ai', 'tool', 'ai']);
  assert.deepEqual(weather.asked, ['Abha']);
  assert.equal(shop.tool.count('/orders/3'), 1);
  assert.equal(shop.model.unplayed, 0);
});

test('an agent, streamed: text as it comes', async () => {
  const weather = weatherTool();
  const agent = createAgent({ model: chat({ streaming: true }), tools: [wrapped(weather)] });
  let said = '';
  const nodes = new Set();
  const stream = await agent.stream(asked(asking({ get_weather: { city: 'Riyadh' } })),
    { streamMode: 'messages' });
  for await (const [part, { langgraph_node: node }] of stream) {
    nodes.add(node);
    if (part.type === 'ai') said += part.text;
  }
  assert.match(said, /results: .*"sky":"clear"/);
  assert.deepEqual([...nodes].sort(), ['model_request', 'tools']);
  assert.deepEqual(weather.asked, ['Riyadh']);
});

test('an object as the answer, and an error', async () => {
  shop.model.plan([{ send: textTurn('{"city":"Abha",', '"degrees":19.5}') }]);
  const structured = chat().withStructuredOutput(
    z.object({ city: z.string(), degrees: z.number() }), { method: 'jsonSchema' });
  assert.deepEqual(await structured.invoke('The weather in Abha.'), { city: 'Abha', degrees: 19.5 });

  shop.model.plan([{ status: 500 }, { send: 'oops' }]);
  await assert.rejects(chat().invoke('x'), (error) => error.status === 502 && error.code === 'model_unavailable');
});
