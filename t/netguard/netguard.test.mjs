// No packet leaves for an address that is refused: a real nginx with toolgate in a network
// namespace where every address of the world answers, a model that calls tools for all
// cases of netguard-cases.jsonl, and a count of what leaves by destination.
//   node t/netguard/netguard.test.mjs        NGINX, TOOLGATE_BUILD as in t/module/nginx.mjs
// Needs root, for the namespaces.

import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { callsTurn, startFixture, stepsOf, textTurn } from '../module/fixture.mjs';
import { startNginx } from '../module/nginx.mjs';
import { makeTestCa } from '../lib/mock-tool.mjs';
import { REPO, tempDir } from '../lib/stack.mjs';
import { nameServer } from '../outbound/peers.mjs';
import { impossible, makeWorld } from './world.mjs';

const DATA = path.join(process.env.TOOLGATE_TEST_DATA ?? path.join(REPO, '../shared/data'), 'netguard-cases.jsonl');
const INSIDE = 'TG_NETGUARD_INSIDE';
// some of each kind of internal address, besides those of the cases
const INTERNAL = ['10.0.0.5', '172.16.5.4', '192.168.1.1', '169.254.169.254', '100.64.0.1', '127.0.0.1', '::1', 'fd12::1', 'fec0::1'];
const PUBLIC = '93.184.215.14';      // of the cases that are allowed
const REBINDS = 4;
// nginx's resolver keeps an answer for the second in which it came, whatever its TTL
const NEXT_LOOKUP_MS = 1100;

if (process.env[INSIDE] !== '1') {
  const reason = !fs.existsSync(DATA) ? `${DATA} is not there`
    : process.env.TOOLGATE_ASAN ? 'nginx\'s own resolver shifts an address into the sign bit, for which the sanitizer ends the worker'
      : impossible();
  if (reason === undefined) {
    const child = spawnSync('unshare', ['-n', process.execPath, '--test-reporter=tap', fileURLToPath(import.meta.url)],
      { stdio: 'inherit', env: { ...process.env, [INSIDE]: '1' } });
    process.exit(child.status ?? 1);
  }
  test('packets of refused addresses', { skip: reason }, () => {});
} else {
  await inside();
}

