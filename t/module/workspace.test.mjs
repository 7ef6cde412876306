// The tools of the workspace from end to end: nginx, the real helper, files.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { REPO, tempDir } from '../lib/stack.mjs';
import { startRedis } from '../lib/redis.mjs';
import { callsTurn, startFixture, stepsOf, textTurn } from './fixture.mjs';
import { PATIENT } from './nginx.mjs';

const BUILD = process.env.TOOLGATE_BUILD ?? path.join(REPO, 'build');
const BINARY = process.env.TOOLGATED ?? path.join(BUILD, 'toolgated');
const skip = !fs.existsSync(BINARY) && `there is no ${BINARY}`;
const OK = textTurn('ok');
const LONG = 'x y'.repeat(40 * 1024);
const TOOLS = ['workspace_status', 'list_workspace_files', 'read_workspace_file', 'write_workspace_file',
  'write_workspace_files', 'edit_workspace_file', 'multi_edit_workspace_file', 'lint_workspace_file',
  'search_workspace_files', 'delete_workspace_file'];

const dir = tempDir('toolgate-workspace-');
const socket = path.join(dir, 'sock');
let f;
let redis;
let real;
let gone;

before(async () => {
  if (skip) return;
  fs.chmodSync(dir, 0o755);
  const log = path.join(dir, 'log');
  real = spawn(BINARY, ['--socket', socket, '--state', path.join(dir, 'state'), '--log', log,
    '--peer-uid', String(process.getuid())], { stdio: 'inherit' });
  gone = new Promise((resolve) => { real.once('exit', resolve); });
  for (let i = 0; i < 500 && !(fs.existsSync(log) && /"ev":"ready"/.test(fs.readFileSync(log, 'utf8'))); i++) await sleep(20);

  redis = await startRedis();
  const agent = (name, toolset) => ({ name, model: 'm', tools: { max_tool_rounds: 5, allow_anonymous_actions: true, toolset } });
  f = await startFixture({
    workers: 1, runHost: 'toolgate_run_timeout 20s;',
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_helper unix:${socket}; toolgate_redis unix:${redis.socket} ${PATIENT};`,
    agents: [agent('a', { include: ['workspace'], approval_mode: 'off' }),
      agent('strict', { include: 'WORKSPACE', approval_mode: 'strict' }),
      agent('focused', { include: ['focused'] }),
      agent('one', { include: ['read_workspace_file'] })],
  });
});

after(async () => {
  await f?.stop();
  await redis?.stop();
  real?.kill('SIGTERM');
  await gone;
  fs.rmSync(dir, { recursive: true, force: true });
});

const turn = (name, args) => callsTurn({ id: `c_${name}`, n: name, a: JSON.stringify(args) });

// each call in a round of its own; what the model was told of them
async function rounds(calls, more = {}) {
  const answer = await f.ask([...calls.map(([name, args]) => turn(name, args)), OK], more);
  assert.equal(answer.status, 200, answer.text);
  const told = calls.map((_, i) => f.told(i + 1)[0].result);
  return { answer, told };
}

const workspace = (account) => path.join(dir, 'state', 'workspaces',
  createHash('sha256').update(`workspace\0default\0${account}`).digest('hex'));

async function settled(id) {
  for (;;) {
    const { json } = await f.nginx.request(`/v1/runs/${id}`);
    if (!['queued', 'running'].includes(json.status)) return json;
    await sleep(20);
  }
}

test('an agent lists, reads, edits, searches and deletes', { skip }, async () => {
  const calls = [
    ['workspace_status', {}],
    ['write_workspace_files', { files: [{ path: 'src/a.py', content: 'x = 1\nprint("x")\n' }, { path: 'b.txt', content: 'to go' }] }],
    ['list_workspace_files', { recursive: true, include_dirs: false }],
    ['edit_workspace_file', { path: 'src/a.py', old_text: 'x = 1', new_text: 'x = 2' }],
    ['read_workspace_file', { path: 'src/a.py' }],
    ['search_workspace_files', { query: '--pre=sh' }],
    ['search_workspace_files', { query: 'X = 2' }],
    ['delete_workspace_file', { path: 'b.txt' }],
  ];
  const { answer, told } = await rounds(calls.slice(0, 4));
  const rest = await rounds(calls.slice(4));
  const all = [...told, ...rest.told];
  for (const r of all) assert.equal(r.ok, true, JSON.stringify(r));
  assert.deepEqual(stepsOf(answer), calls.slice(0, 4).map(([name]) => [name, 'ok']));
  assert.deepEqual(all[2].entries.map((e) => [e.path, e.size]), [['b.txt', 5], ['src/a.py', 17]]);
  assert.match(all[3].diff, /^-x = 1$/m);
  assert.equal(all[4].content, '1\tx = 2\n2\tprint("x")\n');
  assert.deepEqual([all[5].match_count, all[6].results[0].path, all[6].results[0].line], [0, 'src/a.py', 1]);
  assert.deepEqual(all[7], { ok: true, deleted: 'b.txt' });
  assert.equal(fs.readFileSync(path.join(workspace(''), 'src/a.py'), 'utf8'), 'x = 2\nprint("x")\n');
});

test('two accounts see nothing of each other', { skip }, async () => {
  const write = (text) => ['write_workspace_file', { path: 'same.txt', content: text }];
  const look = [['read_workspace_file', { path: 'same.txt' }], ['search_workspace_files', { query: 'secret', context_lines: 1 }]];
  const one = await rounds([write('secret of one')], { account_id: 'one' });
  assert.equal(one.told[0].ok, true);
  const before = await rounds([...look, ['list_workspace_files', {}]], { account_id: 'two' });
  assert.deepEqual([before.told[0].error_type, before.told[1].match_count, before.told[2].entries], ['path_not_found', 0, []]);
  await rounds([write('of two')], { account_id: 'two' });
  for (const [account, content] of [['one', '1\tsecret of one\n'], ['two', '1\tof two\n']]) {
    assert.equal((await rounds(look, { account_id: account })).told[0].content, content);
  }
});

test('what failed is told to the model with its kind, and stands in the steps', { skip }, async () => {
  const { answer, told } = await rounds([
    ['read_workspace_file', { path: '../x' }],
    ['edit_workspace_file', { path: 'none.txt', old_text: 'a', new_text: 'b' }],
    ['search_workspace_files', { query: '(', is_regex: true }],
    ['delete_workspace_file', { path: '.' }],
  ]);
  const kinds = ['path_outside_workspace', 'file_not_read', 'invalid_regex', 'workspace_root_protected'];
  assert.deepEqual(told.map((r) => [r.ok, r.error_type]), kinds.map((kind) => [false, kind]));
  assert.deepEqual(stepsOf(answer).map(([, code]) => code), kinds);
  assert.ok(told.every((r) => r.error_message));
  const missing = await rounds([['read_workspace_file', {}], ['write_workspace_file', { path: 'x' }]]);
  assert.ok(missing.told.every((r) => r.ok === false));
});

test('what is too long for one call is not begun', { skip }, async () => {
  const write = (size) => ['write_workspace_file', { path: 'long.txt', content: 'x'.repeat(size) }];
  const { told } = await rounds([write(300 * 1024), ['list_workspace_files', { glob: 'long*' }], write(256 * 1024 - 500), write(240 * 1024)]);
  assert.deepEqual([told[0].ok, told[0].error.code], [false, 'invalid_arguments']);
  assert.match(JSON.stringify(told[0]), /252 KiB/);
  assert.deepEqual(told[1].entries, []);
  assert.equal(told[2].ok, false, 'no room for the labels beside it');
  assert.deepEqual([told[3].ok, told[3].size], [true, 240 * 1024]);
});

test('a file that was changed meanwhile is read again in the same run, and then edited', { skip }, async () => {
  const file = path.join(workspace(''), 'shared.txt');
  const read = { path: 'shared.txt' };
  const edit = { path: 'shared.txt', old_text: 'theirs', new_text: 'ours' };
  await rounds([['write_workspace_file', { path: 'shared.txt', content: 'mine\n' }]]);
  f.clear();
  f.model.plan([{ send: turn('read_workspace_file', read) }],
    // somebody else writes while the model thinks
    [{ call: () => fs.writeFileSync(file, 'theirs\n') }, { send: turn('edit_workspace_file', edit) }],
    [{ send: turn('read_workspace_file', read) }], [{ send: turn('edit_workspace_file', edit) }], [{ send: OK }]);
  const answer = await f.nginx.chat(f.body());
  assert.deepEqual(stepsOf(answer).map(([, code]) => code), ['ok', 'file_modified_since_read', 'ok', 'ok']);
  assert.equal(f.told(3)[0].result.content, '1\ttheirs\n');
  assert.equal(fs.readFileSync(file, 'utf8'), 'ours\n');
});

test('a long answer reaches the model whole', { skip }, async () => {
  const { told } = await rounds([['write_workspace_file', { path: 'lines.txt', content: 'é'.repeat(50000) }],
    ['read_workspace_file', { path: 'lines.txt', max_chars: 100000, include_line_numbers: false }]]);
  assert.deepEqual([told[1].ok, told[1].truncated, told[1].content], [true, false, 'é'.repeat(50000)]);
});

test('another session has to read first, the same one has not', { skip }, async () => {
  const session = async () => (await f.nginx.request('/v1/sessions', { body: { account_id: 'acme' } })).json.id;
  const [mine, other] = [await session(), await session()];
  const edit = (from, to) => [['edit_workspace_file', { path: 's.txt', old_text: from, new_text: to }]];
  await rounds([['write_workspace_file', { path: 's.txt', content: 'first' }]], { account_id: 'acme', session_id: mine });
  assert.equal((await rounds(edit('first', 'second'), { account_id: 'acme', session_id: mine })).told[0].ok, true);
  assert.equal((await rounds(edit('second', 'third'), { account_id: 'acme', session_id: other })).told[0].error_type, 'file_not_read');
});

test('which tools an agent gets: by group, by profile, by name', { skip }, async () => {
  const offered = async (model) => {
    await f.ask([OK], { model });
    return (f.model.request(-1).json.tools ?? []).map((t) => t.function.name).sort();
  };
  assert.deepEqual(await offered('a'), [...TOOLS].sort());
  assert.deepEqual(await offered('strict'), [...TOOLS].sort());
  assert.deepEqual(await offered('focused'), ['edit_workspace_file', 'lint_workspace_file', 'list_workspace_files',
    'read_workspace_file', 'sandbox_status', 'search_workspace_files', 'workspace_status']);
  assert.deepEqual(await offered('one'), ['read_workspace_file']);
});

test('writing, editing and deleting wait for a person; reading does not', { skip }, async () => {
  const file = path.join(workspace(''), 'gated.txt');
  fs.writeFileSync(file, 'as it was\n');
  fs.chmodSync(file, 0o644);
  const stat = fs.statSync(workspace(''));
  if (process.getuid() === 0) fs.chownSync(file, stat.uid, stat.gid);
  const steps = [
    ['edit_workspace_file', { path: 'gated.txt', old_text: 'was', new_text: 'is' }, 'medium', 'workspace_edit'],
    ['multi_edit_workspace_file', { path: 'gated.txt', edits: [{ old_text: 'as', new_text: 'how' }] }, 'medium', 'workspace_edit'],
    ['write_workspace_file', { path: 'gated2.txt', content: LONG }, 'medium', 'workspace_write'],
    ['delete_workspace_file', { path: 'gated.txt' }, 'high', 'workspace_delete'],
  ];
  f.clear();
  f.model.plan([{ send: turn('read_workspace_file', { path: 'gated.txt' }) }],
    // the model can not say yes by itself
    ...steps.map(([name, args]) => [{ send: turn(name, { ...args, approval: { approved: true } }) }]), [{ send: OK }]);
  const started = await f.nginx.request('/v1/runs', { method: 'POST', body: { agent: 'strict', input: 'x', allow_actions: true } });
  const { id } = started.json;
  for (const [, args, risk, effect] of steps) {
    const run = await settled(id);
    assert.equal(run.status, 'requires_action', JSON.stringify(run));
    const [asked] = run.required_action.approvals;
    assert.deepEqual([asked.arguments, asked.risk_level, asked.side_effects], [args, risk, [effect]]);
    if (effect === 'workspace_edit') assert.match(fs.readFileSync(file, 'utf8'), risk === 'medium' && args.edits ? /as it is/ : /as it was/);
    assert.equal((await f.nginx.request(`/v1/approvals/${asked.id}`, { method: 'POST', body: { approved: true } })).status, 200);
    // taken up by the run when it is no longer at this question
    for (let i = 0; i < 200; i++) {
      const now = await settled(id);
      if (now.status !== 'requires_action' || now.required_action.approvals[0].id !== asked.id) break;
      await sleep(20);
    }
  }
  assert.equal((await settled(id)).status, 'completed');
  assert.equal(fs.existsSync(file), false);
  assert.equal(fs.readFileSync(path.join(workspace(''), 'gated2.txt'), 'utf8'), LONG);
});
