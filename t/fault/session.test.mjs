// A worker is killed with -9 at each point at which a run and its session are written
// down: whoever takes the run over leaves the session as if nothing had happened, with
// every message once, and the next run of the session is told all of it.

import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { textTurn } from '../lib/openai-wire.mjs';
import { TAKEN_OVER_MS, codesOf, inModel, killWorkers, save, startDurable } from './durable.mjs';
import { until } from './fault.mjs';

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
const session = (verb) => ({ name, args }) => name === 'script:session_run' && args[0] === verb;
const made = ({ name }) => name === 'script:run_create';

const at = (when, what, nth = 1) => (world, kill) => world.proxy.once(when, what, async () => {
  await kill();
  return 'drop';
}, nth);

const POINTS = [
  ['before the run is made', at('before', made), [null, null]],
  ['after the run is made', at('after', made), [null, null]],
  ['before it has the session', at('before', session('begin')), [null, null]],
  ['after it has the session', at('after', session('begin')), [null, null]],
  ['after the first intent', at('after', save('intent')), [UNKNOWN, null]],
  ['before the first outcome', at('before', save('outcome')), [UNKNOWN, null]],
  ['after the first outcome', at('after', save('outcome')), [null, null]],
  ['before the first round is kept', at('before', session('keep'), 2), [null, null]],
  ['after the first round is kept', at('after', session('keep'), 2), [null, null]],
  ['after the checkpoint between', at('after', save('checkpoint')), [null, null]],
  ['in the last model turn', inModel(3), [null, null]],
  ['before the end', at('before', save('end')), [null, null]],
  ['after the end', at('after', save('end')), [null, null]],
  ['before it gives the session back', at('before', session('end')), [null, null]],
  ['after it gave the session back', at('after', session('end')), [null, null]],
];

/** The session as the next run is told it, and as it is shown. */
async function goesOn(world, id, codes) {
  world.reset();
  world.model.plan([{ send: textTurn('fine') }]);
  const next = await world.first.api('/v1/chat/completions',
    { body: { model: 'worker', session_id: id, messages: [{ role: 'user', content: 'And?' }], if_busy: 'reject' } });
  assert.equal(next.status, 200, next.text);
  const told = world.model.request(-1).json.messages.filter((m) => m.role !== 'system');
  assert.equal(told.at(-1).content, 'And?');
  assert.deepEqual(told.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant', 'user']);
  const results = told.filter((m) => m.role === 'tool').map((m) => JSON.parse(m.content));
  assert.deepEqual(results.map((r) => (r.ok ? null : r.error.code)), codes);
  assert.deepEqual(told.filter((m) => m.tool_calls).map((m) => m.tool_calls[0].function.name), ['pay', 'ship']);
  const { json } = await world.first.api(`/v1/sessions/${id}/messages`);
  assert.deepEqual(json.data.map((m) => m.role), [...told.map((m) => m.role), 'assistant']);
  assert.equal(new Set(json.data.slice(0, 6).map((m) => m.run)).size, 1);
}

async function survive(world, kill, codes, face) {
  world.reset();
  const { id } = await until('the store is there', async () => {
    const answer = await world.first.api('/v1/sessions', { body: {} });
    return answer.status === 201 && answer.json;
  });
  let killedAt;
  const done = kill(world, async () => {
    killedAt = performance.now();
    await killWorkers(world.first);
  });
  const order = world.order({ face, session: id });
  await Promise.race([done, order.answer.then(() => assert.fail('it was never killed'))]);
  assert.deepEqual(codesOf(order, await order.answer), codes);
  assert.ok(world.counts.every((n) => n <= 1), `${world.counts}`);
  assert.ok(performance.now() - killedAt < TAKEN_OVER_MS);
  await goesOn(world, id, codes);
}

// a chat is answered while its end is written down
const ANSWERED = ['before the end', 'after the end', 'before it gives the session back', 'after it gave the session back'];

for (const face of ['runs', 'chat']) {
  describe(`killed at each point of a run in a session: ${face}`, { concurrency: WORLDS }, () => {
    for (const [name, kill, codes] of POINTS.filter(([point]) => face === 'runs' || !ANSWERED.includes(point))) it(name, () => borrow((world) => survive(world, kill, codes, face)));
  });
}
