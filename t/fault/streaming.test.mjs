// Streaming is real: an event reaches the client before the model says the next one,
// over HTTP/1.1 and HTTP/2; a client that reads slowly holds the model back and costs
// the worker no memory; a client that leaves stops the model, the tool and the command.

import test, { before, after, beforeEach } from 'node:test';
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import { freePort } from '../lib/stack.mjs';
import { openSseH2 } from '../lib/sse-client.mjs';
import { text, finish, callTurn, DONE } from '../lib/openai-wire.mjs';
import {
  SLOW, ask, call, commandsOf, lines, mark, rssKiB, sleep, startWorld, until,
} from './fault.mjs';

const EVENTS = 5;
const GONE_MS = 1000;
const MIB = 1024 * 1024;
const STREAM_BYTES = 100 * MIB;
const PIECE = 16 * 1024;
const RATE = MIB;                  // of the slow reader, a second
const SLOW_MS = 4000;
const RSS_GROWTH_KIB = 8 * 1024;
// what sockets and the mock's own buffers may hold between model and client
const IN_FLIGHT = 40 * MIB;
// what an agent's turn may say: it is remembered for the next one
const TURN_BYTES = 8 * MIB;

let world;
let stack;
let model;
let h2;

before(async () => {
  const port = await freePort();
  world = await startWorld({
    // the same server once more, for HTTP/2 without TLS
    confExtra: `server {
      listen 127.0.0.1:${port} http2;
      location /v1/ { toolgate_api; }
      location = /_model/default {
        internal; proxy_pass http://toolgate_model_default/v1/chat/completions;
        proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      }
    }\n`,
  });
  ({ stack, model } = world);
  h2 = http2.connect(`http://127.0.0.1:${port}`);
  h2.on('error', () => {});
});

beforeEach(() => world.reset());

after(async () => {
  h2?.destroy();
  await world?.close();
});

const opens = {
  'HTTP/1.1': (body) => world.open(body),
  'HTTP/2': (body) => openSseH2(h2, '/v1/chat/completions', {
    key: stack.key, body: { model: 'agent', allow_actions: true, stream: true, ...body },
  }),
};

/** Reads on until the client has seen this text. */
async function sees(client, content) {
  while (!client.content.endsWith(content)) {
    assert.notEqual(await client.next(3000 * SLOW), null, `over before "${content}" came`);
  }
}

for (const [protocol, open] of Object.entries(opens)) {
  for (const name of ['default', 'agent']) {
    test(`${protocol}, "${name}": event n+1 is sent when the client has acknowledged event n`,
      async () => {
        model.plan([...Array.from({ length: EVENTS }, (_, n) => [
          { send: text(`piece${n} `) }, { until: `has ${n}` }]).flat(),
        { send: [finish('stop'), DONE] }]);
        const client = await open({ model: name, messages: ask('Count.') });
        assert.equal(client.status, 200);
        for (let n = 0; n < EVENTS; n++) {
          await sees(client, `piece${n} `);
          assert.equal(model.request(0).ended, false);
          model.signal(`has ${n}`);
        }
        await client.end();
        assert.ok(client.done);
      });
  }

  test(`${protocol}: text before and after a tool call is streamed, byte for byte as it comes`,
    async () => {
      model.plan(
        [{ send: text('before ') }, { until: 'has before' },
          { send: callTurn([{ name: 'order', args: { n: '1' } }]) }],
        // an event in single bytes: it must not wait for the next one
        [{ send: text('after '), split: 1 }, { until: 'has after' },
          { send: [text('end'), finish('stop'), DONE] }]);
      const client = await open({ messages: ask('Look.') });
      await sees(client, 'before ');
      assert.equal(world.tool.count(), 0);
      model.signal('has before');
      await sees(client, 'after ');
      assert.equal(world.tool.count(), 1);
      model.signal('has after');
      await client.end();
      assert.ok(client.done);
      // what two turns said is set apart
      assert.match(client.content, /^before \s*after end$/);
    });
}

/** RSS of the worker, its greatest value while something goes on. */
function watchMemory(pid) {
  let most = rssKiB(pid);
  const timer = setInterval(() => { most = Math.max(most, rssKiB(pid)); }, 50);
  timer.unref();
  return () => {
    clearInterval(timer);
    return Math.max(most, rssKiB(pid));
  };
}

/** A big stream to a slow reader, who leaves after some time. */
async function slowReader(t, name, bytes, time) {
  const pid = stack.workers()[0];
  const piece = text('x'.repeat(PIECE));
  const times = Math.ceil(bytes / piece.length);

  // what a first stream leaves in the worker is not this one's
  await (await world.open({ model: name, messages: ask('Hello') })).end();
  world.reset();
  const memory = rssKiB(pid);
  const greatest = watchMemory(pid);
  model.plan([{ send: piece, times }, { send: [finish('stop'), DONE] }]);
  const client = await world.open({ model: name, messages: ask('Much.') },
    { bytesPerSecond: RATE });
  await sleep(time);

  const entry = model.request(0);
  const sent = entry.bytesSent;
  assert.ok(sent < bytes && !entry.ended, `the model was held back: ${sent} bytes`);
  assert.ok(sent - client.bytes < IN_FLIGHT, `${sent} sent, ${client.bytes} read`);
  assert.ok(client.bytes > RATE * time / 1000 / 4, `it does read: ${client.bytes} bytes`);
  await sleep(1000);
  assert.ok(entry.bytesSent - sent < 4 * RATE, 'and goes on at its pace');
  assert.equal(entry.closedAt, undefined, 'it is still under way');
  const grown = greatest() - memory;

  const left = performance.now();
  client.leave();
  await until('the model sees the close', () => entry.closedAt !== undefined, GONE_MS);
  t.diagnostic(`${(client.bytes / MIB).toFixed(1)} of ${(bytes / MIB).toFixed(0)} MiB read,`
    + ` ${(entry.bytesSent / MIB).toFixed(1)} MiB sent, RSS ${memory} + ${grown} KiB,`
    + ` close seen after ${(entry.closedAt - left).toFixed(0)} ms`);
  return grown;
}

