// The openai client, as it is, drives an agent in its workspace: lists, writes, reads,
// edits, lints, searches and deletes, each change approved by a person; and two accounts
// that see nothing of each other. nginx, Redis and the helper are those of scripts/run.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { npm } from '../lib/npm.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { startStack } from '../lib/stack.mjs';
import { asking } from './shop.mjs';

const OpenAI = npm('openai');
const CHANGES = ['write_workspace_file', 'edit_workspace_file', 'delete_workspace_file'];

let model;
let stack;

before(async () => {
  model = await startMockModel();
  stack = await startStack({
    modelUrl: model.baseUrl, workers: 1,
    catalog: { agents: [{
      name: 'clerk', model: 'default',
      tools: { allow_anonymous_actions: true, toolset: { include: ['workspace'], approval_mode: 'strict' } },
    }] },
  });
});

beforeEach(() => model.clear());

after(async () => {
  await model?.close();
  await stack?.stop();
});

/** A person who works with the agent in one session, and says yes to what it asks. */
class Desk {
  approved = [];

  constructor(account) {
    this.client = new OpenAI({
      baseURL: stack.baseURL, apiKey: stack.key, defaultHeaders: { 'x-account-id': account }, maxRetries: 0,
    });
  }

  async open() {
    this.session = (await this.client.post('/sessions', { body: {} })).id;
    return this;
  }

  /** What the tool answered to one call. */
  async call(tool, args = {}) {
    const answer = await this.client.chat.completions.create({
      model: 'clerk', session_id: this.session, allow_actions: true,
      messages: [{ role: 'user', content: asking({ [tool]: args }) }],
    });
    const waits = answer.toolgate.required_action;
    assert.equal(waits !== null, CHANGES.includes(tool), `${tool}: ${JSON.stringify(answer.toolgate)}`);
    if (waits === null) return this.#result(answer.choices[0].message.content);
    const [{ id, tool_name: name }] = waits.approvals;
    this.approved.push(name);
    await this.client.post(`/approvals/${id}`, { body: { approved: true } });
    for (const end = Date.now() + 15_000; Date.now() < end; await sleep(50)) {
      const run = await this.client.get(`/runs/${answer.toolgate.run}`);
      if (run.status === 'completed') return this.#result(run.output_text);
      assert.ok(['queued', 'running', 'requires_action'].includes(run.status), JSON.stringify(run));
    }
    throw new Error(`${tool} is not done`);
  }

  #result(text) {
    assert.match(text, /^results: /);
    return JSON.parse(text.slice('results: '.length));
  }
}

test('an agent works in its workspace, and each change is approved', async () => {
  const desk = await new Desk('acme').open();
  const written = await desk.call('write_workspace_file', { path: 'src/app.py', content: 'def f():\r\n    return 1\r\n' });
  assert.deepEqual([written.ok, written.path], [true, 'src/app.py']);
  const { entries } = await desk.call('list_workspace_files', { recursive: true, include_dirs: false });
  assert.deepEqual(entries.map((entry) => entry.path), ['src/app.py']);
  const read = await desk.call('read_workspace_file', { path: 'src/app.py', include_line_numbers: false });
  assert.equal(read.content, 'def f():\r\n    return 1\r\n');

  const edited = await desk.call('edit_workspace_file', { path: 'src/app.py', old_text: 'return 1', new_text: 'return (' });
  assert.equal(edited.replacements, 1);
  assert.match(edited.diff, /-    return 1[^]*\+    return \(/);
  const lint = await desk.call('lint_workspace_file', { path: 'src/app.py' });
  assert.equal(lint.language, 'python');
  assert.ok(lint.ok === false && lint.issues.length > 0, JSON.stringify(lint));
  await desk.call('edit_workspace_file', { path: 'src/app.py', old_text: 'return (', new_text: 'return 2' });
  assert.equal((await desk.call('lint_workspace_file', { path: 'src/app.py' })).ok, true);

  const found = await desk.call('search_workspace_files', { query: 'return 2' });
  assert.deepEqual(found.results.map((one) => [one.path, one.line]), [['src/app.py', 2]]);
  assert.equal((await desk.call('delete_workspace_file', { path: 'src/app.py' })).ok, true);
  assert.equal((await desk.call('read_workspace_file', { path: 'src/app.py' })).error_type, 'path_not_found');
  assert.deepEqual(desk.approved, ['write_workspace_file', 'edit_workspace_file', 'edit_workspace_file', 'delete_workspace_file']);
});

test('two accounts see nothing of each other, and neither of a file that it has not read', async () => {
  const [one, other] = await Promise.all([new Desk('one').open(), new Desk('other').open()]);
  await one.call('write_workspace_file', { path: 'secret.txt', content: 'mine\n' });
  assert.deepEqual((await other.call('list_workspace_files')).entries, []);
  assert.equal((await other.call('read_workspace_file', { path: 'secret.txt' })).error_type, 'path_not_found');
  assert.deepEqual((await other.call('search_workspace_files', { query: 'mine' })).results, []);
  assert.equal((await other.call('read_workspace_file', { path: '../secret.txt' })).error_type, 'path_outside_workspace');

  // the same account in another session: the file is there, what was read of it is not
  const again = await new Desk('one').open();
  assert.equal((await again.call('edit_workspace_file', { path: 'secret.txt', old_text: 'mine', new_text: 'ours' })).error_type, 'file_not_read');
  assert.equal((await again.call('read_workspace_file', { path: 'secret.txt', include_line_numbers: false })).content, 'mine\n');
  assert.equal((await again.call('edit_workspace_file', { path: 'secret.txt', old_text: 'mine', new_text: 'ours' })).ok, true);
});
