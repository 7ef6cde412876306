// The protected client, run in a real nginx worker against peers that misbehave.
//   node t/outbound/run.mjs [pattern]     NGINX=/path/to/nginx; TG_ASAN=1: module under
// sanitizers, with NGINX_SRC=tree in the sanitized nginx that was built there
// Prints TAP. Needs nginx, nginx-dev, libcurl, jansson, openssl; only loopback is used.

import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { certificates, closeAll, deafListener, nameServer, serve, sleep } from './peers.mjs';
import { ASAN, NGINX, Probe, build, stopAll } from './probe.mjs';
import { addressCases } from './cases-address.mjs';
import { answerCases } from './cases-answer.mjs';
import { lossCases } from './cases-loss.mjs';
import { streamCases } from './cases-stream.mjs';
import { workerCases } from './cases-worker.mjs';

const self = fileURLToPath(import.meta.url);

if (process.env.TG_OUTBOUND_CHILD !== '1') {
  const pattern = process.argv.slice(2).flatMap((text) => ['--test-name-pattern', `${text}|^exit|^clean up|responsive`]);
  const child = spawnSync(process.execPath, ['--test-reporter=tap', ...pattern, self],
    { stdio: 'inherit', env: { ...process.env, TG_OUTBOUND_CHILD: '1' } });
  process.exit(child.status ?? 1);
}

const PING_EVERY_MS = 20;
const PING_LATE_MS = 4000; // also under sanitizers on a busy machine; the exact case is in cases-worker.mjs

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tg-outbound-'));
fs.chmodSync(dir, 0o755);

const module = build();
const certs = certificates(dir);

// what a peer behind a proxy setting would see: nothing may ever come here
const proxy = await serve({ host: '127.0.0.1', answer: ({ socket }) => socket.destroy() });

const zone = {};
const dns = await nameServer(zone);
const deaf = await deafListener('127.0.1.1');

fs.writeFileSync(path.join(dir, 'hosts'), [
  '# names of the tests', '127.0.1.1\tAPI.test. two.test', '127.0.1.1 other.test # same place', '127.0.0.1 private.test',
  '127.0.1.1 mixed.test', '10.0.0.7 mixed.test', '127.0.1.9 again.test', '127.0.1.1 again.test', ''].join('\n'));

const call = (options) => `{
  probe_call; resolver 127.0.0.1:${dns.port} ipv6=on; resolver_timeout 2s; ${options} }`;

const probe = new Probe(dir, module, {
  env: { http_proxy: proxy.url(), https_proxy: proxy.url(), HTTPS_PROXY: proxy.url(), ALL_PROXY: proxy.url() },
  locations: `
    location = /call ${call('probe_ca @DIR@/ca.pem; probe_hosts @DIR@/hosts; probe_allow 127.0.1.0/24 insecure_http; probe_allow ::1/128 insecure_http;')}
    location = /https ${call('probe_ca @DIR@/ca.pem; probe_hosts @DIR@/hosts; probe_allow 127.0.1.0/24;')}
    location = /foreign ${call('probe_ca @DIR@/foreign.pem; probe_hosts @DIR@/hosts; probe_allow 127.0.1.0/24;')}
    location = /system ${call('probe_hosts @DIR@/hosts; probe_allow 127.0.1.0/24;')}
    location = /closed ${call('probe_ca @DIR@/ca.pem; probe_hosts @DIR@/hosts;')}
    location = /gzip ${call('probe_gzip on; probe_allow 127.0.1.0/24 insecure_http;')}
    location = /nodns { probe_call; probe_allow 127.0.1.0/24 insecure_http; }`,
});

await probe.start();

// the worker answers others all the time, whatever the calls of the tests meet
const pings = { count: 0, latest: 0, worst: 0, stop: false };
const pinging = (async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  while (!pings.stop) {
    const began = performance.now();
    const ok = await probe.ping(agent).catch(() => false);
    pings.latest = performance.now() - began;
    if (ok) pings.count++;
    pings.worst = Math.max(pings.worst, pings.latest);
    await sleep(PING_EVERY_MS);
  }
  agent.destroy();
})();

const shared = { probe, certs, dns, zone, deaf, proxy, dir, module, pings };

addressCases(shared);
answerCases(shared);
lossCases(shared);
streamCases(shared);
workerCases(shared);

test('the worker stayed responsive through all of this', async () => {
  pings.stop = true;
  await pinging;
  console.log(`# ${pings.count} pings, the latest answer after ${pings.worst.toFixed(0)} ms`);
  assert.ok(pings.count > 0);
  assert.ok(pings.worst < PING_LATE_MS, `${pings.worst} ms`);
});

test('proxy settings of the environment are not used', () => {
  assert.equal(proxy.connections, 0);
});

test('exit: watches left: 0, no alert, no sanitizer report', async () => {
  await probe.stop();
  await sleep(100);
  const log = probe.log();
  const left = [...log.matchAll(/toolgate: watches left: (\d+)/g)].map((m) => m[1]);
  assert.ok(left.length >= 1, 'each worker says what it left');
  assert.deepEqual([...new Set(left)], ['0']);
  const bad = log.split('\n').filter((line) => /\[(alert|emerg|crit)\]|Sanitizer|runtime error/.test(line));
  assert.deepEqual(bad, []);
});

test('clean up', async () => {
  deaf.close();
  await dns.close();
  await closeAll();
  await stopAll();
  if (process.env.PROBE_KEEP) console.log(`# kept: ${dir}`);
  else fs.rmSync(dir, { recursive: true });
  console.log(`# nginx: ${NGINX}${ASAN ? ', module under ASan and UBSan' : ''}`);
});
