// What the tests of the control plane share: nodes on one Redis with a model and a tool
// behind them, and short forms of its requests.
//
//   const w = await startWorld();         w.redis, w.node (a fixture), w.nodes
//   await w.make('/v1/tools', tool);      201 and the object
//   await w.api('PATCH', '/v1/tools/x', { … });

import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFixture } from './fixture.mjs';
import { PATIENT, SLOW } from './nginx.mjs';
import { startRedis } from '../lib/redis.mjs';

export const GUARD = 'toolgate_netguard_allow 127.0.0.1/32 insecure_http;';

/** options: those of startFixture for each node, { nodes, redis: an existing one }. */
export async function startWorld({ nodes = 1, redis, http = '', each = () => ({}), ...options } = {}) {
  const w = new World();
  w.ownRedis = redis === undefined;
  w.redis = redis ?? await startRedis();
  for (let i = 0; i < nodes; i++) {
    w.nodes.push(await startFixture({
      agents: [], workers: 2,
      http: `${GUARD} toolgate_redis unix:${w.redis.socket} prefix=t: ${PATIENT}; ${http}`, ...options, ...each(i),
    }));
  }
  return w;
}

class World {
  nodes = [];

  get node() {
    return this.nodes[0];
  }

  /** One request to a node's control plane (the first one's when none is named). */
  api(method, path, body, { node = this.node, ...options } = {}) {
    return node.nginx.request(path, { method, body, ...options });
  }

  /** The same that must succeed; resolves to the object. */
  async ok(method, path, body, options) {
    const answer = await this.api(method, path, body, options);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  async make(path, body, options) {
    const answer = await this.api('POST', path, body, options);
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  }

  /** An agent that is published, with these tools granted. */
  async agent(name, tools = [], more = {}, options = {}) {
    const agent = await this.make('/v1/agents', agentOf(name, tools, more), options);
    return this.ok('POST', `/v1/agents/${agent.id}/publish`, undefined, options);
  }

  async stop() {
    // one that has something to complain of must not leave the others running
    const stopped = await Promise.allSettled(this.nodes.map((node) => node.stop()));
    if (this.ownRedis) await this.redis.stop();
    const failed = stopped.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}

export const agentOf = (name, tools = [], { tools: gates = {}, ...more } = {}) => ({
  name, model: 'm', ...more,
  tools: { allow_anonymous_actions: true, http: tools.map((tool) => ({ tool })), ...gates },
});

/** A GET tool without parameters; more goes into its config. */
export const toolOf = (name, url, config = {}, more = {}) => ({
  name, description: 'x', ...more,
  config: {
    method: 'GET', url, parameters: { type: 'object', properties: {}, additionalProperties: false },
    response: { items_path: 'data', fields: [{ path: 'status', label: 'Status' }] }, ...config,
  },
});

/** Waits until fn resolves to something true; the time that it took in ms. */
export async function soon(fn, what, ms = 1000) {
  const began = performance.now();
  for (;;) {
    const seen = await fn();
    const took = performance.now() - began;
    if (seen) return took;
    assert.ok(took < ms * SLOW, `${typeof what === 'function' ? what() : what} within ${ms} ms`);
    await sleep(10);
  }
}
