// Two nodes on one Redis: what is made on one is used by the other; what each does while
// Redis is away, hangs, is emptied, or comes back.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertError, callsTurn, stepsOf, textTurn } from './fixture.mjs';
import { SLOW } from './nginx.mjs';
import { agentOf, soon, startWorld, toolOf } from './control.mjs';
import { makeKey, token } from '../lib/jwt.mjs';

const OK = textTurn('ok');
const WAITS_MS = 600 * SLOW;    // nobody waits longer than 250 ms for Redis; a shared machine
const user = makeKey('ES256');

let w;
let here;
let there;
before(async () => {
  w = await startWorld({
    nodes: 2, catalog: { end_user_keys: [{ name: 'k', alg: 'ES256', ...user.register }] },
  });
  [here, there] = w.nodes;
});
after(() => w?.stop());

let names = 0;
const fresh = (prefix) => `${prefix}${++names}`;
const at = (path, name = fresh('tool_'), config, more) => toolOf(name, `${here.tool.url}${path}`, config, more);
const chat = (node, model, options) => node.nginx.chat({ model, messages: [{ role: 'user', content: 'x' }] }, options);
const many = (n, fn) => Promise.all(Array.from({ length: n }, (_, i) => fn(i)));
const statuses = (answers) => [...new Set(answers.map((a) => a.status))];

async function timed(fn) {
  const began = performance.now();
  const answer = await fn();
  return { answer, ms: performance.now() - began };
}

/** The tool of an agent, called on a node: the path that was asked for. */
async function asked(node, model, n) {
  node.clear();
  here.tool.clear();
  const answer = await node.ask([callsTurn({ id: 'c', n, a: '{}' }), OK], { model });
  assert.equal(answer.status, 200, answer.text);
  return here.tool.journal.at(-1)?.path ?? node.codes()[0];
}

test('made on one, there on the other at once: keys, agents, their versions and drafts', async () => {
  for (let i = 0; i < 5; i++) {
    const name = fresh('new-');
    const { key } = await w.make('/v1/api_keys', { name, scopes: ['run'] });
    const made = await w.make('/v1/agents', agentOf(name, [], { instructions: 'v1' }));
    assert.deepEqual(statuses(await many(8, () => chat(there, `${name}@draft`, { key }))), [200]);
    await w.ok('POST', `/v1/agents/${made.id}/publish`);
    assert.deepEqual(statuses(await many(8, () => chat(there, name, { key }))), [200]);
    const other = fresh('other-');
    await w.agent(other);
    assert.deepEqual(statuses(await many(8, () => chat(there, other))), [200]);
    assert.equal((await chat(there, `${other}@1`, { key })).status, 200);
  }
  const project = await w.make('/v1/projects', { name: fresh('project-') });
  assert.deepEqual(statuses(await many(8, () => chat(there, 'm', { key: project.key.key }))), [200]);
  assertError(await chat(there, 'm', { key: 'tg_never_made' }), 401, 'invalid_api_key');
  assertError(await chat(there, 'never-made'), 404, 'model_not_found');
});

test('many unknown names and keys ask the store seldom', async () => {
  const calls = () => Number(w.redis.cli('info', 'commandstats').match(/cmdstat_evalsha:calls=(\d+)/)[1]);
  const before_ = calls();
  const began = performance.now();
  await many(200, (i) => chat(there, `none-${i}`, { key: i % 2 ? 'tg_none' : undefined }));
  const pauses = (performance.now() - began) / 10;
  // four workers that ask at most every 10 ms, whatever comes
  assert.ok(calls() - before_ < 4 * (pauses + 10), `${calls() - before_} questions in ${pauses * 10} ms`);
});

test('a tool that is changed on one is used by the other within a second', async () => {
  const t = await w.make('/v1/tools', at('/orders/a'));
  const name = fresh('changed-');
  const { id } = await w.agent(name, [t.id]);
  assert.equal(await asked(there, `${name}@draft`, t.name), '/orders/a');
  await w.ok('PATCH', `/v1/tools/${t.id}`, { config: { url: `${here.tool.url}/orders/b` } });
  await soon(async () => await asked(there, `${name}@draft`, t.name) === '/orders/b', 'the other node uses it');
  await w.ok('POST', `/v1/agents/${id}/publish`, undefined, { node: there });
  await soon(async () => await asked(here, name, t.name) === '/orders/b', 'published over there');
  await w.ok('PATCH', `/v1/tools/${t.id}`, { enabled: false }, { node: there });
  await soon(async () => await asked(here, name, t.name) === 'tool_not_available', 'switched off over there');
});

