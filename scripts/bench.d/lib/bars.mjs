// The bars: what a release must hold ("must") and what it aims at, as ratios to plain nginx in the same run, and the
// table that says which of them this run held. Rows that no bench of this run measured are left out.
import { median, num, table } from './table.mjs';

const US = 'toolgate', LIMITED = 'toolgate-limits', REF = 'nginx';

const mid = (rounds, f) => median((rounds ?? []).map((r) => {
    try { return f(r); } catch { return null; }
}));
const over = (a, b) => (a === null || b === null || a === undefined || !(b > 0) ? null : a / b);

/** Median of us over median of the reference, from one bench's { target: rounds }. */
const ratio = (part, f, ref = REF, us = US) => over(mid(part?.[us], f), mid(part?.[ref], f));

/** What a gateway added to direct, round by round. */
const added = (part, name, f) => {
    const direct = part?.direct ?? [];
    return median((part?.[name] ?? []).map((r, i) => (direct[i] ? f(r) - f(direct[i]) : null)));
};
const addedRatio = (part, f) => over(added(part, US, f), added(part, REF, f));

const whole = (...parts) => {
    const all = parts.flatMap((p) => p?.[US] ?? []);
    if (!all.length) return null;
    return all.some((r) => r.incomplete || r.text_differs) ? 0 : all.some((r) => r.not_identical) ? 1 : 2;
};

/** [row, what, value, must, aim, lower is better, unit] */
function rows(b) {
    const { lat = {}, tput = {}, stream = {}, hold = {}, big = {}, mixed = {}, mem = {}, loop = {} } = b;
    const out = [], add = (row, what, value, must, aim, { up = false, unit = 'x', note = null } = {}) =>
            out.push({ row, what, value, must, aim, up, unit, note });

    for (const [k, label] of [['r512', '0.5 KB'], ['r8k', '8 KB']]) {
        add(1, `added p50, c=1, ${label}`, ratio(lat[k], (r) => r.added.p50), 1.5, 1.25);
        add(2, `added p99, c=1, ${label}`, ratio(lat[k], (r) => r.added.p99), 2.0, 1.5);
    }
    add(3, 'added p50, c=1, 100 KB', ratio(lat.r100k, (r) => r.added.p50), 1.3, 1.0);
    for (const c of [32, 256]) add(4, `CPU a request, c=${c}`, ratio(tput[`c${c}`], (r) => r.cpu), 1.6, 1.35);
    for (const c of [32, 256]) {
        add(5, `CPU a request with a limit in Redis, c=${c}`, ratio(tput[`c${c}`], (r) => r.cpu, REF, LIMITED), 2.0, 1.7);
    }
    add(6, 'req/s, c=32', ratio(tput.c32, (r) => r.rps), 0.60, 0.72, { up: true });
    add(6, 'req/s, c=32, against lua', ratio(tput.c32, (r) => r.rps, 'lua'), 1.15, null, { up: true });
    add(7, 'time to first token added p50', ratio(stream.ttft, (r) => r.added.p50), 1.5, 1.25);
    add(7, 'time to first token added p99', ratio(stream.ttft, (r) => r.added.p99), 2.0, 1.4);
    add(8, 'frame travel added p50', addedRatio(stream.frames, (r) => r.frame.p50), 1.4, 1.15);
    add(8, 'frame travel added p99', addedRatio(stream.frames, (r) => r.frame.p99), 2.0, 1.3);
    add(9, 'CPU a frame, paced', ratio(stream.frames, (r) => r.cpu), 1.4, 1.15);
    add(9, 'CPU a frame, unpaced', ratio(stream.unpaced, (r) => r.cpu), 1.8, 1.2);
    add(10, 'unpaced frames/s', ratio(stream.unpaced, (r) => r.frames / r.secs), 0.7, 1.2, { up: true });
    if (hold[US]) {
        const of = (name, n) => hold[name]?.find((r) => r.streams === n);
        for (const n of [1024, 2048]) {
            const able = of(REF, n)?.held;      // a machine that plain nginx is too much for says nothing about us
            add(11, `${n} streams held (1: yes)`, of(US, n)?.held ? 1 : 0, able ? 1 : null, able ? 1 : null, { up: true, unit: '',
                note: able || of(US, n)?.held ? null : 'not judged: nginx does not hold them here' });
        }
        add(11, 'frame p99 at 1024', over(of(US, 1024)?.frame?.p99, of(REF, 1024)?.frame?.p99), null, 1.5);
    }
    add(12, 'streams whole (2: bytes, 1: text only)', whole(stream.ttft, stream.frames, stream.unpaced), 1, 2, { up: true, unit: '' });
    add(13, '1 MB body added p50', mid(big['1m']?.one[US], (r) => r.added.p50 / 1000), 10, 5, { unit: ' ms' });
    add(13, '8 MB body added p50', ratio(big['8m']?.one, (r) => r.added.p50), 9, 5);
    add(14, 'frame p99 beside 8 MB posts', mid(mixed['8m']?.[US], (r) => r.frame.p99 / 1000), 10, 5, { unit: ' ms' });
    if (mem[US]) {
        const m = mem[US], n = mem[REF];
        add(15, 'cold PSS, worker and master', m.coldServer.pss, 16, 11, { unit: ' MiB' });
        add(15, 'cold PSS, with helper and Redis', m.cold.pss, 40, 28, { unit: ' MiB' });
        add(16, 'KiB an idle stream', over(m.perStreamKiB, n?.perStreamKiB), 2.0, 1.3);
        add(17, 'peak, 4 x 8 MB bodies', over(m.peakServer, n?.peakServer), 2.5, 1.6);
        add(17, 'growth after 3 x that load', 100 * (m.again.pss / m.settled.pss - 1), 5, 0.5, { unit: ' %' });
    }
    const perRound = (part) => ratio(part, (r) => r.perRound);
    add(18, 'loop 3x5, 4 ms delays: us a round', perRound(loop.delayed?.['3x5']), 2.0, 1.4);
    add(19, 'loop 3x1, no delays: wall, against lua', ratio(loop.plain?.['3x1'], (r) => r.p50, 'lua'), 1.5, 1.1);
    add(20, 'loop CPU a run, 3x1, against lua', ratio(loop.busy?.['3x1'], (r) => r.cpu, 'lua'), 1.6, 1.25);
    add(20, 'loop CPU a run, 3x5, against lua', ratio(loop.busy?.['3x5'], (r) => r.cpu, 'lua'), 2.0, 1.5);
    add(21, 'loop runs/s at c=32, 3x5, against lua', ratio(loop.busy?.['3x5'], (r) => r.runs_per_s, 'lua'), 0.5, 0.75, { up: true });
    const counted = ['3x1', '3x5'].flatMap((k) => loop.busy?.[k]?.[US] ?? []);
    if (counted.length) add(22, 'tool calls made = asked (1: yes)', counted.every((r) => r.tools === r.want && !r.errors) ? 1 : 0, 1, 1, { up: true, unit: '' });
    return out.filter((r) => r.value !== null && r.value !== undefined && !Number.isNaN(r.value));
}

