// /v1/approvals: who sees and decides what, once, in time, and nothing but yes or no. The
// approvals are asked for by the script that runs use; what a run does with them is in
// the tests of runs.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertError } from './fixture.mjs';
import { startWorld } from './control.mjs';
import { REPO } from '../lib/stack.mjs';

const TTL = 60_000;
const sha = (text) => crypto.createHash('sha256').update(text).digest('hex');
const script = (name) => fs.readFileSync(path.join(REPO, `conf/redis/${name}.lua`), 'utf8');

let w;
before(async () => {
  w = await startWorld();
});
after(() => w?.stop());

const ids = (prefix) => `${prefix}${crypto.randomBytes(32).toString('hex').slice(0, 22)}`;

/** What a run asks; a status of the run other than waiting can be given. */
function ask({ n = 1, account = '', run = ids('run_'), ttl = TTL, status = 'requires_action', asked = Array.from({ length: n }, () => ids('appr_')),
  binding = sha('x'), big = 0 } = {}) {
  const tag = `{default/${account}}`;
  const keys = [`t:a:${tag}:pending`, ...asked.map((id) => `t:a:${tag}:${id}`)];
  const document = JSON.stringify({ run, session_id: null, account_id: account || null, call_id: 'call_1', tool_name: 'run_command',
    arguments: { command: `ls${'x'.repeat(big)}` }, risk_level: 'high', side_effects: ['sandbox_command_execution'], arguments_sha256: sha('{"command":"ls"}') });
  w.redis.cli('hset', `t:r:${tag}:${run}`, 'run', run, 'status', status, 'approvals', asked.join(' '), 'required_action', '{}');
  const answer = w.redis.cli('--json', 'eval', script('approval_ask'), String(keys.length), ...keys, String(ttl), '3600', run,
    ...asked.flatMap((id) => [id, binding, document]));
  return { run, asked, id: asked[0], account, told: JSON.parse(answer).slice(2).filter((_, i) => i % 2 === 0),
    field: (name) => w.redis.cli('hget', `t:r:${tag}:${run}`, name) };
}

const at = (id) => `/v1/approvals/${id}`;
const decide = (id, body, options) => w.api('POST', at(id), body, options);
const show = (id, options) => w.api('GET', at(id), undefined, options);
const list = (query = 'status=pending', options) => w.api('GET', `/v1/approvals?${query}`, undefined, options);
const inAccount = (account) => ({ headers: { 'x-account-id': account } });

test('an approval is listed, shown, given, and then is no longer pending', async () => {
  const account = 'one';
  const a = ask({ account });
  const page = await list('status=pending', inAccount(account));
  assert.equal(page.status, 200, page.text);
  assert.deepEqual([page.json.object, page.json.data.length, page.json.has_more], ['list', 1, false]);
  const [seen] = page.json.data;
  assert.deepEqual({ ...seen, created_at: 0, expires_at: 0 }, {
    id: a.id, object: 'approval', status: 'pending', created_at: 0, expires_at: 0, decided_at: null, reason: null,
    run: a.run, session_id: null, account_id: account, call_id: 'call_1', tool_name: 'run_command', arguments: { command: 'ls' },
    risk_level: 'high', side_effects: ['sandbox_command_execution'], arguments_sha256: sha('{"command":"ls"}'),
  });
  assert.ok(Math.abs(seen.expires_at - seen.created_at - TTL / 1000) <= 1, JSON.stringify(seen));
  assert.deepEqual((await show(a.id, inAccount(account))).json, seen);

  const given = await decide(a.id, { approved: true, reason: 'goes "well" ✓' }, inAccount(account));
  assert.equal(given.status, 200, given.text);
  assert.deepEqual(given.json, { ...seen, status: 'approved', decided_at: given.json.decided_at, reason: 'goes "well" ✓' });
  assert.ok(given.json.decided_at >= seen.created_at);
  assert.deepEqual((await list('', inAccount(account))).json.data, []);
  assert.deepEqual([a.field('status'), a.field('approvals'), a.field('required_action') ?? ''], ['queued', a.id, '']);

  // used by the run, once and for the call that it was asked for
  assert.deepEqual(ask({ account, run: a.run, asked: a.asked, binding: sha('y'), status: 'running' }).told, ['other']);
  assert.deepEqual(ask({ account, run: a.run, asked: a.asked, status: 'running' }).told, ['used']);
  assert.deepEqual(ask({ account, run: a.run, asked: a.asked, status: 'running' }).told, ['used'], 'the run that is taken over is told again');
  assert.equal((await show(a.id, inAccount(account))).json.status, 'used');
  assertError(await decide(a.id, { approved: false }, inAccount(account)), 409, 'already_decided');
});

