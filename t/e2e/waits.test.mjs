// Runs that wait, through official clients as they are: a tool of the agent's that runs
// in the caller's app, and a call that a person has to approve, in chat and as runs.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { npm } from '../lib/npm.mjs';
import { callTurn, textTurn } from '../lib/openai-wire.mjs';
import { SHIPPED, asking, startShop } from './shop.mjs';

const OpenAI = npm('openai');
const { ChatOpenAI } = npm('@langchain/openai');
const { ToolMessage, HumanMessage } = npm('@langchain/core/messages');

const CART = { items: [{ name: 'tea', price: 12 }] };

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

/** One of ours and one of the app's in one round. */
const both = () => asking({ order_status: { number: '5' }, get_cart: {} });

test('openai: the app runs its tool and sends the result; the run goes on where it was', async () => {
  const messages = [{ role: 'user', content: both() }];
  const first = await client.chat.completions.create({ model: 'desk', messages });
  const [{ message, finish_reason: reason }] = first.choices;
  assert.equal(reason, 'tool_calls');
  assert.deepEqual(message.tool_calls.map((call) => call.function.name), ['get_cart']);
  assert.equal(shop.tool.count('/orders/5'), 1, 'ours ran first');

  const second = await client.chat.completions.create({
    model: 'desk',
    messages: [...messages, message, {
      role: 'tool', tool_call_id: message.tool_calls[0].id, content: JSON.stringify(CART),
    }],
  });
  assert.equal(second.choices[0].finish_reason, 'stop');
  assert.match(second.choices[0].message.content, SHIPPED);
  assert.match(second.choices[0].message.content, /"tea"/);
  assert.equal(second.toolgate.run, first.toolgate.run, 'the same run');
  assert.equal(shop.tool.count('/orders/5'), 1);
});

test('openai, streamed by its helper', async () => {
  const messages = [{ role: 'user', content: both() }];
  const first = await client.chat.completions.stream({ model: 'desk', messages }).finalMessage();
  assert.equal(first.tool_calls[0].function.name, 'get_cart');
  const second = await client.chat.completions.stream({
    model: 'desk',
    messages: [...messages, first, {
      role: 'tool', tool_call_id: first.tool_calls[0].id, content: JSON.stringify(CART),
    }],
  }).finalContent();
  assert.match(second, /"tea"/);
  assert.match(second, SHIPPED);
});

test('openai: a result for a call that is not open is its BadRequestError', async () => {
  await assert.rejects(client.chat.completions.create({
    model: 'desk',
    messages: [{ role: 'user', content: 'x' }, {
      role: 'assistant', tool_calls: [{
        id: 'call_0000000000000000000000', type: 'function', function: { name: 'get_cart', arguments: '{}' },
      }],
    }, { role: 'tool', tool_call_id: 'call_0000000000000000000000', content: '{}' }],
  }), (error) => error instanceof OpenAI.BadRequestError && error.code === 'unknown_tool_call');
});

test('langchain: the chat model hands the call out and takes its result', async () => {
  const chat = new ChatOpenAI({
    model: 'desk', apiKey: shop.stack.key, maxRetries: 0, timeout: 20_000,
    configuration: { baseURL: shop.stack.baseURL },
  });
  const asked = new HumanMessage(both());
  const first = await chat.invoke([asked]);
  assert.deepEqual(first.tool_calls.map((call) => call.name), ['get_cart']);
  const second = await chat.invoke([asked, first, new ToolMessage({
    tool_call_id: first.tool_calls[0].id, content: JSON.stringify(CART),
  })]);
  assert.match(second.text, /"tea"/);
  assert.match(second.text, SHIPPED);
});

/** Reads a run until it is no longer under way. */
async function settled(run) {
  for (const end = Date.now() + 10_000; Date.now() < end;) {
    const now = await client.get(`/runs/${run}`);
    if (!['queued', 'running', 'requires_action'].includes(now.status)) return now;
    await sleep(50);
  }
  throw new Error(`run ${run} does not end`);
}

for (const approved of [true, false]) {
  test(`openai, chat: a person says ${approved ? 'yes' : 'no'}, and the run goes on by itself`, async () => {
    const answer = await client.chat.completions.create({
      model: 'desk', allow_actions: true,
      messages: [{ role: 'user', content: asking({ add_note: { number: '7' } }) }],
    });
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal(answer.toolgate.status, 'requires_action');
    const [approval] = answer.toolgate.required_action.approvals;
    assert.equal(approval.tool_name, 'add_note');
    assert.match(answer.choices[0].message.content, new RegExp(approval.id));
    assert.equal(shop.tool.count('/notes/'), 0);

    const decided = await client.post(`/approvals/${approval.id}`, { body: { approved, reason: 'so' } });
    assert.equal(decided.status, approved ? 'approved' : 'rejected');
    const run = await settled(answer.toolgate.run);
    assert.equal(run.status, 'completed');
    assert.match(run.output_text, approved ? /"ok":true/ : /approval_rejected/);
    assert.equal(shop.tool.count('/notes/7'), approved ? 1 : 0);
  });
}

test('openai: a run in the background, its client tool answered by submit_tool_outputs', async () => {
  shop.model.plan([{ send: callTurn([{ name: 'get_cart', args: {} }]) }], [{ send: textTurn('Tea, 12.') }]);
  const started = await client.post('/runs', { body: { agent: 'desk', input: 'My cart?', background: true } });
  assert.match(started.status, /queued|running/);
  let run = started;
  for (const end = Date.now() + 10_000; run.status !== 'requires_action' && Date.now() < end;) {
    await sleep(20);
    run = await client.get(`/runs/${started.id}`);
  }
  const { tool_calls: [call] } = run.required_action;
  assert.equal(call.name, 'get_cart');
  await client.post(`/runs/${run.id}/submit_tool_outputs`, {
    body: { tool_outputs: [{ call_id: call.call_id, output: CART }] },
  });
  assert.equal((await settled(run.id)).output_text, 'Tea, 12.');
});

test('openai, Responses: the agent\'s client tool is a function_call, answered by previous_response_id', async () => {
  const first = await client.responses.create({ model: 'desk', input: both() });
  const call = first.output.find((item) => item.type === 'function_call');
  assert.equal(call.name, 'get_cart');
  assert.equal(shop.tool.count('/orders/5'), 1);
  const second = await client.responses.create({
    model: 'desk', previous_response_id: first.id,
    input: [{ type: 'function_call_output', call_id: call.call_id, output: JSON.stringify(CART) }],
  });
  assert.match(second.output_text, /"tea"/);
  assert.match(second.output_text, SHIPPED);
  assert.equal(shop.tool.count('/orders/5'), 1);
});

for (const approve of [true, false]) {
  test(`openai, Responses: mcp_approval_request, answered ${approve ? 'yes' : 'no'}`, async () => {
    const first = await client.responses.create({
      model: 'desk', input: asking({ add_note: { number: '8' } }), allow_actions: true,
    });
    const request = first.output.find((item) => item.type === 'mcp_approval_request');
    assert.equal(request.name, 'add_note');
    assert.equal(request.server_label, 'toolgate');
    assert.deepEqual(JSON.parse(request.arguments), { number: '8' });
    assert.equal(shop.tool.count('/notes/'), 0);
    const second = await client.responses.create({
      model: 'desk', previous_response_id: first.id,
      input: [{ type: 'mcp_approval_response', approval_request_id: request.id, approve }],
    });
    assert.equal(second.status, 'completed');
    assert.match(second.output_text, approve ? /"ok":true/ : /approval_rejected/);
    assert.equal(shop.tool.count('/notes/8'), approve ? 1 : 0);
  });
}
