// Secrets of the control plane: to their own hosts and nowhere else, in no file, log, step
// or answer; what a node with another master key does; signatures during a rotation.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertError, callsTurn, textTurn } from './fixture.mjs';
import { agentOf, soon, startWorld, toolOf } from './control.mjs';
import { startMockModel } from '../lib/mock-model.mjs';

const OK = textTurn('ok');
const SEEN_MS = 600;
const OVERLAP_S = 3;
const TOKEN = 'tok-"q"/\\é+=& 0123456789';
const LOGIN = 'stored-login-0123456789';
const OLD = 'old-value-0123456789';

let w;
let here;
let wrong;
let vendor;
before(async () => {
  vendor = await startMockModel();
  w = await startWorld({
    nodes: 2, http: `toolgate_rotation_overlap ${OVERLAP_S}s;`,
    each: (i) => (i === 0 ? {} : { files: { 'master.key': `${'fedcba9876543210'.repeat(4)}\n` } }),
  });
  [here, wrong] = w.nodes;
});
after(async () => {
  await vendor?.close();
  await w?.stop();
});

let names = 0;
const fresh = (prefix) => `${prefix}${++names}`;
const put = (name, value, allowed_hosts, options) => w.ok('PUT', `/v1/secrets/${name}`, { value, allowed_hosts }, options);

/** A tool that sends a secret in a header, and its agent. */
async function sender(secret, config = {}) {
  const t = await w.make('/v1/tools', toolOf(fresh('sends_'), `${here.tool.url}/echo`, {
    headers: { 'X-Token': `T {{secret.${secret}}}` }, response: { fields: [{ path: 'headers', label: 'Headers' }, { path: 'body', label: 'Body' }] }, ...config,
  }));
  const name = fresh('sends-');
  await w.agent(name, [t.id]);
  return { name, tool: t.name };
}

/** One call: the code, what the tool got, and the answer. */
async function send(it, node = here) {
  node.clear();
  here.tool.clear();
  const answer = await node.ask([callsTurn({ id: 'c', n: it.tool, a: '{}' }), OK], { model: it.name });
  assert.equal(answer.status, 200, answer.text);
  return { code: node.codes()[0], got: here.tool.journal[0], answer };
}

const becomes = (it, code) => soon(async () => (await send(it)).code === code, code);

test('a secret reaches its own hosts, as it is now, and nobody else', async () => {
  const { port } = here.tool;
  const it = await sender('MOVES');
  assert.deepEqual([(await send(it)).code, here.tool.count()], ['unresolved_placeholder', 0]);
  for (const hosts of [['127.0.0.1'], [`127.0.0.1:${port}`], ['a.example.com', '127.0.0.1.']]) {
    await put('MOVES', `v-${hosts[0]}`, hosts);
    await becomes(it, 'ok');
    await sleep(SEEN_MS);
    assert.equal((await send(it)).got.headers['x-token'], `T v-${hosts[0]}`);
  }
  for (const hosts of [['127.0.0.2'], [`127.0.0.1:${port + 1}`], ['localhost'], ['example.com']]) {
    await put('MOVES', OLD, hosts);
    await becomes(it, 'secret_host_not_allowed');
    await sleep(SEEN_MS);
    for (let i = 0; i < 4; i++) {
      assert.equal((await send(it)).code, 'secret_host_not_allowed');
      assert.equal(here.tool.count(), 0);
    }
  }
  await w.ok('DELETE', '/v1/secrets/MOVES');
  await becomes(it, 'unresolved_placeholder');
});

test('a secret of another project fills nothing', async () => {
  const { key } = (await w.make('/v1/projects', { name: 'secretive' })).key;
  await put('THEIRS', OLD, ['127.0.0.1'], { key });
  const it = await sender('THEIRS');
  await sleep(SEEN_MS);
  assert.deepEqual([(await send(it)).code, here.tool.count()], ['unresolved_placeholder', 0]);
});