test('no is as final as yes', async () => {
  for (const first of [true, false]) {
    const a = ask();
    assert.equal((await decide(a.id, { approved: first })).json.status, first ? 'approved' : 'rejected');
    for (const second of [true, false]) assertError(await decide(a.id, { approved: second }), 409, 'already_decided');
    assert.equal((await show(a.id)).json.status, first ? 'approved' : 'rejected');
  }
});

test('two decisions at once: one holds', async () => {
  for (let i = 0; i < 20; i++) {
    const a = ask();
    const answers = await Promise.all([decide(a.id, { approved: true }), decide(a.id, { approved: false })]);
    assert.deepEqual(answers.map((r) => r.status).sort(), [200, 409]);
    assert.equal((await show(a.id)).json.status, answers.find((r) => r.status === 200).json.status);
  }
});

test('C115, C116: of several each is decided for itself, and the run goes on after the last', async () => {
  const a = ask({ n: 3 });
  const [one, two, three] = a.asked;
  assert.equal((await decide(two, { approved: false, reason: 'no' })).status, 200);
  assert.equal(a.field('status'), 'requires_action');
  assert.deepEqual((await Promise.all(a.asked.map((id) => show(id)))).map((r) => r.json.status), ['pending', 'rejected', 'pending']);
  assert.equal((await decide(one, { approved: true })).status, 200);
  assert.equal(a.field('status'), 'requires_action');
  assert.equal((await decide(three, { approved: true })).status, 200);
  assert.equal(a.field('status'), 'queued');
  assert.deepEqual(ask({ run: a.run, asked: a.asked, status: 'running' }).told, ['used', 'rejected', 'used']);
  // unknown, stale and odd ids
  for (const id of [ids('appr_'), 'appr_1', 'x', `${one}x`, 'pending']) assertError(await decide(encodeURIComponent(id), { approved: true }), 404, 'not_found');
});

