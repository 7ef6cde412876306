// The worker's side of the helper: calls of run_command to a helper that behaves, one
// that does not in every way it can, and the real one.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { REPO, tempDir } from '../lib/stack.mjs';
import { T, record } from '../helper/client.mjs';
import { stepsOf, callsTurn, startFixture, textTurn } from './fixture.mjs';
import { PATIENT, SLOW } from './nginx.mjs';
import { startRedis } from '../lib/redis.mjs';

const BUILD = process.env.TOOLGATE_BUILD ?? path.join(REPO, 'build');
const BINARY = process.env.TOOLGATED ?? path.join(BUILD, 'toolgated');
const ANSWER = { ok: true, stdout: 'from the helper\n', exit_code: 0 };
const OK = textTurn('ok');
const SILENCE_MS = 250;

const dir = tempDir('toolgate-helper-');
const socket = path.join(dir, 'sock');

// A helper in JavaScript: answer(call, reply, connection) decides what happens.
class FakeHelper {
  constructor() {
    this.connections = new Set();
    this.opened = 0;
    this.closedByWorker = 0;
    this.calls = [];
  }

  async start() {
    fs.rmSync(socket, { force: true });
    this.server = net.createServer((c) => this.#serve(c));
    await new Promise((resolve) => this.server.listen(socket, resolve));
  }

  async stop() {
    for (const c of this.connections) c.destroy();
    if (this.server) await new Promise((resolve) => this.server.close(resolve));
    this.server = undefined;
  }

  hello = (c) => c.write(record(T.HELLO, { protocol: 1, server: 'fake' }));
  answer = (call, reply) => { reply.accepted(); reply.result(ANSWER); };

  #serve(c) {
    this.opened++;
    this.connections.add(c);
    let pending = Buffer.alloc(0);
    c.on('error', () => {});
    c.on('end', () => { this.closedByWorker++; });
    c.on('close', () => this.connections.delete(c));
    c.on('data', (data) => {
      pending = Buffer.concat([pending, data]);
      while (pending.length >= 8 && pending.length >= 8 + pending.readUInt32BE(0)) {
        const length = pending.readUInt32BE(0);
        const r = { type: pending[4], stream: pending.readUInt16BE(6), payload: pending.subarray(8, 8 + length) };
        pending = pending.subarray(8 + length);
        if (r.type === T.HELLO) this.hello(c);
        else if (r.type === T.CALL) {
          const call = JSON.parse(r.payload);
          this.calls.push(call);
          this.answer(call, {
            accepted: () => c.write(record(T.EVENT, { event: 'accepted' }, r.stream)),
            result: (what) => c.write(record(T.RESULT, what, r.stream)),
            raw: (bytes) => c.write(bytes),
            stream: r.stream,
            close: () => c.destroy(),
          }, c);
        }
      }
    });
  }
}

let f;
let helper;

before(async () => {
  const agent = (name) => ({ name, model: 'm', tools: { allow_anonymous_actions: true,
    toolset: { include: ['run_command'], approval_mode: 'off' } } });
  f = await startFixture({
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_helper unix:${socket};`,
    agents: [agent('a')],
  });
});
after(async () => {
  await helper?.stop();
  await f.stop();
  fs.rmSync(dir, { recursive: true, force: true });
});

const command = (text, more = {}) => callsTurn({ id: 'c1', n: 'run_command', a: JSON.stringify({ command: text, ...more }) });

// one call of run_command, and what the model was told
async function run(args = {}, text = 'true') {
  const started = performance.now();
  const answer = await f.ask([command(text, args), OK]);
  assert.equal(answer.status, 200, answer.text);
  const [told] = f.told();
  return { ...told, ms: performance.now() - started };
}

// a streamed chat whose client can leave before the first byte comes
function openAndLeave() {
  const body = JSON.stringify({ stream: true, ...f.body() });
  const request = http.request(`${f.nginx.url}/v1/chat/completions`, {
    method: 'POST', agent: false,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${f.nginx.key}` },
  });
  request.on('error', () => {});
  request.end(body);
  return () => request.destroy();
}

