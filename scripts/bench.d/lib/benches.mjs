// The benches. Each takes the started targets (direct and nginx among them when they were asked for), goes round
// all of them several times in changing order, and returns { data, text }.
import { background, bodyFile, holdStreams, load, loopRun, sleep, stats } from './world.mjs';
import { cpuNs, memory, resetPeak } from './proc.mjs';
import { mid, num, over, ratio, spread, table } from './table.mjs';

const ROUNDS = Number(process.env.ROUNDS ?? 3);
// (a) and (b) are made of many short blocks: a machine changes its pace from one second to the next, and a median of three
// long ones then says when a target had its turn
const SHORT = 3 * ROUNDS;
const REF = 'nginx';

/** f(target, round) for each target in each round; the order rotates. */
async function alternate(targets, f, rounds = ROUNDS) {
    const out = new Map(targets.map((t) => [t.name, []]));
    for (let r = 0; r < rounds; r++) {
        const order = targets.map((_, i) => targets[(i + r) % targets.length]);
        if (r % 2) order.reverse();
        for (const t of order) {
            const v = await f(t, r);
            if (v) out.get(t.name).push(v);
        }
    }
    return out;
}

/** How many repetitions of a `probe` fit in `secs`. */
const fit = (usEach, secs, max, min = 20) => Math.max(min, Math.min(max, Math.floor(secs * 1e6 / Math.max(usEach, 1))));
const gateways = (targets) => targets.filter((t) => t.script);

// --- (a) latency added at c=1 -----------------------------------------------------------------------------------

export async function lat({ targets, direct }) {
    const data = {}, text = [];
    for (const size of ['r512', 'r8k', 'r100k']) {
        const b = ['-b', bodyFile(`m-${size}`)];
        const res = await alternate(gateways(targets), async (t) => {
            const probe = await load('pair', [direct, t], [...b, '-n', 50]);
            if (!probe) return null;
            const n = fit(probe.urls[0].latency.mean + probe.urls[1].latency.mean, 0.4, 1500);
            const r = await load('pair', [direct, t], [...b, '-n', n]);
            if (!r || r.errors) return r && { errors: r.errors };
            const [d, g] = r.urls.map((u) => u.latency);
            return { n, direct: d, gateway: g, added: Object.fromEntries(['p50', 'p90', 'p99', 'p999'].map((q) => [q, g[q] - d[q]])) };
        }, SHORT);
        data[size] = Object.fromEntries(res);
        const q = (name, k) => over(res.get(name) ?? [], (r) => r.added?.[k]);
        text.push(table(`(a) latency added at c=1, 2 KB request, reply ${size.slice(1)}; us, gateway minus direct, request by request in turn`,
            ['target', 'p50', 'p90', 'p99', 'p99.9', 'p50 / nginx', 'p99 / nginx', 'pairs'],
            gateways(targets).map(({ name }) => [name, spread(q(name, 'p50')), mid(q(name, 'p90')), spread(q(name, 'p99')), mid(q(name, 'p999')),
                ratio(q(name, 'p50'), q(REF, 'p50')), ratio(q(name, 'p99'), q(REF, 'p99')), (res.get(name) ?? []).reduce((a, r) => a + (r.n ?? 0), 0)])));
    }
    return { data, text };
}

// --- (b) throughput ------------------------------------------------------------------------------------------------

async function loaded(t, args, secs, warm = 0.3) {
    const r = await load('req', [t], [...args, '-t', secs, '-w', warm]);
    return r && { rps: r.rps, errors: r.errors, mbps: r.seen.bytesIn / (secs + warm) / 1e6, latency: r.urls[0].latency,
        cpu: t.script ? r.seen.gateway / r.seen.requests / 1000 : null, mockCpu: r.seen.mock / r.seen.requests / 1000,
        busy: r.seen.busy, foreign: r.seen.foreign };
}

export async function tput({ targets }) {
    const data = {}, text = [];
    for (const c of [8, 32, 256]) {
        const res = await alternate(targets, (t) => loaded(t, ['-b', bodyFile('m-r512'), '-c', c], 0.5, 0.15), SHORT);
        data[`c${c}`] = Object.fromEntries(res);
        const g = (name, f) => over(res.get(name) ?? [], f);
        const rps = (r) => r.rps, cpu = (r) => r.cpu;
        text.push(table(`(b) throughput, ${c} connections, 2 KB request, 0.5 KB reply`,
            ['target', 'req/s', '/ nginx', 'p50 us', 'p99 us', 'gateway CPU us/req', 'CPU / nginx', 'core 0/1 busy %', 'errors'],
            targets.map(({ name }) => [name, spread(g(name, rps)), ratio(g(name, rps), g(REF, rps)), mid(g(name, (r) => r.latency.p50)),
                mid(g(name, (r) => r.latency.p99)), spread(g(name, cpu)), ratio(g(name, cpu), g(REF, cpu)),
                `${mid(g(name, (r) => r.busy[0]))}/${mid(g(name, (r) => r.busy[1]))}`,
                (res.get(name) ?? []).reduce((a, r) => a + r.errors, 0)])));
    }
    return { data, text };
}

