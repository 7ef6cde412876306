// GET /v1/toolsets and POST /v1/toolsets/search: which tools there are, for keys with the
// scope "tools". Nothing runs here.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { assertError, startFixture } from './fixture.mjs';

const TOOLS_KEY = 'a-key-for-tools';
const RUN_KEY = 'a-key-for-runs';
const hash = (text) => crypto.createHash('sha256').update(text).digest('hex');

let f;
let bare;
before(async () => {
  const catalog = { api_keys: [
    { name: 'tools', sha256: hash(TOOLS_KEY), scopes: ['tools'] },
    { name: 'runs', sha256: hash(RUN_KEY), scopes: ['run'] },
  ] };
  f = await startFixture({
    catalog, api: 'toolgate_approval_mode strict;',
    http: 'toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_helper unix:/nowhere/toolgated.sock;',
  });
  bare = await startFixture({ catalog });
});
after(async () => {
  await f?.stop();
  await bare?.stop();
});

const list = (query = '', { at = f, key = TOOLS_KEY } = {}) => at.nginx.request(`/v1/toolsets${query}`, { method: 'GET', key });
const search = (body, { at = f, key = TOOLS_KEY } = {}) => at.nginx.request('/v1/toolsets/search', { body, key });
const names = (answer) => answer.json.tools.map((tool) => tool.name);

test('the tools that there are, each with all that describes it', async () => {
  const answer = await list();
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.ok, true);
  assert.equal(answer.json.tool_count, answer.json.tools.length);
  const tool = answer.json.tools.find((t) => t.name === 'run_command');
  const { description, input_schema: schema, ...rest } = tool;
  assert.ok(description.length > 20);
  assert.deepEqual(schema.required, ['command']);
  assert.deepEqual(rest, {
    name: 'run_command', group: 'sandbox', risk_level: 'high', requires_approval: true,
    side_effects: ['sandbox_command_execution'], enabled: true, execution: 'builtin', boundary: 'isolated_sandbox',
  });
  const status = answer.json.tools.find((t) => t.name === 'sandbox_status');
  assert.deepEqual([status.risk_level, status.requires_approval, status.side_effects], ['low', false, []]);
});

test('without a helper, and where nothing has to be approved', async () => {
  const { json } = await list('', { at: bare });
  assert.ok(json.tools.length > 0);
  assert.ok(json.tools.every((tool) => tool.enabled === false && tool.requires_approval === false));
});

test('include and profile', async () => {
  const all = names(await list());
  assert.deepEqual(names(await list('?include=run_command')), ['run_command']);
  assert.deepEqual(names(await list('?include=RUN_COMMAND,sandbox_status')), ['sandbox_status', 'run_command']);
  assert.deepEqual(names(await list('?include=sandbox')), all.filter((n) => ['sandbox_status', 'run_command', 'run_code'].includes(n)));
  assert.deepEqual(names(await list('?include=focused')), all.filter((n) => n !== 'run_command' && n !== 'run_code'
    && !/^(multi_edit|write|delete)_/.test(n) && !/^web_|execute_skills/.test(n)));
  assert.deepEqual(names(await list('?include=&profile=default')), all);
  assert.ok(names(await list('?profile=coding')).includes('run_command'));
  assertError(await list('?include=sandbox,nothing'), 400, 'invalid_value', 'include');
  assertError(await list('?profile=focused'), 400, 'invalid_value', 'profile');
});

test('search: built-in tools and the project\'s own, the best first', async () => {
  const answer = await search({ query: 'run a shell command' });
  assert.equal(answer.status, 200, answer.text);
  const [best] = answer.json.results;
  assert.equal(best.name, 'run_command');
  assert.equal(best.execution, 'builtin');
  assert.match(best.reason, /^matched: /);
  assert.ok(best.args.command && best.score > 4);
  assert.deepEqual([answer.json.ok, answer.json.query, answer.json.profile], [true, 'run a shell command', 'coding']);
  assert.ok(answer.json.deferred_tool_names.includes('run_command'));

  const order = (await search({ query: 'status of an order' })).json;
  assert.equal(order.results[0].name, 'order_status');
  assert.deepEqual([order.results[0].group, order.results[0].execution, order.results[0].risk_level], ['http', 'external', 'low']);
  assert.ok(order.results[0].args.order_number);
  assert.ok(!order.deferred_tool_names.includes('order_status'));
  assert.equal((await search({ query: 'note' })).json.results.find((t) => t.name === 'add_note').risk_level, 'low');

  assert.deepEqual((await search({ query: 'zebra' })).json.results, [], 'what fits nothing is not found');
  assert.equal((await search({ query: 'a e i o', max_results: 1 })).json.results.length, 1);
  assert.ok((await search({ query: 'a e i o', max_results: 1000 })).json.results.length <= 50);
});

test('search: what cannot be used is found on request only', async () => {
  assert.ok(!(await search({ query: 'run_command' }, { at: bare })).json.results.some((t) => t.name === 'run_command'));
  const [found] = (await search({ query: 'run_command', include_disabled: true }, { at: bare })).json.results;
  assert.deepEqual([found.name, found.enabled], ['run_command', false]);
});

test('bad input, other keys, other methods', async () => {
  assert.deepEqual((await search({})).json, { ok: false, error_type: 'query_required', error_message: 'query is required' });
  assert.equal((await search({ query: null })).json.error_type, 'query_required');
  assertError(await search({ query: 5 }), 400, 'invalid_type', 'query');
  assertError(await search({ query: 'x', max_results: '5' }), 400, 'invalid_type', 'max_results');
  assertError(await search({ query: 'x', include_disabled: 1 }), 400, 'invalid_type', 'include_disabled');
  assertError(await search({ query: 'x', profile: 'x' }), 400, 'invalid_value', 'profile');
  assertError(await search('[]'), 400, 'invalid_type');
  assertError(await search('{'), 400, 'invalid_json');
  assert.equal((await search({ query: `run_command ${'zz '.repeat(15_000)}` })).json.results[0].name, 'run_command', 'a long query is cut');
  assertError(await search({ query: 'x'.repeat(70_000) }), 413, 'request_too_large');
  for (const key of [RUN_KEY]) {
    assertError(await list('', { key }), 403, 'insufficient_scope');
    assertError(await search({ query: 'x' }, { key }), 403, 'insufficient_scope');
  }
  assertError(await list('', { key: 'nobody' }), 401, 'invalid_api_key');
  assertError(await f.nginx.request('/v1/toolsets', { body: {}, key: TOOLS_KEY }), 405, 'method_not_allowed');
  assertError(await f.nginx.request('/v1/toolsets/call', { body: {}, key: TOOLS_KEY }), 501, 'not_implemented');
});