/** The table, a line that counts it, and each row with its verdict for the JSON. */
export function bars(result) {
    const holds = (r, limit) => limit === null || (r.up ? r.value >= limit : r.value <= limit);
    const all = rows(result.benches), sign = (r, x) => (x === null ? '-' : `${r.up ? '>=' : '<='} ${x}${r.unit}`);
    if (!all.length) return [];
    for (const r of all) r.verdict = r.note ? r.note : !holds(r, r.must) ? 'MISSED' : !holds(r, r.aim) ? 'ok' : r.aim === null ? 'ok' : 'ok, aim held';
    result.bars = all;
    const missed = all.filter((r) => r.verdict === 'MISSED');
    const judged = all.filter((r) => !r.note);
    return [table('Bars: x = ratio to plain nginx in this run unless said otherwise; medians',
        ['row: figure', 'measured', 'must', 'aim', 'verdict'],
        all.map((r) => [`${String(r.row).padStart(2)}: ${r.what}`, `${num(r.value)}${r.unit}`, sign(r, r.must), sign(r, r.aim), r.verdict])),
    `bars: ${judged.length - missed.length} of ${judged.length} held, ${all.filter((r) => r.verdict.endsWith('aim held')).length} with their aim`
        + (missed.length ? `; MISSED: ${missed.map((r) => `${r.row} (${r.what})`).join(', ')}` : '')];
}