async function inside() {
  const cases = fs.readFileSync(DATA, 'utf8').trim().split('\n').map((text) => JSON.parse(text));
  const of = (kind) => cases.filter((c) => c.kind === kind);
  const dir = tempDir('toolgate-netguard-');
  const own = { hosts: new Set(), addresses: new Set() };
  for (const c of cases) for (const k of ['hosts', 'addresses']) c.own?.[k]?.forEach((x) => own[k].add(x));

  const names = ['*.guard.test', '*.example.com', ...of('url').filter((c) => c.expect === 'allow').flatMap((c) => Object.keys(c.resolve ?? {}))];
  const ca = makeTestCa(dir, [...new Set(names.map((n) => n.replace(/\.$/, '')))], { addresses: ['127.0.0.1', PUBLIC] });
  const world = await makeWorld({ dir, ca, own: [...own.addresses] });
  const zone = {};
  const dns = await nameServer(zone);
  const family = (type, list) => list.filter((a) => a.includes(':') === (type === 'AAAA'));
  const resolve = (name, list) => { zone[name.toLowerCase().replace(/\.$/, '')] = (type) => family(type, list); };

  const http = `resolver 127.0.0.1:${dns.port} ipv6=on; resolver_timeout 2s; toolgate_ca ${ca.file};
    toolgate_own_host ${[...own.hosts].join(' ')};`;
  const server = [...own.addresses].map((a) => `listen ${a}:9443;`).join(' ');

  // what a definition may not have is seen by "nginx -t", and can never be called
  const checker = await startNginx({ quiet: true, catalog: {}, http, server, models: { m: [{ url: 'http://127.0.0.1:9' }] } });
  const definable = (tool) => {
    fs.writeFileSync(path.join(checker.dir, 'catalog.json'), JSON.stringify({ tools: [tool] }));
    fs.rmSync(path.join(checker.dir, 'logs/error.log'), { force: true });
    const { code, text } = checker.test({ TZDIR: checker.dir });
    if (code !== 0) assert.match(text, /toolgate: ([a-z_]+: .* at "\/tools\/0\/config\/url"|broken JSON: NUL)/, `${tool.config.url}: ${text}`);
    return code === 0;
  };

  const calls = [];     // { c, tool, refused }
  const add = (c, url, refused, config = {}) => {
    const tool = { name: `t${c.id.replace(/\W/g, '_')}`, description: 'x', config: { method: 'GET', url, timeout_ms: 3000, ...config } };
    calls.push({ c, tool, refused });
    return tool;
  };
  const undefinable = [];

  for (const c of of('addr')) {
    if (c.input.includes('%')) continue;      // no name server can answer with a scope
    const host = `${c.id}.guard.test`;
    resolve(host, [c.input]);
    add(c, `https://${host}/x`, c.expect === 'deny');
  }
  for (const c of of('url')) {
    for (const [name, list] of Object.entries(c.resolve ?? {})) resolve(name, list);
    const tool = add(c, c.input, c.expect === 'deny');
    if (!definable(tool)) {
      calls.pop();
      undefinable.push(c);
    }
  }
  for (const c of of('rebind')) {
    for (const [name, lists] of Object.entries(c.resolve_sequence)) {
      zone[name] = (type, n) => family(type, lists[Math.min(n, lists.length) - 1]);
    }
    add(c, c.input, undefined);
  }
  resolve('redirect.guard.test', [PUBLIC]);
  resolve('other.example.com', ['93.184.215.77']);
  for (const c of of('redirect')) {
    const [, code, to] = /^(\d+) (.*)$/.exec(c.input);
    add(c, `https://redirect.guard.test/redirect?to=${encodeURIComponent(to)}&code=${code}`, undefined);
  }

  const AGENT_TOOLS = 100, TURN_CALLS = 5;
  const agentOf = (i) => `agent${Math.floor(i / AGENT_TOOLS)}`;
  const agents = [...new Set(calls.map((_, i) => agentOf(i)))].map((name) => ({
    name, model: 'm', tools: { http: calls.filter((_, i) => agentOf(i) === name).map(({ tool }) => ({ tool: tool.name })) },
  }));
  const f = await startFixture({ http, server, agents, catalog: { tools: calls.map(({ tool }) => tool) } }).catch(async (error) => {
    await world.close();
    throw error;
  });

  /** Has the model call these; the code of each by its tool's name. */
  const drive = async (list) => {
    const codes = {};
    for (const name of new Set(agents.map((a) => a.name))) {
      const mine = list.filter((x) => agentOf(calls.indexOf(x)) === name);
      for (let i = 0; i < mine.length; i += TURN_CALLS) {
        const turn = callsTurn(...mine.slice(i, i + TURN_CALLS).map(({ tool }, n) => ({ id: `c${n}`, n: tool.name, a: '{}' })));
        const answer = await f.ask([turn, textTurn('ok')], { model: name });
        assert.equal(answer.status, 200, answer.text);
        Object.assign(codes, Object.fromEntries(stepsOf(answer)));
      }
    }
    return codes;
  };

  const destinations = async () => [...new Set(Object.keys(await world.packets()).map((to) => to.split(' ')[0]))].sort();
  const mapped = (address) => address.replace(/^::ffff:(?=\d+\.)/, '');
  const canonical = (address) => (address.includes(':') ? new URL(`http://[${address}]/`).hostname.slice(1, -1) : address);

  const refused = calls.filter((x) => x.refused === true);
  const allowed = calls.filter((x) => x.refused === false);
  // kept connections to these may be closed at any time
  const may = new Set(allowed.flatMap(({ c }) => (c.kind === 'addr' ? [c.input] : Object.values(c.resolve ?? {}).flat()))
    .concat(PUBLIC).map((a) => canonical(mapped(a))));

  test('the refused addresses are there, and the counter counts: others reach them', async () => {
    const addresses = [...new Set(refused.filter(({ c }) => c.kind === 'addr').map(({ c }) => c.input).concat(INTERNAL))];
    await world.clear();
    const answers = await Promise.all(addresses.map((a) => world.connect(a)));
    const packets = await world.packets();
    const counted = addresses.filter((a) => packets[`${canonical(mapped(a))} 443`] > 0);
    const answered = addresses.filter((_, i) => answers[i]);
    console.log(`# of ${addresses.length} refused addresses ${answered.length} answer, ${counted.length} are counted under their own name`);
    // what the kernel itself sends nowhere: multicast, broadcast, link-local without a scope
    const silent = addresses.filter((a, i) => !answers[i] && !counted.includes(a));
    console.log(`# nothing leaves for ${silent.join(' ')}`);
    for (const a of INTERNAL) assert.ok(answered.includes(a), `${a} answers`);
    assert.ok(answered.length > addresses.length / 2, `${answered.length} answer`);
  });

  test('URLs that may not be defined are refused by nginx -t', () => {
    const wrong = undefinable.filter((c) => c.expect === 'allow' && c.basis !== 'choice');
    assert.deepEqual(wrong, []);
    console.log(`# ${undefinable.length} of ${of('url').length} URLs are refused as definitions`);
    assert.ok(undefinable.length > 50);
  });

  test('calls to refused addresses send no packet', async () => {
    await world.clear();
    world.clearLocal();
    const codes = await drive(refused);
    // a name that has no address at all cannot be refused for it
    const right = ({ c }) => (Object.values(c.resolve ?? { x: ['x'] }).flat().length > 0 ? 'address_not_allowed' : 'upstream_failed');
    const wrong = refused.filter((x) => codes[x.tool.name] !== right(x) && x.c.basis !== 'choice');
    assert.deepEqual(wrong.map(({ tool, c }) => [c.id, c.input, codes[tool.name]]), []);
    assert.deepEqual(await world.packets(), {});
    assert.equal(world.localRequests(), 0);
    console.log(`# ${refused.length} calls to refused places, no packet`);
  });

  test('calls to allowed addresses reach them, and are counted', async () => {
    await world.clear();
    const codes = await drive(allowed);
    const bad = allowed.filter(({ tool }) => codes[tool.name] !== 'ok').map(({ tool, c }) => [c.id, c.input, codes[tool.name]]);
    assert.deepEqual(bad, []);
    const seen = await destinations();
    for (const { c } of allowed.filter((x) => x.c.kind === 'addr')) {
      assert.ok(seen.includes(canonical(mapped(c.input))), `${c.input} is in ${seen}`);
    }
    assert.deepEqual(seen.filter((a) => !may.has(a)), []);
    console.log(`# ${allowed.length} calls to allowed places, ${seen.length} destinations`);
    await world.asked();
  });

  test('names whose address changes after it was looked up', async () => {
    const list = calls.filter(({ c }) => c.kind === 'rebind');
    await world.clear();
    world.clearLocal();
    for (let n = 0; n < REBINDS; n++) {
      if (n > 0) await sleep(NEXT_LOOKUP_MS);
      const codes = await drive(list);
      for (const { c, tool } of list) {
        const [answers] = Object.values(c.resolve_sequence);
        const now = answers[Math.min(n, answers.length - 1)];
        assert.equal(codes[tool.name], now.some((a) => c.never_connect.includes(a)) ? 'address_not_allowed' : 'ok', `${c.id}, look-up ${n + 1}`);
      }
    }
    const seen = await destinations();
    assert.deepEqual(seen.filter((a) => !may.has(a)), []);
    assert.ok(seen.includes(PUBLIC) && seen.includes('2606:4700:4700::1111'), seen.join(' '));
    assert.equal(world.localRequests(), 0);
    await world.asked();
  });

  for (const entry of calls.filter(({ c }) => c.kind === 'redirect')) {
    test(`${entry.c.id} redirect: ${entry.c.input}`, async () => {
      await world.clear();
      world.clearLocal();
      assert.equal((await drive([entry]))[entry.tool.name], 'upstream_failed');
      const seen = await destinations();
      assert.deepEqual(seen.filter((a) => !may.has(a)), []);
      assert.ok(seen.includes(PUBLIC), seen.join(' '));
      assert.equal(world.localRequests(), 0);
      assert.equal((await world.asked()).length, 1);
    });
  }

  test('the end', async () => {
    try {
      await f.stop();
    } finally {
      await checker.stop();
      await dns.close();
      await world.close();
      fs.rmSync(dir, { recursive: true, force: true });
    }
  });
}
