// Starts everything, runs the chosen benches, prints, saves <time>.json and .txt.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execSync } from 'node:child_process';
import * as benches from './benches.mjs';
import { bars } from './bars.mjs';
import { REPO, Target, cores, listTargets, noise, startMocks, stopAll } from './world.mjs';

const ALL = ['lat', 'tput', 'stream', 'hold', 'big', 'mixed', 'mem', 'loop'];
const DEFAULT = ['direct', 'nginx', 'lua', 'toolgate', 'toolgate-limits'];

const [what = 'all', ...names] = process.argv.slice(2);
const chosen = what === 'all' ? ALL : what.split(',');
const known = listTargets();
const bad = [...chosen.filter((b) => !ALL.includes(b)), ...names.filter((n) => !known.includes(n))];
if (bad.length) {
    console.error(`unknown: ${bad.join(' ')}\nbenches: all ${ALL.join(' ')}\ntargets: ${known.join(' ')}`);
    process.exit(2);
}
// direct and nginx are always there: all ratios refer to them
const wanted = names.length ? [...new Set(['direct', 'nginx', ...names])]
    : DEFAULT;

const sh = (c) => { try { return execSync(c, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim(); } catch { return ''; } };
const machine = {
    cpu: os.cpus()[0].model, cpus: os.cpus().length, kernel: os.release(), memory_mib: Math.round(os.totalmem() / 1048576),
    load: os.loadavg(), cores,
    versions: { node: process.version, nginx: sh('nginx -v 2>&1'), haproxy: sh('haproxy -v 2>/dev/null | head -1'),
        packages: sh("dpkg-query -W -f='${Package} ${Version}; ' nginx libnginx-mod-http-lua libnginx-mod-http-js haproxy lua-cjson 2>/dev/null") },
};

const at = new Date();
const stamp = process.env.OUT ?? `${REPO}/build/bench-results/${at.toISOString().slice(0, 16).replace(':', '')}`;
const result = { at: at.toISOString(), machine, rounds: Number(process.env.ROUNDS ?? 3), benches: {} };
const lines = [];
const say = (s) => { console.log(s); lines.push(s); };

const targets = [];

async function quit(code) {
    await stopAll(targets);
    process.exit(code);
}
process.on('SIGINT', () => quit(130));
process.on('SIGTERM', () => quit(143));

try {
    await startMocks();
    for (const name of wanted) {
        const t = new Target(name, known.indexOf(name));
        try {
            await t.start();
            targets.push(t);
        } catch (e) {
            console.error(`left out: ${e.message}`);
            if (names.includes(name) || name === 'toolgate') await quit(1);
            (result.left_out ??= {})[name] = e.message;
        }
    }
    const direct = targets.find((t) => t.name === 'direct');
    say(`toolgate bench ${at.toISOString()}: ${machine.cpus} x ${machine.cpu}, kernel ${machine.kernel}; gateway on core ${cores.gateway}, ` +
        `mocks on ${cores.mock}, clients on ${cores.client}; median [lowest-highest] of ${result.rounds} rounds, targets in turn\n`);
    for (const t of targets) say(`  ${t.name}: ${t.conf.about ?? ''}`);
    say('');
    for (const b of chosen) {
        const t0 = Date.now();
        console.error(`... ${b}`);
        const r = await benches[b]({ targets: targets.filter((t) => t.conf.benches?.includes(b) ?? true), direct });
        result.benches[b] = { seconds: (Date.now() - t0) / 1000, ...r.data };
        r.text.forEach(say);
        console.error(`    ${b}: ${((Date.now() - t0) / 1000).toFixed(0)} s`);
    }
    const worst = noise.length ? [...noise].sort((a, b) => a - b) : [0];
    result.noise = { blocks: noise.length, repeated: noise.repeated, foreign_median: worst[worst.length >> 1], foreign_p90: worst[Math.floor(worst.length * 0.9)], foreign_max: worst.at(-1) };
    say(`noise: ${noise.length} blocks, foreign CPU % of the machine median ${result.noise.foreign_median}, p90 ${result.noise.foreign_p90}, max ${result.noise.foreign_max}; ${noise.repeated} blocks repeated for it`);
    bars(result).forEach(say);
    fs.mkdirSync(path.dirname(stamp), { recursive: true });
    fs.writeFileSync(`${stamp}.json`, JSON.stringify(result, (k, v) => (typeof v === 'number' && !Number.isInteger(v) ? Number(v.toFixed(3)) : v), 1));
    fs.writeFileSync(`${stamp}.txt`, lines.join('\n') + '\n');
    console.error(`saved ${stamp}.json and .txt`);
    await quit(0);
} catch (e) {
    console.error(e);
    await quit(1);
}
