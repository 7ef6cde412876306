// Reload and upgrade of the binary with runs under way: a run ends on the worker, the
// catalog and the model with which it began; who comes meanwhile is served by the new
// worker; the old one leaves as soon as its last run is over, and leaves nothing.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { text, finish, DONE } from '../lib/openai-wire.mjs';
import {
  ask, call, catalogAt, commandsOf, editConf, gate, lines, lives, mark, processOf, sleep,
  startWorld, toldToModel, until, watchesLeft,
} from './fault.mjs';

const LEAVES_MS = 5000;

let world;
let stack;
let model;
let wanted = 0;

before(async () => {
  world = await startWorld({ catalog: { instructions: 'Version 0.' } });
  ({ stack, model } = world);
});

beforeEach(() => world.reset());

after(async () => {
  await world?.close();
});

const only = (list) => {
  assert.equal(list.length, 1, `one worker: ${list}`);
  return processOf(list[0]);
};

/** Reloads with a catalog that says something new; the old worker, still there. */
async function reload() {
  const old = only(stack.workers());
  stack.writeCatalog(catalogAt(world.tool.url, { instructions: `Version ${++wanted}.` }));
  const done = await stack.reload();
  assert.equal(done.code, 0, done.stderr);
  assert.ok(lives(old), 'the old worker stays for its runs');
  assert.notEqual(only(stack.workers()).pid, old.pid);
  return old;
}

const system = (n) => model.request(n).json.messages[0].content;

/** A request while the old worker is still at work. */
async function servedByNew(old) {
  const answer = await world.ask('Hello');
  assert.equal(answer.status, 200);
  assert.equal(system(-1), `Version ${wanted}.`);
  assert.ok(lives(old));
}

async function leaves(old, ms = LEAVES_MS) {
  await until('the old worker leaves', () => !lives(old), ms);
  assert.equal(watchesLeft(stack, old.pid), 0);
  assert.deepEqual(stack.complaints(), []);
}

test('a streamed run ends normally over a reload', async () => {
  model.plan([{ send: text('one ') }, { until: 'go' }, { send: text('two') },
    { send: [finish('stop'), DONE] }]);
  const client = await world.open({ messages: ask('Count.') });
  while ((await client.next()).json.choices[0].delta.content !== 'one ') { /* the head */ }

  const old = await reload();
  await servedByNew(old);
  model.signal('go');
  await client.end();
  assert.ok(client.done);
  assert.equal(client.content, 'one two');
  await leaves(old);
});

test('a pass-through, and a run that is not streamed, end normally over a reload', async () => {
  const slow = [{ send: text('a') }, { until: 'go' }, { send: [text('b'), finish('stop'), DONE] }];
  model.plan(slow, slow);
  const whole = world.ask('Hello');
  await until('it is under way', () => model.journal.length === 1);
  const client = await world.open({ model: 'default', messages: ask('Hello') });
  await client.next();

  const old = await reload();
  await servedByNew(old);
  model.signal('go');
  await client.end();
  assert.ok(client.done);
  assert.equal(client.content, 'ab');
  const answer = await whole;
  assert.equal(answer.status, 200);
  assert.equal(answer.json.choices[0].message.content, 'ab');
  await leaves(old);
});

test('a run whose tool is being called ends on the catalog with which it began', async () => {
  const open = gate(world.tool);
  const opening = world.open({ messages: ask(call('order', { n: '8812' })) });
  await until('the tool is called', () => world.tool.count('/orders/8812') === 1);
  const version = system(0);

  const old = await reload();
  await servedByNew(old);
  open();
  const client = await opening;
  await client.end();
  assert.ok(client.done);
  assert.match(client.content, /results: .*shipped/);
  assert.equal(system(-1), version, 'the second turn too');
  await leaves(old);
});

test('a run whose command is running ends over a reload', async () => {
  const seconds = mark();
  const opening = world.open({ messages: ask(call('run_command', {
    command: `timeout 2 sleep ${seconds}; echo from-$((6*7))`,
  })) });
  await until('the command runs', () => commandsOf(seconds).length > 0);

  const old = await reload();
  await servedByNew(old);
  const client = await opening;
  await client.end();
  assert.ok(client.done);
  assert.match(client.content, /from-42/);
  await leaves(old);
});

test('idle connections of clients, tools and the helper do not hold an old worker', async () => {
  const agent = new http.Agent({ keepAlive: true });
  const get = () => new Promise((resolve, reject) => {
    http.get(`${stack.url}/healthz`, { agent }, (res) => {
      res.resume();
      res.on('end', () => resolve(res.statusCode));
    }).on('error', reject);
  });
  assert.equal(await get(), 200);
  const answer = await world.ask(call('order', { n: '1' }),
    call('run_command', { command: 'echo hi' }));
  assert.deepEqual(answer.json.toolgate.steps.map((s) => s.ok), [true, true]);

  const old = processOf(stack.workers()[0]);
  assert.equal((await stack.reload()).code, 0);
  await leaves(old);
  agent.destroy();
});

