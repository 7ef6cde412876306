// What the files of this folder share: an nginx with the module, a mock model, a mock
// tool over plain http (which the operator's allow list permits here), and agents.
//
//   const f = await startFixture();   f.nginx, f.model, f.tool
//   after(() => f.stop());
//   f.model.plan([{ send: … }]);      const answer = await f.ask({ … });

import assert from 'node:assert/strict';
import { startNginx } from './nginx.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { startMockTool } from '../lib/mock-tool.mjs';
import { event } from '../lib/openai-wire.mjs';

/** The short forms of field-cases.md; `finish` is for a choice that is to end here. */
export const CH = (delta, finish = null) => event({
  id: 'u1', object: 'chat.completion.chunk',
  choices: [{ index: 0, delta: 'tc' in delta ? { tool_calls: delta.tc.map(call) } : delta, finish_reason: finish }],
});
export const FIN = (reason) => CH({}, reason);
export const DONE = 'data: [DONE]\n\n';

function call({ i, id, n, a, type }) {
  return {
    ...(i === undefined ? {} : { index: i }), ...(id === undefined ? {} : { id }),
    ...(type ?? (n === undefined ? undefined : 'function') ? { type: 'function' } : {}),
    function: { ...(n === undefined ? {} : { name: n }), ...(a === undefined ? {} : { arguments: a }) },
  };
}

export const order = (number) => JSON.stringify({ order_number: number });

/** One whole streamed turn that calls these: [{ id, n, a }]. */
export const callsTurn = (...calls) =>
  calls.map((c, i) => CH({ tc: [{ i, ...c }] })).join('') + FIN('tool_calls') + DONE;

export const textTurn = (...pieces) =>
  pieces.map((content) => CH({ content })).join('') + FIN('stop') + DONE;

const object = (properties, required = Object.keys(properties)) => ({
  type: 'object', properties, required, additionalProperties: false,
});
const string = { type: 'string' };
const rows = {
  items_path: 'data', fields: [{ path: 'number', label: 'Order' }, { path: 'status', label: 'Status' }],
  empty_message: 'Nothing found.',
};

/** The tools of the tests, at a mock tool's address. */
export function toolsAt(url) {
  return [
    {
      name: 'order_status', description: 'State of an order.',
      config: {
        method: 'GET', url: `${url}/orders/{{args.order_number}}`,
        parameters: object({ order_number: string }), response: rows,
      },
    },
    {
      name: 'add_note', description: 'Adds a note.',
      config: {
        method: 'POST', url: `${url}/notes`, body: { text: '{{args.body}}' },
        parameters: object({ body: { type: 'string', 'x-kagent-format': 'text' } }),
      },
    },
    {
      // leads to each behaviour of the mock tool
      name: 'lookup', description: 'Looks something up.',
      config: {
        method: 'GET', url: `${url}/{{args.kind}}/{{args.n}}`, timeout_ms: 2000,
        parameters: object({ kind: string, n: string }), response: rows,
      },
    },
    {
      name: 'do_it', description: 'Does something.', effect: 'action',
      config: {
        method: 'POST', url: `${url}/{{args.kind}}/{{args.n}}`, timeout_ms: 2000, body: {},
        parameters: object({ kind: string, n: string }), response: rows,
      },
    },
    {
      name: 'my_orders', description: 'Orders of the user.', requires_verified_user: true,
      config: {
        method: 'GET', url: `${url}/orders/{{end_user.external_id}}`,
        parameters: object({}), response: rows,
      },
    },
    {
      name: 'switched_off', description: 'Not in use.', enabled: false,
      config: { method: 'GET', url: `${url}/orders/1`, parameters: object({}), response: rows },
    },
  ];
}

const granted = (...names) => names.map((tool) => ({ tool }));
const usual = granted('order_status', 'add_note', 'lookup', 'do_it');

/** Agents of the tests. "a" is the usual one; others differ from it in one thing. */
export function agentsOf(model = 'm') {
  const agent = (name, tools = {}, rest = {}) => ({
    name, model, ...rest,
    tools: { allow_anonymous_actions: true, http: usual, ...tools },
  });
  return [
    agent('a', {}, { instructions: 'Help {{var.who}} of {{var.shop}} and {{x}}.',
      variables: { who: 'customers', shop: 'Acme "North"' } }),
    agent('plain'),
    ...[1, 2, 4, 5].map((n) => agent(`rounds${n}`, { max_tool_rounds: n })),
    agent('careful', { allow_anonymous_actions: false }),
    agent('paused', {}, { actions_paused: true }),
    agent('off', { enabled: false }),
    agent('verified', { http: granted('order_status', 'my_orders', 'switched_off') }),
    agent('ruled', { http: [{ tool: 'order_status', rules: 'Only on weekdays.' }] }),
    agent('bare', { http: [] }),
    ...['fallback', 'dead', 'renamed', 'buffered'].map((name) => ({
      ...agent(`${name}-agent`), model: name,
    })),
  ];
}

/**
 * options: those of startNginx, and { moreTools, each a tool or a function that makes one
 * of the mock's address, agents: instead of the usual ones }.
 * Models: m (the mock), renamed (model=), dead (nobody listens), fallback (dead, then the
 * mock under another name), backup, buffered (proxy_buffering on, nginx's default).
 */
