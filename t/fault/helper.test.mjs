// The helper absent, killed in the midst of a call, hanging, started again: the model
// is told sandbox_unavailable within a bound, the run completes, the other calls of the
// round are answered as ever, and no process of a job is left.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { text, finish, DONE } from '../lib/openai-wire.mjs';
import {
  SLOW, ask, call, commandsOf, descendants, lines, lives, mark, processOf, sleep,
  startHelperAgain, startWorld, toldToModel, until, fdCount,
} from './fault.mjs';

// nothing waits over 250 ms for a helper that is not there; the rest is slack
const AT_ONCE_MS = 1000 * SLOW;
const GONE_MS = 1000;
// what is given to a call beyond its own time-out
const GRACE_MS = 5000;

let world;
let stack;
let model;
let again;

before(async () => {
  // nginx itself finds a missing socket critical
  world = await startWorld({
    expectAlerts: /\[crit\].* connect\(\) to unix:.*helper\.sock failed \(2:/,
  });
  ({ stack, model } = world);
});

beforeEach(() => world.reset());

after(async () => {
  if (again !== undefined) {
    signal('SIGCONT');
    await again.stop();
  }
  await world?.close();
});

const helper = () => processOf(again?.pid ?? stack.pid('helper'));
const signal = (name, pid = helper().pid) => process.kill(pid, name);

const command = (text, timeout) => call('run_command', { command: text,
  ...(timeout === undefined ? {} : { timeout }) });

/** A call beside an order; resolves to the whole answer with the time that it took. */
async function round(...calls) {
  const began = performance.now();
  const answer = await world.ask(call('order', { n: '8812' }), ...calls);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.choices[0].finish_reason, 'stop');
  return { answer, ms: performance.now() - began };
}

/** The order was told as ever, and of run_command this code. */
function orderAnd(code) {
  const told = toldToModel(model);
  assert.equal(told.length, 2);
  const [order, command] = told;
  assert.equal(order.name, 'order');
  assert.equal(order.json.ok, true);
  assert.match(order.text, /shipped/);
  assert.equal(command.name, 'run_command');
  if (code === null) {
    assert.equal(command.json.ok, true, command.text);
  } else {
    assert.equal(command.json.ok, false);
    assert.equal(command.json.error?.code ?? command.json.error_type, code, command.text);
  }
  return command;
}

async function works() {
  world.reset();
  await round(command('echo back-$((6*7))'));
  assert.match(orderAnd(null).json.stdout, /back-42/);
}

test('it works, and one helper connection is used again', async () => {
  await works();
  const fds = fdCount(stack.workers()[0]);
  for (let n = 0; n < 5; n++) await works();
  assert.ok(fdCount(stack.workers()[0]) <= fds + 1);
});

test('kill -9 in the midst of a call: the run completes, nothing of the job is left', async () => {
  const seconds = mark();
  const running = round(command(`sleep ${seconds} & sleep ${seconds}`));
  await until('the command runs', () => commandsOf(seconds).length >= 2);
  const family = [helper(), ...descendants(helper().pid)];
  assert.ok(family.length >= 4, 'front, launcher, sandbox, command');

  const began = performance.now();
  signal('SIGKILL');
  await running;
  assert.ok(performance.now() - began < AT_ONCE_MS, `${performance.now() - began} ms`);
  assert.match(orderAnd('sandbox_unavailable').json.error.guidance, /may have taken effect or not/);
  await until('the job has gone', () => commandsOf(seconds).length === 0, GONE_MS);
  await until('the whole helper has gone', () => family.every((p) => !lives(p)), 3000);
});

test('absent: told at once, each time; the rest of the round and of the run is well', async () => {
  for (let n = 0; n < 5; n++) {
    world.reset();
    const { answer, ms } = await round(command('echo x'));
    assert.ok(ms < AT_ONCE_MS, `${ms} ms`);
    assert.match(orderAnd('sandbox_unavailable').json.error.guidance, /nothing was done/);
    assert.deepEqual(answer.json.toolgate.steps.map((s) => [s.tool, s.code]).sort(),
      [['order', null], ['run_command', 'sandbox_unavailable']]);
  }
  // also when its socket file is gone, not only nobody behind it
  fs.rmSync(path.join(stack.state, 'run/helper.sock'), { force: true });
  world.reset();
  await round(command('echo x'));
  orderAnd('sandbox_unavailable');

  const client = await world.open({ messages: ask(command('echo x'), '@slow 5') });
  await client.end();
  assert.ok(client.done);
  assert.match(client.content, /sandbox_unavailable/);
});

