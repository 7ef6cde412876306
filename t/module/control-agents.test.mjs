// Agents and tools of the control plane at work: drafts, versions that stay as they were
// published, switches that hold at once, and runs whose agent, tool or key is changed or
// deleted under them.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertError, callsTurn, textTurn } from './fixture.mjs';
import { SLOW } from './nginx.mjs';
import { agentOf, soon, startWorld, toolOf } from './control.mjs';

const OK = textTurn('ok');
const SEEN_MS = 600;      // by the worker that did not make the change

let w;
let f;
before(async () => {
  w = await startWorld();
  f = w.node;
});
after(() => w?.stop());

let names = 0;
const fresh = (prefix) => `${prefix}${++names}`;
const at = (path, name = fresh('tool_'), config, more) => toolOf(name, `${f.tool.url}${path}`, config, more);
const chat = (model, more) => f.nginx.chat({ model, allow_actions: true, messages: [{ role: 'user', content: 'x' }], ...more });
const code = async (model) => {
  const answer = await chat(model);
  return answer.status === 200 ? 'ok' : answer.json.error.code;
};

/** The model calls the tool: what it was told, "ok" or a code. */
async function calls(model, n, a = '{}') {
  const answer = await f.ask([callsTurn({ id: 'c', n, a }), OK], { model });
  assert.equal(answer.status, 200, answer.text);
  return f.codes()[0];
}

/** Names of the tools that the model was offered last. */
const offered = () => (f.model.request().json.tools ?? []).map((t) => t.function.name);

test('draft, publish, versions: which one runs', async () => {
  const name = fresh('agent-');
  const { id } = await w.make('/v1/agents', agentOf(name, [], { instructions: 'one' }));
  const path = `/v1/agents/${id}`;
  const said = async (model) => {
    const answer = await f.ask([OK], { model });
    if (answer.status !== 200) return answer.json.error.code;
    assert.equal(answer.json.model, model);
    return f.model.request().json.messages[0].content;
  };

  for (const model of [name, id]) assert.equal(await said(model), 'agent_not_published');
  for (const model of [`${name}@draft`, `${id}@draft`]) assert.equal(await said(model), 'one');
  assert.deepEqual((await w.ok('GET', `${path}/versions`)).data, []);

  const first = await w.ok('POST', `${path}/publish`);
  assert.equal(first.published_version, 1);
  await w.ok('PATCH', path, { instructions: 'two' });
  await soon(async () => await said(`${name}@draft`) === 'two', 'the draft');
  for (const model of [name, id, `${name}@1`, `${id}@1`]) assert.equal(await said(model), 'one');

  assert.equal((await w.ok('POST', `${path}/publish`)).published_version, 2);
  await sleep(SEEN_MS);
  for (const model of [name, id, `${name}@2`, `${id}@2`]) assert.equal(await said(model), 'two');
  for (const model of [`${name}@1`, `${id}@1`]) assert.equal(await said(model), 'one');
  for (const odd of ['0', '3', '', 'x', '-1', '1x', 'DRAFT', '1@draft', '99999999999999999999']) {
    assert.equal(await said(`${name}@${odd}`), 'model_not_found', odd);
  }

  const versions = (await w.ok('GET', `${path}/versions`)).data;
  assert.deepEqual(versions.map((v) => [v.version, v.id, v.object]), [[2, `${id}@2`, 'agent.version'], [1, `${id}@1`, 'agent.version']]);
  assert.equal((await w.ok('GET', `${path}/versions/1`)).agent.instructions, 'one');
  for (const odd of ['3', '0', 'x', 'draft']) assertError(await w.api('GET', `${path}/versions/${odd}`), 404, 'not_found');

  // renamed: the new name leads to the published version, the old one nowhere
  await w.ok('PATCH', path, { name: `${name}-new` });
  await sleep(SEEN_MS);
  assert.equal(await said(`${name}-new`), 'two');
  assert.equal(await said(name), 'model_not_found');

  await w.ok('DELETE', path);
  await sleep(SEEN_MS);
  for (const model of [id, `${name}-new`, `${id}@1`, `${name}-new@draft`]) assert.equal(await said(model), 'model_not_found');
});

