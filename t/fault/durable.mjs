// What the tests of runs that survive share: nodes on one Redis with a proxy before it,
// an agent with two actions whose calls are counted, a model that says the same to the
// same conversation, and a client that comes again until it has its answer.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { startStack, tempDir } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { startMockTool } from '../lib/mock-tool.mjs';
import { startRedis } from '../lib/redis.mjs';
import { startRedisProxy } from '../lib/redis-proxy.mjs';
import { openSse } from '../lib/sse-client.mjs';
import { callTurn, textTurn } from '../lib/openai-wire.mjs';
import { SLOW, lives, processOf, sleep, until } from './fault.mjs';

/** A lease, and the time within which somebody has to have taken over after it. */
export const TAKEN_OVER_MS = (10_000 + 5000) * SLOW;

const ANSWER_MS = 5 * TAKEN_OVER_MS;      // some are killed more than once

/** The command that writes down what a run has come to, for this purpose. */
export const save = (what) => ({ name, args }) => name === 'script:run_save' && args[0] === what;

/** The two actions of the agent, in the order in which they are called. */
export const ACTIONS = ['pay', 'ship'];

function catalogAt(url) {
  return {
    tools: ACTIONS.map((name) => ({
      name, description: `Does ${name}.`, effect: 'action',
      config: {
        method: 'POST', url: `${url}/${name}/{{args.n}}`, timeout_ms: 15_000, body: {},
        parameters: {
          type: 'object', properties: { n: { type: 'string' } }, required: ['n'],
          additionalProperties: false,
        },
        response: { fields: [{ path: 'path', label: 'Done' }] },
      },
    })),
    agents: [{
      name: 'worker', model: 'default', instructions: 'Do it.',
      tools: { max_tool_rounds: 3, allow_anonymous_actions: true, http: ACTIONS.map((tool) => ({ tool })) },
    }],
  };
}

/** Results of the tools in a conversation, oldest first, as the model is told them. */
const told = (messages) => messages.filter((message) => message.role === 'tool')
  .map((message) => JSON.parse(message.content));

/** pay in one turn, ship in the next; or both in one. Then it repeats what it was told. */
function script({ json: { messages } }, side) {
  const results = told(messages);
  if (results.length >= ACTIONS.length) return [{ send: textTurn(JSON.stringify(results)) }];
  const wanted = side ? ACTIONS : [ACTIONS[results.length]];
  return [{ send: callTurn(wanted.map((name, n) => ({
    id: `call_${results.length + n}`, name, args: { n: '1' },
  }))) }];
}

export async function startDurable({ nodes = 1, ...options } = {}) {
  const world = new Durable();
  try {
    world.model = await startMockModel();
    world.tool = await startMockTool();
    world.redis = await startRedis();
    world.proxy = await startRedisProxy(world.redis.socket);
    for (let n = 0; n < nodes; n++) world.nodes.push(await world.node(options));
  } catch (error) {
    await world.close().catch(() => {});
    throw error;
  }
  return world;
}

class Durable {
  nodes = [];
  #folders = [];
  #runs = 0;

  /** One more node with the keys of the first. */
  async node(options) {
    const folder = tempDir('toolgate-node-');
    this.#folders.push(folder);
    const state = path.join(folder, 'state');
    const [first] = this.nodes;
    if (first !== undefined) {
      fs.mkdirSync(state, { mode: 0o711 });
      for (const name of ['admin.key', 'master.key']) {
        fs.copyFileSync(path.join(first.state, name), path.join(state, name));
      }
    }
    return startStack({
      state, modelUrl: this.model.baseUrl, catalog: catalogAt(this.tool.url),
      allow: ['127.0.0.1/32'], workers: 1, args: ['--redis', `unix:${this.proxy.socket}`],
      keepAlive: false, expectAlerts: /\[alert\].* worker process \d+ exited on signal 9/, ...options,
    });
  }

  get first() {
    return this.nodes[0];
  }

  /** For the next run; side: both actions in one round. */
  reset({ side = false } = {}) {
    this.model.clear();
    this.tool.clear();
    this.proxy.clear();
    this.tool.answer = undefined;
    this.model.answer = (entry) => script(entry, side);
  }