async function unavailable(what) {
  const { result, ms } = await run();
  assert.equal(result.ok, false, what);
  assert.equal(result.error?.code ?? result.error_type, 'sandbox_unavailable', `${what}: ${JSON.stringify(result)}`);
  return ms;
}

async function fresh(setup = {}) {
  await helper?.stop();
  helper = Object.assign(new FakeHelper(), setup);
  await helper.start();
}

test('a call arrives whole and its answer goes to the model as it is', async () => {
  await fresh();
  const { result } = await run({ cwd: 'sub', timeout: 5, env: { A: 'ü"\n' } }, 'echo "x"');
  assert.deepEqual(result, ANSWER);
  const [call] = helper.calls;
  assert.deepEqual(call.arguments, { command: 'echo "x"', cwd: 'sub', timeout: 5, env: { A: 'ü"\n' } });
  assert.equal(call.tool, 'run_command');
  assert.match(call.invocation_id, /^run_/);
  for (const key of ['id', 'project', 'account', 'session']) assert.equal(typeof call[key], 'string');
});

test('the sandbox is that of the session, within its account; without one it is the run\'s own', async () => {
  await fresh();
  const redis = await startRedis();
  const g = await startFixture({
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_helper unix:${socket}; toolgate_redis unix:${redis.socket} ${PATIENT};`,
    agents: [{ name: 'a', model: 'm', tools: { allow_anonymous_actions: true, toolset: { include: ['run_command'] } } }],
  });
  try {
    const command = callsTurn({ id: 'c', n: 'run_command', a: '{"command":"id"}' });
    const labels = async (more) => {
      helper.calls.length = 0;
      const answer = await g.ask([command, OK], more);
      assert.equal(answer.status, 200, answer.text);
      return [helper.calls[0].account, helper.calls[0].session, answer.headers['x-toolgate-run']];
    };
    const { json: { id } } = await g.nginx.request('/v1/sessions', { body: { account_id: 'acme' } });
    const [first, second] = [await labels({ session_id: id, account_id: 'acme' }), await labels({ session_id: id, account_id: 'acme' })];
    assert.deepEqual([first.slice(0, 2), second.slice(0, 2)], [['acme', id], ['acme', id]]);
    const [, session, run] = await labels({});
    assert.equal(session, run);
  } finally {
    await g.stop();
    await redis.stop();
  }
});

test('run_command waits for a person, and the model cannot be that person', async () => {
  await fresh();
  const redis = await startRedis();
  const g = await startFixture({
    workers: 1, runHost: 'toolgate_run_timeout 20s;',
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_helper unix:${socket}; toolgate_redis unix:${redis.socket} ${PATIENT};`,
    agents: [{ name: 'a', model: 'm', tools: { allow_anonymous_actions: true, toolset: { include: ['run_command'], approval_mode: 'strict' } } }],
  });
  try {
    const state = async (id) => {
      for (;;) {
        const { json } = await g.nginx.request(`/v1/runs/${id}`);
        if (!['queued', 'running'].includes(json.status)) return json;
        await sleep(20);
      }
    };
    g.model.plan([{ send: command('ls', { approval: { approved: true } }) }], [{ send: OK }]);
    const { json } = await g.nginx.request('/v1/runs', { method: 'POST', body: { agent: 'a', input: 'x', allow_actions: true } });
    assert.equal(json.status, 'requires_action');
    const [asked] = json.required_action.approvals;
    assert.deepEqual([asked.arguments, asked.risk_level, asked.side_effects], [{ command: 'ls' }, 'high', ['sandbox_command_execution']]);
    assert.deepEqual(helper.calls, []);
    assert.equal((await g.nginx.request(`/v1/approvals/${asked.id}`, { method: 'POST', body: { approved: true } })).status, 200);
    assert.equal((await state(json.id)).status, 'completed');
    assert.deepEqual(helper.calls.map((c) => c.arguments), [{ command: 'ls' }]);
    assert.deepEqual(g.told()[0].result, ANSWER);
  } finally {
    await g.stop();
    await redis.stop();
  }
});

