// What any stream of POST /v1/responses has to keep, whoever answers.

import assert from 'node:assert/strict';

/** Fields that the Open Responses specification requires of a response object. */
export const REQUIRED = [
  'id', 'object', 'created_at', 'completed_at', 'status', 'incomplete_details', 'model',
  'previous_response_id', 'instructions', 'output', 'error', 'tools', 'tool_choice', 'truncation',
  'parallel_tool_calls', 'text', 'top_p', 'presence_penalty', 'frequency_penalty', 'top_logprobs',
  'temperature', 'reasoning', 'user', 'usage', 'max_output_tokens', 'max_tool_calls', 'store',
  'background', 'service_tier', 'metadata', 'safety_identifier', 'prompt_cache_key',
];

const TERMINAL = ['response.completed', 'response.incomplete', 'response.failed'];

export function assertObject(response) {
  for (const field of REQUIRED) assert.ok(field in response, `no ${field}`);
  assert.equal(response.object, 'response');
  assert.match(response.id, /^resp_[0-9A-Za-z]{22}$/);
  for (const item of response.output) assertItem(item);
  if (response.usage) {
    assert.deepEqual(Object.keys(response.usage).sort(), ['input_tokens', 'input_tokens_details',
      'output_tokens', 'output_tokens_details', 'total_tokens']);
  }
}

function assertItem(item) {
  if (item.type === 'message') {
    assert.equal(item.role, 'assistant');
    for (const part of item.content) {
      if (part.type === 'output_text') {
        assert.deepEqual(part.annotations, []);
        assert.deepEqual(part.logprobs, []);
      }
    }
  } else if (item.type === 'mcp_call') {
    assert.equal(item.server_label, 'toolgate');
    for (const field of ['arguments', 'error', 'output', 'name', 'approval_request_id']) {
      assert.ok(field in item, `mcp_call without ${field}`);
    }
  }
}

/**
 * Follows a stream event by event: names, numbers, what is added and done, ids and
 * places; returns { response, events } with the object of the terminal event.
 */
export function assertStream(client, terminal = 'response.completed') {
  assert.equal(client.status, 200, client.raw);
  assert.match(client.headers['content-type'], /^text\/event-stream/);
  const events = client.events.filter((e) => e.data !== '[DONE]');
  if (terminal === 'response.failed') assert.ok(!client.done, 'no clean end of a failure');
  else assert.ok(client.done, `[DONE] is last: ${client.raw.slice(-300)}`);
  events.forEach((e, i) => {
    assert.equal(e.event, e.json.type, 'the event is named as its type');
    assert.equal(e.json.sequence_number, i);
  });
  const types = events.map((e) => e.json.type);
  assert.deepEqual(types.slice(0, 2), ['response.created', 'response.in_progress']);
  assert.equal(types.filter((t) => TERMINAL.includes(t)).length, 1);
  assert.equal(types.at(-1), terminal);

  const items = [];
  for (const { json: e } of events) follow(items, e);
  const { response } = events.at(-1).json;
  assertObject(response);
  for (const { json: e } of events.slice(0, 2)) {
    assertObject(e.response);
    assert.equal(e.response.id, response.id);
    assert.equal(e.response.status, 'in_progress');
    assert.equal(e.response.completed_at, null);
    assert.deepEqual(e.response.output, []);
  }
  assert.ok(items.every((i) => i.done), 'each item that was added was done');
  assert.deepEqual(items.map((i) => i.done), response.output);
  return { response, events: events.map((e) => e.json) };
}

function follow(items, e) {
  const at = items[e.output_index];
  if (e.item_id !== undefined) {
    assert.equal(e.item_id, at.added.id);
    assert.equal(at.done, undefined, `${e.type} after its item was done`);
  }
  switch (e.type) {
    case 'response.output_item.added':
      assert.equal(e.output_index, items.length);
      items.push({ added: e.item, parts: [] });
      break;
    case 'response.output_item.done':
      assert.equal(e.item.id, at.added.id);
      assert.equal(e.item.type, at.added.type);
      assert.ok(at.parts.every((p) => p.done));
      if (at.arguments !== undefined) assert.equal(e.item.arguments, at.arguments);
      at.done = e.item;
      break;
    case 'response.content_part.added':
      assert.equal(e.content_index, at.parts.length);
      at.parts.push({ text: '' });
      break;
    case 'response.output_text.delta':
    case 'response.refusal.delta':
    case 'response.reasoning_text.delta':
      at.parts[e.content_index].text += e.delta;
      break;
    case 'response.output_text.done':
    case 'response.reasoning_text.done':
      assert.equal(e.text, at.parts[e.content_index].text);
      break;
    case 'response.refusal.done':
      assert.equal(e.refusal, at.parts[e.content_index].text);
      break;
    case 'response.content_part.done':
      assert.equal(e.part.text ?? e.part.refusal, at.parts[e.content_index].text);
      at.parts[e.content_index].done = true;
      break;
    case 'response.function_call_arguments.done':
    case 'response.mcp_call_arguments.done':
      at.arguments = e.arguments;
      break;
    default:
  }
}

/** [type, what is in it] of each item. */
export const outline = (response) => response.output.map((item) => {
  switch (item.type) {
    case 'message': return ['message', ...item.content.map((p) => p.text ?? p.refusal)];
    case 'reasoning': return ['reasoning', ...item.content.map((p) => p.text)];
    case 'mcp_call': return ['mcp_call', item.name, item.error ?? 'ok'];
    default: return [item.type, item.name];
  }
});