test('a published agent is one of the models', async () => {
  const name = fresh('listed-');
  await w.agent(name);
  await soon(async () => {
    const listed = await f.nginx.request('/v1/models');
    return listed.json.data.some((m) => m.id === name && m.owned_by === 'toolgate');
  }, 'it is listed');
  assert.equal((await f.nginx.request(`/v1/models/${name}`)).status, 200);
});

const long = 'x'.repeat(4001);
test('each fault of an agent has its code and names its place', async () => {
  const t = await w.make('/v1/tools', at('/orders/1'));
  const grants = (...http) => ({ tools: { http } });
  for (const [body, status, fault, param] of [
    [grants({ tool: 'none' }), 422, 'invalid_value', 'tools.http[0].tool'],
    [grants({ tool: t.id, rules: long }), 422, 'rules_too_long', 'tools.http[0].rules'],
    [grants({ tool: t.id }, { tool: t.name }), 422, 'tool_name_conflict', 'tools.http[1]'],
    [grants({ tool: t.id, colour: 1 }), 422, 'unknown_field', 'tools.http[0].colour'],
    [grants({ tool: t.id, hours_only: true }), 422, 'invalid_value', 'tools.http[0].hours_only'],
    [{ tools: { builtin: { create_ticket: { rules: long } } } }, 422, 'rules_too_long', 'tools.builtin.create_ticket.rules'],
    [{ tools: { builtin: { run_command: {} } } }, 422, 'unknown_field', 'tools.builtin.run_command'],
    [{ tools: { max_tool_rounds: 6 } }, 422, 'invalid_value', 'tools.max_tool_rounds'],
    [{ tools: { enabled: 'yes' } }, 422, 'invalid_type', 'tools.enabled'],
    [{ tools: { client: [{ name: 'Get_Cart' }] } }, 422, 'invalid_tool_name', 'tools.client[0].name'],
    [{ tools: { client: [{ name: 'a'.repeat(49) }] } }, 422, 'invalid_tool_name', 'tools.client[0].name'],
    [{ tools: { client: [{ name: 'search_knowledge' }] } }, 422, 'tool_name_conflict', 'tools.client[0].name'],
    [{ tools: { client: [{ name: 'x' }, { name: 'x' }] } }, 422, 'tool_name_conflict', 'tools.client[1]'],
    [{ tools: { http: [{ tool: t.id }], client: [{ name: t.name }] } }, 422, 'tool_name_conflict', 'tools.client[0]'],
    [{ tools: { client: [{ name: 'x', parameters: { type: 'object', properties: { a: 5 } } }] } }, 422, 'invalid_schema', 'tools.client[0].parameters.properties.a'],
    [{ tools: { client: [{ name: 'x', colour: 1 }] } }, 422, 'unknown_field', 'tools.client[0].colour'],
    [{ tools: { toolset: { approval_mode: 'loose' } } }, 422, 'invalid_value', 'tools.toolset.approval_mode'],
    [{ tools: { toolset: { require_approval: ['ordr_status'] } } }, 422, 'invalid_value', 'tools.toolset.require_approval[0]'],
    [{ model: 'none' }, 422, 'invalid_value', 'model'],
    [{ model: undefined }, 422, 'missing_parameter', 'model'],
    [grants({}), 422, 'missing_parameter', 'tools.http[0].tool'],
    [{ model: { base_url: 'https://10.0.0.1/v1', name: 'x' } }, 422, 'address_not_allowed', 'model.base_url'],
    [{ model: { base_url: 'https://api.example.com/v1', name: 'x', secret: 'NO_SUCH' } }, 422, 'secret_not_found', 'model.secret'],
    [{ name: 'a b' }, 422, 'invalid_value', 'name'],
    [{ name: 'a@1' }, 422, 'invalid_value', 'name'],
    [{ instructions: 'Hello {{var.x}}' }, 422, 'unknown_placeholder', 'instructions'],
    [{ variables: { x: 1 } }, 422, 'invalid_type', 'variables.x'],
    [{ colour: 'red' }, 422, 'unknown_field', 'colour'],
    [{ business_hours: { timezone: 'Mars/Base', days: {} } }, 422, 'invalid_value', 'business_hours.timezone'],
  ]) {
    const answer = await w.api('POST', '/v1/agents', { name: fresh('faulty-'), model: 'm', ...body });
    assertError(answer, status, fault);
    if (param) assert.ok(answer.json.error.param?.startsWith(param), `${fault}: ${answer.json.error.param} is not at ${param}`);
  }
});

