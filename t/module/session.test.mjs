// /v1/sessions: made, shown, deleted, their messages; what a wrong request is told, and
// that nobody reaches a session of another account, project or key.

import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertError } from './fixture.mjs';
import { startWorld } from './control.mjs';
import { KEY, startNginx } from './nginx.mjs';
import { makeKey, token as signed } from '../lib/jwt.mjs';

const KEYS = { bound: 'bound-key-0123456789', other: 'other-key-0123456789', tools: 'tools-key-0123456789' };
const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const ISSUER = makeKey('HS256');
const UNKNOWN = `sess_${'0'.repeat(22)}`;
const now = () => Math.floor(Date.now() / 1000);
const token = (sub) => signed(ISSUER, { sub, exp: now() + 60 });

let w;

before(async () => {
  w = await startWorld({
    nodes: 2, agents: undefined, http: 'toolgate_retention 2h; toolgate_catalog @DIR@/other.json;',
    files: { 'other.json': JSON.stringify({ project: 'other', agents: [{ name: 'theirs', model: 'm' }],
      api_keys: [{ name: 'other', sha256: sha256(KEYS.other), scopes: ['run'] }] }) },
    catalog: {
      end_user_keys: [{ name: 'app', alg: 'HS256', ...ISSUER.register }],
      api_keys: [{ name: 'bound', sha256: sha256(KEYS.bound), scopes: ['run'], account_id: 'acme' },
        { name: 'tools', sha256: sha256(KEYS.tools), scopes: ['tools'] }],
    },
  });
});
after(() => w?.stop());

const make = (body = {}, options = {}) => w.api('POST', '/v1/sessions', body, options);
const made = async (...a) => {
  const answer = await make(...a);
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
};
const get = (id, options = {}) => w.api('GET', `/v1/sessions/${id}`, undefined, options);
const remove = (id, options = {}) => w.api('DELETE', `/v1/sessions/${id}`, undefined, options);
const messages = (id, query = '', options = {}) => w.api('GET', `/v1/sessions/${id}/messages${query}`, undefined, options);
const inAccount = (account) => ({ headers: { 'x-account-id': account } });
const keyOf = (session) => `t:s:{default/${session.account_id ?? ''}}:${session.id}`;

/** What a run would add: entries as conf/redis/session_run.lua writes them. */
function fill(session, entries) {
  w.redis.cli('hset', keyOf(session), 'count', entries.length, 'segment', 1);
  const ids = [];
  for (const [i, [head, message]] of entries.entries()) {
    const id = `msg_${String(i + 1).padStart(8, '0')}${'a'.repeat(14)}`;
    const text = JSON.stringify(message);
    w.redis.cli('rpush', `${keyOf(session)}/messages`, `{"id":"${id}","created_at":1764500000,"segment":1,"run":"run_x","invocation_id":"inv-1"${head},"bytes":${text.length},"message":${text}}`);
    ids.push(id);
  }
  return ids;
}

test('a session that is made, with and without a body, is shown the same', async () => {
  for (const body of [{}, undefined]) {
    const session = await made(body === undefined ? '' : body);
    assert.match(session.id, /^sess_[0-9A-Za-z]{22}$/);
    assert.ok(Math.abs(session.created_at - now()) < 60);
    assert.deepEqual(session, {
      id: session.id, object: 'session', created_at: session.created_at, last_active_at: session.created_at, agent: null,
      account_id: null, end_user: null, flagged: false, segment: 0, message_count: 0, run: null, metadata: {},
    });
    assert.deepEqual((await get(session.id)).json, session);
    assert.deepEqual((await get(session.id, { node: w.nodes[1] })).json, session, 'any node knows it');
    assert.deepEqual((await messages(session.id)).json, { object: 'list', data: [], has_more: false });
  }
  const bare = await w.node.nginx.request('/v1/sessions', { method: 'POST', headers: { 'content-type': 'text/plain', 'content-length': 0 } });
  assert.equal(bare.status, 201, 'no body has no type');
});