// --- (c) streaming ---------------------------------------------------------------------------------------------------

const intact = (rs) => {
    const s = rs.reduce((a, r) => ({ inc: a.inc + r.incomplete, bytes: a.bytes + r.not_identical, text: a.text + r.text_differs }), { inc: 0, bytes: 0, text: 0 });
    return s.inc ? `${s.inc} cut` : s.text ? `${s.text} differ` : s.bytes ? 'text only' : 'bytes';
};

async function streamed(t, args, alsoOurs = []) {
    const r = await load('stream', [t], args, alsoOurs);
    return r && { ...r, urls: undefined, ...r.urls[0], cpu: t.script ? r.seen.gateway / Math.max(1, r.frames) / 1000 : null, busy: r.seen.busy };
}

export async function stream({ targets, direct }) {
    const data = {}, text = [], ts = targets.filter((t) => t.conf.stream);

    // time to the first token, one stream at a time, direct and gateway in turn
    const short = ['-b', bodyFile('m-n3-p1', { stream: true })];
    const first = await alternate(gateways(ts), async (t) => {
        const r = await load('pairstream', [direct, t], [...short, '-n', 200]);
        if (!r || r.errors) return null;
        const [d, g] = r.urls.map((u) => u.ttft);
        return { ...r, urls: undefined, direct: d, gateway: g, added: { p50: g.p50 - d.p50, p90: g.p90 - d.p90, p99: g.p99 - d.p99 } };
    });
    data.ttft = Object.fromEntries(first);
    const f = (name, k) => over(first.get(name) ?? [], (r) => r.added[k]);
    text.push(table('(c1) time to first token added at c=1; us, gateway minus direct, stream by stream in turn (first token not delayed by the model)',
        ['target', 'p50', 'p90', 'p99', 'p50 / nginx', 'p99 / nginx', 'intact'],
        gateways(ts).map(({ name }) => [name, spread(f(name, 'p50')), mid(f(name, 'p90')), spread(f(name, 'p99')), ratio(f(name, 'p50'), f(REF, 'p50')),
            ratio(f(name, 'p99'), f(REF, 'p99')), intact(first.get(name) ?? [])])));

    // how long a frame travels, 32 streams of 100 frames/s each
    const paced = ['-b', bodyFile('m-n40-p10', { stream: true }), '-c', 32, '-t', 0.9, '-g', 400, '-p', 10];
    const travel = await alternate(ts, (t) => streamed(t, paced));
    data.frames = Object.fromEntries(travel);
    const plus = (name, kind, q) => {
        const d = travel.get('direct') ?? [];
        return over((travel.get(name) ?? []).map((r, i) => (d[i] ? r[kind][q] - d[i][kind][q] : null)), (x) => x);
    };
    const tr = (name, g) => over(travel.get(name) ?? [], g);
    text.push(table('(c2) 32 streams, a frame every 10 ms: travel time of a frame from mock to client; us (direct: absolute, others: added)',
        ['target', 'frame p50', 'frame p99', 'p99.9', 'TTFT p50', 'TTFT p99', 'CPU us/frame', 'CPU / nginx', 'intact'],
        ts.map((t) => {
            const { name } = t, own = (k, q) => t.script ? plus(name, k, q) : tr(name, (r) => r[k][q]);
            return [name, spread(own('frame', 'p50')), spread(own('frame', 'p99')), mid(own('frame', 'p999')), mid(own('ttft', 'p50')), mid(own('ttft', 'p99')),
                mid(tr(name, (r) => r.cpu)), ratio(tr(name, (r) => r.cpu), tr(REF, (r) => r.cpu)), intact(travel.get(name) ?? [])];
        })));

    // as fast as it goes
    const flood = ['-b', bodyFile('m-n2000-p0', { stream: true }), '-c', 8, '-t', 1];
    const fast = await alternate(ts, (t) => streamed(t, flood));
    data.unpaced = Object.fromEntries(fast);
    const fr = (name, g) => over(fast.get(name) ?? [], g), rate = (r) => r.frames / r.secs;
    text.push(table('(c3) 8 streams of 2000 frames without pace (215 bytes a frame)',
        ['target', 'frames/s', '/ nginx', 'MB/s', 'CPU us/frame', 'CPU / nginx', 'core 0/1 busy %', 'intact'],
        ts.map(({ name }) => [name, spread(fr(name, rate)), ratio(fr(name, rate), fr(REF, rate)), mid(fr(name, (r) => r.bytes / r.secs / 1e6)),
            mid(fr(name, (r) => r.cpu)), ratio(fr(name, (r) => r.cpu), fr(REF, (r) => r.cpu)),
            `${mid(fr(name, (r) => r.busy[0]))}/${mid(fr(name, (r) => r.busy[1]))}`, intact(fast.get(name) ?? [])])));
    return { data, text };
}