test('100 MB to a client that reads 1 MB/s: the model is held back, RSS within 8 MB', async (t) => {
  const grown = await slowReader(t, 'default', STREAM_BYTES, SLOW_MS);
  // the memory of a sanitizer's build is its own matter
  if (SLOW === 1) assert.ok(grown <= RSS_GROWTH_KIB, `RSS grew by ${grown} KiB`);
});

test('100 MB to a client that reads at once: RSS within 8 MB, complete', async (t) => {
  const pid = stack.workers()[0];
  const memory = rssKiB(pid);
  const greatest = watchMemory(pid);
  const piece = text('x'.repeat(PIECE));
  const times = Math.ceil(STREAM_BYTES / piece.length);
  model.plan([{ send: piece, times }, { send: [finish('stop'), DONE] }]);
  const client = await world.open({ model: 'default', messages: ask('Much.') });
  await client.end(30_000 * SLOW);
  assert.ok(client.done);
  assert.equal(client.content.length, times * PIECE);
  const grown = greatest() - memory;
  t.diagnostic(`RSS ${memory} + ${grown} KiB`);
  if (SLOW === 1) assert.ok(grown <= RSS_GROWTH_KIB, `RSS grew by ${grown} KiB`);
});

test('the same to an agent\'s client, but for the text that is remembered', async (t) => {
  const grown = await slowReader(t, 'agent', STREAM_BYTES, SLOW_MS / 3);
  if (SLOW === 1) {
    assert.ok(grown <= RSS_GROWTH_KIB + TURN_BYTES / 1024, `RSS grew by ${grown} KiB`);
  }
});

test('an agent\'s turn over its bound: an error, no [DONE], and the model is cut off', async () => {
  const piece = text('x'.repeat(PIECE));
  model.plan([{ send: piece, times: STREAM_BYTES / PIECE }, { send: [finish('stop'), DONE] }]);
  const client = await world.open({ messages: ask('Much.') });
  await client.end(30_000 * SLOW);
  assert.ok(!client.done);
  assert.equal(client.events.at(-1).json.error.code, 'model_stream_broken');
  assert.ok(client.content.length > TURN_BYTES - 2 * PIECE && client.content.length <= TURN_BYTES,
    `${client.content.length} bytes of text`);
  await until('the model sees the close', () => model.request(0).closedAt !== undefined, GONE_MS);
});

for (const [protocol, open] of Object.entries(opens)) {
  test(`${protocol}: a client that leaves in the midst of the text: the model sees it`, async () => {
    for (const name of ['default', 'agent']) {
      world.reset();
      model.plan([{ send: text('one ') }, { hang: true }]);
      const client = await open({ model: name, messages: ask('Count.') });
      await sees(client, 'one ');
      client.leave();
      await until('the model sees the close', () => model.request(0).closedAt !== undefined, GONE_MS);
    }
  });

  test(`${protocol}: a client that leaves while a tool and a command run: both are stopped`, async () => {
    const seconds = mark();
    model.plan([{ send: text('let me see ') }, { send: callTurn([
      { name: 'hang', args: { n: '1' } },
      { name: 'run_command', args: { command: `sleep ${seconds} & setsid sleep ${seconds}; true` } }]) }]);
    const client = await open({ messages: ask('Look.') });
    await sees(client, 'let me see ');
    await until('both are under way', () => world.tool.count('/hang/') === 1
      && commandsOf(`sleep ${seconds}`).length > 0 && commandsOf(seconds).length > 1);
    client.leave();
    await until('the service sees the close', () => world.tool.journal[0].closedEarly, GONE_MS);
    await until('no process of the job is left', () => commandsOf(seconds).length === 0, GONE_MS);
    await sleep(100);
    assert.equal(model.journal.length, 1, 'the model is not asked again');
  });
}

test('a client that leaves before the first text, or whose answer is not streamed', async () => {
  for (const stream of [true, false]) {
    world.reset();
    const seconds = mark();
    const leaving = new AbortController();
    const answer = world.open({
      stream, messages: ask(call('run_command', { command: `sleep ${seconds}` }), call('hang', { n: '2' })),
    }, { signal: leaving.signal }).then(() => 'answered', () => 'left');
    await until('both are under way', () => world.tool.count('/hang/') === 1
      && commandsOf(seconds).length > 0);
    leaving.abort();
    assert.equal(await answer, 'left');
    await until('the service sees the close', () => world.tool.journal[0].closedEarly, GONE_MS);
    await until('no process of the job is left', () => commandsOf(seconds).length === 0, GONE_MS);
  }
});

test('nothing of all that is a complaint in the log', async () => {
  assert.deepEqual(stack.complaints(), []);
  assert.deepEqual(lines(stack, /\[error\]/), []);
});
