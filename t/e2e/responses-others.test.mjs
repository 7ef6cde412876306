// @openai/agents, ai and langchain, as they are, over the Responses API: a tool that
// runs here, one of the caller's, and both one after the other, whole and streamed.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import { npm } from '../lib/npm.mjs';
import { callTurn, textTurn } from '../lib/openai-wire.mjs';
import { SHIPPED, asking, startShop, weatherTool } from './shop.mjs';

const OpenAI = npm('openai');
const { Agent, OpenAIResponsesModel, Runner, hostedMcpTool, setTracingDisabled, tool: agentsTool } = npm('@openai/agents');
const { generateText, stepCountIs, streamText, tool: aiTool } = npm('ai');
const { createOpenAI } = npm('@ai-sdk/openai');
const { createAgent, tool: chainTool } = npm('langchain');
const { ChatOpenAI } = npm('@langchain/openai');
const { z } = npm('zod');

let shop;

before(async () => {
  setTracingDisabled(true);
  shop = await startShop();
});

beforeEach(() => shop.reset());

after(() => shop?.close());

const city = z.object({ city: z.string() });

/** A round of ours, then one of the caller's, then the answer. */
const planBoth = () => shop.model.plan(
  [{ send: callTurn([{ name: 'order_status', args: { number: '3' } }]) }],
  [{ send: callTurn([{ name: 'get_weather', args: { city: 'Abha' } }]) }],
  [{ send: textTurn('It is ', 'on its way.') }],
);

function assertBoth(weather) {
  assert.deepEqual(weather.asked, ['Abha']);
  assert.equal(shop.tool.count('/orders/3'), 1);
  assert.equal(shop.model.unplayed, 0);
}

const runner = new Runner({ tracingDisabled: true });

const agentWith = (weather) => new Agent({
  name: 'Assistant', instructions: 'Help.',
  model: new OpenAIResponsesModel(new OpenAI({
    baseURL: shop.stack.baseURL, apiKey: shop.stack.key, maxRetries: 0, timeout: 20_000,
  }), 'shop'),
  tools: [agentsTool({ name: weather.name, description: weather.description, parameters: city, execute: weather.run })],
});

test('@openai/agents: whole', async () => {
  const weather = weatherTool();
  const ours = await runner.run(agentWith(weather), asking({ order_status: { number: '8812' } }));
  assert.match(ours.finalOutput, SHIPPED);
  planBoth();
  const both = await runner.run(agentWith(weather), 'Order 3, and the weather?');
  assert.equal(both.finalOutput, 'It is on its way.');
  assertBoth(weather);
});

test('@openai/agents: streamed', async () => {
  const weather = weatherTool();
  planBoth();
  const streamed = await runner.run(agentWith(weather), 'Order 3, and the weather?', { stream: true });
  let said = '';
  for await (const event of streamed) {
    if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') said += event.data.delta;
  }
  await streamed.completed;
  assert.equal(said, 'It is on its way.');
  assertBoth(weather);
});

test('@openai/agents: goes on by the id of the last response', async () => {
  const first = await runner.run(agentWith(weatherTool()), 'My name is Sara.');
  const second = await runner.run(agentWith(weatherTool()), 'Who am I?', {
    previousResponseId: first.lastResponseId,
  });
  assert.equal(second.finalOutput, 'You said: Who am I?');
  assert.deepEqual(shop.model.request().json.messages.filter((m) => m.role === 'user').map((m) => m.content),
    ['My name is Sara.', 'Who am I?']);
});

const aiModel = () => createOpenAI({ baseURL: shop.stack.baseURL, apiKey: shop.stack.key }).responses('shop');

const aiTools = (weather) => ({
  [weather.name]: aiTool({ description: weather.description, inputSchema: city, execute: weather.run }),
});

test('ai: whole', async () => {
  const weather = weatherTool();
  const options = { model: aiModel(), tools: aiTools(weather), stopWhen: stepCountIs(5), maxRetries: 0 };
  const ours = await generateText({ ...options, prompt: asking({ order_status: { number: '8812' } }) });
  assert.match(ours.text, SHIPPED);
  assert.equal(ours.steps.length, 1);
  planBoth();
  const both = await generateText({ ...options, prompt: 'Order 3, and the weather?' });
  assert.equal(both.text, 'It is on its way.');
  assertBoth(weather);
});