const LEVELS = [{ n: 64, pace: 20 }, { n: 256, pace: 20 }, { n: 512, pace: 20 }, { n: 1024, pace: 20 }, { n: 2048, pace: 40 }];

export async function hold({ targets }) {
    const data = {}, ts = targets.filter((t) => t.conf.stream);
    for (const t of ts) data[t.name] = [];
    for (const { n, pace } of LEVELS) {
        const b = ['-b', bodyFile(`m-n${pace === 20 ? 60 : 36}-p${pace}`, { stream: true }), '-c', n, '-n', n, '-g', 500, '-p', pace];
        for (const t of ts) {
            let best = null;
            for (let attempt = 0; attempt < 2 && !best?.held; attempt++) {
                const r = await streamed(t, b);
                if (!r) continue;
                r.held = r.n === n && !r.errors && !r.incomplete && !r.text_differs && !r.stalled;
                if (!best || r.held || r.max_gap_ms < best.max_gap_ms) best = r;
            }
            data[t.name].push({ streams: n, pace, ...best });
            await sleep(100);
        }
    }
    const cell = (r) => r.n === undefined ? 'failed' : `${r.held ? 'ok' : r.stalled ? `STALL ${r.stalled}` : `BAD ${r.errors}/${r.incomplete}/${r.text_differs}`} ${num(r.frame.p99 / 1000)}/${num(r.max_gap_ms)}`;
    const text = [table('(c4) streams held at once: "ok" = all whole, no gap over 10x pace; then frame travel p99 ms / longest gap ms (best of two tries)',
        ['target', ...LEVELS.map((l) => `${l.n} @${l.pace} ms`), 'core 0/1 busy % at 1024', 'CPU us/frame at 1024'],
        ts.map(({ name }) => [name, ...data[name].map(cell), data[name][3].busy?.join('/') ?? '-', num(data[name][3].cpu)]))];
    return { data, text };
}

// --- (d) big request bodies -----------------------------------------------------------------------------------------

export async function big({ targets, direct }) {
    const data = {}, text = [];
    for (const [label, bytes, max] of [['1m', 1 << 20, 150], ['8m', 8 << 20, 20]]) {
        const b = ['-b', bodyFile('m-r512', { bytes })];
        const one = await alternate(gateways(targets), async (t) => {
            const probe = await load('pair', [direct, t], [...b, '-n', 3]);
            if (!probe || probe.errors) return { errors: probe?.errors ?? 1 };
            const n = fit(probe.urls[0].latency.mean + probe.urls[1].latency.mean, 0.8, max, 5);
            const r = await load('pair', [direct, t], [...b, '-n', n]);
            if (!r) return { errors: 1 };
            const [d, g] = r.urls.map((u) => u.latency);
            return { n, errors: r.errors, direct: d, gateway: g, cpuMs: r.seen.gateway / n / 1e6, added: { p50: g.p50 - d.p50, p90: g.p90 - d.p90 } };
        });
        const many = label === '1m' ? await alternate(targets, (t) => loaded(t, [...b, '-c', 4], 0.8, 0.2), 2) : null;
        data[label] = { one: Object.fromEntries(one), many: many && Object.fromEntries(many) };
        const g = (name, f) => over((one.get(name) ?? []).filter((r) => r.added), f), m = (name, f) => over(many?.get(name) ?? [], f);
        text.push(table(`(d) request body of ${label.toUpperCase()}B, 0.5 KB reply; ms, c=1 gateway minus direct in turn${many ? '; MB/s at c=4' : ''}`,
            ['target', 'added p50 ms', 'added p90 ms', 'p50 / nginx', 'gateway CPU ms/req', 'CPU / nginx', 'MB/s c=4', '/ nginx', 'errors'],
            gateways(targets).map(({ name }) => [name, spread(g(name, (r) => r.added.p50 / 1000)), mid(g(name, (r) => r.added.p90 / 1000)),
                ratio(g(name, (r) => r.added.p50), g(REF, (r) => r.added.p50)), mid(g(name, (r) => r.cpuMs)), ratio(g(name, (r) => r.cpuMs), g(REF, (r) => r.cpuMs)),
                mid(m(name, (r) => r.mbps)), ratio(m(name, (r) => r.mbps), m(REF, (r) => r.mbps)),
                (one.get(name) ?? []).reduce((a, r) => a + (r.errors ?? 0), 0)])));
    }
    return { data, text };
}