test('started again: works at once, also for a run that began without it', async () => {
  model.plan([{ send: text('one ') }, { until: 'go' }, { send: [
    `data: ${JSON.stringify({ choices: [{ index: 0, finish_reason: null, delta: { tool_calls: [{
      index: 0, id: 'call_1', type: 'function',
      function: { name: 'run_command', arguments: '{"command":"echo back-$((6*7))"}' },
    }] } }] })}\n\n`, finish('tool_calls'), DONE] }]);
  const client = await world.open({ messages: ask('Count.') });
  await client.next();
  again = await startHelperAgain(stack);
  model.signal('go');
  await client.end();
  assert.ok(client.done);
  assert.match(client.content, /back-42/);
  await works();
});

test('its launcher killed in the midst of a call: the same', async () => {
  const seconds = mark();
  const running = round(command(`sleep ${seconds}`));
  await until('the command runs', () => commandsOf(seconds).length > 0);
  const family = [helper(), ...descendants(helper().pid)];
  const launcher = family.find((p) => p.args.join(' ').startsWith('toolgated: launcher'));
  const began = performance.now();
  signal('SIGKILL', launcher.pid);
  await running;
  assert.ok(performance.now() - began < 3 * AT_ONCE_MS, `${performance.now() - began} ms`);
  const told = toldToModel(model)[1].json;
  assert.equal(told.ok, false);
  assert.match(told.error?.code ?? told.error_type, /^(sandbox_unavailable|session_lost)$/);
  assert.equal(toldToModel(model)[0].json.ok, true);
  await until('the job has gone', () => commandsOf(seconds).length === 0, GONE_MS);
  await until('the whole helper has gone', () => family.every((p) => !lives(p)), 5000);
  await again.stop();
  again = await startHelperAgain(stack);
  await works();
});

test('hanging (SIGSTOP): told within a bound, by the next call as well; SIGCONT recovers', async () => {
  await works();
  signal('SIGSTOP');
  try {
    for (let n = 0; n < 3; n++) {
      world.reset();
      const { ms } = await round(command('echo x'));
      orderAnd('sandbox_unavailable');
      assert.ok(ms < AT_ONCE_MS, `${ms} ms`);
    }
    // many at once, more than connections that are kept
    world.reset();
    const all = await Promise.all(Array.from({ length: 20 }, () =>
      round(command('echo x >> ran'))));
    assert.ok(Math.max(...all.map((r) => r.ms)) < 2 * AT_ONCE_MS);
    orderAnd('sandbox_unavailable');
  } finally {
    signal('SIGCONT');
  }
  await until('it works again', async () => {
    world.reset();
    await round(command('echo x'));
    return toldToModel(model)[1].json.ok;
  });
  // the model was told that it did not run
  world.reset();
  await round(command('cat ran 2>/dev/null | wc -l'));
  assert.equal(orderAnd(null).json.stdout, '0\n');
});

test('hanging in the midst of a call: given up with the call\'s own time-out and some grace', async () => {
  const seconds = mark();
  const began = performance.now();
  const running = round(command(`sleep ${seconds}`, 1));
  await until('the command runs', () => commandsOf(seconds).length > 0);
  signal('SIGSTOP');
  try {
    await running;
    const ms = performance.now() - began;
    assert.ok(ms < 1000 + GRACE_MS + 2 * AT_ONCE_MS, `${ms} ms`);
    orderAnd('sandbox_unavailable');
  } finally {
    signal('SIGCONT');
  }
  await until('the job has gone', () => commandsOf(seconds).length === 0, 2000);
  await works();
});

test('a command that does not end is ended with its time-out, and the model is told', async () => {
  const seconds = mark();
  const { ms } = await round(command(`echo before; sleep ${seconds}`, 1));
  assert.ok(ms < 1000 + 3 * AT_ONCE_MS, `${ms} ms`);
  const told = toldToModel(model)[1].json;
  assert.deepEqual([told.ok, told.timed_out, told.stdout], [false, true, 'before\n']);
  assert.equal(commandsOf(seconds).length, 0);
});

test('the log says that calls failed, and not a word of what was to run', async () => {
  await sleep(50);
  assert.ok(lines(stack, /helper call failed/).length >= 6);
  assert.equal(lines(stack, /echo (x|back|before)|sleep \d/).length, 0);
  assert.deepEqual(stack.complaints(), []);
});
