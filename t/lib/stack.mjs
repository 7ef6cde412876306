// Starts and ends a whole toolgate by scripts/run --detach for one test: own state
// folder, own port. On stop it looks for what must never be in a log.
//
//   const stack = await startStack({ catalog: { agents: [...] }, modelUrl: model.baseUrl });
//   … stack.url, stack.baseURL, stack.key, stack.state …
//   await stack.stop();

import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { notChecked } from './sanitizers.mjs';

export const REPO = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const RUN = path.join(REPO, 'scripts/run');
const START_MS = 120_000;

export async function freePort(host = '127.0.0.1') {
  const server = net.createServer();
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export function tempDir(prefix = 'toolgate-test-') {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), prefix));
  fs.chmodSync(dir, 0o711);
  return dir;
}

/** Runs scripts/run; resolves to { code, stdout, stderr } whatever the code. */
export function scriptsRun(args, { env = {}, timeout = START_MS } = {}) {
  return new Promise((resolve) => {
    execFile(RUN, args, {
      env: { ...process.env, ...env }, timeout, maxBuffer: 8 << 20,
    }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : error.code ?? 1, stdout, stderr });
    });
  });
}

function buildEnv() {
  const build = process.env.TOOLGATE_BUILD ?? path.join(REPO, 'build');
  return fs.existsSync(path.join(build, 'ngx_http_toolgate_module.so'))
    ? { TOOLGATE_BUILD: build } : {};
}

/**
 * catalog: an object (one file), { name: object } by `catalogs`, or a glob string;
 * none = the demo's. args: more options of scripts/run. expectAlerts: true, or what
 * the lines match that the test itself brings about. keepAlive: false where workers are
 * killed: a client may send on a kept connection before it has heard of its end.
 */
export async function startStack({
  catalog, catalogs, modelUrl, modelName, allow = [], hosts = {}, ca, workers = 2,
  confExtra, serverExtra, args = [], env = {}, state, expectAlerts = false, keepAlive = true,
} = {}) {
  const stack = new Stack();
  stack.dir = tempDir();
  stack.state = state ?? path.join(stack.dir, 'state');
  stack.expectAlerts = expectAlerts;
  stack.keepAlive = keepAlive;
  stack.env = { ...buildEnv(), ...env };
  stack.port = await freePort();
  stack.url = `http://127.0.0.1:${stack.port}`;
  stack.baseURL = `${stack.url}/v1`;

  const options = ['--state', stack.state, '--listen', `127.0.0.1:${stack.port}`,
    '--workers', String(workers), '--detach'];
  const files = catalogs ?? (catalog !== undefined && typeof catalog !== 'string'
    ? { catalog } : undefined);
  if (files !== undefined) {
    stack.catalogDir = path.join(stack.dir, 'catalog');
    fs.mkdirSync(stack.catalogDir);
    for (const [name, value] of Object.entries(files)) stack.writeCatalog(value, name);
    options.push('--catalog', path.join(stack.catalogDir, '*.json'));
  } else if (catalog !== undefined) {
    options.push('--catalog', catalog);
  }
  if (modelUrl !== undefined) options.push('--model-url', modelUrl);
  if (modelName !== undefined) options.push('--model-name', modelName);
  if (ca !== undefined) options.push('--ca', ca);
  for (const cidr of allow) options.push('--allow', cidr);
  for (const [name, addr] of Object.entries(hosts)) options.push('--host', `${name}=${addr}`);
  for (const [option, text] of [['--conf-extra', confExtra], ['--server-extra', serverExtra]]) {
    if (text === undefined) continue;
    const file = path.join(stack.dir, `${option.slice(2)}.conf`);
    fs.writeFileSync(file, text);
    options.push(option, file);
  }

  const done = await scriptsRun([...options, ...args], { env: stack.env });
  stack.output = done.stdout;
  if (done.code !== 0) {
    fs.rmSync(stack.dir, { recursive: true, force: true });
    const error = new Error(`scripts/run failed (${done.code}):\n${done.stderr}${done.stdout}`);
    error.result = done;
    throw error;
  }
  stack.key = fs.readFileSync(path.join(stack.state, 'admin.key'), 'utf8').trim();
  return stack;
}

/** fetch() whose error says why: "fetch failed" alone tells a reader of a log nothing. */
async function reach(url, init) {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error.cause !== undefined) error.message += `: ${error.cause.code} ${error.cause.message}`;
    throw error;
  }
}

class Stack {
  #stopped = false;

  writeCatalog(value, name = 'catalog') {
    fs.writeFileSync(path.join(this.catalogDir, `${name}.json`),
      typeof value === 'string' ? value : JSON.stringify(value, null, 2));
  }

  pid(name = 'nginx') {
    return Number(fs.readFileSync(path.join(this.state, `${name}.pid`), 'utf8'));
  }

  log(name = 'error') {
    try {
      return fs.readFileSync(path.join(this.state, 'logs', `${name}.log`), 'utf8');
    } catch {
      return '';
    }
  }

  /** Pids of the workers that serve now. */
  workers() {
    const pid = this.pid();
    return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .trim().split(/\s+/).filter(Boolean).map(Number)
      .filter((child) => {
        const title = fs.readFileSync(`/proc/${child}/cmdline`, 'latin1');
        return title.startsWith('nginx: worker process') && !title.includes('shutting down');
      });
  }

  reload() {
    return scriptsRun(['reload', '--state', this.state], { env: this.env });
  }

  /** One request to the API; resolves to { status, headers, json, text }. */
  async api(pathname, { method, body, key = this.key, headers = {} } = {}) {
    const res = await reach(`${this.url}${pathname}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(this.keepAlive ? {} : { connection: 'close' }),
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers,
      },
      body: body === undefined || typeof body === 'string' || body instanceof Uint8Array
        ? body : JSON.stringify(body),
    });
    const text = await res.text();
    let json;
    try {
      json = JSON.parse(text);
    } catch { /* not JSON: the test sees it */ }
    return { status: res.status, headers: res.headers, json, text };
  }

  chat(body, options = {}) {
    return this.api('/v1/chat/completions', { ...options, body });
  }

  /** Lines that no run may leave behind. */
  complaints() {
    const bad = /\[alert\]|\[crit\]|\[emerg\]|AddressSanitizer|LeakSanitizer|runtime error:|watches left: [1-9]/;
    const found = [];
    const logs = path.join(this.state, 'logs');
    for (const file of fs.existsSync(logs) ? fs.readdirSync(logs) : []) {
      const text = fs.readFileSync(path.join(logs, file), 'latin1');
      for (const line of text.split('\n')) {
        if (bad.test(line) && !notChecked(line) && !(this.expectAlerts instanceof RegExp
          && this.expectAlerts.test(line))) found.push(`${file}: ${line}`);
      }
    }
    return found;
  }

  async stop() {
    if (this.#stopped) return;
    this.#stopped = true;
    const done = await scriptsRun(['stop', '--state', this.state], { env: this.env });
    const found = this.complaints();
    if (process.env.TOOLGATE_KEEP_STATE === undefined) {
      fs.rmSync(this.dir, { recursive: true, force: true });
    }
    if (done.code !== 0) throw new Error(`scripts/run stop failed:\n${done.stderr}`);
    if (found.length > 0 && this.expectAlerts !== true) {
      throw new Error(`in the logs:\n${found.slice(0, 40).join('\n')}`);
    }
  }
}
