// Starts and watches a real toolgated. What is true after every case is checked by
// invariants() here, once for all.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from './client.mjs';

export const REPO = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const BINARY = process.env.TOOLGATED
    ?? path.join(process.env.TOOLGATE_BUILD ?? path.join(REPO, 'build'), 'toolgated');
export const USER_UID = 64321;
export const FOREIGN_UID = 64322;
export const PYTHON = '/usr/bin/python3';     // what a sandbox sees
export const isRoot = process.getuid() === 0;

// the address sanitizer keeps what is freed
export const ASAN = fs.existsSync(BINARY) && fs.readFileSync(BINARY).includes('libasan.so');
const RSS_SLACK_KIB = ASAN ? 1024 * 1024 : 8 * 1024;
const SANITIZER_REPORT = /ERROR: \w+Sanitizer|runtime error:/;
// a session's line to its supervisor and the outputs of the job that waits
const SESSION_FDS = 3;
const SLOT_UIDS = [[1900000000, 1900065536], [62000, 65000]];

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function until(what, ok, ms = 5000) {
    const end = performance.now() + ms;
    for (;;) {
        if (await ok()) return;
        if (performance.now() > end) throw new Error(`not in ${ms} ms: ${what}`);
        await sleep(20);
    }
}

function readProc(file) {
    try { return fs.readFileSync(file, 'utf8'); } catch { return ''; }
}

// pid -> { parent, state, name } of all processes
export function processes() {
    const all = new Map();
    for (const entry of fs.readdirSync('/proc')) {
        if (!/^\d+$/.test(entry)) continue;
        const stat = readProc(`/proc/${entry}/stat`);
        const m = /^\d+ \((.*)\) (\S) (\d+)/s.exec(stat);
        if (m) all.set(Number(entry), { name: m[1], state: m[2], parent: Number(m[3]) });
    }
    return all;
}

export function descendants(pid, all = processes()) {
    const found = [];
    const walk = (parent) => {
        for (const [child, info] of all) {
            if (info.parent === parent) { found.push({ pid: child, ...info }); walk(child); }
        }
    };
    walk(pid);
    return found;
}

export function cpuMs(pid) {
    const fields = readProc(`/proc/${pid}/stat`).replace(/^.*\) /s, '').split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
}

// no helper outlives the tests, however they end
const running = new Set();
process.on('exit', () => { for (const child of running) child.kill('SIGKILL'); });
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => process.exit(1));

export class Daemon {
    constructor(mode) {
        this.mode = mode;                       // 'root' or 'user'
        this.uid = mode === 'user' && isRoot ? USER_UID : process.getuid();
        this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tgd-test-'));
        fs.chmodSync(this.dir, 0o755);
        this.state = path.join(this.dir, 'state');
        this.socket = path.join(this.dir, 'run', 'sock');
        this.logFile = path.join(this.dir, 'run', 'log');
        this.binary = path.join(this.dir, 'toolgated');
        fs.mkdirSync(path.join(this.dir, 'run'));
        fs.mkdirSync(this.state);
        fs.copyFileSync(BINARY, this.binary);
        fs.chmodSync(this.binary, 0o755);
        for (const d of [path.join(this.dir, 'run'), this.state]) {
            if (isRoot) fs.chownSync(d, this.uid, this.uid);
        }
        this.number = 0;
    }

    command(args) {
        if (this.mode === 'user' && isRoot) {
            return ['setpriv', ['--reuid', String(USER_UID), '--regid', String(USER_UID),
                '--clear-groups', this.binary, ...args]];
        }
        return [this.binary, args];
    }

    // extra: lines of the configuration file
    async start({ extra = '', env = {}, wait = true } = {}) {
        const conf = path.join(this.dir, 'run', 'conf');
        const peers = [...new Set([process.getuid(), this.uid, 12345])].join(',');
        fs.writeFileSync(conf, `socket ${this.socket};\nstate ${this.state};\n`
            + `log ${this.logFile};\npeer_uid ${peers};\n${extra}\n`);
        const [file, args] = this.command(['-c', conf]);
        this.logStart = fs.existsSync(this.logFile) ? fs.statSync(this.logFile).size : 0;
        this.child = spawn(file, args, { env: { PATH: process.env.PATH,
            ...(process.env.ASAN_OPTIONS ? { ASAN_OPTIONS: process.env.ASAN_OPTIONS } : {}), ...env },
            stdio: ['ignore', 'pipe', 'pipe'] });
        const { child } = this;
        running.add(child);
        this.stderr = '';
        this.child.stderr.on('data', (d) => { this.stderr += d; });
        this.exit = new Promise((resolve) => {
            this.child.on('exit', (code, signal) => {
                this.ended = true;
                running.delete(child);
                resolve({ code, signal });
            });
        });
        this.ended = false;
        this.pid = this.child.pid;
        if (wait) {
            await until('ready', () => this.log().some((l) => l.ev === 'ready') || this.ended,
                15000);
            assert.ok(!this.ended, `toolgated ended: ${this.stderr} ${readProc(this.logFile)}`);
            this.launcher = this.log().find((l) => l.ev === 'start').launcher;
        }
        return this;
    }

    log() {
        return readProc(this.logFile).slice(this.logStart ?? 0).split('\n').filter(Boolean)
            .map((line) => JSON.parse(line));
    }

    logText() { return readProc(this.logFile); }

