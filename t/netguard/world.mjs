// A network of its own: this process is in one namespace, and all the rest of the world
// is in another behind a pair of virtual interfaces. There every address answers, the
// internal and metadata ones too. What leaves here is counted by destination.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startMockTool } from '../lib/mock-tool.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
export const PORTS = [443, 8443];
const HERE_V4 = '198.18.77.1', THERE_V4 = '198.18.77.2', HERE_V6 = 'fd77:77::1', THERE_V6 = 'fd77:77::2';
const CONNECT_MS = 1500, QUIET_MS = 300;

/** Why no such network can be made here, or undefined. */
export function impossible() {
  const probe = spawnSync('unshare', ['-n', 'sh', '-ec', `ip link set lo up
    ip link add tg0 type veth peer name tg1
    ip -6 route add local ::/0 dev lo table main`], { encoding: 'utf8' });
  if (probe.error) return `unshare: ${probe.error.message}`;
  return probe.status === 0 ? undefined : `no network namespace: ${probe.stderr.trim().split('\n')[0]}`;
}

const sh = (script) => execFileSync('sh', ['-ec', script], { stdio: ['ignore', 'pipe', 'pipe'] });

const filters = (root = '/proc/sys/net/ipv4/conf') => fs.readdirSync(root)
  .forEach((name) => fs.writeFileSync(`${root}/${name}/rp_filter`, '0'));

/** What the other process does: takes every address for its own and serves them all. */
async function there(dir) {
  sh('until ip link show tg1 >/dev/null 2>&1; do sleep 0.02; done');
  filters();
  sh(`ip link set lo up
    ip addr add ${THERE_V4}/30 dev tg1
    ip -6 addr add ${THERE_V6}/64 dev tg1 nodad
    ip link set tg1 up
    ip route add local 0.0.0.0/0 dev lo table main
    ip -6 route add local ::/0 dev lo table main`);
  const seen = [];
  const ca = { cert: fs.readFileSync(`${dir}/server.pem`), key: fs.readFileSync(`${dir}/server.key`) };
  const answer = (entry, req, res) => {
    if (entry.path !== '/all-that-was-asked') {
      seen.push(`${entry.headers.host} ${entry.path}`);
      return false;
    }
    res.end(JSON.stringify(seen.splice(0)));
    return true;
  };
  for (const port of PORTS) await startMockTool({ ca, port, host: '::', answer });
  console.log('ready');
  process.stdin.resume().on('end', () => process.exit(0));
}

async function line(child, text) {
  for await (const got of readline.createInterface({ input: child.stdout })) {
    if (got === text) return;
  }
  throw new Error(`${child.spawnargs.join(' ')} ended`);
}

/** Makes the network. ca: of makeTestCa, in dir. own: addresses of this side besides. */
export async function makeWorld({ dir, ca, own = [] }) {
  const peer = spawn('unshare', ['-n', process.execPath, fileURLToPath(import.meta.url), 'there', dir],
    { stdio: ['pipe', 'pipe', 'inherit'] });
  // unshare becomes that process, so its pid names the namespace once it has one
  const mine = fs.readlinkSync('/proc/self/ns/net');
  while (fs.readlinkSync(`/proc/${peer.pid}/ns/net`) === mine) await sleep(5);

  filters();
  sh(`ip link set lo up
    ip link add tg0 type veth peer name tg1 netns ${peer.pid}
    ip addr add ${HERE_V4}/30 dev tg0
    ip -6 addr add ${HERE_V6}/64 dev tg0 nodad
    ip link set tg0 up
    ip route add default via ${THERE_V4}
    ip -6 route add default via ${THERE_V6}
    ${own.map((address) => `ip addr add ${address} dev lo`).join('\n')}`);
  await line(peer, 'ready');

  const local = [];
  for (const port of PORTS) local.push(await startMockTool({ ca, port, host: '::' }));

  const binary = path.join(dir, 'counter');
  execFileSync('gcc', ['-std=gnu17', '-O2', '-Wall', '-Wextra', '-Werror', '-o', binary, path.join(HERE, 'counter.c')]);
  const counter = spawn(binary, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = readline.createInterface({ input: counter.stdout })[Symbol.asyncIterator]();
  const say = async (command) => {
    if (command) counter.stdin.write(`${command}\n`);
    return (await lines.next()).value;
  };
  if (await say() !== 'ready') throw new Error('the counter does not start');

  // calls and what follows them; loopback is full of the test itself otherwise
  const here = new Set([HERE_V4, HERE_V6, ...own]);
  const outside = (to) => Object.fromEntries(Object.entries(to).filter(([place]) => {
    const [address, port] = place.split(' ');
    return PORTS.includes(Number(port)) || !(/^127\.|^::1$/.test(address) || here.has(address));
  }));

  return {
    /** Packets to places outside, or to what is served here as if it were such a place,
     * since the last clear, by "address port"; none was missed. */
    async packets() {
      const { dropped, to } = JSON.parse(await say('count'));
      if (dropped !== 0) throw new Error(`${dropped} packets were not counted`);
      return outside(to);
    },
    /** Forgets them, once nothing is on its way any more. */
    async clear() {
      for (let last; ; await sleep(QUIET_MS)) {
        const now = JSON.stringify(outside(await this.packets()));
        if (now === last) break;
        last = now;
      }
      await say('clear');
    },

    /** Connects to an address as anybody may: true when something answers there. */
    connect: (host, port = 443) => new Promise((done) => {
      const socket = net.connect({ host, port });
      const end = (answer) => {
        clearTimeout(timer);
        socket.resetAndDestroy();
        done(answer);
      };
      const timer = setTimeout(() => end(false), CONNECT_MS);
      socket.on('connect', () => end(true)).on('error', () => end(false));
    }),

    /** Requests that the world got since the last time, as "host path". */
    asked: () => new Promise((done, failed) => {
      https.get({ host: THERE_V4, path: '/all-that-was-asked', rejectUnauthorized: false, agent: false }, (res) => {
        let text = '';
        res.on('data', (part) => { text += part; }).on('end', () => done(JSON.parse(text)));
      }).on('error', failed);
    }),

    localRequests: () => local.reduce((n, tool) => n + tool.connections, 0),
    clearLocal: () => local.forEach((tool) => tool.clear()),

    async close() {
      counter.stdin.end();
      peer.stdin.end();
      for (const tool of local) await tool.close();
    },
  };
}

if (process.argv[2] === 'there' && process.argv[1] === fileURLToPath(import.meta.url)) await there(process.argv[3]);
