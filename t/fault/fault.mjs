// What the fault tests share: the processes of a stack seen from outside (pids, open
// files, memory, what a sandbox runs), ways to start a part again that was killed, and
// an agent with a slow tool, a quick tool and run_command. It judges nothing but time.

import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { spawn, execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { startStack, REPO } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { startMockTool } from '../lib/mock-tool.mjs';
import { openSse } from '../lib/sse-client.mjs';

export { sleep };

/** Sanitizers make everything slower: bounds on time are widened by this. */
export const SLOW = process.env.TOOLGATE_ASAN ? 4 : 1;

const READY_MS = 20_000;

/** Resolves with what ok() returns as soon as that is truthy; fails after ms. */
export async function until(what, ok, ms = 10_000) {
  const end = performance.now() + ms * SLOW;
  for (;;) {
    const value = await ok();
    if (value) return value;
    if (performance.now() > end) throw new Error(`not within ${ms * SLOW} ms: ${what}`);
    await sleep(15);
  }
}

function readProc(file) {
  try {
    return fs.readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

/** { pid, name, state, parent, start, args } of a process; undefined when it is gone. */
export function processOf(pid) {
  const m = /^\d+ \((.*)\) (\S) (\d+) (.*)/s.exec(readProc(`/proc/${pid}/stat`));
  if (m === null) return undefined;
  return {
    pid, name: m[1], state: m[2], parent: Number(m[3]), start: m[4].split(' ')[17],
    args: readProc(`/proc/${pid}/cmdline`).split('\0').slice(0, -1),
  };
}

export function processes() {
  return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    .map((name) => processOf(Number(name))).filter(Boolean);
}

/** Children, their children and so on. */
export function descendants(pid, all = processes()) {
  const own = all.filter((p) => p.parent === pid);
  return own.concat(own.flatMap((p) => descendants(p.pid, all)));
}

/** Whether this very process still runs: pids are given out again. */
export function lives({ pid, start }) {
  const now = processOf(pid);
  return now !== undefined && now.start === start && now.state !== 'Z';
}

export const commandsOf = (word) => processes()
  .filter((p) => p.state !== 'Z' && p.args.some((arg) => arg.includes(word)));

let marks = 0;

/** A duration of "sleep" that no other test uses: by it a job is found. */
export const mark = () => `${700 + marks++}.${String(process.pid).padStart(7, '0')}`;

export const fdCount = (pid) => fs.readdirSync(`/proc/${pid}/fd`).length;

/** How many TCP sockets of a process lead to that port of loopback. */
export function connectionsTo(pid, port) {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const inodes = new Set(readProc('/proc/net/tcp').split('\n').slice(1)
    .map((line) => line.trim().split(/\s+/)).filter((f) => f[2] === remote)
    .map((f) => `socket:[${f[9]}]`));
  return fs.readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return inodes.has(fs.readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      return false;
    }
  }).length;
}

export const rssKiB = (pid) =>
  Number(/VmRSS:\s+(\d+)/.exec(readProc(`/proc/${pid}/status`))?.[1]);

/** Lines of the error log that match. */
export const lines = (stack, pattern) =>
  stack.log().split('\n').filter((line) => pattern.test(line));

/** What a worker said when it left: undefined, or the number of its watches. */
export function watchesLeft(stack, pid) {
  const said = new RegExp(` ${pid}#${pid}: toolgate: watches left: (\\d+)`).exec(stack.log());
  return said === null ? undefined : Number(said[1]);
}

/** The results of the tools, as the model was last told: [{ name, text, json }]. */
export function toldToModel(model, n = -1) {
  const messages = model.request(n).json.messages;
  const names = new Map(messages.flatMap((m) => m.tool_calls ?? [])
    .map((call) => [call.id, call.function.name]));
  return messages.filter((m) => m.role === 'tool').map((m) => ({
    name: names.get(m.tool_call_id), text: m.content, json: JSON.parse(m.content),
  }));
}

export const ask = (...said) => [{ role: 'user', content: said.join('\n') }];

export const call = (name, args) => `@call ${name} ${JSON.stringify(args)}`;

/** An agent with two HTTP tools at that address, and run_command. */
export function catalogAt(url, { instructions = 'Be brief.', rounds = 3 } = {}) {
  const tool = (name, to, timeout) => ({
    name, description: `Calls ${to}.`, effect: 'read',
    config: {
      method: 'GET', url: `${url}${to}`, timeout_ms: timeout,
      parameters: {
        type: 'object', properties: { n: { type: 'string' } }, required: ['n'],
        additionalProperties: false,
      },
      response: {
        items_path: 'data', fields: [{ path: 'number', label: 'Order' },
          { path: 'status', label: 'Status' }],
      },
    },
  });
  return {
    tools: [tool('order', '/orders/{{args.n}}', 5000), tool('hang', '/hang/{{args.n}}', 15_000)],
    agents: [{
      name: 'agent', model: 'default', instructions,
      tools: {
        max_tool_rounds: rounds, allow_anonymous_actions: true,
        http: [{ tool: 'order' }, { tool: 'hang' }],
        toolset: { include: ['run_command'], approval_mode: 'off' },
      },
    }],
  };
}

/** A whole toolgate with mock model and mock tool; close() ends all of it. */
export async function startWorld({ catalog = {}, ...options } = {}) {
  const world = { model: await startMockModel(), tool: await startMockTool() };
  try {
    world.stack = await startStack({
      modelUrl: world.model.baseUrl, catalog: catalogAt(world.tool.url, catalog),
      allow: ['127.0.0.1/32'], workers: 1, keepAlive: false, ...options,
    });
  } catch (error) {
    await Promise.all([world.model.close(), world.tool.close()]);
    throw error;
  }
  /** A streamed chat, as an SseClient when its head has come: with the first text. */
  world.open = (body, options = {}) => openSse(`${world.stack.baseURL}/chat/completions`, {
    key: world.stack.key, body: { model: 'agent', allow_actions: true, stream: true, ...body },
    ...options,
  });
  world.ask = (...said) => world.stack.chat({
    model: 'agent', allow_actions: true, messages: ask(...said),
  });
  world.reset = () => {
    world.model.clear();
    world.tool.clear();
    world.tool.answer = undefined;
  };
  world.close = async () => {
    await Promise.all([world.model.close(), world.tool.close()]);
    await world.stack.stop();
  };
  return world;
}

/** A gate for mock-tool's answer: holds every request until it is opened. */
export function gate(tool) {
  let open;
  const opened = new Promise((resolve) => { open = resolve; });
  tool.answer = async () => {
    await opened;
    return false;
  };
  return open;
}

/** Waits until a process that was started here has ended; kills it when it does not. */
async function ended(child, ms = 10_000) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  const timer = setTimeout(() => child.kill('SIGKILL'), ms);
  await gone;
  clearTimeout(timer);
}