test('C119: only true and false decide', async () => {
  const a = ask();
  for (const [body, status, code, param] of [
    [{ approved: 'true' }, 400, 'invalid_type', 'approved'], [{ approved: 1 }, 400, 'invalid_type', 'approved'],
    [{ approved: null }, 400, 'invalid_type', 'approved'], [{}, 400, 'missing_parameter', 'approved'],
    [[], 400, 'invalid_type'], [true, 400, 'invalid_type'], ['{"approved":true,"approved":false}', 400, 'invalid_json'],
    [{ approved: true, arguments: { command: 'rm' } }, 422, 'unknown_field', 'arguments'],
    [{ approved: true, run: a.run }, 422, 'unknown_field', 'run'],
    [{ approved: true, reason: 5 }, 400, 'invalid_type', 'reason'], [{ approved: true, reason: 'x'.repeat(1001) }, 400, 'invalid_value', 'reason'],
  ]) {
    const answer = await w.node.nginx.request(at(a.id), {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    assertError(answer, status, code, param);
  }
  assertError(await decide(a.id, { approved: true, reason: 'x'.repeat(70_000) }), 413, 'request_too_large');
  assert.equal((await show(a.id)).json.status, 'pending');
  assert.equal((await decide(a.id, { approved: true, reason: 'x'.repeat(1000) })).status, 200);
});

test('an approval that nobody decides in time expires', async () => {
  const account = 'late';
  const a = ask({ account, ttl: 150, n: 2 });
  const fresh = ask({ account });
  assert.equal((await list('', inAccount(account))).json.data.length, 3);
  await sleep(200);
  assert.deepEqual((await list('', inAccount(account))).json.data.map((x) => x.id), fresh.asked);
  assertError(await decide(a.id, { approved: true }, inAccount(account)), 409, 'approval_expired');
  assert.equal((await show(a.id, inAccount(account))).json.status, 'expired');
  assert.equal(w.redis.cli('zcard', `t:a:{default/${account}}:pending`), '1');
  assert.deepEqual(ask({ account, run: a.run, asked: a.asked }).told, ['expired', 'expired'], 'nor is it asked for again');

  // noticed by the decision alone
  const b = ask({ account, ttl: 50 });
  await sleep(100);
  assertError(await decide(b.id, { approved: true }, inAccount(account)), 409, 'approval_expired');
  assert.equal(b.field('status'), 'requires_action', 'it does not let the run go on');
});

test('when the run is over its approvals are', async () => {
  const account = 'over';
  for (const status of ['cancelled', 'failed', 'superseded', 'completed', 'running']) {
    const a = ask({ account, n: 2 });
    w.redis.cli('hset', `t:r:{default/${account}}:${a.run}`, 'status', status);
    assertError(await decide(a.id, { approved: true }, inAccount(account)), 409, 'approval_expired');
    assert.deepEqual((await list('', inAccount(account))).json.data, [], status);
    assert.equal((await show(a.asked[1], inAccount(account))).json.status, 'expired');
    assert.equal(a.field('status'), status);
  }
});

test('approvals of another account, project or key are not there', async () => {
  const mine = ask({ account: 'mine' });
  const own = ask();
  for (const options of [{}, inAccount('other')]) {
    assertError(await show(mine.id, options), 404, 'not_found');
    assertError(await decide(mine.id, { approved: true }, options), 404, 'not_found');
    assert.ok(!(await list('', options)).json.data.some((x) => x.id === mine.id));
  }
  assertError(await decide(own.id, { approved: true, account_id: 'mine' }), 404, 'not_found');
  assertError(await decide(own.id, { approved: true, account_id: '' }), 400, 'invalid_value', 'account_id');
  assertError(await list('account_id=a%20b'), 400, 'invalid_value', 'account_id');
  assert.equal((await show(`${mine.id}?account_id=mine`)).status, 200);

  const key = async (scopes, more) => (await w.make('/v1/api_keys', { name: ids('k'), scopes, ...more })).key;
  const wrong = await key(['admin', 'run', 'tools']);
  assertError(await list('', { key: wrong }), 403, 'insufficient_scope');
  assertError(await show(own.id, { key: wrong }), 403, 'insufficient_scope');
  assertError(await decide(own.id, { approved: true }, { key: wrong }), 403, 'insufficient_scope');
  const right = await key(['approve']);
  const bound = await key(['approve'], { account_id: 'other' });
  assertError(await show(mine.id, { key: bound, ...inAccount('mine') }), 403, 'account_mismatch');
  assertError(await show(mine.id, { key: bound }), 404, 'not_found');
  assert.equal((await decide(mine.id, { approved: true, account_id: 'mine' }, { key: right })).status, 200);
  assert.equal((await decide(own.id, { approved: false }, { key: right })).json.status, 'rejected');
});

test('pages: in the order in which they expire, each once, whatever is decided meanwhile', async () => {
  const account = 'many';
  const all = Array.from({ length: 7 }, () => ask({ account, ttl: TTL }).id).concat(ask({ account, n: 5, ttl: TTL + 5000 }).asked);
  const whole = (await list('limit=100', inAccount(account))).json;
  assert.equal(whole.has_more, false);
  assert.deepEqual([...whole.data.map((x) => x.id)].sort(), [...all].sort());
  const order = whole.data.map((x) => x.id);

  const seen = [];
  for (let after = ''; ;) {
    const { json } = await list(`status=pending&limit=5${after && `&after=${after}`}`, inAccount(account));
    seen.push(...json.data.map((x) => x.id));
    after = seen.at(-1);
    // the one to go on after is decided
    await decide(after, { approved: true }, inAccount(account));
    if (!json.has_more) break;
  }
  assert.deepEqual(seen, order);

  for (const query of ['limit=0', 'limit=101', 'limit=x']) assertError(await list(query, inAccount(account)), 400, 'invalid_value', 'limit');
  for (const after of ['x', ids('appr_')]) assertError(await list(`after=${after}`, inAccount(account)), 400, 'invalid_value', 'after');
  assertError(await list('status=approved'), 400, 'invalid_value', 'status');
});

test('pages are bounded in bytes', async () => {
  const account = 'large';
  for (let i = 0; i < 18; i++) ask({ account, big: 110_000 });
  const { json } = await list('', inAccount(account));
  assert.equal(json.has_more, true);
  assert.equal(json.data.length, 9);
  assert.equal((await list(`after=${json.data[8].id}`, inAccount(account))).json.data.length, 9);
});

test('methods, and a store that is away', async () => {
  for (const [method, url, allow] of [['POST', '/v1/approvals', 'GET'], ['DELETE', at(ids('appr_')), 'GET, POST'], ['PATCH', at(ids('appr_')), 'GET, POST']]) {
    const answer = await w.api(method, url, {});
    assertError(answer, 405, 'method_not_allowed');
    assert.equal(answer.headers.allow, allow);
  }
  const a = ask();
  await w.redis.kill();
  for (const answer of [await show(a.id), await decide(a.id, { approved: true }), await list()]) assertError(answer, 503, 'store_unavailable');
  await w.redis.start();
});