test('a tool that is granted thousands of times is refused without keeping the worker busy', async () => {
  const parameters = { type: 'object', properties: { a: { enum: Array.from({ length: 20_000 }, (_, i) => `v${i}`) } } };
  const t = await w.make('/v1/tools', at('/orders/1', undefined, { method: 'POST', parameters }));
  const began = performance.now();
  const answer = await w.api('POST', '/v1/agents', { name: fresh('many-'), model: 'm', tools: { http: Array(2000).fill({ tool: t.id }) } });
  assertError(answer, 422, 'tool_name_conflict');
  const took = performance.now() - began;
  assert.ok(took < 3000 * SLOW, `${took} ms`);
});

test('an agent may have 128 tools, and not one more', async () => {
  const made = [];
  for (let i = 0; i < 130; i++) made.push((await w.make('/v1/tools', at('/orders/1'))).id);
  await w.agent(fresh('full-'), made.slice(0, 128));
  for (const n of [129, 130]) {
    assertError(await w.api('POST', '/v1/agents', agentOf(fresh('over-'), made.slice(0, n))), 422, 'invalid_value');
  }
});

test('a tool that is edited reaches the draft at once and the published version when it is published', async () => {
  const t = await w.make('/v1/tools', at('/orders/old'));
  const name = fresh('frozen-');
  const { id } = await w.agent(name, [t.id]);
  const asked = async (model) => {
    assert.equal(await calls(model, t.name), 'ok');
    return f.asked.at(-1);
  };
  assert.equal(await asked(name), '/orders/old');
  await w.ok('PATCH', `/v1/tools/${t.id}`, { description: 'edited', config: { url: `${f.tool.url}/orders/new` } });
  await soon(async () => await asked(`${name}@draft`) === '/orders/new', 'the draft calls the new URL');
  await sleep(SEEN_MS);
  for (let i = 0; i < 4; i++) assert.equal(await asked(name), '/orders/old');
  assert.doesNotMatch(f.model.request(0).body.toString(), /edited/);
  await w.ok('POST', `/v1/agents/${id}/publish`);
  await sleep(SEEN_MS);
  for (let i = 0; i < 4; i++) assert.equal(await asked(name), '/orders/new');
  assert.equal(await asked(`${name}@1`), '/orders/old');

  // a tool that is renamed keeps its old name where it was published
  await w.ok('PATCH', `/v1/tools/${t.id}`, { name: `${t.name}_b` });
  await sleep(SEEN_MS);
  assert.equal(await asked(name), '/orders/new');
});