// --- (g) who waits for whom: big bodies beside paced streams ----------------------------------------------------------

export async function mixed({ targets }) {
    const data = {}, ts = targets.filter((t) => t.conf.stream);
    const paced = ['-b', bodyFile('m-n30-p10', { stream: true }), '-c', 32, '-t', 0.8, '-g', 300, '-p', 10];
    const res = {};
    for (const [label, bytes] of [['alone', 0], ['1m', 1 << 20], ['8m', 8 << 20]]) {
        res[label] = await alternate(ts, async (t) => {
            const bg = bytes ? background(t, ['-b', bodyFile('m-r512-d20', { bytes }), '-c', 1, '-t', 60]) : null;
            if (bg) await sleep(200);
            const r = await streamed(t, paced, bg ? [bg.pid] : []);
            if (bg) await bg.stop();
            return r;
        });
        data[label] = Object.fromEntries(res[label]);
    }
    const g = (label, name, f) => over(res[label].get(name) ?? [], f), p99 = (r) => r.frame.p99 / 1000;
    return { data, text: [table('(g) 32 streams, a frame every 10 ms, while one client posts big bodies one after another (20 ms model): travel time of a frame, ms',
        ['target', 'alone p99', '1 MB p50', '1 MB p99', '8 MB p50', '8 MB p99', '8 MB worst gap', '8 MB p99 / nginx'],
        ts.map(({ name }) => [name, mid(g('alone', name, p99)), mid(g('1m', name, (r) => r.frame.p50 / 1000)), spread(g('1m', name, p99)),
            mid(g('8m', name, (r) => r.frame.p50 / 1000)), spread(g('8m', name, p99)), mid(g('8m', name, (r) => r.max_gap_ms)), ratio(g('8m', name, p99), g('8m', REF, p99))]))] };
}

// --- (e) memory -------------------------------------------------------------------------------------------------------

export async function mem({ targets }) {
    const data = {}, HELD = 1000;
    for (const t of gateways(targets)) {
        await t.stop();                                 // fresh: what earlier benches left behind must not count
        await t.start();
        await sleep(500);
        const cold = memory(t.pids()), coldServer = memory(t.serverPids());
        await load('req', [t], ['-b', bodyFile('m-r8k'), '-c', 64, '-t', 2]);
        await sleep(300);
        const after = memory(t.pids());
        let stream = null, left = null;
        if (t.conf.stream) {
            const h = await holdStreams(t, 'm-n2-p60000', HELD);
            await sleep(300);
            stream = h.ok ? memory(t.pids()).pss - after.pss : null;
            await h.close();
            left = memory(t.pids());
        }
        resetPeak(t.pids());
        const big = () => load('req', [t], ['-b', bodyFile('m-r512', { bytes: 8 << 20 }), '-c', 4, '-t', 1]);
        await big();
        const peak = memory(t.pids()).peak, peakServer = memory(t.serverPids()).peak;
        await sleep(1000);
        const settled = memory(t.pids());
        for (let i = 0; i < 3; i++) await big();        // what the same load leaves behind when it comes again
        await sleep(1000);
        const again = memory(t.pids());
        data[t.name] = { processes: t.pids().length, cold, coldServer, after, peak, peakServer, settled, again,
            perStreamKiB: stream && stream * 1024 / HELD, left };
    }
    const r = data[REF];
    const text = [table(`(e) memory of all gateway processes, MiB (PSS: shared pages once); peak: RSS while 4 x 8 MB bodies pass; per stream: ${HELD} idle streams`,
        ['target', 'processes', 'cold', 'cold, server only', 'after 2 s load', 'KiB per idle stream', '/ nginx', 'streams closed', 'peak RSS', '1 s after', '3 x again'],
        gateways(targets).map(({ name }) => { const d = data[name]; return [name, d.processes, num(d.cold.pss), num(d.coldServer.pss), num(d.after.pss), num(d.perStreamKiB),
            d.perStreamKiB && r?.perStreamKiB ? `${(d.perStreamKiB / r.perStreamKiB).toFixed(2)}x` : '-', num(d.left?.pss), num(d.peak), num(d.settled.pss), num(d.again.pss)]; }))];
    return { data, text };
}