function startPart(stack, file, args, name) {
  const log = fs.openSync(path.join(stack.state, 'logs', `${name}.log`), 'a');
  const child = spawn(file, args, { stdio: ['ignore', log, log] });
  fs.closeSync(log);
  return {
    pid: child.pid,
    stop: async () => {
      child.kill('SIGTERM');
      await ended(child);
    },
  };
}

function connects(socket) {
  return new Promise((resolve) => {
    const probe = net.connect(socket);
    probe.once('error', () => resolve(false));
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
  });
}

/** The private Redis once more, as scripts/run starts it; ended by .stop(). */
export async function startRedisAgain(stack) {
  const folder = path.join(stack.state, 'run/redis');
  const conf = path.join(stack.state, 'redis/redis.conf');
  const { uid, gid } = fs.statSync(folder);
  const socket = path.join(folder, 'redis.sock');
  fs.rmSync(socket, { force: true });
  const redis = process.getuid() === 0
    ? startPart(stack, 'setpriv', ['--reuid', uid, '--regid', gid, '--clear-groups', '--',
      'redis-server', conf].map(String), 'redis')
    : startPart(stack, 'redis-server', [conf], 'redis');
  await until('Redis answers', () => redisCli(stack, 'ping') === 'PONG', READY_MS);
  return redis;
}

export function redisCli(stack, ...args) {
  try {
    return execFileSync('redis-cli', ['-s', path.join(stack.state, 'run/redis/redis.sock'),
      ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

/** The helper once more, on its old configuration; ended by .stop(). */
export async function startHelperAgain(stack) {
  const build = process.env.TOOLGATE_BUILD ?? path.join(REPO, 'build');
  const helper = startPart(stack, path.join(build, 'toolgated'),
    ['-c', path.join(stack.state, 'conf/toolgated.conf')], 'helper');
  await until('the helper answers', () => connects(path.join(stack.state, 'run/helper.sock')),
    READY_MS);
  return helper;
}

/** Changes the generated nginx.conf; a reload then takes it. */
export function editConf(stack, from, to) {
  const file = path.join(stack.state, 'conf/nginx.conf');
  const text = fs.readFileSync(file, 'utf8');
  if (!text.includes(from)) throw new Error(`nginx.conf has no "${from}"`);
  fs.writeFileSync(file, text.replace(from, to));
}

/** The nth of sorted values, by share. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}