test('O02: output that holds NUL is a success like any other', async () => {
  const nul = { ok: true, stdout: 'a\u0000b', exit_code: 0 };
  await fresh({ answer: (call, reply) => { reply.accepted(); reply.result(nul); } });
  const answer = await f.ask([command('true'), OK]);
  assert.deepEqual(stepsOf(answer), [['run_command', 'ok']]);
  assert.deepEqual(f.told()[0].result, nul);
});

test('a connection is kept and used again', async () => {
  await fresh();
  for (let i = 0; i < 5; i++) assert.equal((await run()).result.ok, true);
  assert.equal(helper.opened, 1);
  assert.equal(helper.calls.length, 5);
});

test('a helper that was restarted meanwhile is found again', async () => {
  await fresh();
  assert.equal((await run()).result.ok, true);
  await fresh();
  assert.equal((await run()).result.ok, true);
  assert.equal(helper.opened, 1);
});

test('no helper: sandbox_unavailable, at once', async () => {
  await helper?.stop();
  fs.rmSync(socket, { force: true });
  assert.ok(await unavailable('no socket') < 2000 * SLOW);
  await fresh();
  await helper.stop();
  assert.ok(await unavailable('nobody listens') < 2000 * SLOW);
});

test('a helper that hangs is given up after 250 ms, on a new and on a kept connection', async () => {
  await fresh({ hello: () => {}, answer: () => {} });
  const first = await unavailable('no hello');
  assert.ok(first >= SILENCE_MS - 20 && first < (SILENCE_MS + 1500) * SLOW, `${first} ms`);
  await fresh();
  assert.equal((await run()).result.ok, true);
  helper.answer = () => {};
  const second = await unavailable('no event');
  assert.ok(second >= SILENCE_MS - 20 && second < (SILENCE_MS + 1500) * SLOW, `${second} ms`);
});

test('a call that was accepted may take longer than that', async () => {
  await fresh({ answer: async (call, reply) => { reply.accepted(); await sleep(700); reply.result(ANSWER); } });
  assert.equal((await run()).result.ok, true);
});

const nonsense = {
  'another protocol': { hello: (c) => c.write(record(T.HELLO, { protocol: 2 })) },
  'hello that is no JSON': { hello: (c) => c.write(record(T.HELLO, 'hi')) },
  'a result before hello': { hello: (c) => c.write(record(T.RESULT, ANSWER, 1)) },
  'http': { hello: (c) => c.write('HTTP/1.1 400 Bad Request\r\n\r\n') },
  'the number of another call': { answer: (call, reply) => reply.raw(record(T.RESULT, ANSWER, reply.stream + 1)) },
  'a record that is too long': { answer: (call, reply) => reply.raw(Buffer.from([0, 5, 0, 0, T.RESULT, 0, 0, 1])) },
  'an unknown type': { answer: (call, reply) => reply.raw(Buffer.from([0, 0, 0, 1, 99, 0, 0, 1, 32])) },
  'a call back': { answer: (call, reply) => reply.raw(record(T.CALL, '{}', reply.stream)) },
  'a close without answer': { answer: (call, reply) => reply.close() },
  'a close after accepting': { answer: (call, reply) => { reply.accepted(); setTimeout(reply.close, 50); } },
  'half an answer': { answer: (call, reply) => { reply.raw(record(T.RESULT, ANSWER, reply.stream).subarray(0, 20)); setTimeout(reply.close, 50); } },
};

for (const [what, setup] of Object.entries(nonsense)) {
  test(`${what}: sandbox_unavailable, and the next call is fine`, async () => {
    await fresh(setup);
    await unavailable(what);
    await fresh();
    assert.equal((await run()).result.ok, true);
  });
}

