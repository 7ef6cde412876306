// Builds the probe module, starts nginx with it, sends it calls. Knows how nginx is
// run here and nothing of what is tested.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { sleep } from './peers.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const REPO = path.resolve(HERE, '../..');

export const ASAN = process.env.TG_ASAN === '1';
export const NGINX = process.env.NGINX ?? '/usr/sbin/nginx';
// An nginx built from source with sanitizers: its tree here, its binary in NGINX. Then
// the module is configured as that binary was. Otherwise Debian's nginx-dev is used.
const NGINX_SRC = process.env.NGINX_SRC;
const SAN = '-fsanitize=address,undefined';
const PRELOAD = ASAN && NGINX_SRC === undefined;

// configure touches every object, so nothing is done when nothing changed
function upToDate(module) {
  const folders = [HERE, path.join(REPO, 'ngx_module/outbound'), path.join(REPO, 'core')];
  const sources = folders.flatMap((folder) => fs.readdirSync(folder)
    .filter((name) => /\.[ch]$|^config$/.test(name)).map((name) => path.join(folder, name)));
  const time = (file) => fs.statSync(file).mtimeMs;
  return fs.existsSync(module) && [NGINX, ...sources].every((file) => time(file) < time(module));
}

export function build() {
  const out = path.join(REPO, 'build', `outbound${ASAN ? '-asan' : ''}${NGINX_SRC ? '-source' : ''}`);
  const module = path.join(out, 'ngx_outbound_probe_module.so');

  if (upToDate(module)) return module;

  const cc = `-g -fPIC ${ASAN ? `-O1 ${SAN} -fno-omit-frame-pointer` : '-O2 -Wshadow -Wvla'}`;
  const flags = NGINX_SRC
    ? `eval "set -- $(ASAN_OPTIONS=detect_leaks=0 "$BINARY" -V 2>&1 | sed -n 's/^configure arguments: //p')"`
    : '. ./conf_flags; set -- "${NGX_CONF_FLAGS[@]}" --with-cc-opt="$XCC" --with-ld-opt="-fPIC $XLD"';
  const script = `
    set -eu
    cd "$SRC"
    ${flags}
    ./configure "$@" --add-dynamic-module="$ADDON" --builddir="$OUT" >"$OUT/configure.log" 2>&1 \
      || { cat "$OUT/configure.log"; exit 1; }
    make -f "$OUT/Makefile" -C "$SRC" modules 2>&1`;

  fs.mkdirSync(out, { recursive: true });
  execFileSync('bash', ['-c', script], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env, SRC: NGINX_SRC ?? '/usr/share/nginx/src', BINARY: NGINX, ADDON: HERE, OUT: out, XCC: cc,
      XLD: ASAN ? SAN : '', ...(ASAN ? { ASAN_OPTIONS: 'detect_leaks=0' } : {}),
    },
  });
  return module;
}

