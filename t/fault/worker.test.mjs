// A worker that is killed, and a worker whose clients leave in great numbers: nobody is
// told that a broken stream was whole, what a run had started ends with it, and counts
// of connections and descriptors come back to where they were.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import { text, finish, DONE } from '../lib/openai-wire.mjs';
import {
  SLOW, ask, call, commandsOf, connectionsTo, fdCount, lives, mark, processOf, rssKiB,
  startWorld, until,
} from './fault.mjs';

const STREAMS = 200;
const WAVES = 2;
const SEED = 20240229;
const GONE_MS = 1000;
// connections with model and tools that one worker keeps for the next call
const KEPT_MODEL = 64;
const KEPT_TOOLS = 256;
// descriptors and kilobytes that may differ for reasons of nginx's own, e.g. a log
const FD_SLACK = 4;
const RSS_SLACK_KIB = 8 * 1024;

let world;
let stack;
let model;

before(async () => {
  world = await startWorld({
    expectAlerts: /\[alert\].* worker process \d+ exited on signal 9/,
    serverExtra: 'location = /stub { access_log off; stub_status; }\n',
  });
  ({ stack, model } = world);
});

beforeEach(() => world.reset());

after(async () => {
  await world?.close();
});

/** Connections of clients, this one among them. A killed worker's are never counted down. */
async function active() {
  const res = await fetch(`${stack.url}/stub`, { headers: { connection: 'close' } });
  return Number(/Active connections: (\d+)/.exec(await res.text())[1]);
}

function generator(seed) {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
}

const paced = () => [
  ...Array.from({ length: 12 }, (_, n) => [{ send: text(`${n} `) }, { wait: 40 }]).flat(),
  { send: [finish('stop'), DONE] },
];

const kinds = [
  () => ({ model: 'default', messages: ask('@slow 60', 'Hello') }),
  () => ({ model: 'agent', messages: ask('@slow 60', 'Hello') }),
  () => ({ model: 'agent', messages: ask(call('order', { n: '5' }), '@slow 30') }),
  () => ({ model: 'agent', stream: false, messages: ask(call('order', { n: '6' }), '@slow 30') }),
];

/** One client of a wave; resolves to what became of it. */
async function visit(n, leaveAfter) {
  const signal = leaveAfter === undefined ? undefined : AbortSignal.timeout(leaveAfter);
  try {
    const client = await world.open(kinds[n % kinds.length](), { signal });
    await client.end(60_000);
    if (client.error !== undefined) return 'left';
    if (client.status !== 200) return `status ${client.status}`;
    if (client.headers['content-type'].startsWith('application/json')) return 'whole';
    return client.done ? 'whole' : 'cut';
  } catch {
    return 'left';
  }
}

test(`${STREAMS} streams at once, a third of the clients leave: nothing is left behind`, async (t) => {
  const random = generator(SEED);
  const pid = stack.workers()[0];
  const wave = async (leaving) => {
    model.clear();
    const became = await Promise.all(Array.from({ length: STREAMS }, (_, n) =>
      visit(n, random() < leaving ? 20 + Math.floor(random() * 1200) : undefined)));
    await until('all connections are closed', async () => await active() === 1, 5000);
    await until('the model was told of each', () => model.journal.every((e) => e.ended
      || e.closedAt !== undefined), 5000);
    const kept = [connectionsTo(pid, model.port), connectionsTo(pid, world.tool.port)];
    return { left: became.filter((b) => b === 'left').length,
      whole: became.filter((b) => b === 'whole').length,
      fds: fdCount(pid) - kept[0] - kept[1], kept, rss: rssKiB(pid) };
  };

  // the first one opens what is then kept: connections with the model, memory
  const base = await wave(0);
  assert.equal(base.whole, STREAMS);
  const fds = [];
  for (let n = 0; n < WAVES; n++) {
    const seen = await wave(1 / 3);
    assert.equal(seen.left + seen.whole, STREAMS, 'each is whole, or its client has left');
    assert.ok(seen.left > STREAMS / 10 && seen.whole > STREAMS / 3, JSON.stringify(seen));
    assert.ok(seen.kept[0] <= KEPT_MODEL && seen.kept[1] <= KEPT_TOOLS, `kept for model and tools: ${seen.kept}`);
    fds.push(seen.fds);
    if (SLOW === 1) {
      assert.ok(seen.rss <= base.rss + RSS_SLACK_KIB, `RSS ${base.rss} -> ${seen.rss} KiB`);
    }
    t.diagnostic(`wave ${n}: ${seen.whole} whole, ${seen.left} left, ${seen.fds} descriptors`
      + ` beside ${seen.kept} kept ones, RSS ${seen.rss} KiB (before: ${base.fds}, ${base.kept},`
      + ` ${base.rss} KiB)`);
  }
  assert.ok(Math.max(...fds) <= base.fds + FD_SLACK, `descriptors: ${base.fds}, then ${fds}`);
  assert.equal(stack.workers()[0], pid, 'the same worker all the time');

  // a stream that is held open counts, and counts no more when it has ended
  model.plan(paced());
  const client = await world.open({ messages: ask('Count.') });
  assert.equal(await active(), 2);
  await client.end();
  await until('it counts no more', async () => await active() === 1, 2000);
});

