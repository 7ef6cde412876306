// Starts and stops the mocks and the targets, and runs the load clients, each on its core.
import fs from 'node:fs';
import path from 'node:path';
import { spawn, spawnSync, execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { busy, busySeconds, coreTimes, cpuNs, tree } from './proc.mjs';

export const BENCH = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
export const REPO = path.resolve(BENCH, '../..');
const BIN = process.env.BENCH_BIN ?? `${REPO}/build/bench`, RUN = `${BIN}/run`;
export const PRODUCT = path.resolve(process.env.TOOLGATE_BUILD ?? `${REPO}/build`);
const base = Number(process.env.BENCH_PORT ?? 18100);
export const cores = {
    gateway: process.env.GATEWAY_CORES ?? '0', client: process.env.CLIENT_CORE ?? '1', mock: process.env.MOCK_CORE ?? '1',
};
/** Every model of the pass-through benches, for gateways that want names beforehand. */
export const MODELS = ['m-r512', 'm-r512-d20', 'm-r8k', 'm-r100k', 'm-n2-p60000', 'm-n3-p1', 'm-n30-p10', 'm-n36-p40', 'm-n40-p10', 'm-n60-p20',
    'm-n2000-p0'];

export const addr = {
    MODEL: `127.0.0.1:${base}`, TOOL: `127.0.0.1:${base + 1}`, TOOL_TLS: `127.0.0.1:${base + 43}`,
    CA: `${RUN}/tls/ca.pem`,
};

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const children = new Set();

function start(core, cmd, args, opts, log) {
    const fd = fs.openSync(log, 'w');
    const p = spawn('taskset', ['-c', core, cmd, ...args], { stdio: ['ignore', fd, fd], ...opts });
    fs.closeSync(fd);
    children.add(p);
    p.gone = new Promise((r) => p.on('exit', () => { children.delete(p); r(); }));
    return p;
}

async function stop(p, others = []) {
    const pids = tree([p.pid, ...others]);
    p.kill('SIGTERM');
    for (const pid of others) {
        try { process.kill(pid, 'SIGTERM'); } catch { /* gone */ }
    }
    await Promise.race([p.gone, sleep(3000)]);
    for (let i = 0; i < 60 && others.some((pid) => fs.existsSync(`/proc/${pid}`)); i++) await sleep(50);
    for (const pid of pids) {
        try { process.kill(pid, 'SIGKILL'); } catch { /* gone, as it should be */ }
    }
    await p.gone;
}

function certificates() {
    const d = `${RUN}/tls`;
    if (fs.existsSync(`${d}/leaf.pem`)) return;
    fs.mkdirSync(d, { recursive: true });
    const ssl = (...a) => execFileSync('openssl', a, { cwd: d, stdio: 'ignore' });
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    fs.writeFileSync(`${d}/ext`, 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n');
    ssl('req', '-x509', ...key, '-days', '3650', '-subj', '/CN=bench test CA', '-keyout', 'ca.key', '-out', 'ca.pem');
    ssl('req', ...key, '-subj', '/CN=localhost', '-keyout', 'leaf.key', '-out', 'leaf.csr');
    ssl('x509', '-req', '-in', 'leaf.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '3650',
        '-extfile', 'ext', '-out', 'leaf.pem');
}

let mocks = [];
export let mockPid = 0;

export async function startMocks() {
    fs.mkdirSync(RUN, { recursive: true });
    certificates();
    const model = start(cores.mock, `${BIN}/mock_model`, [String(base)], {}, `${RUN}/mock_model.log`);
    const tool = start(cores.mock, `${BIN}/mock_tool`,
        [String(base + 1), String(base + 43), `${RUN}/tls/leaf.pem`, `${RUN}/tls/leaf.key`], {}, `${RUN}/mock_tool.log`);
    mocks = [model, tool];
    mockPid = model.pid;
    for (let i = 0; i < 50; i++) {
        await sleep(50);
        try { await stats(); await stats('TOOL'); return; } catch { /* not yet */ }
    }
    throw new Error(`the mocks do not answer; is the port taken? see ${RUN}/*.log`);
}

export const stats = async (which = 'MODEL') => (await fetch(`http://${addr[which]}/__stats`)).json();

/** Everything that was started; targets stop their own store and helper as well. */
export async function stopAll(targets = []) {
    await Promise.all(targets.map((t) => t.stop()));
    await Promise.all([...children].map((p) => stop(p)));
}

export function listTargets() {
    return fs.readdirSync(`${BENCH}/targets`).filter((d) => fs.existsSync(`${BENCH}/targets/${d}/target.json`));
}

export class Target {
    constructor(name, index) {
        const dir = `${BENCH}/targets/${name}`;
        const fill = (s) => s.replace(/\$\{(\w+)\}/g, (_, k) => addr[k] ?? '');
        this.name = name;
        this.conf = { path: '/v1/chat/completions', headers: [], stream: true, loop: 'client',
            ...JSON.parse(fs.readFileSync(`${dir}/target.json`, 'utf8')) };
        this.conf.loopPath ??= this.conf.path;
        this.script = fs.existsSync(`${dir}/start.sh`) ? `${dir}/start.sh` : null;
        this.port = base + 101 + index;
        this.at = this.script ? `127.0.0.1:${this.port}` : addr.MODEL;
        this.run = `${RUN}/${name}`;
        this.headers = this.conf.headers.map(fill);
    }

    get url() { return `http://${this.at}${this.conf.path}`; }
    get loopUrl() { return `http://${this.at}${this.conf.loopPath}`; }

    async start() {
        if (!this.script) return;
        fs.rmSync(this.run, { recursive: true, force: true });
        fs.mkdirSync(this.run, { recursive: true });
        this.proc = start(cores.gateway, this.script, [], { cwd: this.run,
            env: { ...process.env, ...addr, BENCH, BIN, PRODUCT, MODELS: MODELS.join(' '), RUN: this.run, PORT: String(this.port) } }, `${this.run}/out.log`);
        for (let i = 0; i < 200; i++) {
            await sleep(50);
            try {
                this.loadHeaders();
                const r = await fetch(this.url, { method: 'POST', body: body('m-r512'),
                    headers: { 'content-type': 'application/json',
                        ...Object.fromEntries(this.headers.map((h) => h.split(/:\s*(.*)/s).slice(0, 2))) } });
                const text = await r.text();
                if (r.status === 200 && text.includes('finish_reason')) return;
                this.why = `${r.status} ${text.slice(0, 200)}`;
            } catch (e) { this.why = String(e.cause ?? e); }
            if (this.proc.exitCode !== null) break;
        }
        await this.stop();
        throw new Error(`${this.name} is not ready: ${this.why} (see ${this.run}/out.log)`);
    }

    loadHeaders() {
        if (this.conf.headersFile && this.headers.length === this.conf.headers.length) {
            this.headers.push(...fs.readFileSync(`${this.run}/${this.conf.headersFile}`, 'utf8').split('\n').filter(Boolean));
        }
    }

    async stop() {
        if (this.proc) await stop(this.proc, this.extra());
        this.proc = null;
        this.headers.length = this.conf.headers.length;
    }

    /** Processes that the target named itself, such as a store. */
    extra() {
        try { return fs.readFileSync(`${this.run}/pids`, 'utf8').split('\n').filter(Boolean).map(Number); } catch { return []; }
    }

    pids() {
        return this.proc ? tree([this.proc.pid, ...this.extra()]) : [];
    }

    /** The HTTP server alone, without what it named in pids. */
    serverPids() {
        const extra = new Set(tree(this.extra()));
        return this.pids().filter((pid) => !extra.has(pid));
    }
}

/** A chat body of about `bytes`, as messages of about 1 KB; the model name comes first. */
export function body(model, { stream = false, bytes = 2048 } = {}) {
    const text = 'Please look at the following notes and tell me what \\"matters\\" most for the next step.\\n'.repeat(12);
    let s = `{"model":"${model}",${stream ? '"stream":true,' : ''}"temperature":0.2,"messages":[` +
        '{"role":"system","content":"You are a helpful assistant of a shop."}';
    const parts = [];
    let size = s.length, i = 0;
    while (size < bytes - 60) {
        const m = `,{"role":"${i++ % 2 ? 'assistant' : 'user'}","content":"${text.slice(0, Math.min(text.length, bytes - 42 - size)).replace(/\\$/, '')}"}`;
        parts.push(m);
        size += m.length;
    }
    return s + parts.join('') + ']}';
}

const bodyFiles = new Map();
export function bodyFile(model, opts = {}) {
    if (!MODELS.includes(model)) throw new Error(`${model} is not in MODELS`);
    const key = JSON.stringify([model, opts]);
    if (!bodyFiles.has(key)) {
        const f = `${RUN}/body-${bodyFiles.size}.json`;
        fs.writeFileSync(f, body(model, opts));
        bodyFiles.set(key, f);
    }
    return bodyFiles.get(key);
}

function client(cmd, args) {
    const p = spawnSync('taskset', ['-c', cores.client, cmd, ...args.map(String)],
        { encoding: 'utf8', maxBuffer: 1 << 26, timeout: 120000 });
    if (p.stderr) process.stderr.write(p.stderr.replace(/^/gm, '    ').trimEnd() + '\n');
    try { return JSON.parse(p.stdout); } catch { return null; }
}

const headerArgs = (targets) => targets.flatMap((t) => t.headers.flatMap((h) => ['-H', h]));

const FOREIGN_LIMIT = 8;        // % of the machine that others may use before a block is repeated
const TRIES = 3;

/**
 * Runs the load client against the targets and watches the machine meanwhile. The result has `seen`: CPU of the
 * gateway and the mock (ns), what the mock counted, busy % of each core, and `foreign`: % of the machine that
 * went to processes that are not ours. A block with more than FOREIGN_LIMIT of that is repeated; the quietest counts.
 */
export async function load(mode, targets, args, alsoOurs = []) {
    let best = null;
    for (let i = 0; i < TRIES; i++) {
        const pids = targets.flatMap((t) => t.pids()), mock = tree([mockPid]), also0 = cpuNs(alsoOurs);
        const s0 = await stats(), g0 = cpuNs(pids), m0 = cpuNs(mock), c0 = coreTimes(), own0 = process.cpuUsage();
        const r = client(`${BIN}/load`, [mode, ...targets.flatMap((t) => ['-u', t.url]), ...headerArgs(targets), ...args]);
        const c1 = coreTimes(), own1 = process.cpuUsage(own0), gateway = cpuNs(pids) - g0, mockCpu = cpuNs(mock) - m0, s1 = await stats();
        if (!r) return null;
        const ours = (gateway + mockCpu + cpuNs(alsoOurs) - also0) / 1e9 + r.cpu_s + (own1.user + own1.system) / 1e6, wall = (c1[0].total - c0[0].total) / 100;
        const foreign = Math.min(100, Math.max(0, Math.round(100 * (busySeconds(c0, c1) - ours) / Math.max(wall * c0.length, 0.05))));
        r.seen = { gateway, mock: mockCpu, requests: s1.requests - s0.requests, bytesIn: s1.bytes_in - s0.bytes_in, busy: busy(c0, c1), foreign, tries: i + 1 };
        if (!best || foreign < best.seen.foreign) best = r;
        if (foreign <= FOREIGN_LIMIT || wall < 0.2) break;
    }
    noise.push(best.seen.foreign);
    if (best.seen.tries > 1) noise.repeated++;
    return best;
}

/** Foreign CPU share of every block that counted. */
export const noise = Object.assign([], { repeated: 0 });

export function loopRun(t, model, runs, threads, toolDelay) {
    const common = ['-m', model, '-n', runs, '-c', threads, ...headerArgs([t])];
    return t.conf.loop === 'server'
        ? client(`${BIN}/loop_client`, ['server', '-u', t.loopUrl, ...common])
        : client(`${BIN}/loop_client`, ['client', '-u', t.url, ...common, '-T', `https://${addr.TOOL_TLS}/t/${toolDelay}`, '-A', addr.CA]);
}

/** A load client that works beside whatever runs next; stop() ends it. */
export function background(t, args) {
    const p = spawn('taskset', ['-c', cores.client, `${BIN}/load`, 'req', '-u', t.url, ...headerArgs([t]), ...args.map(String)],
        { stdio: ['ignore', 'ignore', 'inherit'] });
    const gone = new Promise((r) => p.on('exit', r));
    return { pid: p.pid, stop: () => { p.kill('SIGTERM'); return gone; } };
}

/** Opens idle streams; returns { ok, close() }. */
export async function holdStreams(t, model, n) {
    const p = spawn('taskset', ['-c', cores.client, `${BIN}/load`, 'hold', '-u', t.url, ...headerArgs([t]),
        '-b', bodyFile(model, { stream: true }), '-c', String(n), '-g', '1500'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ok = await Promise.race([
        new Promise((r) => p.stdout.on('data', (d) => String(d).includes('HELD') && r(true))),
        new Promise((r) => p.on('exit', () => r(false))), sleep(15000).then(() => false)]);
    return { ok, close: async () => { p.kill('SIGTERM'); await sleep(700); } };
}

export { sleep };
