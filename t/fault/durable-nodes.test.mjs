// Runs with two actions while other things than a worker end: Redis is killed and
// started again, nginx reloads, its binary is changed, its connections with Redis are
// cut, and of two nodes the first dies. No action is done twice, and each run ends.

import { after, before, beforeEach, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { SLOW, editConf, lives, processOf, sleep, until, watchesLeft } from './fault.mjs';
import {
  TAKEN_OVER_MS, assertEvents, codesOf, killNode, save, startDurable,
} from './durable.mjs';

const UNKNOWN = 'outcome_unknown';
const LEAVES_MS = 5000;

/** Points of a run with two actions, each with what makes its moment. */
const POINTS = [
  ['before the first intent', 'before', save('intent'), 1],
  ['after the first intent', 'after', save('intent'), 1],
  ['before the first outcome', 'before', save('outcome'), 1],
  ['after the first outcome', 'after', save('outcome'), 1],
  ['before the checkpoint between', 'before', save('checkpoint'), 1],
  ['after the second intent', 'after', save('intent'), 2],
  ['before the end', 'before', save('end'), 1],
  ['after the end', 'after', save('end'), 1],
];

const atMost = (counts, most) => {
  assert.ok(counts.every((count, n) => count <= most[n]), `done ${counts} times`);
};

describe('one node', () => {
  let world;

  before(async () => { world = await startDurable(); });
  beforeEach(() => world.reset());
  after(() => world?.close());

  for (const [name, when, what, nth] of POINTS) {
    it(`Redis killed and started again ${name}`, async () => {
      // it is held until Redis is back, or the connection is cut as Redis is
      const moment = world.proxy.once(when, what, async () => {
        await world.redis.kill();
        await world.redis.start();
        return 'drop';
      }, nth);
      const order = world.order();
      const answer = await order.answer;
      await moment;
      const codes = codesOf(order, answer);
      atMost(world.counts, [1, 1]);
      for (const [n, code] of codes.entries()) {
        // what the worker itself has heard is known; what it could not write is not done
        assert.ok([null, UNKNOWN, 'store_unavailable'].includes(code), code);
        if (code === null) assert.equal(world.counts[n], 1);
        if (code === 'store_unavailable') assert.equal(world.counts[n], 0);
      }
      assert.deepEqual(codesOf(order, await order.ask(world.first)), codes);
      atMost(world.counts, [1, 1]);
      assertEvents(await world.events(order));
    });
  }

  it('connections cut at every command: each action once or not at all', async () => {
    let cut = 0;
    world.proxy.after = ({ name }) => {
      if (name !== 'script:run_save' || cut === 4) return undefined;
      cut++;
      return 'drop';
    };
    const order = world.order();
    const codes = codesOf(order, await order.answer);
    assert.ok(codes.every((code) => [null, UNKNOWN, 'store_unavailable'].includes(code)), codes);
    atMost(world.counts, [1, 1]);
    assert.ok(cut > 0);
  });

  for (const [name, when, what, nth] of POINTS) {
    it(`a reload ${name}: the old worker ends the run and leaves`, async () => {
      const [pid] = world.first.workers();
      const old = processOf(pid);
      // held for less than a worker waits for the store
      const moment = world.proxy.once(when, what, async () => {
        process.kill(world.first.pid(), 'SIGHUP');
        await sleep(100);
      }, nth);
      const order = world.order();
      const answer = await order.answer;
      await moment;
      assert.deepEqual(codesOf(order, answer), [null, null]);
      assert.deepEqual(world.counts, [1, 1]);
      // the new worker knows it as well
      assert.deepEqual(codesOf(order, await order.ask(world.first)), [null, null]);
      assertEvents(await world.events(order));
      await until('the old worker leaves', () => !lives(old), LEAVES_MS);
      assert.equal(watchesLeft(world.first, pid), 0);
    });
  }

  it('a reload while an action is under way, and a second one', async () => {
    const old = world.first.workers().map(processOf);
    world.tool.answer = async (entry) => {
      if (!entry.path.startsWith('/pay/')) return false;
      for (let n = 0; n < 2; n++) assert.equal((await world.first.reload()).code, 0);
      return false;
    };
    const order = world.order();
    assert.deepEqual(codesOf(order, await order.answer), [null, null]);
    assert.deepEqual(world.counts, [1, 1]);
    await until('the old worker leaves', () => old.every((one) => !lives(one)), LEAVES_MS);
  });

  it('the binary changed (USR2) while an action is under way', async () => {
    if (process.env.TOOLGATE_ASAN) {
      editConf(world.first, 'worker_processes',
        'env ASAN_OPTIONS=detect_odr_violation=0:detect_leaks=0;\nworker_processes');
      assert.equal((await world.first.reload()).code, 0);
    }
    const master = processOf(world.first.pid());
    const old = world.first.workers().map(processOf);
    const file = path.join(world.first.state, 'nginx.pid');
    world.tool.answer = async (entry) => {
      if (!entry.path.startsWith('/pay/')) return false;
      process.kill(master.pid, 'SIGUSR2');
      await until('a second master has workers', () => fs.existsSync(`${file}.oldbin`)
        && fs.existsSync(file) && world.first.pid() !== master.pid && world.first.workers().length === 1);
      process.kill(master.pid, 'SIGQUIT');
      await sleep(200);
      return false;
    };
    const order = world.order();
    assert.deepEqual(codesOf(order, await order.answer), [null, null]);
    assert.deepEqual(world.counts, [1, 1]);
    assert.deepEqual(codesOf(order, await order.ask(world.first)), [null, null]);
    await until('the old binary has gone', () => !lives(master) && old.every((one) => !lives(one)), LEAVES_MS);
    assertEvents(await world.events(order));
  });
});

// what another node knows of a run of one that is no more
const DIES = {
  'before the first intent': [[null, null], [1, 1]],
  'after the first intent': [[UNKNOWN, null], [0, 1]],
  'before the first outcome': [[UNKNOWN, null], [1, 1]],
  'after the first outcome': [[null, null], [1, 1]],
  'before the checkpoint between': [[null, null], [1, 1]],
  'after the second intent': [[null, UNKNOWN], [1, 0]],
  'before the end': [[null, null], [1, 1]],
  'after the end': [[null, null], [1, 1]],
};

// a node that has died does not come back: one world for each
describe('two nodes, the first of which dies', { concurrency: 4 }, () => {
  for (const [name, when, what, nth] of POINTS) {
    it(`${name}: the second goes on`, async (t) => {
      const world = await startDurable({ nodes: 2 });
      try {
        world.reset();
        const [first, second] = world.nodes;
        let diedAt;
        const moment = world.proxy.once(when, what, async () => {
          diedAt = performance.now();
          await killNode(first);
          return 'drop';
        }, nth);
        const order = world.order({ node: first, others: [second] });
        const answer = await order.answer;
        await moment;
        const took = performance.now() - diedAt;
        const [codes, counts] = DIES[name];
        // on a busy machine the worker may give up on the store before it is killed
        const got = codesOf(order, answer);
        const same = got.map((code, i) => (codes[i] === UNKNOWN && code === 'store_unavailable' ? UNKNOWN : code));
        assert.deepEqual(same, codes);
        assert.deepEqual(world.counts, counts);
        assert.ok(took < TAKEN_OVER_MS, `${took} ms`);
        assert.deepEqual(codesOf(order, await order.ask(second)), got);
        assertEvents(await world.events(order, second));
        t.diagnostic(`the answer came ${took.toFixed(0)} ms after the first node had died`);
      } finally {
        await world.close();
      }
    });
  }
});

describe('two nodes, both alive', () => {
  let world;

  before(async () => { world = await startDurable({ nodes: 2 }); });
  beforeEach(() => world.reset());
  after(() => world?.close());

  it('the same order at both at once is one run, and both get its answer', async () => {
    const [first, second] = world.nodes;
    const order = world.order({ node: first });
    const answers = await Promise.all([order.answer, ...Array.from({ length: 8 }, (_, n) =>
      order.ask(n % 2 ? first : second))]);
    for (const answer of answers) assert.deepEqual(codesOf(order, answer), [null, null]);
    assert.equal(new Set(answers.map((answer) => answer.json.id)).size, 1);
    assert.deepEqual(world.counts, [1, 1]);
    assert.equal(world.model.journal.length, 3);
  });

  it('a worker that only stands still loses its run, and does nothing more when it wakes', async () => {
    const [first, second] = world.nodes;
    const [pid] = first.workers();
    const moment = world.proxy.once('after', save('outcome'), () => {
      process.kill(pid, 'SIGSTOP');
    });
    const order = world.order({ node: first });
    await moment;
    try {
      const others = await order.ask(second);
      assert.deepEqual(codesOf(order, others), [null, null]);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    assert.deepEqual(codesOf(order, await order.answer), [null, null]);
    await sleep(500 * SLOW);
    assert.deepEqual(world.counts, [1, 1]);
    assertEvents(await world.events(order, second));
  });
});
