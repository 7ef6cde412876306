// What the store tests stand on: real redis-servers and probe nginxes in a folder of
// their own, a scripted fake Redis, a small RESP client. No test in here.

import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export { sleep };

const NGINX = process.env.NGINX ?? '/usr/sbin/nginx';
const REDIS = process.env.REDIS ?? 'redis-server';
const ANSWER_MS = 15000;
const here = path.dirname(new URL(import.meta.url).pathname);

export const asan = process.argv.includes('--asan');
export const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tg-store-'));

const children = new Set();
let serial = 0;
let module_path;

export function build() {
    const out = path.resolve(here, '../../build', asan ? 'store-probe-asan' : 'store-probe');
    const run = spawnSync(path.join(here, 'build'), asan ? [out, '--asan'] : [out], { encoding: 'utf8' });

    if (run.status !== 0) {
        throw new Error(`the store probe does not build:\n${run.stderr}`);
    }
    module_path = run.stdout.trim();
}

// of a process: nginx's workers, those on their way out included
function offspring(pid) {
    try {
        const list = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
        return list.trim().split(' ').filter(Boolean).map(Number);
    } catch {
        return [];
    }
}

function cleanup() {
    for (const child of children) {
        const workers = offspring(child.pid);
        child.kill('SIGCONT');
        child.kill('SIGKILL');
        workers.forEach((pid) => process.kill(pid, 'SIGKILL'));
    }
    fs.rmSync(dir, { recursive: true, force: true });
}

process.on('exit', cleanup);
for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => process.exit(1));
}

export async function until(what, check, ms = 10000) {
    const end = Date.now() + ms;

    for (;;) {
        const value = await check();
        if (value) {
            return value;
        }
        if (Date.now() > end) {
            throw new Error(`not within ${ms} ms: ${what}`);
        }
        await sleep(20);
    }
}

export async function freePort() {
    const server = net.createServer().listen(0, '127.0.0.1');
    await new Promise((done) => server.once('listening', done));
    const { port } = server.address();
    await new Promise((done) => server.close(done));
    return port;
}

function start(name, command, args, env = {}) {
    const log = fs.openSync(path.join(dir, `${name}.out`), 'a');
    const child = spawn(command, args, { stdio: ['ignore', log, log], env: { ...process.env, ...env } });

    // what a failed test leaves running must not keep this process
    child.unref();
    children.add(child);
    child.ended = new Promise((done) => child.once('exit', (code, signal) => {
        children.delete(child);
        done(signal ?? code);
    }));
    fs.closeSync(log);
    return child;
}

// RESP: one command, its reply as a JavaScript value; an error reply is an Error. A
// character stands for a byte: a length counts bytes, and values are not always text.
function parse(text, at = 0) {
    const end = text.indexOf('\r\n', at);
    if (end < 0) {
        return null;
    }
    const line = text.slice(at + 1, end);
    let next = end + 2;

    switch (text[at]) {
    case '+': return { value: line, next };
    case '-': return { value: new Error(line), next };
    case ':': return { value: Number(line), next };
    case '$':
        if (line === '-1') {
            return { value: null, next };
        }
        if (text.length < next + Number(line) + 2) {
            return null;
        }
        return { value: text.slice(next, next + Number(line)), next: next + Number(line) + 2 };
    case '*': {
        const value = [];
        for (let i = 0; i < Number(line); i++) {
            const item = parse(text, next);
            if (!item) {
                return null;
            }
            value.push(item.value);
            next = item.next;
        }
        return { value, next };
    }
    }
    throw new Error(`not RESP: ${text.slice(at, at + 40)}`);
}

function format(words) {
    return `*${words.length}\r\n` + words.map((w) => `$${Buffer.byteLength(String(w))}\r\n${w}\r\n`).join('');
}

export class Redis {
    constructor(args = [], password = null) {
        this.args = args;
        this.password = password;
        this.name = `redis${++serial}`;
        this.socket = path.join(dir, `${this.name}.sock`);
        this.unix = `unix:${this.socket}`;
    }

    async start() {
        this.port ??= await freePort();
        this.child = start(this.name, REDIS, ['--port', this.port, '--bind', '127.0.0.1',
            '--unixsocket', this.socket, '--unixsocketperm', '777', '--save', '', '--appendonly', 'no',
            '--dir', dir, ...this.args].map(String));
        await until('redis answers', () => this.call('PING').then(() => true, () => false));
        return this;
    }

