// One nginx with the module for a test file: own folder, own port, one worker. It knows
// how to start, ask, end and look at the log; what is asked is the tests' business.
//   NGINX             the binary (/usr/sbin/nginx)
//   TOOLGATE_BUILD    folder of ngx_http_toolgate_module.so (build/)

import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { notChecked } from '../lib/sanitizers.mjs';
import { spawn, execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { REPO, freePort, tempDir } from '../lib/stack.mjs';
import { openSse } from '../lib/sse-client.mjs';

const NGINX = process.env.NGINX ?? '/usr/sbin/nginx';
const BUILD = process.env.TOOLGATE_BUILD ?? path.join(REPO, 'build');
const MODULE = path.join(BUILD, 'ngx_http_toolgate_module.so');
const START_MS = 20_000;
const STOP_MS = 20_000;

/** Sanitizers make everything slower: bounds on time are widened by this. */
export const SLOW = process.env.TOOLGATE_ASAN ? 4 : 1;

/** A worker full of sanitizers is not asked to answer as quickly as a fit one. */
export const PATIENT = process.env.TOOLGATE_ASAN ? 'timeout=5s' : '';

export const KEY = 'tg_test_0123456789abcdefghij';

const CHILD_ENV = {
  ASAN_OPTIONS: 'detect_odr_violation=0:detect_stack_use_after_return=1',
  UBSAN_OPTIONS: 'print_stacktrace=1',
  LSAN_OPTIONS: `suppressions=${path.join(REPO, 't/lib/lsan.supp')}:print_suppressions=0`,
  ...process.env,
};
// a variable that nginx itself takes for inherited sockets
delete CHILD_ENV.NGINX;

/**
 * models: { name: [{ url, model?, backup?, conf? }] }, places in order. catalog: an
 * object. http, server, api: more directives at these levels. files: { name: text } in
 * the folder, where "@DIR@" in directives leads; runHost: directives of the location of
 * the run host, which is there when they are not empty; "@API@" is the port. A previous.key
 * among them is the one that the master key replaces.
 */
export async function startNginx({
  models = {}, catalog, http: httpConf = '', server = '', api = '', files = {},
  main = '', http2 = false, quiet = false, workers = 1, runHost = '',
} = {}) {
  const nginx = new Nginx();
  nginx.dir = tempDir('toolgate-module-');
  nginx.port = await freePort();
  nginx.url = `http://127.0.0.1:${nginx.port}`;
  fs.mkdirSync(path.join(nginx.dir, 'logs'));

  const all = {
    'admin.key': `${KEY}\n`, 'master.key': `${'0123456789abcdef'.repeat(4)}\n`, ...files,
    ...(catalog === undefined ? {} : { 'catalog.json': JSON.stringify(catalog, null, 1) }),
  };
  for (const [name, text] of Object.entries(all)) {
    fs.writeFileSync(path.join(nginx.dir, name), text);
  }

  const places = Object.entries(models).flatMap(([name, list]) => list.map((place, n) => ({
    ...place, name, uri: `/_model/${name}/${n}`,
  })));
  const directives = places.map(({ name, uri, model, backup, api }) =>
    `toolgate_model ${name} location=${uri}${model ? ` model=${model}` : ''}${api ? ` api=${api}` : ''}${backup ? ' backup' : ''};`);
  const locations = places.map(({ uri, url, conf, api }) => `location = ${uri} {
      internal;
      ${conf ?? `proxy_pass ${url}/v1/${api === 'responses' ? 'responses' : 'chat/completions'}; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout ${process.env.TOOLGATE_ASAN ? 6 : 2}s;`}
    }`);

  nginx.conf = `${process.getuid() === 0 ? 'user root;' : ''}
load_module ${MODULE};
daemon off; worker_processes ${workers}; worker_shutdown_timeout 10s;
pid @DIR@/nginx.pid; error_log @DIR@/logs/error.log ${process.env.TG_LOG_LEVEL ?? 'info'};
${main}
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path @DIR@/body; proxy_temp_path @DIR@/proxy;
  fastcgi_temp_path @DIR@/fastcgi; uwsgi_temp_path @DIR@/uwsgi; scgi_temp_path @DIR@/scgi;
  toolgate_zone tg 1m;
  toolgate_admin_key @DIR@/admin.key;
  toolgate_master_key @DIR@/master.key${'previous.key' in files ? ' @DIR@/previous.key' : ''};
  ${catalog === undefined ? '' : 'toolgate_catalog @DIR@/catalog.json;'}
  ${directives.join('\n  ')}
  ${httpConf}
  server {
    listen 127.0.0.1:${nginx.port}${http2 ? ' http2' : ''};
    location /v1/ { toolgate_api; ${api} }
    location /agentengine/ { toolgate_api; ${api} }
    ${locations.join('\n    ')}
    ${server}
  }
  ${runHost && `server { listen unix:@DIR@/runs.sock; location = / { toolgate_run_host; ${runHost} } ${locations.join('\n    ')} }`}
}
`.replaceAll('@DIR@', nginx.dir).replaceAll('@API@', nginx.port);
  fs.writeFileSync(path.join(nginx.dir, 'nginx.conf'), nginx.conf);
  if (!quiet) await nginx.start();
  return nginx;
}

class Nginx {
  key = KEY;
  #said = '';

  async start() {
    this.child = spawn(NGINX, ['-p', this.dir, '-c', path.join(this.dir, 'nginx.conf')],
      { env: CHILD_ENV, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.setEncoding('utf8').on('data', (part) => { this.#said += part; });
    }
    this.exited = new Promise((resolve) => this.child.once('close', resolve));
    let over = false;
    this.exited.then(() => { over = true; });
    for (const deadline = Date.now() + START_MS; ;) {
      if (over || Date.now() > deadline) {
        throw new Error(`nginx does not start:\n${this.#said}${this.log()}`);
      }
      if (await this.answers()) return;
      await sleep(20);
    }
  }

  answers() {
    return new Promise((resolve) => {
      http.get(`${this.url}/v1/none`, { agent: false }, (res) => {
        res.resume();
        resolve(true);
      }).on('error', () => resolve(false));
    });
  }

  /** "nginx -t" of this configuration: { code, text }. */
  test(more = {}) {
    // one that is refused ends nginx without freeing what it read
    const env = { ...CHILD_ENV, ...more, ASAN_OPTIONS: `${CHILD_ENV.ASAN_OPTIONS}:detect_leaks=0` };
    try {
      execFileSync(NGINX, ['-t', '-p', this.dir, '-c', path.join(this.dir, 'nginx.conf')],
        { env, stdio: 'pipe' });
      return { code: 0, text: this.log() };
    } catch (error) {
      return { code: error.status, text: `${error.stderr}${this.log()}` };
    }
  }

  log() {
    const file = path.join(this.dir, 'logs/error.log');
    return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  }

  /** Pids of all its workers, old ones that end too. */
  children() {
    const { pid } = this.child;
    return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
      .split(/\s+/).map(Number);
  }

  /** The pid of the (only) worker that serves now. */
  worker() {
    return this.children().at(-1);
  }

  /** One request on a connection of its own; resolves to { status, headers, text, json }. */
  request(pathname, {
    method, body, key = KEY, headers = {}, agent = false, port = this.port,
  } = {}) {
    const payload = body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
      ? body : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const req = http.request({
        host: '127.0.0.1', port, path: pathname, agent,
        method: method ?? (payload === undefined ? 'GET' : 'POST'),
        headers: {
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...(payload === undefined ? {} : {
            'content-type': 'application/json', 'content-length': Buffer.byteLength(payload),
          }),
          ...headers,
        },
      }, (res) => {
        const parts = [];
        res.on('data', (part) => parts.push(part));
        res.on('error', reject);
        res.on('end', () => {
          const bytes = Buffer.concat(parts);
          const text = bytes.toString('utf8');
          let json;
          try {
            json = JSON.parse(text);
          } catch { /* the test sees that it is undefined */ }
          resolve({
            status: res.statusCode, headers: res.headers, rawHeaders: res.rawHeaders, bytes,
            text, json,
          });
        });
      });
      req.on('error', reject);
      req.end(payload);
    });
  }

  /** A chat that is not streamed. */
  chat(body, options = {}) {
    return this.request('/v1/chat/completions', { ...options, body });
  }

  /** A streamed chat, as an SseClient that has begun. */
  open(body, options = {}) {
    const { pathname = '/v1/chat/completions', ...rest } = options;
    return openSse(`${this.url}${pathname}`, { key: KEY, ...rest, body: { stream: true, ...body } });
  }

  /** A streamed chat to its end. */
  async stream(body, options = {}) {
    const client = await this.open(body, options);
    await client.end(options.ms);
    return client;
  }

  /** Ends it as an operator does, and looks for what must never be in a log. */
  async stop() {
    if (this.child === undefined) {
      fs.rmSync(this.dir, { recursive: true, force: true });
      return;
    }
    const timer = setTimeout(() => this.child.kill('SIGTERM'), STOP_MS);
    this.child.kill('SIGQUIT');
    const code = await this.exited;
    clearTimeout(timer);
    const log = this.log();
    const said = `${this.#said}\n${log}`;
    const bad = said.split('\n').filter((line) =>
      /\[(alert|emerg|crit)\]|Sanitizer|runtime error:|SUMMARY:/.test(line) && !notChecked(line));
    const unchecked = said.split('\n').some(notChecked);
    if (unchecked) console.log('# a leak check could not be made');
    const left = [...log.matchAll(/toolgate: watches left: (\d+)/g)].map((m) => m[1]);
    if (process.env.TG_KEEP) console.log(`# kept: ${this.dir}`);
    else fs.rmSync(this.dir, { recursive: true, force: true });
    if (bad.length > 0) {
      // the worker's stderr is the error log
      const at = Math.max(0, said.search(/==\d+==ERROR|runtime error/));
      console.log(said.slice(at, at + 20_000).replaceAll(/^/gm, '# '));
    }
    assert.deepEqual(bad, []);
    if (!(unchecked && code === 1)) assert.equal(code, 0);
    assert.ok(left.length >= 1, 'a worker says what it left');
    assert.deepEqual([...new Set(left)], ['0']);
  }
}