test('changes raced over both nodes all land; a conflict is one on both', async () => {
  const made = await w.make('/v1/agents', agentOf(fresh('raced-'), [], { variables: {} }));
  const answers = await many(12, (i) => w.api('PATCH', `/v1/agents/${made.id}`, { variables: { [`v${i}`]: 'x' } }, { node: w.nodes[i % 2] }));
  assert.deepEqual(statuses(answers), [200]);
  for (const node of w.nodes) {
    assert.equal(Object.keys((await w.ok('GET', `/v1/agents/${made.id}`, undefined, { node })).variables).length, 12);
  }
  const raced = await many(6, (i) => w.api('PATCH', `/v1/agents/${made.id}`, { instructions: `${i}` }, { node: w.nodes[i % 2], headers: { 'if-match': '13' } }));
  assert.deepEqual(raced.map((a) => a.status).sort(), [200, 409, 409, 409, 409, 409]);
  const name = fresh('name_');
  const named = await many(6, (i) => w.api('POST', '/v1/tools', at('/x', name), { node: w.nodes[i % 2] }));
  assert.deepEqual(named.map((a) => a.status).sort(), [201, 422, 422, 422, 422, 422]);
});

test('30 calls of one end user raced over both: exactly 20 run', async () => {
  const t = await w.make('/v1/tools', at('/orders/{{args.n}}', fresh('limited_'), {
    parameters: { type: 'object', properties: { n: { type: 'string' } }, required: ['n'], additionalProperties: false },
  }));
  const name = fresh('limited-');
  await w.agent(name, [t.id]);
  here.tool.clear();
  const text = token(user, { sub: 'someone', exp: Math.floor(Date.now() / 1000) + 300 });
  const answers = await many(6, (run) => w.nodes[run % 2].nginx.chat({
    model: name, end_user: { token: text },
    messages: [{ role: 'user', content: Array.from({ length: 5 }, (_, n) => `@call ${t.name} {"n":"${run}${n}"}`).join('\n') }],
  }));
  const codes = answers.flatMap((a) => stepsOf(a).map(([, code]) => code)).sort();
  assert.deepEqual(codes, [...Array(20).fill('ok'), ...Array(10).fill('rate_limited')]);
  assert.equal(here.tool.count(), 20);
});

/** What must hold while Redis cannot be asked. */
async function away(known) {
  // the first one finds out, and everybody is told
  await many(4, () => chat(there, 'none-at-all'));
  for (const node of w.nodes) {
    for (const call of [
      () => w.api('GET', '/v1/tools', undefined, { node }), () => w.api('POST', '/v1/tools', at('/x'), { node }),
      () => w.api('PATCH', `/v1/agents/${known.id}`, { instructions: 'x' }, { node }), () => w.api('PUT', '/v1/secrets/X', { value: 'v', allowed_hosts: ['a.b'] }, { node }),
      () => w.api('POST', '/v1/tool_signing_secret/rotate', undefined, { node }), () => w.api('GET', '/v1/projects', undefined, { node }),
      () => chat(node, 'm', { key: 'tg_unknown' }), () => chat(node, 'unknown-agent'), () => chat(node, `${known.name}@1`),
    ]) {
      const { answer, ms } = await timed(call);
      assertError(answer, 503, 'store_unavailable');
      assert.ok(ms < WAITS_MS, `${ms} ms`);
    }
    const { answer, ms } = await timed(() => chat(node, known.name, { key: known.key }));
    assert.equal(answer.status, 200, answer.text);
    assert.ok(ms < 4 * WAITS_MS, `${ms} ms`);
    assert.equal(await asked(node, known.name, known.tool), '/orders/1');
    assert.equal((await chat(node, `${known.name}@draft`)).status, 200);
    assert.equal((await chat(node, 'm')).status, 200);
  }
}

/** An agent with two versions, its tool, and a key, seen by every worker. */
async function known() {
  const t = await w.make('/v1/tools', at('/orders/1'));
  const name = fresh('known-');
  const agent = await w.agent(name, [t.id]);
  await w.ok('POST', `/v1/agents/${agent.id}/publish`);
  const { key } = await w.make('/v1/api_keys', { name, scopes: ['run'] });
  await sleep(600);
  return { name, id: agent.id, tool: t.name, key };
}

const back = () => soon(async () =>
  (await many(8, (i) => w.api('GET', '/v1/tools', undefined, { node: w.nodes[i % 2] }))).every((a) => a.status === 200), 'Redis is back', 5000);

test('Redis hangs: what is known goes on, the control plane says so in time', async () => {
  const it = await known();
  process.kill(w.redis.child.pid, 'SIGSTOP');
  try {
    await away(it);
  } finally {
    process.kill(w.redis.child.pid, 'SIGCONT');
  }
  await back();
  await w.make('/v1/tools', at('/x'));
});