test('agent, end user and metadata', async () => {
  const metadata = { order: '8812', 'ключ': 'ü'.repeat(512) };
  const session = await made({ agent: 'a', end_user: { token: token('u-1') }, metadata });
  assert.deepEqual([session.agent, session.end_user, session.metadata], ['a', { external_id: 'u-1' }, metadata]);
  assert.deepEqual((await get(session.id)).json, session);
  const byHeader = await made({}, { headers: { 'x-end-user-token': token('u-2') } });
  assert.deepEqual(byHeader.end_user, { external_id: 'u-2' });
  const none = await made({ agent: null, end_user: null, metadata: null, account_id: null });
  assert.deepEqual([none.agent, none.end_user, none.metadata, none.account_id], [null, null, {}, null]);
  const fresh = await w.agent('made-now', [], {}, { node: w.nodes[1] });
  assert.equal((await made({ agent: fresh.id })).agent, fresh.id, 'an agent that another node has made just now');
});

test('what is wrong with a new session is said', async () => {
  const wrong = [
    [{ agent: 'nobody' }, 404, 'model_not_found', 'agent'],
    [{ agent: 'theirs' }, 404, 'model_not_found', 'agent'],
    [{ agent: 'm' }, 404, 'model_not_found', 'agent'],
    [{ agent: 7 }, 400, 'invalid_value', 'agent'],
    [{ agent: '' }, 400, 'invalid_value', 'agent'],
    [{ agent: 'x'.repeat(129) }, 400, 'invalid_value', 'agent'],
    [{ metadata: [] }, 400, 'invalid_value', 'metadata'],
    [{ metadata: { a: 1 } }, 400, 'invalid_value', 'metadata'],
    [{ metadata: { a: 'x'.repeat(513) } }, 400, 'invalid_value', 'metadata'],
    [{ metadata: { ['x'.repeat(65)]: 'a' } }, 400, 'invalid_value', 'metadata'],
    [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v'])) }, 400, 'invalid_value', 'metadata'],
    [{ end_user: { token: 'x' } }, 401, 'invalid_end_user_token', 'end_user'],
    [{ account_id: 'a b' }, 400, 'invalid_value', 'account_id'],
    [{ id: UNKNOWN }, 422, 'unknown_field', 'id'],
    ['[]', 400, 'invalid_type', null],
    ['{', 400, 'invalid_json', null],
    [{ metadata: { a: 'x'.repeat(70_000) } }, 413, 'request_too_large', null],
  ];
  for (const [body, status, code, param] of wrong) assertError(await make(body), status, code, param);
  const type = await w.node.nginx.request('/v1/sessions', { body: '{}', headers: { 'content-type': 'text/plain' } });
  assertError(type, 415, 'unsupported_media_type');
  assert.equal((await made({ metadata: Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${i}`, 'v'])) })).message_count, 0);
});

test('the account boundary: every endpoint, by header, query and bound key', async () => {
  const mine = await made({ account_id: 'acme' });
  assert.equal(mine.account_id, 'acme');
  assert.equal((await made({}, inAccount('acme'))).account_id, 'acme');
  assert.equal((await made({}, { key: KEYS.bound })).account_id, 'acme');
  const [id] = fill(mine, [['', { role: 'user', content: 'secret' }]]);

  const allowed = [inAccount('acme'), { key: KEYS.bound }, { key: KEYS.bound, ...inAccount('acme') }];
  for (const options of allowed) {
    assert.equal((await get(mine.id, options)).status, 200);
    assert.equal((await messages(mine.id, '', options)).json.data[0].content, 'secret');
  }
  assert.equal((await get(`${mine.id}?account_id=acme`)).status, 200);
  assert.equal((await get(`${mine.id}?account_id=acme`, inAccount('acme'))).status, 200);

  const foreign = [{}, inAccount('acm'), inAccount('acme2'), inAccount('ACME'), { key: KEYS.other }, { key: KEYS.other, ...inAccount('acme') }];
  for (const options of foreign) {
    for (const answer of [await get(mine.id, options), await messages(mine.id, '', options), await messages(mine.id, `?after=${id}`, options), await remove(mine.id, options)]) {
      assertError(answer, 404, 'session_not_found');
      assert.ok(!answer.text.includes('secret'));
    }
  }
  for (const answer of [await get(mine.id, { key: KEYS.bound, ...inAccount('other') }), await remove(mine.id, { key: KEYS.bound, ...inAccount('other') })]) {
    assertError(answer, 403, 'account_mismatch', 'account_id');
  }
  assertError(await make({ account_id: 'other' }, { key: KEYS.bound }), 403, 'account_mismatch', 'account_id');
  assertError(await get(mine.id, inAccount('a/b')), 400, 'invalid_value', 'account_id');
  assertError(await get(`${mine.id}?account_id=a%7Db`), 400, 'invalid_value', 'account_id');
  assertError(await get(`${mine.id}?account_id=acme`, inAccount('acme2')), 400, 'invalid_value', 'account_id');
  assertError(await make({ account_id: 'acme' }, inAccount('acme2')), 400, 'invalid_value', 'account_id');
  assert.equal((await get(mine.id, inAccount('acme'))).status, 200, 'it is still there');
  assert.equal(w.redis.cli('exists', keyOf(mine)), '1');

  const own = await made();
  for (const options of [inAccount('acme'), { key: KEYS.bound }]) assertError(await get(own.id, options), 404, 'session_not_found');
});

test('keys: none, without the scope', async () => {
  const { id } = await made();
  for (const [method, path] of [['POST', ''], ['GET', `/${id}`], ['DELETE', `/${id}`], ['GET', `/${id}/messages`]]) {
    assertError(await w.api(method, `/v1/sessions${path}`, undefined, { key: null }), 401, 'missing_api_key');
    assertError(await w.api(method, `/v1/sessions${path}`, undefined, { key: KEYS.tools }), 403, 'insufficient_scope');
  }
});

test('ids that are none, paths and methods that are none', async () => {
  const { id } = await made();
  for (const other of [UNKNOWN, 'x', `${id}x`, id.slice(0, -1), 'a%20b', 'a%2Fb%7D', '..%2Fx', 'x'.repeat(65)]) {
    const answer = await get(other);
    assert.equal(answer.status, 404, other);
    assert.match(answer.json.error.code, /^(session_not_found|unknown_url)$/);
  }
  for (const [method, path, allow] of [['GET', '/v1/sessions', 'POST'], ['POST', `/v1/sessions/${id}`, 'GET, DELETE'], ['DELETE', `/v1/sessions/${id}/messages`, 'GET']]) {
    const answer = await w.api(method, path, method === 'POST' ? {} : undefined);
    assertError(answer, 405, 'method_not_allowed');
    assert.equal(answer.headers.allow, allow);
  }
  assertError(await w.api('GET', `/v1/sessions/${id}/other`), 404, 'unknown_url');
});

test('messages: the caller\'s as they came, calls with our ids, results as runners know them', async () => {
  const session = await made();
  const ids = fill(session, [
    ['', { role: 'user', content: [{ type: 'text', text: 'where is 8812?' }], name: 'ann', id: 'mine' }],
    [',"calls":["call_1","call_2"]', { role: 'assistant', content: null, tool_calls: [
      { id: 'c', type: 'function', function: { name: 'order_status', arguments: '{"order_number":"8812"}' } },
      { id: 'd', type: 'function', function: { name: 'add_note', arguments: '{}' } }] }],
    [',"call_id":"call_1","name":"order_status","status":"ok","code":null', { role: 'tool', tool_call_id: 'c', content: '{"ok":true,"items":[]}' }],
    [',"call_id":"call_2","name":"add_note","status":"failed","code":"actions_paused"', { role: 'tool', tool_call_id: 'd', content: '{"ok":false}' }],
    ['', { role: 'assistant', content: 'shipped' }],
  ]);
  const { data, has_more: more } = (await messages(session.id)).json;
  assert.equal(more, false);
  const common = (n) => ({ id: ids[n], object: 'session.message', created_at: 1764500000, segment: 1, run: 'run_x', invocation_id: 'inv-1' });
  assert.deepEqual(data[0], { ...common(0), role: 'user', content: [{ type: 'text', text: 'where is 8812?' }], name: 'ann' });
  assert.deepEqual(data[1].tool_calls.map((c) => [c.id, c.function.name]), [['call_1', 'order_status'], ['call_2', 'add_note']]);
  assert.deepEqual(data[2], { ...common(2), role: 'tool', content: '{"ok":true,"items":[]}', call_id: 'call_1', name: 'order_status', status: 'ok',
    metadata: {}, artifacts: [], error: null });
  assert.deepEqual([data[3].status, data[3].error.code, typeof data[3].error.message], ['failed', 'actions_paused', 'string']);
  assert.deepEqual(data[4], { ...common(4), role: 'assistant', content: 'shipped' });

  assert.deepEqual((await messages(session.id, '?limit=2')).json.data.map((m) => m.id), ids.slice(0, 2));
  const next = (await messages(session.id, `?limit=2&after=${ids[1]}`)).json;
  assert.deepEqual([next.data.map((m) => m.id), next.has_more], [ids.slice(2, 4), true]);
  assert.deepEqual((await messages(session.id, `?after=${ids[4]}`)).json, { object: 'list', data: [], has_more: false });
  for (const limit of ['0', '101', 'x', '-1']) assertError(await messages(session.id, `?limit=${limit}`), 400, 'invalid_value', 'limit');
  for (const other of ['x', 'msg_x', `msg_${'0'.repeat(22)}`, ids[0].replace('a', 'b')]) assertError(await messages(session.id, `?after=${other}`), 400, 'invalid_value', 'after');
});

test('deleted: with its messages, on all nodes, once', async () => {
  const session = await made();
  fill(session, [['', { role: 'user', content: 'x' }]]);
  assert.deepEqual((await remove(session.id)).json, { id: session.id, deleted: true });
  assert.equal(w.redis.cli('exists', keyOf(session), `${keyOf(session)}/messages`), '0');
  for (const node of w.nodes) {
    assertError(await get(session.id, { node }), 404, 'session_not_found');
    assertError(await messages(session.id, '', { node }), 404, 'session_not_found');
    assertError(await remove(session.id, { node }), 404, 'session_not_found');
  }
});

test('kept for toolgate_retention', async () => {
  const session = await made();
  const ttl = Number(w.redis.cli('ttl', keyOf(session)));
  assert.ok(ttl > 7190 && ttl <= 7200);
});

test('a client that leaves while the store is asked', async () => {
  const { id } = await made();
  const lone = await startNginx({ http: `toolgate_redis unix:${w.redis.socket} prefix=t: timeout=5s;` });
  try {
    assert.equal((await lone.request(`/v1/sessions/${id}`)).status, 200);
    w.redis.cli('client', 'pause', '400', 'ALL');
    for (const path of [`/${id}`, `/${id}/messages`]) {
      await assert.rejects(fetch(`${lone.url}/v1/sessions${path}`, { headers: { authorization: `Bearer ${KEY}` }, signal: AbortSignal.timeout(100) }));
    }
    await sleep(500);
    assert.equal((await lone.request(`/v1/sessions/${id}`)).status, 200);
  } finally {
    await lone.stop();
  }
});

test('without a store, and while it is away: 503, and no longer than its time-out', async () => {
  const { id } = await made();
  const alone = await startNginx();
  try {
    assertError(await alone.request('/v1/sessions', { body: {} }), 503, 'store_unavailable');
    assertError(await alone.request(`/v1/sessions/${id}`), 503, 'store_unavailable');
  } finally {
    await alone.stop();
  }
  await w.redis.kill();
  try {
    for (const [method, path] of [['POST', ''], ['GET', `/${id}`], ['DELETE', `/${id}`], ['GET', `/${id}/messages`]]) {
      const began = Date.now();
      assertError(await w.api(method, `/v1/sessions${path}`), 503, 'store_unavailable');
      assert.ok(Date.now() - began < 2000);
    }
  } finally {
    await w.redis.start();
  }
});