// --- (f) the tool loop -----------------------------------------------------------------------------------------------

export async function loop({ targets }) {
    const data = { delayed: {}, plain: {}, busy: {} }, ts = targets.filter((t) => t.conf.loop);
    const kind = (t) => `${t.name} (${t.conf.loop})`, D = 4, text = [];
    const cells = [[1, 1], [3, 1], [5, 1], [1, 5], [3, 5], [5, 5]];
    const ideal = (r) => ((r + 1) * D + r * D) * 1000;

    const per = {};
    for (const [r, k] of cells) {
        const key = `${r}x${k}`;
        const able = ts.filter((t) => r * k <= (t.conf.loopCalls ?? Infinity));
        const res = await alternate(able, (t) => {
            const got = loopRun(t, `loop-${key}-d${D}-t${D}`, fit(ideal(r) + 2000, 0.45, 40, 8), 1, D);
            return got && { ...got, over: got.p50 - ideal(r), perRound: (got.p50 - ideal(r)) / r, perRound99: (got.p99 - ideal(r)) / r };
        });
        data.delayed[key] = Object.fromEntries(res);
        per[key] = (name, f) => over(res.get(name) ?? [], f);
    }
    text.push(table(`(f1) tool loop, c=1, model ${D} ms a turn, tools ${D} ms a call over TLS, calls of a round at once: us per round = (wall p50 - ${D} ms x (2 rounds + 1)) / rounds`,
        ['target (who runs the loop)', ...cells.map(([r, k]) => `${r} x ${k}`), '3x5 / nginx', '3x5 p99'],
        ts.map((t) => [kind(t), ...cells.map(([r, k]) => mid(per[`${r}x${k}`](t.name, (x) => x.perRound))),
            ratio(per['3x5'](t.name, (x) => x.perRound), per['3x5'](REF, (x) => x.perRound)), mid(per['3x5'](t.name, (x) => x.perRound99))])));

    // no delays: all of the wall time is somebody's work
    const plain = {}, load32 = {};
    for (const key of ['3x1', '3x5']) {
        const a = await alternate(ts, (t) => loopRun(t, `loop-${key}`, 150, 1, 0));
        data.plain[key] = Object.fromEntries(a);
        const b = await alternate(ts, async (t) => {
            const before = await stats('TOOL'), pids = t.pids(), cpu0 = cpuNs(pids);
            const n = fit(1e6 / Math.max(1, (data.plain[key][t.name] ?? [])[0]?.runs_per_s ?? 100) / 2, 0.5, 4000, 64);
            const r = loopRun(t, `loop-${key}`, n, 32, 0);
            const tools = (await stats('TOOL')).requests - before.requests, want = r ? r.started * Number(key[0]) * Number(key[2]) : -1;
            return r && { ...r, cpu: t.script ? (cpuNs(pids) - cpu0) / r.started / 1000 : null, tools, want };
        });
        data.busy[key] = Object.fromEntries(b);
        plain[key] = (name, f) => over(a.get(name) ?? [], f);
        load32[key] = (name, f) => over(b.get(name) ?? [], f);
    }
    const rows = (key) => ts.map((t) => [kind(t), spread(plain[key](t.name, (x) => x.p50)), ratio(plain[key](t.name, (x) => x.p50), plain[key](REF, (x) => x.p50)),
        mid(plain[key](t.name, (x) => x.p99)), spread(load32[key](t.name, (x) => x.runs_per_s)), ratio(load32[key](t.name, (x) => x.runs_per_s), load32[key](REF, (x) => x.runs_per_s)),
        mid(load32[key](t.name, (x) => x.cpu)), (data.busy[key][t.name] ?? []).every((x) => x.tools === x.want && !x.errors) ? 'ok' : 'WRONG']);
    for (const key of ['3x1', '3x5']) {
        text.push(table(`(f2) tool loop ${key.replace('x', ' rounds x ')}, no delays: wall of a run at c=1, runs/s and gateway CPU at c=32 (a client-run loop's own CPU is not in it)`,
            ['target (who runs the loop)', 'c=1 p50 us', '/ nginx', 'c=1 p99', 'c=32 runs/s', '/ nginx', 'gateway CPU us/run', 'tool calls'], rows(key)));
    }
    return { data, text };
}