test('a value is sent as it was stored, and is in no file, log, step or answer; nor is the signing secret', async () => {
  await put('TOKEN', TOKEN, ['127.0.0.1']);
  const it = await sender('TOKEN', { method: 'POST', headers: { 'X-Token': '{{secret.TOKEN}}' }, body: { t: '{{secret.TOKEN}}' }, url: `${here.tool.url}/echo?k={{secret.TOKEN}}` });
  await sleep(SEEN_MS);
  const seen = await send(it);
  assert.equal(seen.code, 'ok');
  assert.equal(JSON.parse(seen.got.body).t, TOKEN);
  assert.equal(Buffer.from(seen.got.headers['x-token'], 'latin1').toString(), TOKEN);
  assert.equal(new URL(seen.got.path, 'http://x').searchParams.get('k'), TOKEN);

  const first = await w.ok('GET', '/v1/tool_signing_secret');
  await w.ok('POST', '/v1/tool_signing_secret/rotate');
  const second = await w.ok('POST', '/v1/tool_signing_secret/rotate');
  const run = seen.answer.headers['x-toolgate-run'];
  const steps = await w.api('GET', `/v1/runs/${run}/steps`);
  assert.equal(steps.json.data.find((s) => s.type === 'tool_call').tool, it.tool);
  const answers = [steps.text, ...await Promise.all(['/v1/secrets', '/v1/secrets/TOKEN', '/v1/tools?limit=100', '/v1/agents?limit=100']
    .map(async (p) => (await w.api('GET', p)).text))];
  const places = {
    redis: w.redis.files(), answers: Buffer.from(answers.join('\n')).toString('latin1'),
    logs: w.nodes.map((n) => fs.readdirSync(path.join(n.nginx.dir, 'logs'))
      .map((f) => fs.readFileSync(path.join(n.nginx.dir, 'logs', f), 'latin1')).join('\n')).join('\n'),
  };
  assert.ok(places.redis.includes(it.tool), 'it is the right store');
  const raw = (s) => Buffer.from(s.slice('whsec_'.length), 'base64');
  const signing = [first.secret, second.secret, second.previous.secret];
  for (const text of [TOKEN, OLD, ...signing]) {
    const bytes = Buffer.from(text);
    const forms = [bytes.toString('latin1'), Buffer.from(JSON.stringify(text).slice(1, -1)).toString('latin1'), encodeURIComponent(text),
      bytes.toString('base64').replace(/=+$/, ''), bytes.toString('hex'),
      ...(signing.includes(text) ? [text.slice(6), raw(text).toString('latin1'), raw(text).toString('hex')] : [])];
    for (const [place, content] of Object.entries(places)) {
      for (const form of forms) assert.ok(!content.includes(form), `${text} as ${JSON.stringify(form)} in ${place}`);
    }
  }
});

const signed = (entry, secret) => {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': all } = entry.headers;
  const mac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(`${id}.${at}.`).update(entry.body).digest('base64');
  return all.split(' ').includes(`v1,${mac}`);
};

test('during a rotation calls are signed with both secrets, after it with the new one', async () => {
  const it = await sender('NOT_USED', { headers: {} });
  await sleep(OVERLAP_S * 1000 + 1500);
  const old = await w.ok('GET', '/v1/tool_signing_secret');
  assert.equal(old.previous, null);
  const now = await w.ok('POST', '/v1/tool_signing_secret/rotate');
  for (const until = now.previous.expires_at * 1000; Date.now() < until - 1200;) {
    const { got } = await send(it);
    assert.ok(signed(got, old.secret), 'the old one verifies as long as it may');
    assert.ok(got.headers['webhook-signature'].split(' ').length <= 2);
  }
  const { got } = await send(it);
  assert.ok(signed(got, now.secret), 'the new one does on every worker by now');
  await sleep(2500);
  for (let i = 0; i < 6; i++) {
    const last = await send(it);
    assert.ok(signed(last.got, now.secret));
    assert.ok(!signed(last.got, old.secret));
    assert.equal(last.got.headers['webhook-signature'].split(' ').length, 1);
  }
  assert.equal((await w.ok('GET', '/v1/tool_signing_secret')).previous, null);
});

