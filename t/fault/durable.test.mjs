// A worker is killed with -9 at each point at which a run with two actions is written
// down, before the store has it and after, and while model and tool are asked. Whoever
// is there takes the run over within the lease and five seconds, no action is done
// twice, what may have been done is outcome_unknown, and the client that comes again
// with its invocation_id gets the one answer.

import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { callTurn } from '../lib/openai-wire.mjs';
import {
  ACTIONS, TAKEN_OVER_MS, assertEvents, codesOf, inModel, killWorkers, save, startDurable,
} from './durable.mjs';

// a kill costs a lease of 10 s, in which nothing happens: worlds wait side by side
const WORLDS = 4;

const free = [];
const worlds = [];
const waiting = [];

before(async () => {
  for (let n = 0; n < WORLDS; n++) worlds.push(await startDurable());
  free.push(...worlds);
});

after(async () => {
  for (const world of worlds) await world.close();
});

async function borrow(use) {
  const world = free.pop() ?? await new Promise((resolve) => { waiting.push(resolve); });
  try {
    return await use(world);
  } finally {
    const next = waiting.shift();
    if (next === undefined) free.push(world);
    else next(world);
  }
}

const UNKNOWN = 'outcome_unknown';

/** Kills at the nth command of this kind; resolves when that has happened. */
const at = (when, what, nth = 1) => (world, kill) => world.proxy.once(when, what, async () => {
  await kill();
  return 'drop';
}, nth);

/** Kills when an action has arrived and is not answered. */
const inTool = (name) => (world, kill) => new Promise((resolve) => {
  world.tool.answer = async (entry) => {
    if (!entry.path.startsWith(`/${name}/`)) return false;
    await kill();
    resolve();
    return true;
  };
});

const made = ({ name }) => name === 'script:run_create';

/** Where it is killed; what the model is told of pay and ship; how often each was done. */
const POINTS = [
  ['before the run is made', at('before', made), [null, null], [1, 1]],
  ['after the run is made', at('after', made), [null, null], [1, 1]],
  ['in the first model turn', inModel(1), [null, null], [1, 1]],
  ['before the first intent', at('before', save('intent')), [null, null], [1, 1]],
  ['after the first intent', at('after', save('intent')), [UNKNOWN, null], [0, 1]],
  ['in the first call', inTool('pay'), [UNKNOWN, null], [1, 1]],
  ['before the first outcome', at('before', save('outcome')), [UNKNOWN, null], [1, 1]],
  ['after the first outcome', at('after', save('outcome')), [null, null], [1, 1]],
  ['before the checkpoint between', at('before', save('checkpoint')), [null, null], [1, 1]],
  ['after the checkpoint between', at('after', save('checkpoint')), [null, null], [1, 1]],
  ['in the second model turn', inModel(2), [null, null], [1, 1]],
  ['before the second intent', at('before', save('intent'), 2), [null, null], [1, 1]],
  ['after the second intent', at('after', save('intent'), 2), [null, UNKNOWN], [1, 0]],
  ['in the second call', inTool('ship'), [null, UNKNOWN], [1, 1]],
  ['before the second outcome', at('before', save('outcome'), 2), [null, UNKNOWN], [1, 1]],
  ['after the second outcome', at('after', save('outcome'), 2), [null, null], [1, 1]],
  ['in the last model turn', inModel(3), [null, null], [1, 1]],
  ['before the end', at('before', save('end')), [null, null], [1, 1]],
  ['after the end', at('after', save('end')), [null, null], [1, 1]],
];

async function survive(world, { kill, codes, counts, face, side }) {
  world.reset({ side });
  let killedAt;
  const done = kill(world, async () => {
    killedAt = performance.now();
    await killWorkers(world.first);
  });
  const order = world.order({ face });
  await Promise.race([done, order.answer.then(() => assert.fail('it was never killed'))]);
  const answer = await order.answer;
  const took = performance.now() - killedAt;

  assert.deepEqual(codesOf(order, answer), codes);
  assert.deepEqual(world.counts, counts);
  assert.ok(took < TAKEN_OVER_MS, `${took} ms after the kill`);

  // and that is the answer from now on
  const again = await order.ask(world.first);
  assert.deepEqual(codesOf(order, again), codes);
  assert.equal(again.json.id, answer.json.id);
  assert.equal(again.headers.get('x-toolgate-run'), order.id);
  assert.deepEqual(world.counts, counts);
  if (face !== 'chat') {
    const read = await world.first.api(`/v1/runs/${order.id}`);
    assert.deepEqual(codesOf(order, read), codes);
    assertEvents(await world.events(order));
  }
  return { took, attempts: order.attempts };
}

describe('killed at each point of a run with two actions', { concurrency: WORLDS }, () => {
  for (const [name, kill, codes, counts] of POINTS) {
    it(name, (t) => borrow(async (world) => {
      const { took } = await survive(world, { kill, codes, counts });
      t.diagnostic(`the answer came ${took.toFixed(0)} ms after the kill`);
    }));
  }
});