    signal(name) {
        this.child.kill(name);
    }

    async stop() {
        this.signal('SIGCONT');
        this.child.ref();
        this.signal('SIGKILL');
        await this.child.ended;
        fs.rmSync(this.socket, { force: true });
    }

    async call(...words) {
        const greeting = this.password ? [['AUTH', this.password]] : [];
        const replies = await this.pipeline([...greeting, words]);
        const last = replies.at(-1);
        if (last instanceof Error) {
            throw last;
        }
        return last;
    }

    pipeline(commands) {
        return new Promise((done, failed) => {
            const socket = net.connect(this.port, '127.0.0.1');
            let text = '';
            socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error(`no reply in ${ANSWER_MS} ms`)));
            socket.on('error', failed);
            socket.on('close', () => failed(new Error('closed')));
            socket.on('data', (data) => {
                text += data.toString('latin1');
                const replies = [];
                for (let at = 0, item; at < text.length && (item = parse(text, at)); at = item.next) {
                    replies.push(item.value);
                }
                if (replies.length === commands.length) {
                    done(replies);
                    socket.destroy();
                }
            });
            socket.write(commands.map(format).join(''));
        });
    }

    // this server's clock, in microseconds
    async now() {
        const [s, us] = await this.call('TIME');
        return Number(s) * 1e6 + Number(us);
    }

    // its connections that are not this test's own
    async clients() {
        const list = await this.call('CLIENT', 'LIST');
        return list.split('\n').filter((line) => line && !line.includes('cmd=client|list')).length;
    }
}

// A Redis of the test's making: answer(words, socket) gives the bytes to send, or null
export class Fake {
    constructor(answer, greeting = () => '+PONG\r\n') {
        this.answer = answer;
        this.greeting = greeting;
        this.commands = [];
        this.connections = 0;
        this.open = new Set();
    }

    async start(port = 0) {
        this.server = net.createServer((socket) => this.serve(socket)).listen(port, '127.0.0.1').unref();
        await new Promise((done) => this.server.once('listening', done));
        this.port = this.server.address().port;
        this.url = `127.0.0.1:${this.port}`;
        return this;
    }

    serve(socket) {
        let text = '';
        this.connections++;
        this.open.add(socket);
        socket.on('close', () => this.open.delete(socket));
        socket.on('error', () => {});
        this.accepted?.(socket);
        socket.on('data', (data) => {
            text += data.toString('latin1');
            for (let item; text && (item = parse(text)); text = text.slice(item.next)) {
                const words = item.value;
                const greeted = words[0] === 'PING' || words[0] === 'AUTH' || words[0] === 'SELECT'
                    || words[0] === 'SCRIPT';
                if (!greeted) {
                    this.commands.push(words);
                }
                const bytes = (greeted ? this.greeting : this.answer)(words, socket);
                if (bytes !== null && !socket.destroyed) {
                    socket.write(bytes);
                }
            }
        });
    }

    async stop() {
        for (const socket of this.open) {
            socket.destroy();
        }
        await new Promise((done) => this.server.close(done));
    }
}

export class Nginx {
    // locations: { name: 'directives' }
    constructor(locations, { zone = '1m', workers = 2, main = '' } = {}) {
        Object.assign(this, { locations, zone, workers, main });
        this.name = `nginx${++serial}`;
        this.root = path.join(dir, this.name);
        this.log = path.join(this.root, 'error.log');
    }

    configure() {
        fs.mkdirSync(this.root, { recursive: true });
        fs.writeFileSync(path.join(this.root, 'nginx.conf'), `
            load_module ${module_path};
            daemon off;
            worker_processes ${this.workers};
            pid ${this.root}/pid;
            error_log ${this.log} info;
            ${process.getuid() === 0 ? 'user root;' : ''}
            ${asan ? 'env LD_PRELOAD; env ASAN_OPTIONS; env UBSAN_OPTIONS; env LSAN_OPTIONS;' : ''}
            ${this.main}
            events { worker_connections 1024; }
            http {
                access_log off;
                ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
                    .map((t) => `${t}_temp_path ${this.root}/tmp;`).join('\n')}
                store_probe_zone counters ${this.zone};
                server {
                    listen 127.0.0.1:${this.port} reuseport;
                    ${Object.entries(this.locations)
                        .map(([name, text]) => `location = /${name} { store_probe; ${text} }`).join('\n')}
                }
            }`);
    }