export async function freePort() {
  const server = net.createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

// nginx reads a variable NGINX as the list of sockets that it inherits
function environment() {
  const { NGINX: _, ...rest } = process.env;
  return rest;
}

// what a sanitized process needs in its environment; a stock nginx also the libraries
function sanitizers(options) {
  if (!ASAN) return {};
  const find = (name) => execFileSync('gcc', [`-print-file-name=${name}`], { encoding: 'utf8' }).trim();
  return {
    ASAN_OPTIONS: options,
    UBSAN_OPTIONS: 'print_stacktrace=1',
    ...(PRELOAD ? { LD_PRELOAD: `${find('libasan.so')} ${find('libubsan.so')}` } : {}),
  };
}

const running = new Set();

// for the end, so that a test that failed leaves no nginx behind
export async function stopAll() {
  for (const probe of [...running]) await probe.stop('SIGTERM');
}

// locations: text of the server block. Paths in it may use @DIR@.
export class Probe {
  constructor(dir, module, { locations, connections = 2048, env = {} }) {
    this.dir = dir;
    this.module = module;
    this.locations = locations;
    this.connections = connections;
    this.env = env;
    fs.mkdirSync(path.join(dir, 'logs'), { recursive: true });
  }

  configuration(port) {
    const { username } = os.userInfo();
    const user = process.getuid() === 0 ? `user ${username};` : '';
    const env = Object.keys(this.env).concat(Object.keys(sanitizers('')));
    return `
      load_module ${this.module};
      ${user}
      ${env.map((name) => `env ${name};`).join('\n')}
      daemon off;
      worker_processes 1;
      pid ${this.dir}/nginx.pid;
      error_log ${this.dir}/logs/error.log ${process.env.PROBE_LOG ?? 'info'};
      events { worker_connections ${this.connections}; }
      http {
        access_log off;
        client_body_temp_path ${this.dir}/body;
        proxy_temp_path ${this.dir}/proxy;
        fastcgi_temp_path ${this.dir}/fastcgi;
        uwsgi_temp_path ${this.dir}/uwsgi;
        scgi_temp_path ${this.dir}/scgi;
        client_body_buffer_size 4m;
        client_max_body_size 4m;
        server {
          listen 127.0.0.1:${port} backlog=4096;
          location = /healthz { return 200 "ok"; }
          ${this.locations.replaceAll('@DIR@', this.dir)}
        }
      }`;
  }

  async start() {
    this.port = await freePort();
    fs.writeFileSync(path.join(this.dir, 'nginx.conf'), this.configuration(this.port));
    const asan = sanitizers('detect_odr_violation=0:detect_stack_use_after_return=1');
    this.stderr = path.join(this.dir, 'logs/stderr.log');
    const err = fs.openSync(this.stderr, 'a');
    this.process = spawn(NGINX, ['-p', this.dir, '-c', path.join(this.dir, 'nginx.conf')],
      { stdio: ['ignore', err, err], env: { ...environment(), ...this.env, ...asan } });
    fs.closeSync(err);
    running.add(this);
    this.exited = new Promise((done) => this.process.once('exit', () => { running.delete(this); done(); }));
    for (let i = 0; i < 100; i++) {
      if (await this.ping().catch(() => false)) return;
      await sleep(50);
    }
    throw new Error(`nginx did not start: ${this.log()}`);
  }

  // the configuration check of a changed location text: what nginx prints
  check(locations) {
    const file = path.join(this.dir, 'check.conf');
    fs.writeFileSync(file, new Probe(this.dir, this.module, { locations }).configuration(1)
      .replace('/nginx.pid', '/check.pid').replace('/logs/error.log', '/logs/check.log'));
    const asan = sanitizers('detect_odr_violation=0:detect_leaks=0');
    try {
      execFileSync(NGINX, ['-t', '-e', 'stderr', '-p', this.dir, '-c', file],
        { stdio: ['ignore', 'pipe', 'pipe'], env: { ...environment(), ...asan } });
      return '';
    } catch (error) {
      return String(error.stderr);
    }
  }

  log() {
    const read = (file) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '');
    return read(path.join(this.dir, 'logs/error.log')) + read(this.stderr);
  }

  request(location, body, signal, agent) {
    return new Promise((done, failed) => {
      const req = http.request({
        host: '127.0.0.1', port: this.port, path: location, method: body === undefined ? 'GET' : 'POST',
        agent: agent ?? false, signal, headers: body === undefined ? {} : { 'content-length': Buffer.byteLength(body) },
      }, (res) => {
        const parts = [];
        res.on('data', (part) => parts.push(part));
        res.on('error', failed);
        res.on('end', () => done({ status: res.statusCode, text: Buffer.concat(parts).toString('utf8') }));
      });
      req.on('error', failed);
      req.end(body);
    });
  }

  async ping(agent) {
    return (await this.request('/healthz', undefined, undefined, agent)).text === 'ok';
  }

  // one call; adds the time that it took as the client saw it
  async call(order, { at = '/call', signal } = {}) {
    const began = Date.now();
    const { status, text } = await this.request(at,
      JSON.stringify({ method: 'GET', timeout_ms: 5000, ...order }), signal);
    if (status !== 200) throw new Error(`probe answered ${status}`);
    return { ...JSON.parse(text), took: Date.now() - began };
  }

  worker() {
    const pid = fs.readFileSync(path.join(this.dir, 'nginx.pid'), 'utf8').trim();
    return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).map(Number);
  }

  signal(name) {
    this.process.kill(name);
  }

  async stop(name = 'SIGQUIT') {
    this.signal(name);
    await this.exited;
  }
}
