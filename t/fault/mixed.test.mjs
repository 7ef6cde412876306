// One worker, paced streams and bodies of 8 MB on other connections: an event does not
// wait until such a body is read, checked and sent on. The bound is wide, because the
// machine is shared and the watcher itself has to be scheduled; what was measured is
// printed, without and with the bodies, and scripts/bench judges it by its own bar.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import path from 'node:path';
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { REPO } from '../lib/stack.mjs';
import { text, finish, DONE } from '../lib/openai-wire.mjs';
import { SLOW, ask, catalogAt, quantile, rssKiB, startWorld } from './fault.mjs';

const STREAMS = 4;
const EVENTS = 150;
const GAP_MS = 20;
const CONNECTIONS = 4;
const BODY_BYTES = 8 * 1024 * 1024 - 1024;     // toolgate_max_body is 8m
const LATE_P95_MS = 50 * SLOW;
const BODIES_MIN = 8;

let world;
let pusher;

const heard = () => new Promise((resolve) => { pusher.once('message', resolve); });

before(async () => {
  pusher = fork(path.join(REPO, 't/fault/pusher.mjs'), [String(BODY_BYTES)]);
  const { port } = await heard();
  world = await startWorld({
    confExtra: 'toolgate_model big location=/_model/big;\n',
    serverExtra: `location = /_model/big {
      internal; proxy_pass http://127.0.0.1:${port}/v1/chat/completions;
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }\n`,
  });
  const catalog = catalogAt(world.tool.url);
  catalog.agents.push({ name: 'big-agent', model: 'big', instructions: 'Be brief.' });
  world.stack.writeCatalog(catalog);
  assert.equal((await world.stack.reload()).code, 0);
});

after(async () => {
  if (pusher?.connected) pusher.disconnect();
  await world?.close();
});

/** How late each event of some paced streams is, in milliseconds. */
async function lateness() {
  const late = [];
  world.reset();
  const times = new Map();
  world.model.plan(...Array.from({ length: STREAMS }, () => (entry) => [
    ...Array.from({ length: EVENTS }, (_, n) => [
      { call: () => times.set(`${entry.n}.${n}`, performance.now()) },
      { send: text(`${entry.n}.${n}`) }, { wait: GAP_MS }]).flat(),
    { send: [finish('stop'), DONE] }]));
  const clients = await Promise.all(Array.from({ length: STREAMS }, (_, n) =>
    world.open({ model: n % 2 === 0 ? 'default' : 'agent', messages: ask('Count.') })));
  for (const client of clients) {
    await client.end();
    assert.ok(client.done);
    for (const event of client.events) {
      const name = event.json?.choices[0].delta.content;
      if (times.has(name)) late.push(event.at - times.get(name));
    }
  }
  assert.equal(late.length, STREAMS * EVENTS);
  return late;
}

const say = (late) => [0.5, 0.95, 1].map((share) => quantile(late, share).toFixed(1)).join(' / ');

test('events of paced streams are not held up by 8 MB bodies', async (t) => {
  const pid = world.stack.workers()[0];
  await lateness();
  const alone = await lateness();
  const memory = rssKiB(pid);

  pusher.send({ start: {
    url: `${world.stack.baseURL}/chat/completions`, key: world.stack.key,
    models: ['big', 'big-agent'], connections: CONNECTIONS,
  } });
  await sleep(500);
  const beside = await lateness();
  pusher.send({ stop: true });
  const bodies = await heard();

  t.diagnostic(`late p50 / p95 / max: ${say(alone)} ms alone, ${say(beside)} ms beside`
    + ` ${bodies.answered} bodies (slowest ${bodies.slowest.toFixed(0)} ms);`
    + ` RSS ${memory} -> ${rssKiB(pid)} KiB`);
  assert.ok(bodies.answered >= BODIES_MIN, `${bodies.answered} bodies were answered`);
  assert.equal(bodies.answered, bodies.sent, 'each body was answered');
  assert.equal(bodies.received, bodies.sent, 'each body came to the model whole');
  const more = quantile(beside, 0.95) - quantile(alone, 0.95);
  assert.ok(more < LATE_P95_MS, `p95 ${more.toFixed(1)} ms more than alone`);
});