    // the stock nginx has no sanitizer in it, so the module's comes before it
    env() {
        const lib = (name) => spawnSync('gcc', [`-print-file-name=${name}`], { encoding: 'utf8' }).stdout.trim();

        return asan ? {
            LD_PRELOAD: `${lib('libasan.so')} ${lib('libubsan.so')}`,
            // every module defines ngx_modules
            ASAN_OPTIONS: `log_path=${this.root}/asan:detect_odr_violation=0:detect_leaks=1:fast_unwind_on_malloc=0`,
            UBSAN_OPTIONS: 'print_stacktrace=1',
        } : {};
    }

    // what nginx -t says of the configuration
    async check() {
        this.port ??= await freePort();
        this.configure();
        const run = spawnSync(NGINX, ['-t', '-p', this.root, '-c', path.join(this.root, 'nginx.conf')],
            { encoding: 'utf8', env: { ...process.env, ...this.env() } });
        return { ok: run.status === 0, text: run.stderr };
    }

    async start() {
        this.port ??= await freePort();
        this.configure();
        this.child = start(this.name, NGINX, ['-p', this.root, '-c', path.join(this.root, 'nginx.conf')], this.env());
        await until('nginx listens', () => this.pids().length === this.workers
            && new Promise((done) => {
                const socket = net.connect(this.port, '127.0.0.1', () => { socket.destroy(); done(true); });
                socket.on('error', () => done(false));
            }));
        return this;
    }

    pids() {
        return offspring(this.child.pid);
    }

    reload() {
        this.child.kill('SIGHUP');
    }

    async stop() {
        this.child.ref();
        this.child.kill('SIGQUIT');
        const end = await Promise.race([this.child.ended, sleep(10000).then(() => 'hangs')]);
        if (end !== 0) {
            throw new Error(`nginx ended with ${end}`);
        }
        const bad = this.lines(/\[(alert|emerg|crit)\]|exited on signal/);
        if (bad.length) {
            throw new Error(bad.join('\n'));
        }
        const said = fs.readFileSync(path.join(dir, `${this.name}.out`), 'utf8');
        if (said.includes('runtime error')) {
            throw new Error(said);
        }
        for (const file of fs.readdirSync(this.root).filter((f) => f.startsWith('asan.'))) {
            const text = fs.readFileSync(path.join(this.root, file), 'utf8');
            // nginx leaves its own tables of connections to exit(); a module is unloaded by then
            if (!text.includes('LeakSanitizer') || /unknown module|libhiredis/.test(text)) {
                throw new Error(text);
            }
        }
    }

    lines(pattern) {
        return fs.readFileSync(this.log, 'utf8').split('\n').filter((line) => pattern.test(line));
    }

    request(name, args) {
        const query = new URLSearchParams(args);
        let request;
        const promise = new Promise((done, failed) => {
            request = http.get({ host: '127.0.0.1', port: this.port, path: `/${name}?${query}`, agent: false },
                (response) => {
                    let text = '';
                    response.on('data', (data) => { text += data; });
                    response.on('end', () => done({ status: response.statusCode, text }));
                    response.on('error', failed);
                });
            request.on('error', failed);
            request.setTimeout(ANSWER_MS, () => request.destroy(new Error(`no answer in ${ANSWER_MS} ms`)));
        });
        promise.abort = () => request.destroy();
        return promise;
    }

    async take(name, key, limit = 20, window = 60) {
        const { status, text } = await this.request(name, { key, limit, window });
        if (status !== 200) {
            throw new Error(`status ${status}`);
        }
        return JSON.parse(text);
    }

    // many at once
    takes(n, name, key, limit, window) {
        return Promise.all(Array.from({ length: n }, () => this.take(name, key, limit, window)));
    }

    async command(name, ...words) {
        const { text } = await this.request(name, { command: words.join(',') });
        return text.trim();
    }

    async up(name) {
        return (await this.request(name, { up: '1' })).text === '1';
    }
}

export const passed = (results) => results.filter((r) => r.allowed).length;
export const modes = (results) => [...new Set(results.map((r) => r.mode))].sort().join();
export const slowest = (results) => Math.max(...results.map((r) => r.ms));
