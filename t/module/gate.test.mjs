// Calls that need a person's approval where nobody can be asked: none of them runs. Which
// calls that are is said by the server, the agent and the request, the strictest of them.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { assertError, callsTurn, order, startFixture, stepsOf, textTurn } from './fixture.mjs';

const OK = textTurn('ok');
const NOTE = JSON.stringify({ body: 'x' });

const agent = (name, tools) => ({
  name, model: 'm', tools: {
    allow_anonymous_actions: true, http: [{ tool: 'order_status' }, { tool: 'add_note' }],
    client: [{ name: 'get_cart', effect: 'read' }], ...tools,
  },
});
const agents = [
  agent('a'), agent('strict', { toolset: { approval_mode: 'strict' } }),
  agent('risk', { toolset: { approval_mode: 'risk' } }), agent('full', { toolset: { approval_mode: 'full' } }),
  agent('named', { toolset: { require_approval: ['order_status'] } }),
];

let f;
before(async () => {
  f = await startFixture({
    agents,
    server: `toolgate_approval_mode off;
      location = /strict/v1/chat/completions { toolgate_approval_mode strict; rewrite ^/strict(.*) $1 break; toolgate_api; }
      location = /risk/v1/chat/completions { toolgate_approval_mode risk; rewrite ^/risk(.*) $1 break; toolgate_api; }
      location = /full/v1/chat/completions { toolgate_approval_mode full; rewrite ^/full(.*) $1 break; toolgate_api; }`,
  });
});
after(() => f?.stop());

const mode = (tool_approval_mode) => ({ metadata: { mine: 'x', agentengine: { tool_approval_mode } } });

/** The codes of a round that looks something up and changes something. */
async function round(more = {}, at = '') {
  f.clear();
  f.model.plan([{ send: callsTurn({ id: 'c1', n: 'order_status', a: order('8812') }, { id: 'c2', n: 'add_note', a: NOTE }) }], [{ send: OK }]);
  const answer = await f.nginx.request(`${at}/v1/chat/completions`, { method: 'POST', body: f.body({ store: false, ...more }) });
  assert.equal(answer.status, 200, answer.text);
  // in the order in which they ended
  assert.deepEqual(stepsOf(answer).map(([, code]) => code).sort(), f.codes().sort());
  assert.equal(f.asked.includes('/notes'), f.codes()[1] === 'ok', 'what was refused was not sent');
  return f.codes();
}

const FREE = ['ok', 'ok'];
const GATED = ['ok', 'approval_unavailable'];

test('the mode of an agent', async () => {
  assert.deepEqual(await round({ model: 'a' }), FREE);
  assert.deepEqual(await round({ model: 'full' }), FREE);
  assert.deepEqual(await round({ model: 'strict' }), GATED);
  assert.deepEqual(await round({ model: 'risk' }), GATED);
});

test('tools that are named need it in every mode', async () => {
  assert.deepEqual(await round({ model: 'named' }), ['approval_unavailable', 'ok']);
  assert.deepEqual(await round({ model: 'named', ...mode('off') }), ['approval_unavailable', 'ok']);
  assert.deepEqual(await round({ model: 'named', ...mode('ask') }), ['approval_unavailable', 'approval_unavailable']);
});

test('a request may only tighten', async () => {
  assert.deepEqual(await round({ model: 'a', ...mode('strict') }), GATED);
  assert.deepEqual(await round({ model: 'a', ...mode('full') }), FREE);
  assert.deepEqual(await round({ model: 'a', ...mode(null) }), FREE);
  for (const word of ['off', 'full']) assert.deepEqual(await round({ model: 'strict', ...mode(word) }), GATED, word);
  for (const wrong of ['', 'loose', 5, true, ['strict']]) {
    assertError(await f.ask([], mode(wrong)), 400, 'invalid_value', 'metadata.agentengine.tool_approval_mode');
  }
  assertError(await f.ask([], { metadata: { agentengine: 'strict' } }), 400, 'invalid_type', 'metadata.agentengine');
});

test('the mode of a location', async () => {
  for (const at of ['/strict', '/risk']) {
    assert.deepEqual(await round({ model: 'a' }, at), GATED, at);
    assert.deepEqual(await round({ model: 'full', ...mode('off') }, at), GATED, at);
  }
  assert.deepEqual(await round({ model: 'a' }, '/full'), FREE);
  assert.deepEqual(await round({ model: 'strict' }, '/full'), GATED);
});

test('a client tool is not offered when the run is not stored, and its name is taken', async () => {
  const answer = await f.ask([OK], { store: false });
  assert.equal(answer.status, 200);
  assert.deepEqual(f.model.request().json.tools.map((t) => t.function.name), ['add_note', 'order_status']);
  const tools = [{ type: 'function', function: { name: 'get_cart', parameters: {} } }];
  assertError(await f.ask([], { tools }), 400, 'tool_name_conflict', 'tools[0].function.name');
  // C036: a model that calls it all the same is refused
  assert.equal((await f.ask([callsTurn({ id: 'c', n: 'get_cart', a: '{}' }), OK], { store: false })).status, 200);
  assert.deepEqual(f.codes(), ['tool_not_available']);
});