test('ai: streamed', async () => {
  const weather = weatherTool();
  planBoth();
  const stream = streamText({
    model: aiModel(), tools: aiTools(weather), stopWhen: stepCountIs(5), maxRetries: 0,
    prompt: 'Order 3, and the weather?',
  });
  let said = '';
  for await (const part of stream.fullStream) {
    assert.notEqual(part.type, 'error', JSON.stringify(part));
    if (part.type === 'text-delta') said += part.text;
  }
  assert.equal(said, 'It is on its way.');
  assertBoth(weather);
});

const chain = (options = {}) => new ChatOpenAI({
  model: 'shop', apiKey: shop.stack.key, maxRetries: 0, timeout: 20_000, useResponsesApi: true,
  configuration: { baseURL: shop.stack.baseURL }, ...options,
});

const chainTools = (weather) => [chainTool(weather.run, {
  name: weather.name, description: weather.description, schema: city,
})];

test('langchain: the chat model, whole and streamed', async () => {
  const said = asking({ order_status: { number: '8812' } });
  assert.match((await chain().invoke(said)).text, SHIPPED);
  let all;
  for await (const part of await chain().stream(said)) all = all === undefined ? part : all.concat(part);
  assert.match(all.text, SHIPPED);
  assert.equal(shop.tool.count('/orders/8812'), 2);
});

test('langchain: an agent', async () => {
  const weather = weatherTool();
  planBoth();
  const agent = createAgent({ model: chain(), tools: chainTools(weather) });
  const done = await agent.invoke({ messages: [{ role: 'user', content: 'Order 3, and the weather?' }] });
  assert.equal(done.messages.at(-1).text, 'It is on its way.');
  assertBoth(weather);
});

test('langchain: an agent, streamed', async () => {
  const weather = weatherTool();
  planBoth();
  const agent = createAgent({ model: chain({ streaming: true }), tools: chainTools(weather) });
  let said = '';
  for await (const [part] of await agent.stream(
    { messages: [{ role: 'user', content: 'Order 3, and the weather?' }] }, { streamMode: 'messages' })) {
    if (part.type === 'ai') said += part.text;
  }
  assert.equal(said, 'It is on its way.');
  assertBoth(weather);
});

/** The body as the client made it, with a field that only toolgate knows. */
const allowing = (url, init) => fetch(url, {
  ...init, body: JSON.stringify({ ...JSON.parse(init.body), allow_actions: true }),
});

for (const approved of [true, false]) {
  test(`ai: a call that a person ${approved ? 'approves' : 'rejects'}, whole and streamed`, async () => {
    const model = createOpenAI({ baseURL: shop.stack.baseURL, apiKey: shop.stack.key, fetch: allowing }).responses('desk');
    for (const stream of [false, true]) {
      shop.reset();
      const number = `${Number(approved)}${Number(stream)}`;
      const messages = [{ role: 'user', content: asking({ add_note: { number } }) }];
      const say = async () => {
        if (!stream) return generateText({ model, messages, maxRetries: 0 });
        const result = streamText({ model, messages, maxRetries: 0 });
        return { content: await result.content, text: await result.text, response: await result.response };
      };
      const first = await say();
      const request = first.content.find((part) => part.type === 'tool-approval-request');
      assert.equal(request.toolCall.toolName, 'mcp.add_note');
      assert.equal(shop.tool.count('/notes/'), 0);
      messages.push(...first.response.messages, {
        role: 'tool',
        content: [{ type: 'tool-approval-response', approvalId: request.approvalId, approved, providerExecuted: true }],
      });
      const second = await say();
      assert.match(second.text, approved ? /"ok":true/ : /approval_rejected/);
      assert.equal(shop.tool.count(`/notes/${number}`), approved ? 1 : 0);
    }
  });

  test(`@openai/agents: a call that a person ${approved ? 'approves' : 'rejects'}`, async () => {
    const agent = new Agent({
      name: 'Desk', instructions: 'Help.',
      model: new OpenAIResponsesModel(new OpenAI({
        baseURL: shop.stack.baseURL, apiKey: shop.stack.key, maxRetries: 0, timeout: 20_000, fetch: allowing,
      }), 'desk'),
      tools: [hostedMcpTool({ serverLabel: 'toolgate' })],
    });
    const number = `7${Number(approved)}`;
    const first = await runner.run(agent, asking({ add_note: { number } }));
    assert.equal(first.interruptions.length, 1);
    assert.equal(first.interruptions[0].rawItem.name, 'add_note');
    if (approved) first.state.approve(first.interruptions[0]);
    else first.state.reject(first.interruptions[0]);
    const second = await runner.run(agent, first.state);
    assert.match(second.finalOutput, approved ? /"ok":true/ : /approval_rejected/);
    assert.equal(shop.tool.count(`/notes/${number}`), approved ? 1 : 0);
  });
}