    async stop(signal = 'SIGTERM') {
        if (!this.ended) this.child.kill(signal);
        const how = await this.exit;
        assert.doesNotMatch(this.stderr, SANITIZER_REPORT);
        return how;
    }

    rssRise() { return ASAN ? 0 : this.rssKiB() - this.base.rss; }

    async remove() {
        if (this.child) await this.stop();
        fs.rmSync(this.dir, { recursive: true, force: true });
    }

    connect(options) { return Client.connect(this.socket, options); }

    // one call on a connection of its own
    async call(tool, args, options) {
        const client = await this.connect();
        try { return await client.call(tool, args, options); } finally { client.close(); }
    }

    // a command in a session of its own, unless one is named
    run(command, { timeout = 20, cwd, env, ...options } = {}) {
        return this.call('run_command', { command, timeout, ...(cwd !== undefined ? { cwd } : {}),
            ...(env !== undefined ? { env } : {}) },
            { session: `s${++this.number}`, ...options });
    }

    workspace(project, account) {
        const hex = createHash('sha256').update(`workspace\0${project}\0${account}`).digest('hex');
        return path.join(this.state, 'workspaces', hex);
    }

    // sandboxes of this helper: children of the launcher
    sandboxes(all = processes()) {
        return [...all].filter(([, p]) => p.parent === this.launcher && p.name === 'sandbox').map(([pid, p]) => ({ pid, ...p }));
    }

    fds() { return fs.readdirSync(`/proc/${this.pid}/fd`).length; }
    // but those of sessions
    ownFds() { return this.fds() - SESSION_FDS * this.sandboxes().length; }
    launcherFds() { return fs.readdirSync(`/proc/${this.launcher}/fd`).length; }
    rssKiB() { return Number(/VmRSS:\s+(\d+)/.exec(readProc(`/proc/${this.pid}/status`))?.[1]); }

    // files that a sandbox user owns where no sandbox should write
    strayFiles() {
        const mine = (uid) => uid === USER_UID || SLOT_UIDS.some(([a, b]) => uid >= a && uid < b);
        const found = [];
        for (const dir of ['/tmp', '/dev/shm', '/var/tmp', '/']) {
            for (const name of fs.readdirSync(dir)) {
                if (name.startsWith('tgd-test-')) continue;
                try {
                    if (mine(fs.lstatSync(path.join(dir, name)).uid)) found.push(path.join(dir, name));
                } catch { /* gone meanwhile */ }
            }
        }
        return found;
    }

    async baseline() {
        const r = await this.run('echo keep > bystander.txt', { account: 'bystander' });
        assert.equal(r.ok, true, JSON.stringify(r));
        await this.run('echo ok', { account: 'warm' });
        this.base = { mounts: readProc('/proc/self/mountinfo'), stray: this.strayFiles(),
            rss: this.rssKiB() };
        await this.quiet();
        this.base.fds = this.ownFds();
        this.base.launcherFds = this.launcherFds();
    }

    // nothing runs but idle supervisors, each with the one process that waits for the
    // next order, and nobody is a zombie
    quiet(ms = 3000) {
        return until('only idle supervisors are left', () => {
            const all = processes();
            const supervisors = new Set();
            return descendants(this.pid, all).every((p) => {
                if (p.state === 'Z') return false;
                if (p.pid === this.launcher || p.parent === this.launcher) return true;
                if (p.name !== 'sandbox' || all.get(p.parent)?.parent !== this.launcher
                    || supervisors.has(p.parent)) return false;
                supervisors.add(p.parent);
                return true;
            });
        }, ms);
    }

    async invariants() {
        const started = performance.now();
        const status = await this.call('sandbox_status', {}, { account: 'invariants' });
        assert.equal(status.ok, true);
        assert.equal(status.isolated, true);
        assert.ok(performance.now() - started < 1000, 'status in under 1 s');

        const r = await this.run('echo ok', { account: 'invariants' });
        assert.equal(r.stdout, 'ok\n', JSON.stringify(r));

        await this.quiet();
        await until('as many descriptors as before', () => this.ownFds() <= this.base.fds && this.launcherFds() <= this.base.launcherFds, 2000);
        assert.ok(this.rssKiB() <= this.base.rss + RSS_SLACK_KIB,
            `RSS ${this.rssKiB()} KiB, before ${this.base.rss} KiB`);
        assert.equal(readProc('/proc/self/mountinfo'), this.base.mounts, 'mounts of the host');
        assert.deepEqual(this.strayFiles(), this.base.stray, 'files outside');
        assert.equal(readProc(path.join(this.state, 'canary')), 'not for jobs\n');
        const other = path.join(this.workspace('p', 'bystander'), 'bystander.txt');
        assert.equal(readProc(other), 'keep\n', 'workspace of another account');
    }
}

// Why no sandbox can be made here, found without the helper; undefined when one can.
export function noNamespaces(mode) {
    const probe = ['unshare', '-U', '-r', '-m', '-p', '-n', '-f', '--mount-proc', 'true'];
    const [file, ...args] = mode === 'user' && isRoot ? ['setpriv', '--reuid', String(USER_UID),
        '--regid', String(USER_UID), '--clear-groups', ...probe] : probe;
    try {
        execFileSync(file, args, { stdio: ['ignore', 'ignore', 'pipe'] });
        return undefined;
    } catch (error) {
        return `namespaces are refused on this machine: ${String(error.stderr ?? error.message).trim()}`;
    }
}

// what this machine has, for the reasons of skipped rows
export function has(program) {
    try {
        execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
        return true;
    } catch { return false; }
}