/** Kills the worker, and waits until there is another one. */
async function killWorker() {
  const old = processOf(stack.workers()[0]);
  process.kill(old.pid, 'SIGKILL');
  await until('there is another worker', () => !lives(old) && stack.workers().length === 1);
}

for (const name of ['default', 'agent']) {
  test(`kill -9 of the worker: the stream of "${name}" breaks, the next one is whole`, async () => {
    model.plan([{ send: text('one ') }, { hang: true }]);
    const client = await world.open({ model: name, messages: ask('Count.') });
    while (!client.content.includes('one ')) await client.next();
    await killWorker();
    await client.end(5000);
    assert.ok(!client.done, 'no [DONE]');
    assert.notEqual(client.error, undefined, 'and not a clean end either');
    assert.equal(client.content, 'one ');
    await until('the model sees it', () => model.request(0).closedAt !== undefined, GONE_MS);

    const next = await world.open({ model: name, messages: ask('Hello') });
    await next.end();
    assert.ok(next.done);
    assert.match(next.content, /^You said: Hello/);
  });
}

test('kill -9 while an answer is gathered that is not streamed: no answer', async () => {
  model.plan([{ send: text('one ') }, { hang: true }]);
  const answer = world.ask('Hello').then(() => 'answered', () => 'broken');
  await until('it is under way', () => model.journal.length === 1);
  await killWorker();
  assert.equal(await answer, 'broken');
  assert.equal((await world.ask('Hello')).status, 200);
});

test('kill -9 during tool calls: the service sees the close, no process of the job is left', async () => {
  const seconds = mark();
  const answer = world.ask(call('hang', { n: '1' }), call('run_command', { command: `sleep ${seconds}` }))
    .then(() => 'answered', () => 'broken');
  await until('both are under way', () => world.tool.count('/hang/') === 1
    && commandsOf(seconds).length > 0);
  await killWorker();
  assert.equal(await answer, 'broken');
  await until('the service sees it', () => world.tool.journal[0].closedEarly, GONE_MS);
  await until('the job has gone', () => commandsOf(seconds).length === 0, GONE_MS);

  const next = await world.ask(call('order', { n: '2' }), call('run_command', { command: 'echo hi' }));
  assert.deepEqual(next.json.toolgate.steps.map((s) => s.ok), [true, true]);
});

test('five kills in a row under load: every whole answer was whole', async () => {
  let whole = 0;
  let broken = 0;
  let over = false;
  const one = async () => {
    while (!over) {
      try {
        const client = await world.open({ messages: ask(call('order', { n: '3' }), '@slow 10') });
        await client.end();
        if (client.done) {
          assert.match(client.content, /shipped/);
          whole++;
        } else {
          assert.notEqual(client.error, undefined);
          broken++;
        }
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        broken++;
      }
    }
  };
  const clients = Array.from({ length: 12 }, one);
  for (let n = 0; n < 5; n++) {
    const had = whole;
    await until('work is done', () => whole > had + 5);
    await killWorker();
  }
  over = true;
  await Promise.all(clients);
  assert.ok(broken > 0 && whole > 25, `${whole} whole, ${broken} broken`);
  const last = await world.ask(call('order', { n: '4' }));
  assert.equal(last.json.toolgate.steps[0].ok, true);
});