  /** How often each action was done. */
  get counts() {
    return ACTIONS.map((name) => this.tool.count(`/${name}/`));
  }

  /** A run, made on a node by a client that comes again until it has its answer. */
  order({ node = this.first, others = [], face = 'runs', session } = {}) {
    const id = `order-${process.pid}-${++this.#runs}`;
    const body = face === 'chat'
      ? { model: 'worker', messages: [{ role: 'user', content: 'Order 1.' }] }
      : { agent: 'worker', input: 'Order 1.' };
    const order = {
      id, face, attempts: 0,
      ask: (at) => at.api(face === 'chat' ? '/v1/chat/completions' : '/v1/runs',
        { body: { ...body, invocation_id: id, allow_actions: true, session_id: session } }),
    };
    order.answer = this.#answer(order, [node, ...others]);
    order.answer.catch(() => {});
    return order;
  }

  async #answer(order, nodes) {
    const end = performance.now() + ANSWER_MS;
    let last;
    for (let n = 0; performance.now() < end; n++) {
      order.attempts++;
      try {
        last = await order.ask(nodes[n % nodes.length]);
        if (last.status < 500) return last;
      } catch (error) {
        // the worker has gone, or nobody listens
        last = error;
      }
      await sleep(100);
    }
    throw new Error(`no answer for ${order.id}: ${last?.text ?? last}`);
  }

  /** All events of a run, up to its last one. */
  async events(order, node = this.first) {
    const client = await openSse(`${node.url}/v1/runs/${order.id}/events`, { key: node.key, method: 'GET' });
    await client.end();
    return client.events;
  }

  async close() {
    await Promise.allSettled([this.model?.close(), this.tool?.close()]);
    const stopped = await Promise.allSettled(this.nodes.map((node) => node.stop()));
    await this.proxy?.close();
    await this.redis?.stop();
    for (const folder of this.#folders) fs.rmSync(folder, { recursive: true, force: true });
    const failed = stopped.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}

/** Kills the workers of a node with -9; resolves when they are gone. */
export async function killWorkers(node) {
  const workers = node.workers().map(processOf);
  for (const { pid } of workers) process.kill(pid, 'SIGKILL');
  await until('the worker is gone', () => workers.every((worker) => !lives(worker)));
}

/**
 * Kills when the model is asked the nth time, before it has said anything, and when the
 * round before has come to Redis: the model is asked while that is on its way.
 */
export const inModel = (nth) => (world, kill) => new Promise((resolve) => {
  let asked = 0;
  const { answer } = world.model;
  const kept = nth === 1 ? undefined
    : world.proxy.once('after', save('checkpoint'), () => {}, nth - 1);
  world.model.answer = (entry) => (++asked === nth
    ? [{ call: () => Promise.resolve(kept).then(kill).then(resolve) }, { hang: true }] : answer(entry));
});

/** Kills a node as a power cut does: the master first, so that it starts nobody anew. */
export async function killNode(node) {
  const all = [processOf(node.pid()), ...node.workers().map(processOf)];
  for (const { pid } of all) process.kill(pid, 'SIGKILL');
  await until('the node is gone', () => all.every((one) => !lives(one)));
}

/** What an answer says of the two actions: their codes, null for one that went well. */
export function codesOf(order, answer) {
  assert.equal(answer.status, 200, answer.text);
  const text = order.face === 'chat' ? answer.json.choices[0].message.content : answer.json.output_text;
  const status = order.face === 'chat' ? answer.json.toolgate.status : answer.json.status;
  assert.equal(status, 'completed', answer.text);
  return JSON.parse(text).map((result) => (result.ok ? null : result.error.code));
}

/** Numbers from 1 by 1, one terminal event and that the last. */
export function assertEvents(events) {
  const seqs = events.map((event) => event.json.seq);
  assert.deepEqual(seqs, seqs.map((seq, n) => n + 1));
  assert.deepEqual(events.map((event) => Number(event.id)), seqs);
  const ends = events.filter((event) => /^run\.(completed|failed|cancelled|superseded|expired)$/.test(event.event));
  assert.deepEqual(ends.map((event) => event.event), ['run.completed']);
  assert.equal(events.at(-1), ends[0]);
}