/** What is not of a file. */
const stored = async (path, node) =>
  (await w.ok('GET', `${path}?limit=100`, undefined, { node })).data.filter((o) => !o.read_only);

test('Redis is killed and comes back with its file: all objects are there', async () => {
  const it = await known();
  const [tools, agents] = [await stored('/v1/tools', here), await stored('/v1/agents', here)];
  await w.redis.kill();
  await away(it);
  await w.redis.start();
  await back();
  for (const node of w.nodes) {
    assert.deepEqual(await stored('/v1/tools', node), tools);
    assert.deepEqual(await stored('/v1/agents', node), agents);
    assert.equal((await chat(node, `${it.name}@1`)).status, 200);
    assert.equal(await asked(node, it.name, it.tool), '/orders/1');
  }
});

test('reloaded nodes have all objects', async () => {
  const it = await known();
  for (const node of w.nodes) {
    const old = new Set(node.nginx.children());
    process.kill(node.nginx.child.pid, 'SIGHUP');
    await soon(async () => node.nginx.children().filter((pid) => !old.has(pid)).length === 2, 'new workers', 5000);
    assert.deepEqual(statuses(await many(8, () => chat(node, it.name, { key: it.key }))), [200]);
    assert.equal(await asked(node, it.name, it.tool), '/orders/1');
  }
});

/** A run whose model calls its tool only after what `meanwhile` does. */
async function during(node, it, meanwhile) {
  node.clear();
  node.model.plan([{ until: 'go' }, { send: callsTurn({ id: 'c', n: it.tool, a: '{}' }) }], [{ send: OK }]);
  const running = node.nginx.chat(node.body({ model: it.name }), { key: it.key });
  await node.model.until(() => node.model.journal.length === 1);
  await meanwhile();
  node.model.signal('go');
  const answer = await running;
  assert.equal(answer.status, 200, answer.text);
  return node.codes()[0];
}

test('Redis is emptied, also under a run: the objects are gone, nothing else is', async () => {
  const it = await known();
  const code = await during(there, it, async () => {
    w.redis.cli('flushall');
    await soon(async () => (await many(8, () => chat(there, it.name))).every((a) => a.status === 404), 'the agents are gone');
    await sleep(600);
  });
  assert.ok(['tools_disabled', 'tool_not_available'].includes(code), code);
  for (const node of w.nodes) {
    await soon(async () => (await many(8, () => chat(node, 'm', { key: it.key }))).every((a) => a.status === 401), 'the keys are gone');
    assert.deepEqual((await w.ok('GET', '/v1/agents', undefined, { node })).data, []);
  }
  await w.agent(it.name);
  assert.equal((await chat(there, it.name)).status, 200);
});

test('Redis is emptied: its projects are gone too and can be made anew', async () => {
  const name = fresh('project-');
  await w.make('/v1/projects', { name });
  const listed = async (node) => (await w.ok('GET', '/v1/projects?limit=100', undefined, { node })).data.some((p) => p.id === name);
  const everywhere = async (is) => (await Promise.all(w.nodes.map((node) => many(8, () => listed(node))))).flat().every((p) => p === is);
  await soon(() => everywhere(true), 'all workers know it');
  w.redis.cli('flushall');
  await soon(() => everywhere(false), 'no worker lists it');
  const { key } = (await w.make('/v1/projects', { name })).key;
  await w.make('/v1/tools', at('/x'), { key });
  assert.equal(await listed(there), true);
});

test('Redis is emptied and filled beyond where it was before a node looks: nothing old is left', async () => {
  const { key } = await w.make('/v1/api_keys', { name: 'old', scopes: ['run'] });
  const name = fresh('old-');
  await w.agent(name);
  assert.deepEqual(statuses(await many(8, () => chat(there, name, { key }))), [200]);
  const workers = there.nginx.children();
  for (const pid of workers) process.kill(pid, 'SIGSTOP');
  const changes = Number(w.redis.cli('hget', 't:{cp}:state', 'change'));
  w.redis.cli('flushall');
  await soon(async () => (await w.ok('GET', '/v1/api_keys')).data.length === 0, 'this node sees it');
  for (let i = 0; i < changes + 3; i++) await w.make('/v1/tools', at('/x'));
  for (const pid of workers) process.kill(pid, 'SIGCONT');
  await soon(async () => (await many(8, () => chat(there, 'm', { key }))).every((a) => a.status === 401), 'the old key is gone');
  await sleep(600);
  assert.deepEqual(statuses(await many(8, () => chat(there, name))), [404]);
  assert.equal((await stored('/v1/tools', there)).length, changes + 3);
});