describe('the same through chat completions', { concurrency: WORLDS }, () => {
  for (const [name, kill, codes, counts] of POINTS.filter(([point]) => /first (intent|outcome)/.test(point))) {
    it(name, () => borrow((world) => survive(world, { kill, codes, counts, face: 'chat' })));
  }
});

describe('both actions in one round', { concurrency: WORLDS }, () => {
  /** Kills in the slow one when the quick one is written down. */
  const inSlow = (slow) => (world, kill) => new Promise((resolve) => {
    world.proxy.once('after', save('outcome'), () => sleep(50).then(kill).then(resolve));
    world.tool.answer = async (entry) => entry.path.startsWith(`/${slow}/`) && new Promise(() => {});
  });

  for (const slow of ACTIONS) {
    it(`in ${slow}, when the other one is done`, () => borrow((world) => survive(world, {
      side: true, kill: inSlow(slow), counts: [1, 1],
      codes: ACTIONS.map((name) => (name === slow ? UNKNOWN : null)),
    })));
  }

  it('before their intents', () => borrow((world) => survive(world, {
    side: true, kill: at('before', save('intent')), counts: [1, 1], codes: [null, null],
  })));

  it('after their intents', () => borrow((world) => survive(world, {
    side: true, kill: at('after', save('intent')), counts: [0, 0], codes: [UNKNOWN, UNKNOWN],
  })));
});

describe('killed again and again', { concurrency: WORLDS }, () => {
  it('at each intent: the run still ends, and each action is known or told unknown', () => borrow(async (world) => {
    world.reset();
    let kills = 0;
    world.proxy.after = async (command) => {
      if (!save('intent')(command) || kills === 2) return undefined;
      kills++;
      await killWorkers(world.first);
      return 'drop';
    };
    const order = world.order();
    const answer = await order.answer;
    assert.deepEqual(codesOf(order, answer), [UNKNOWN, UNKNOWN]);
    assert.equal(kills, 2);
    assert.deepEqual(world.counts, [0, 0]);
    assertEvents(await world.events(order));
  }));

  it('at every model turn: none of it is lost', () => borrow(async (world) => {
    world.reset();
    const { answer } = world.model;
    const asked = new Map();
    world.model.answer = (entry) => {
      const results = entry.json.messages.filter((message) => message.role === 'tool').length;
      const times = (asked.get(results) ?? 0) + 1;
      asked.set(results, times);
      return times === 1 ? [{ call: () => killWorkers(world.first) }, { hang: true }] : answer(entry);
    };
    const order = world.order();
    // an outcome that was still on its way to the store is not known
    const codes = codesOf(order, await order.answer);
    assert.ok(codes.every((code) => code === null || code === UNKNOWN), codes);
    assert.deepEqual([...asked.values()], [2, 2, 2]);
    assert.deepEqual(world.counts, [1, 1]);
  }));
});

describe('a model that says one thing in pieces', { concurrency: WORLDS }, () => {
  it('and the worker is killed in the midst of its calls: none of them ran', () => borrow((world) => survive(world, {
    codes: [null, null], counts: [1, 1],
    kill: (at_, kill) => new Promise((resolve) => {
      at_.model.plan([
        { send: callTurn([{ name: 'pay', args: { n: '1' } }]).slice(0, 2) },
        { call: () => kill().then(resolve) }, { hang: true },
      ]);
    }),
  })));
});

describe('resumed by hand', { concurrency: WORLDS }, () => {
  it('ResumeRun: a run whose lease is over goes on at once', () => borrow(async (world) => {
    world.reset();
    const killed = inModel(2)(world, () => killWorkers(world.first));
    const { json: { Data: started } } = await world.first.api('/agentengine/api/v1/RunAgent', {
      body: { AgentId: 'worker', Background: true, Messages: [{ role: 'user', content: 'Order 1.' }] },
    });
    await killed;
    const { RunId, SessionId } = started;
    const resume = (CheckpointId) => world.first.api('/agentengine/api/v1/ResumeRun',
      { body: { AgentId: 'worker', SessionId, RunId, CheckpointId } });
    assert.equal((await resume(`${RunId}:1`)).json.error.code, 'resume_already_running');
    const [key] = world.redis.cli('keys', `*:${RunId}`).split('\n');
    world.redis.cli('hset', key, 'lease', '0');
    assert.equal((await resume(`${RunId}:0`)).json.error.code, 'checkpoint_not_resumable');
    const at_ = performance.now();
    const resumed = await resume(`${RunId}:1`);
    assert.equal(resumed.json.Data.status, 'resuming', resumed.text);
    const { text } = await world.first.api(resumed.json.Data.SubscribeUrl);
    assert.match(text, /"EventType":"run_status","Content":"completed"/);
    assert.ok(performance.now() - at_ < TAKEN_OVER_MS / 3);
    assert.deepEqual(world.counts, [1, 1]);
  }));
});