test('live switches hold for published versions without publishing', async () => {
  const read = await w.make('/v1/tools', at('/orders/1'));
  const act = await w.make('/v1/tools', at('/do/it', fresh('act_'), { method: 'POST', body: {} }));
  const name = fresh('switched-');
  const { id } = await w.agent(name, [read.id, act.name]);
  const path = `/v1/agents/${id}`;
  const state = async () => [await calls(name, read.name), await calls(name, act.name), offered().length];
  const becomes = async (want) => {
    let seen;
    await soon(async () => {
      seen = JSON.stringify(await state());
      return seen === JSON.stringify(want);
    }, () => `${JSON.stringify(want)}, not ${seen},`);
    await sleep(SEEN_MS);
    assert.deepEqual(await state(), want);
  };

  await becomes(['ok', 'ok', 2]);
  await w.ok('PATCH', path, { actions_paused: true });
  await becomes(['ok', 'tool_not_available', 1]);
  await w.ok('PATCH', path, { actions_paused: false, tools: { enabled: false } });
  await becomes(['tool_not_available', 'tool_not_available', 0]);
  await w.ok('PATCH', path, { actions_paused: null, tools: { enabled: null } });
  await becomes(['ok', 'ok', 2]);
  await w.ok('PATCH', `/v1/tools/${read.id}`, { enabled: false });
  await becomes(['tool_not_available', 'ok', 1]);
  await w.ok('PATCH', `/v1/tools/${read.id}`, { enabled: true });
  await becomes(['ok', 'ok', 2]);
  await w.ok('DELETE', `/v1/tools/${act.id}`);
  await becomes(['ok', 'tool_not_available', 1]);
  assert.equal((await w.ok('GET', path)).published_version, 1);

  // what grants a tool that is gone cannot be published again
  assertError(await w.api('POST', `${path}/publish`), 422, 'invalid_value', 'tools.http[1].tool');
  await w.ok('PATCH', path, { tools: { http: [{ tool: read.id }] } });
  await w.ok('POST', `${path}/publish`);
});

/** A run whose model calls a tool only after what `meanwhile` does; what it was told. */
async function during(model, n, meanwhile, options) {
  f.clear();
  f.model.plan([{ until: 'go' }, { send: callsTurn({ id: 'c', n, a: '{}' }) }], [{ send: OK }]);
  const running = f.nginx.chat(f.body({ model }), options);
  await f.model.until(() => f.model.journal.length === 1);
  const list = offered();
  await meanwhile();
  await sleep(SEEN_MS);
  f.model.signal('go');
  const answer = await running;
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.choices[0].message.content, 'ok');
  assert.deepEqual(offered(), list, 'the list stays as it was');
  return f.codes()[0];
}

test('a run under way: switches hold, its agent, tool or key may be replaced or deleted', async () => {
  const t = await w.make('/v1/tools', at('/orders/1'));
  const act = await w.make('/v1/tools', at('/do/it', fresh('act_'), { method: 'POST', body: {} }));
  const name = fresh('running-');
  const { id } = await w.agent(name, [t.id, act.id]);
  const path = `/v1/agents/${id}`;
  await sleep(SEEN_MS);
  const patch = (change) => () => w.ok('PATCH', path, change);

  assert.equal(await during(name, t.name, patch({ tools: { enabled: false } })), 'tools_disabled');
  await patch({ tools: { enabled: true } })();
  await sleep(SEEN_MS);
  assert.equal(await during(`${name}@draft`, act.name, patch({ actions_paused: true })), 'actions_paused');
  await patch({ actions_paused: false })();
  await sleep(SEEN_MS);
  assert.equal(await during(name, t.name, () => w.ok('PATCH', `/v1/tools/${t.id}`, { enabled: false })), 'tool_not_available');
  await w.ok('PATCH', `/v1/tools/${t.id}`, { enabled: true });
  await sleep(SEEN_MS);

  assert.equal(await during(name, t.name, async () => {
    for (let i = 0; i < 5; i++) {
      await patch({ instructions: `i${i}` })();
      await w.ok('POST', `${path}/publish`);
    }
  }), 'ok');
  assert.equal(await during(`${name}@1`, t.name, patch({ instructions: 'other' })), 'ok');

  const key = await w.make('/v1/api_keys', { name: 'k', scopes: ['run'], account_id: 'acme' });
  assert.equal(await during(name, t.name, () => w.ok('DELETE', `/v1/api_keys/${key.id}`), { key: key.key }), 'ok');
  assert.equal(await during(name, t.name, () => w.ok('DELETE', `/v1/tools/${t.id}`)), 'tool_not_available');
  assert.equal(await during(name, act.name, () => w.ok('DELETE', path)), 'tools_disabled');
  assert.equal(await code(name), 'model_not_found');
});