test('a node with another master key makes no call with what it cannot open, and says so', async () => {
  await put('TOKEN', TOKEN, ['127.0.0.1']);
  const it = await sender('TOKEN');
  const plain = await sender('NOT_USED', { headers: {} });
  await w.ok('POST', '/v1/tool_signing_secret/rotate');
  await sleep(SEEN_MS);
  for (const one of [it, plain]) {
    assert.equal((await send(one)).code, 'ok');
    for (let i = 0; i < 4; i++) {
      const { code } = await send(one, wrong);
      assert.ok(['unresolved_placeholder', 'upstream_failed'].includes(code), code);
      assert.equal(here.tool.count(), 0, 'nothing is sent');
    }
  }
  const log = wrong.nginx.log();
  assert.match(log, /secret "TOKEN" of project "default" cannot be opened: was it stored under another master key\?/);
  assert.match(log, /signing secret of project "default" cannot be opened/);
  const node = wrong;
  assertError(await w.api('GET', '/v1/tool_signing_secret', undefined, { node }), 404, 'not_found');
  assertError(await w.api('POST', '/v1/tool_signing_secret/rotate', undefined, { node }), 404, 'not_found');
  assertError(await w.api('PUT', '/v1/secrets/TOKEN', { value: 'x', allowed_hosts: ['127.0.0.1'] }, { node }), 503, 'store_unavailable');
  assert.equal((await w.api('GET', '/v1/secrets/TOKEN', undefined, { node })).status, 200);
  assert.equal((await send(it)).got.headers['x-token'] !== undefined, true, 'and the store is as it was');
  // what needs no key of either goes on
  assert.equal((await node.nginx.chat({ model: 'm', messages: [{ role: 'user', content: 'x' }] })).status, 200);
});

async function reload({ nginx }) {
  const old = new Set(nginx.children());
  process.kill(nginx.child.pid, 'SIGHUP');
  await soon(async () => nginx.children().filter((pid) => !old.has(pid)).length === 2, 'new workers', 5000);
}

test('the node that has the right key again is as good as before', async () => {
  fs.copyFileSync(path.join(here.nginx.dir, 'master.key'), path.join(wrong.nginx.dir, 'master.key'));
  await reload(wrong);
  const it = await sender('TOKEN');
  await soon(async () => (await send(it, wrong)).code === 'ok', 'it calls');
});

test('a model by its base URL with a stored secret: given to its own hosts, as it is now', async () => {
  const model = { base_url: `${vendor.url}/v1`, name: 'vendor-7b', secret: 'LOGIN' };
  assertError(await w.api('POST', '/v1/agents', { ...agentOf('own'), model }), 422, 'secret_not_found', 'model.secret');
  await put('LOGIN', LOGIN, [`127.0.0.1:${vendor.port}`]);
  await w.agent('own', [], { model });
  const ask = () => here.nginx.chat({ model: 'own', messages: [{ role: 'user', content: 'hello' }] });
  assert.equal((await ask()).status, 200);
  assert.equal(vendor.request().headers.authorization, `Bearer ${LOGIN}`);
  await put('LOGIN', `${LOGIN}-2`, ['127.0.0.1']);
  await soon(async () => (await ask()).status === 200 && vendor.request().headers.authorization === `Bearer ${LOGIN}-2`, 'the new value');
  // the secret has changed after the agent: who reads all anew sees it later
  await reload(here);
  for (let i = 0; i < 6; i++) assert.equal((await ask()).status, 200);
  for (const change of [() => put('LOGIN', LOGIN, ['example.com']), () => w.ok('DELETE', '/v1/secrets/LOGIN')]) {
    await change();
    await sleep(SEEN_MS);
    vendor.clear();
    for (let i = 0; i < 4; i++) assertError(await ask(), 502, 'model_auth_failed');
    assert.equal(vendor.journal.length, 0);
  }
  assert.ok(!here.nginx.log().includes(LOGIN) && !w.redis.files().includes(LOGIN));
});
