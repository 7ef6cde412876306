// What is sealed under the master key: end-user keys and secrets made through the API are
// used and never shown again, and live on when the master key is replaced.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { assertError, callsTurn, startFixture, textTurn } from './fixture.mjs';
import { KEY, PATIENT } from './nginx.mjs';
import { REPO } from '../lib/stack.mjs';
import { makeKey, token } from '../lib/jwt.mjs';
import { Redis } from '../store/harness.mjs';

const OLD = '0123456789abcdef'.repeat(4);
const NEW = Buffer.from('another key of thirty-two bytes!').toString('base64');
const SECRET = 'the-orders-token-7731';

const redis = new Redis();
const nodes = {};
const tools = [];
const hs = makeKey('HS256');
const es = makeKey('ES256');
const now = () => Math.floor(Date.now() / 1000);
const claims = () => ({ sub: 'user-1', exp: now() + 300 });

/** The same store, model and tool; another master key. */
async function node(name, masterKey, files = {}) {
  const f = await startFixture({
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_redis ${redis.unix} ${PATIENT};`,
    files: { 'master.key': `${masterKey}\n`, ...files }, catalog: { tools: [], agents: [] },
  });
  nodes[name] = f;
  tools.push(f.tool);
  return f;
}

const api = async (f, method, uri, body) => {
  const answer = await fetch(`${f.nginx.url}${uri}`, {
    method, body: body && JSON.stringify(body),
    headers: { authorization: `Bearer ${KEY}`, ...(body ? { 'content-type': 'application/json' } : {}) },
  });
  const text = await answer.text();
  return { status: answer.status, json: JSON.parse(text), text, headers: Object.fromEntries(answer.headers) };
};

const asking = (f, jwt) => f.ask([callsTurn({ id: 'c1', n: 'whoami', a: '{}' }), textTurn('done')],
  { model: 'shop' }, { headers: { 'x-end-user-token': jwt } });

let f;
before(async () => {
  await redis.start();
  f = await node('old', OLD);
  // every node's mock tool is its own: the tool that is called is the first node's
  const tool = {
    name: 'whoami', description: 'x', requires_verified_user: true,
    config: {
      method: 'GET', url: `${f.tool.url}/users/{{end_user.external_id}}`,
      headers: { Authorization: 'Bearer {{secret.TOKEN}}' },
      parameters: { type: 'object', properties: {}, additionalProperties: false },
    },
  };
  assert.equal((await api(f, 'PUT', '/v1/secrets/TOKEN', { value: SECRET, allowed_hosts: ['127.0.0.1'] })).status, 200);
  assert.equal((await api(f, 'POST', '/v1/tools', tool)).status, 201);
  const agent = await api(f, 'POST', '/v1/agents', { name: 'shop', model: 'm', tools: { http: [{ tool: 'whoami' }] } });
  assert.equal(agent.status, 201, agent.text);
  assert.equal((await api(f, 'POST', `/v1/agents/${agent.json.id}/publish`)).status, 200);
});
after(async () => {
  // all tests call the first node's tool; each node's own one has to be closed, too
  for (const [i, one] of Object.values(nodes).entries()) {
    one.tool = tools[i];
    await one.stop();
  }
  await redis.stop();
});

test('end-user keys: made, used, listed without the secret, deleted', async () => {
  const made = await api(f, 'POST', '/v1/end_user_keys', { name: 'app', alg: 'HS256', ...hs.register });
  assert.equal(made.status, 201, made.text);
  assert.match(made.json.id, /^euk_[0-9A-Za-z]{22}$/);
  assert.equal(made.json.secret, undefined);

  const answer = await asking(f, token(hs, claims()));
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(f.codes(), ['ok']);
  assert.equal(f.tool.journal[0].path, '/users/user-1');
  assert.equal(f.tool.journal[0].headers.authorization, `Bearer ${SECRET}`);

  const shown = await api(f, 'GET', `/v1/end_user_keys/${made.json.id}`);
  const listed = await api(f, 'GET', '/v1/end_user_keys');
  assert.equal(listed.json.data.length, 1);
  for (const text of [shown.text, listed.text, JSON.stringify(await redis.call('HGETALL', 'tg:{cp}:objects'))]) {
    assert.ok(!text.includes(hs.secret) && !text.includes(SECRET), 'no secret in clear');
  }
  assertError(await api(f, 'PATCH', `/v1/end_user_keys/${made.json.id}`, {}), 405, 'method_not_allowed');
  assertError(await api(f, 'POST', '/v1/end_user_keys', { name: 'app', alg: 'HS256', ...hs.register }), 409, 'name_conflict', 'name');

  assert.equal((await api(f, 'DELETE', `/v1/end_user_keys/${made.json.id}`)).status, 200);
  assertError(await asking(f, token(hs, claims())), 401, 'invalid_end_user_token');
});

test('end-user keys: what is refused', async () => {
  const refused = async (body, code, param) =>
    assertError(await api(f, 'POST', '/v1/end_user_keys', body), 422, code, param);
  await refused({ name: 'a', alg: 'HS256', secret: 'short' }, 'invalid_value', 'secret');
  await refused({ name: 'a', alg: 'none', secret: hs.secret }, 'invalid_value', 'alg');
  await refused({ name: 'a', alg: 'HS256', ...hs.register, color: 'red' }, 'unknown_field', 'color');
  await refused({ alg: 'HS256', ...hs.register }, 'missing_parameter');
  await refused({ name: 'a', alg: 'HS256', secret_file: '/etc/passwd' }, 'unknown_field', 'secret_file');
});

test('a new master key: all that was sealed goes on, tools see the same signing secret', async () => {
  assert.equal((await api(f, 'POST', '/v1/end_user_keys', { name: 'hs', alg: 'HS256', ...hs.register })).status, 201);
  assert.equal((await api(f, 'POST', '/v1/end_user_keys', { name: 'es', alg: 'ES256', ...es.register })).status, 201);
  const signing = (await api(f, 'GET', '/v1/tool_signing_secret')).json.secret;

  // a node that knows both opens what the old one sealed, and seals with the new one
  const both = await node('both', NEW, { 'previous.key': `${OLD}\n` });
  both.tool = f.tool;

  assert.equal((await api(both, 'GET', '/v1/tool_signing_secret')).json.secret, signing);
  assert.equal((await asking(both, token(hs, claims()))).status, 200);
  assert.deepEqual(both.codes(), ['ok']);

  const files = ['old', 'new'].map((name) => path.join(both.nginx.dir, `${name}-master`));
  fs.writeFileSync(files[0], OLD);
  fs.writeFileSync(files[1], NEW);
  const rotate = () => execFileSync(path.join(REPO, 'scripts/rotate-master-key'),
    ['--redis', redis.unix, '--old', files[0], '--new', files[1]], { encoding: 'utf8' });
  assert.match(rotate(), /^2 sealed again, 0 were under the new key already, 1 signing secrets stored, 0 failed/);
  assert.match(rotate(), /^0 sealed again, 3 were under the new key already, 0 signing secrets stored, 0 failed/);

  const fresh = await node('new', NEW);
  fresh.tool = f.tool;
  assert.equal((await api(fresh, 'GET', '/v1/tool_signing_secret')).json.secret, signing);
  for (const key of [hs, es]) {
    assert.equal((await asking(fresh, token(key, claims()))).status, 200);
    assert.deepEqual(fresh.codes(), ['ok']);
  }
  assert.equal(f.tool.journal.at(-1).headers.authorization, `Bearer ${SECRET}`);
});

test('a node with another master key: no call is made, the log says why', async () => {
  const wrong = await node('wrong', 'f'.repeat(64));
  wrong.tool = f.tool;
  assertError(await asking(wrong, token(hs, claims())), 401, 'invalid_end_user_token');
  assert.equal((await asking(wrong, token(es, claims()))).status, 200);
  assert.notDeepEqual(wrong.codes(), ['ok']);
  assert.equal(f.tool.journal.length, 0);
  assert.match(wrong.nginx.log(), /cannot be opened: was it stored under another master key\?/);
  assertError(await api(wrong, 'GET', '/v1/tool_signing_secret'), 404, 'not_found');
});