test('after a reload a run of the old worker still sees the switches', async () => {
  const t = await w.make('/v1/tools', at('/orders/1'));
  const name = fresh('reloaded-');
  const { id } = await w.agent(name, [t.id]);
  assert.equal(await during(name, t.name, async () => {
    await reload();
    await sleep(SEEN_MS);
    await w.ok('PATCH', `/v1/agents/${id}`, { tools: { enabled: false } });
  }), 'tools_disabled');
  // and the new workers have all objects
  await w.ok('PATCH', `/v1/agents/${id}`, { tools: { enabled: true } });
  await soon(async () => await calls(name, t.name) === 'ok', 'the new workers run it');
});

async function reload() {
  const old = new Set(f.nginx.children());
  process.kill(f.nginx.child.pid, 'SIGHUP');
  await soon(async () => f.nginx.children().filter((pid) => !old.has(pid)).length === 2, 'new workers', 5000);
}

test('the list of tools is sorted by name and the same to the byte, whatever else changes', async () => {
  const tools = [];
  for (const n of ['zeta', 'alpha', 'mid_b', 'mid_a']) tools.push(await w.make('/v1/tools', at('/orders/1', fresh(`${n}_`))));
  const name = fresh('sorted-');
  const { id } = await w.agent(name, tools.map((t) => t.id), {});
  const list = async () => {
    f.clear();
    await f.ask([OK], { model: name });
    const text = f.model.request().body.toString();
    const begin = text.indexOf('"tools":');
    return text.slice(begin, text.indexOf(']', text.lastIndexOf('"function":')) + 1);
  };
  const first = await list();
  assert.deepEqual(offered(), tools.map((t) => t.name).sort());
  await w.ok('PATCH', `/v1/agents/${id}`, { instructions: 'new', tools: { http: tools.toReversed().map((t) => ({ tool: t.name })) } });
  await w.ok('POST', `/v1/agents/${id}/publish`);
  await sleep(SEEN_MS);
  for (let i = 0; i < 4; i++) assert.equal(await list(), first);
  await reload();
  assert.equal(await list(), first);
});

test('whatever a tool says of itself, deleting its agent counts its own versions', async () => {
  const t = await w.make('/v1/tools', at('/x', fresh('sly_'), { method: 'POST', body: { last_version: 9_000_000_000, version: 7 } }));
  const { id } = await w.agent(fresh('sly-'), [t.id]);
  await w.ok('POST', `/v1/agents/${id}/publish`);
  const stored = () => w.redis.cli('hkeys', 't:{cp}:versions').split('\n').filter((key) => key.includes(id)).length;
  assert.equal(stored(), 2);
  await w.ok('DELETE', `/v1/agents/${id}`);
  assert.equal(stored(), 0);
  assert.equal(w.redis.cli('ping'), 'PONG');
});

test('an agent of the control plane may be granted a tool of a file, and its name is not in the way', async () => {
  const name = fresh('mixed-');
  await w.agent(name, ['order_status']);
  assert.equal(await calls(name, 'order_status', '{"order_number":"8812"}'), 'ok');
});

test('the tools of an agent have a bound together', async () => {
  const tool = () => w.make('/v1/tools', at('/orders/1', undefined, {
    method: 'POST', parameters: { type: 'object', properties: { a: { enum: Array.from({ length: 20_000 }, (_, i) => `v${i}`) } } },
  }));
  const made = [];
  for (let i = 0; i < 4; i++) made.push((await tool()).id);
  await w.agent(fresh('two-'), made.slice(0, 2));
  assertError(await w.api('POST', '/v1/agents', agentOf(fresh('four-'), made)), 422, 'invalid_value', 'tools.http');
});
