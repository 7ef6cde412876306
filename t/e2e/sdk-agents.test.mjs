// @openai/agents, as it is: an agent of that SDK whose model is an agent here, over
// chat completions. Its function tools run there, its loop is its own, ours is inside
// of one of its model turns.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import { npm } from '../lib/npm.mjs';
import { callTurn, textTurn } from '../lib/openai-wire.mjs';
import { SHIPPED, asking, startShop, weatherTool } from './shop.mjs';

const OpenAI = npm('openai');
const {
  Agent, OpenAIChatCompletionsModel, Runner, setTracingDisabled, tool,
} = npm('@openai/agents');
const { z } = npm('zod');

let shop;
let model;
const runner = new Runner({ tracingDisabled: true });

before(async () => {
  setTracingDisabled(true);
  shop = await startShop();
  model = new OpenAIChatCompletionsModel(new OpenAI({
    baseURL: shop.stack.baseURL, apiKey: shop.stack.key, maxRetries: 0, timeout: 20_000,
  }), 'shop');
});

beforeEach(() => shop.reset());

after(() => shop?.close());

const agentWith = (weather, options = {}) => new Agent({
  name: 'Assistant', instructions: 'Help.', model,
  tools: [tool({
    name: weather.name, description: weather.description,
    parameters: z.object({ city: z.string() }), execute: weather.run, ...options,
  })],
});

test('a tool that runs here and one that runs there, not streamed', async () => {
  const weather = weatherTool();
  const agent = agentWith(weather);
  const ours = await runner.run(agent, asking({ order_status: { number: '8812' } }));
  assert.match(ours.finalOutput, SHIPPED);
  assert.equal(shop.tool.count('/orders/8812'), 1);
  assert.deepEqual(ours.newItems.map((item) => item.type), ['message_output_item']);

  const theirs = await runner.run(agent, asking({ get_weather: { city: 'Riyadh' } }));
  assert.match(theirs.finalOutput, /results: .*"sky":"clear"/);
  assert.deepEqual(weather.asked, ['Riyadh']);
  assert.deepEqual(theirs.newItems.map((item) => item.type),
    ['tool_call_item', 'tool_call_output_item', 'message_output_item']);
  assert.equal(shop.model.request(-1).json.messages[0].content, 'Be brief.');
  assert.equal(shop.model.request(-1).json.messages[1].content, 'Help.');
});

test('both, one after the other, streamed: text as it comes, calls of ours not shown', async () => {
  const weather = weatherTool();
  shop.model.plan(
    [{ send: callTurn([{ name: 'order_status', args: { number: '3' } }]) }],
    [{ send: callTurn([{ name: 'get_weather', args: { city: 'Abha' } }]) }],
    [{ send: textTurn('It is ', 'on its way.') }],
  );
  const streamed = await runner.run(agentWith(weather), 'Order 3, and the weather?', { stream: true });
  let said = '';
  const items = [];
  for await (const event of streamed) {
    if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') {
      said += event.data.delta;
    }
    if (event.type === 'run_item_stream_event') items.push(event.name);
  }
  await streamed.completed;
  assert.equal(said, 'It is on its way.');
  assert.equal(streamed.finalOutput, 'It is on its way.');
  assert.deepEqual(items, ['tool_called', 'tool_output', 'message_output_created']);
  assert.equal(shop.tool.count('/orders/3'), 1);
  assert.deepEqual(weather.asked, ['Abha']);
  assert.equal(shop.model.unplayed, 0);
});

test('its own approval: the run waits there, and goes on when a person has agreed', async () => {
  const weather = weatherTool();
  const agent = agentWith(weather, { needsApproval: true });
  for (const agreed of [true, false]) {
    shop.reset();
    weather.asked.length = 0;
    const waiting = await runner.run(agent, asking({ get_weather: { city: 'Taif' } }));
    assert.equal(waiting.interruptions.length, 1);
    assert.deepEqual(weather.asked, []);
    const [wanted] = waiting.interruptions;
    if (agreed) waiting.state.approve(wanted);
    else waiting.state.reject(wanted);
    const done = await runner.run(agent, waiting.state);
    assert.deepEqual(weather.asked, agreed ? ['Taif'] : []);
    assert.match(done.finalOutput, agreed ? /"sky":"clear"/ : /not approved/);
  }
});

test('a hand-off between two agents of that SDK, both of which are agents here', async () => {
  const weather = weatherTool();
  const clerk = new Agent({
    name: 'Clerk', instructions: 'Clerk.', model, handoffDescription: 'Knows orders.',
  });
  const front = new Agent({
    name: 'Front', instructions: 'Front.', model, handoffs: [clerk], tools: agentWith(weather).tools,
  });
  shop.model.plan(
    [{ send: callTurn([{ name: 'transfer_to_Clerk', args: {} }]) }],
    [{ send: callTurn([{ name: 'order_status', args: { number: '5' } }]) }],
    [{ send: textTurn('Shipped.') }],
  );
  const done = await runner.run(front, 'Order 5?');
  assert.equal(done.finalOutput, 'Shipped.');
  assert.equal(done.lastAgent.name, 'Clerk');
  assert.equal(shop.tool.count('/orders/5'), 1);
});

test('what the SDK makes of an error of the model', async () => {
  shop.model.plan([{ status: 500 }, { send: 'oops' }]);
  await assert.rejects(runner.run(agentWith(weatherTool()), 'x'),
    (error) => error instanceof OpenAI.InternalServerError && error.code === 'model_unavailable');
});