test('a client that leaves frees the old worker at once', async () => {
  model.plan([{ send: text('one ') }, { hang: true }]);
  const client = await world.open({ messages: ask('Count.') });
  await client.next();
  const old = await reload();
  await sleep(300);
  assert.ok(lives(old));
  client.leave();
  await leaves(old);
  assert.notEqual(model.request(0).closedAt, undefined);
});

test('a run goes on over three reloads, also while its tool is called', async () => {
  model.plan([{ send: text('one ') }, { until: 'go' },
    { send: text('two ') }, { until: 'more' }, { send: [text('three'), finish('stop'), DONE] }]);
  const client = await world.open({ messages: ask('Count.') });
  await client.next();
  const first = await reload();
  const open = gate(world.tool);
  const second = world.ask(call('order', { n: '7' }));
  await until('the tool is called', () => world.tool.count() === 1);
  model.signal('go');
  const old = await reload();
  open();
  assert.equal((await second).status, 200);
  await leaves(old);
  const third = processOf(stack.workers()[0]);
  assert.equal((await stack.reload()).code, 0);
  await leaves(third);
  assert.ok(lives(first));
  model.signal('more');
  await client.end();
  assert.ok(client.done);
  assert.equal(client.content, 'one two three');
  await leaves(first);
});

test('a bad catalog on reload keeps the old configuration, and is an error', async () => {
  const worker = only(stack.workers());
  const file = path.join(stack.catalogDir, 'catalog.json');
  stack.expectAlerts = /\[emerg\].*catalog\.json/;
  const good = fs.readFileSync(file, 'utf8');
  model.plan([{ send: text('one ') }, { until: 'go' }, { send: [text('two'), finish('stop'), DONE] }]);
  const client = await world.open({ messages: ask('Count.') });
  await client.next();

  for (const bad of ['{"tools": [', '{"agents": [{"name": "agent", "modle": "x"}]}',
    '{"agents": [{"name": "agent", "model": "default", "tools": {"http": [{"tool": "nowhere"}]}}]}'])
  {
    fs.writeFileSync(file, bad);
    const done = await stack.reload();
    assert.notEqual(done.code, 0, bad);
    assert.match(done.stderr, /catalog\.json/, 'it says where');
    assert.match(done.stderr, /the old one stays/);
    assert.equal((await world.ask('Hello')).status, 200);
    assert.equal(system(-1), `Version ${wanted}.`);
  }

  // by the signal alone, without a check before it
  process.kill(stack.pid(), 'SIGHUP');
  await until('the master says why', () => lines(stack, /\[emerg\].*catalog\.json/).length > 0);
  await sleep(300);
  assert.deepEqual(only(stack.workers()).pid, worker.pid);
  assert.equal((await world.ask('Hello')).status, 200);
  model.signal('go');
  await client.end();
  assert.ok(client.done);
  assert.deepEqual(stack.complaints(), []);

  fs.writeFileSync(file, good);
  assert.equal((await stack.reload()).code, 0);
  await until('the old worker leaves', () => !lives(worker), LEAVES_MS);
});

test('USR2: the run of the old binary ends, the new one serves', async () => {
  if (process.env.TOOLGATE_ASAN) {
    // nginx hands the new binary only what is named here; the tracer of the leak checker
    // itself crashes in a master that was started so
    editConf(stack, 'worker_processes',
      'env ASAN_OPTIONS=detect_odr_violation=0:detect_leaks=0;\nworker_processes');
    assert.equal((await stack.reload()).code, 0);
  }
  model.plan([{ send: text('one ') }, { until: 'go' }, { send: [text('two'), finish('stop'), DONE] }]);
  const client = await world.open({ messages: ask('Count.') });
  await client.next();
  const master = processOf(stack.pid());
  const worker = only(stack.workers());

  process.kill(master.pid, 'SIGUSR2');
  const file = path.join(stack.state, 'nginx.pid');
  await until('a second master has workers', () => fs.existsSync(`${file}.oldbin`)
    && fs.existsSync(file) && stack.pid() !== master.pid && stack.workers().length === 1);
  process.kill(master.pid, 'SIGQUIT');
  await until('the old worker is leaving', () =>
    processOf(worker.pid)?.args.join(' ').includes('shutting down'));

  assert.equal((await world.ask('Hello')).status, 200);
  assert.ok(lives(worker) && lives(master));
  model.signal('go');
  await client.end();
  assert.ok(client.done);
  assert.equal(client.content, 'one two');
  await until('the old binary has gone', () => !lives(worker) && !lives(master), LEAVES_MS);
  assert.equal(watchesLeft(stack, worker.pid), 0);
  assert.equal((await world.ask(call('order', { n: '9' }))).json.toolgate.steps[0].ok, true);
  assert.deepEqual(stack.complaints(), []);
});