export async function startFixture({ moreTools = [], agents, models = {}, catalog = {}, ...options } = {}) {
  const model = await startMockModel();
  const tool = await startMockTool();
  const dead = { url: 'http://127.0.0.1:9' };
  const nginx = await startNginx({
    ...options,
    http: (options.http ?? 'toolgate_netguard_allow 127.0.0.1/32 insecure_http;')
      .replaceAll('@MODEL@', model.port),
    models: {
      m: [model], renamed: [{ url: model.url, model: 'vendor-7b' }], dead: [dead],
      fallback: [dead, { url: model.url, model: 'second' }],
      backup: [{ url: model.url, model: 'spare', backup: true }, dead],
      buffered: [{ conf: `proxy_pass ${model.url}/v1/chat/completions; proxy_http_version 1.1; proxy_set_header Connection "";` }],
      ...Object.fromEntries(Object.entries(models).map(([name, places]) => [name,
        places.map((p) => ({ ...p, url: p.url === '@MODEL@' ? model.url : p.url, conf: p.conf?.replaceAll('@MODEL@', model.port) }))])),
    },
    catalog: {
      tools: [...toolsAt(tool.url), ...moreTools.map((t) => (typeof t === 'function' ? t(tool.url) : t))],
      agents: JSON.parse(JSON.stringify(agents ?? agentsOf()).replaceAll('@MODEL@', model.port)),
      ...catalog,
    },
  });
  return new Fixture(nginx, model, tool);
}

class Fixture {
  constructor(nginx, model, tool) {
    Object.assign(this, { nginx, model, tool });
  }

  /** Forgets what the last test left. */
  clear() {
    this.model.clear();
    this.tool.clear();
    this.tool.answer = undefined;
  }

  body(more = {}) {
    return {
      model: 'a', allow_actions: true, messages: [{ role: 'user', content: 'where is 8812?' }], ...more,
    };
  }

  /** Not streamed; the turns (byte strings) are what the model answers, in order. */
  async ask(turns, more = {}, options = {}) {
    this.clear();
    this.model.plan(...turns.map(script));
    return this.nginx.chat(this.body(more), options);
  }

  /** The same, streamed to its end. */
  async stream(turns, more = {}, options = {}) {
    this.clear();
    this.model.plan(...turns.map(script));
    return this.nginx.stream(this.body(more), options);
  }

  /** What the model was told of the calls of its last turn: [{ id, name, args, result }]. */
  told(n = -1) {
    const { messages } = this.model.request(n).json;
    const at = messages.findLastIndex((m) => m.role === 'assistant' && m.tool_calls);
    if (at < 0) return [];
    const results = messages.slice(at + 1);
    return messages[at].tool_calls.map((c, i) => {
      assert.equal(results[i].role, 'tool');
      assert.equal(results[i].tool_call_id, c.id, 'results in call order, each to its call');
      assert.equal(typeof c.function.arguments, 'string');
      return {
        id: c.id, name: c.function.name, args: c.function.arguments,
        result: JSON.parse(results[i].content),
      };
    });
  }

  /** Codes of those results, "ok" for a success. */
  codes(n) {
    return this.told(n).map(({ result }) => (result.ok ? 'ok' : result.error.code));
  }

  /** Paths that the tool was asked for. */
  get asked() {
    return this.tool.journal.map((e) => e.path);
  }

  async stop() {
    try {
      await this.nginx.stop();
    } finally {
      await this.model.close();
      await this.tool.close();
    }
  }
}

const script = (turn) => (typeof turn === 'string' || Buffer.isBuffer(turn) ? [{ send: turn }] : turn);

/** A stream that ended well: one id, one finish, [DONE] last, nothing after it. */
export function assertWhole(client) {
  assert.equal(client.status, 200, client.raw);
  assert.match(client.headers['content-type'], /^text\/event-stream/);
  assert.equal(client.error, undefined);
  assert.ok(client.done, `[DONE] is last: ${client.raw.slice(-400)}`);
  const chunks = client.events.slice(0, -1).map((e) => e.json);
  assert.ok(chunks.every((c) => c.object === 'chat.completion.chunk' && c.error === undefined));
  assert.equal(new Set(chunks.map((c) => c.id)).size, 1, 'one id');
  assert.equal(chunks.filter((c) => c.choices[0]?.finish_reason).length, 1, 'one finish');
  assert.equal(client.events.filter((e) => e.data === '[DONE]').length, 1, 'one [DONE]');
  return chunks;
}

/** A stream that broke off: one error event at the end, no [DONE]. */
export function assertBroken(client, code) {
  assert.equal(client.status, 200);
  assert.equal(client.events.filter((e) => e.data === '[DONE]').length, 0, 'no [DONE]');
  const errors = client.events.filter((e) => e.json?.error);
  assert.equal(errors.length, 1, client.raw);
  assert.equal(client.events.at(-1), errors[0], 'the error is last');
  assertErrorObject(errors[0].json.error);
  assert.equal(errors[0].json.error.code, code);
  assert.equal(errors[0].json.error.type, 'api_error');
}

export function assertErrorObject(error) {
  assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type']);
  assert.equal(typeof error.message, 'string');
  assert.ok(error.message.length > 10);
}

export function assertError(answer, status, code, param) {
  assert.equal(answer.status, status, answer.text);
  assertErrorObject(answer.json.error);
  assert.equal(answer.json.error.code, code, answer.text);
  if (param !== undefined) assert.equal(answer.json.error.param, param);
  assert.match(answer.headers['content-type'], /^application\/json/);
  assert.match(answer.headers['x-request-id'] ?? '', /^[0-9a-f]{32}$/);
}

/** The finish reason and the object "toolgate" of an answer, streamed or not. */
export function closing(answer) {
  if (answer.json) {
    return { finish: answer.json.choices[0].finish_reason, ...answer.json.toolgate };
  }
  const last = answer.events.map((e) => e.json).find((c) => c?.choices?.[0]?.finish_reason);
  return { finish: last.choices[0].finish_reason, ...last.toolgate };
}

export const stepsOf = (answer) => closing(answer).steps.map((s) => [s.tool, s.code ?? 'ok']);