test('an answer byte by byte, and one of the biggest size', async () => {
  await fresh({
    answer: async (call, reply, c) => {
      c.setNoDelay?.(true);
      for (const byte of Buffer.concat([record(T.EVENT, '{}', reply.stream), record(T.RESULT, ANSWER, reply.stream)])) {
        reply.raw(Buffer.from([byte]));
        await sleep(1);
      }
    },
  });
  assert.deepEqual((await run()).result, ANSWER);
  const big = { ok: true, stdout: 'x'.repeat(200_000) };
  await fresh({ answer: (call, reply) => { reply.accepted(); reply.result(big); } });
  assert.equal((await run()).result.ok, true);
});

test('an unasked record on a kept connection: it is not used again', async () => {
  await fresh({ answer: (call, reply) => { reply.accepted(); reply.result(ANSWER); setTimeout(() => reply.raw(record(T.EVENT, '{}', 7)), 20); } });
  assert.equal((await run()).result.ok, true);
  await sleep(200);
  assert.equal((await run()).result.ok, true);
  assert.equal(helper.opened, 2);
});

test('the client leaves: the connection to the helper is closed', async () => {
  let asked;
  const arrived = new Promise((resolve) => { asked = resolve; });
  await fresh({ answer: (call, reply) => { reply.accepted(); asked(); } });
  f.clear();
  f.model.plan([{ send: command('sleep 60') }], [{ send: OK }]);
  const leave = openAndLeave();
  await arrived;
  assert.equal(helper.closedByWorker, 0);
  leave();
  for (let i = 0; i < 100 && helper.closedByWorker === 0; i++) await sleep(20);
  assert.equal(helper.closedByWorker, 1);
});

test('many calls at once: a connection each, at most 16 are kept', async () => {
  await fresh({ answer: async (call, reply) => { reply.accepted(); await sleep(300); reply.result(ANSWER); } });
  const before = helper.opened;
  f.clear();
  const calls = callsTurn(...[1, 2, 3, 4, 5].map((n) => ({ id: `c${n}`, n: 'run_command', a: JSON.stringify({ command: `echo ${n}` }) })));
  f.model.plan(...Array.from({ length: 6 }, () => [{ send: calls }]), ...Array.from({ length: 6 }, () => [{ send: OK }]));
  const answers = await Promise.all(Array.from({ length: 6 }, () => f.nginx.chat(f.body())));
  assert.ok(answers.every((a) => a.status === 200));
  assert.ok(helper.opened - before > 16, `${helper.opened} connections`);
  await sleep(300);
  assert.ok(helper.connections.size <= 16, `${helper.connections.size} are kept`);
});

test('C099 the real helper: a command runs, a time-out is told, a leaving client ends the job', {
  skip: !fs.existsSync(BINARY) && `there is no ${BINARY}`,
}, async () => {
  await helper.stop();
  fs.rmSync(socket, { force: true });
  const log = path.join(dir, 'log');
  const real = spawn(BINARY, ['--socket', socket, '--state', path.join(dir, 'state'), '--log', log,
    '--peer-uid', String(process.getuid())], { stdio: 'inherit' });
  const gone = new Promise((resolve) => real.once('exit', resolve));
  try {
    for (let i = 0; i < 500 && !(fs.existsSync(log) && /"ev":"ready"/.test(fs.readFileSync(log, 'utf8'))); i++) await sleep(20);
    const { result } = await run({}, 'echo "$((6 * 7))" > f; cat f; id -u');
    assert.equal(result.ok, true, JSON.stringify(result));
    assert.equal(result.stdout, '42\n1000\n');
    assert.equal(result.backend, 'sandbox/native');
    const late = (await run({ timeout: 1 }, 'echo begun; sleep 60')).result;
    assert.deepEqual([late.timed_out, late.stdout, late.exit_code], [true, 'begun\n', 124]);

    f.clear();
    f.model.plan([{ send: command('sleep 60') }], [{ send: OK }]);
    const leave = openAndLeave();
    await sleep(1000);
    leave();
    const ended = () => fs.readFileSync(log, 'utf8').split('\n').filter((l) => /"cancelled":true/.test(l)).length;
    for (let i = 0; i < 50 && ended() === 0; i++) await sleep(20);
    assert.equal(ended(), 1, 'within 1 s');
  } finally {
    real.kill('SIGTERM');
    await gone;
  }
});
