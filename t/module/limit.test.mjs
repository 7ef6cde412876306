// Request limits with Redis and without: exact over two nodes that are raced, nothing of
// a key's value in the store, Redis absent, killed, hanging or talking nonsense for each
// on_failure, windows that go by, a zone that is full, reloads, clients that leave.

import test, { after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertError, callsTurn, order, startFixture, textTurn } from './fixture.mjs';
import { KEY, SLOW, startNginx } from './nginx.mjs';
import { Fake, Redis, freePort, until } from '../store/harness.mjs';

const ANSWER = `default_type text/event-stream; return 200 '${textTurn('hello').replaceAll('\n', '\\n')}';`;
const BODY = { model: 'm', messages: [{ role: 'user', content: 'x' }] };
const AGENT = { ...BODY, model: 'a' };
const WAITS_MS = 1000 * SLOW;
const AT_ONCE_MS = 200 * SLOW;
const MODE = 'x-toolgate-limit-mode';
// where a busy machine must not make Redis look away
const PATIENT = 'timeout=5s';

/** An answer of the script, and an argument of it. */
function packed(...list) {
  const bytes = Buffer.alloc(4 * list.length);
  list.forEach((n, i) => bytes.writeUInt32LE(n, 4 * i));
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]);
}
const numbers = (text) => [0, 4, 8].map((at) => Buffer.from(text, 'latin1').readUInt32LE(at));

const running = [];

after(async () => {
  for (const part of running) await part.stop();
});

async function node({ redis, limits, conf = '', ...rest }) {
  const nginx = await startNginx({
    models: { m: [{ conf: ANSWER }] }, catalog: { agents: [{ name: 'a', model: 'm' }] },
    http: `${redis === undefined ? '' : `toolgate_redis ${redis};`} ${conf}`,
    api: limits, ...rest,
  });
  running.push(nginx);
  return nginx;
}

async function redisServer() {
  const redis = await new Redis().start();
  running.push(redis);
  return redis;
}

async function end(...parts) {
  for (const part of parts) {
    running.splice(running.indexOf(part), 1);
    await part.stop();
  }
}

async function timed(asked) {
  const began = performance.now();
  const answer = await asked;
  return Object.assign(answer, { ms: performance.now() - began });
}

const chats = (nginx, n, options) =>
  Promise.all(Array.from({ length: n }, () => timed(nginx.chat(BODY, options))));
const passed = (answers) => answers.filter((a) => a.status === 200).length;
const modes = (answers) => [...new Set(answers.map((a) => a.headers[MODE]))];
const slowest = (answers) => Math.max(...answers.map((a) => a.ms));
const lines = (nginx, pattern) => nginx.log().split('\n').filter((line) => pattern.test(line));
const rate = ({ headers }) => ['limit', 'remaining', 'reset'].map((w) => headers[`x-ratelimit-${w}-requests`]);

function assertRefused(answer) {
  assertError(answer, 429, 'rate_limit_exceeded', null);
  assert.equal(answer.json.error.type, 'rate_limit_error');
  assert.match(answer.headers['retry-after'], /^[1-9]\d*$/);
  assert.match(answer.headers['x-toolgate-run'], /^run_/);
}

test('two nodes on one Redis, raced: exactly the limit passes', async () => {
  const redis = await redisServer();
  const limits = 'toolgate_limit requests=100/m key=$toolgate_project; toolgate_limit requests=100000/h key=$http_authorization;';
  const nodes = [];
  for (const store = `${redis.unix} prefix=t: ${PATIENT}`; nodes.length < 2;) {
    nodes.push(await node({ redis: store, limits }));
  }

  const answers = (await Promise.all(nodes.map((n) => chats(n, 200)))).flat();
  assert.equal(passed(answers), 100);
  assert.deepEqual(modes(answers), [undefined]);
  assert.deepEqual(answers.filter((a) => a.status === 200).map((a) => Number(rate(a)[1])).sort((a, b) => a - b),
    Array.from({ length: 100 }, (_, n) => n), 'each left is told once');
  answers.filter((a) => a.status !== 200).forEach((a) => {
    assertRefused(a);
    assert.ok(Number(a.headers['retry-after']) >= 30 && Number(a.headers['retry-after']) <= 60);
    assert.deepEqual(rate(a).slice(0, 2), ['100', '0']);
  });

  // one key a limit, in one slot, with no trace of the value; what was refused is in none
  const keys = (await redis.call('KEYS', 't:l:*')).sort();
  assert.equal(keys.length, 2);
  assert.match(keys[0], /^t:l:\{default\}:100\/m:[\w-]{22}$/);
  assert.match(keys[1], /^t:l:\{default\}:100000\/h:[\w-]{22}$/);
  assert.equal(new Set(keys.map((k) => k.split(':').at(-1))).size, 2);
  for (const key of keys) {
    assert.ok(await redis.call('PTTL', key) > 0);
    assert.ok((await redis.call('STRLEN', key)) <= 4 + 4 * 12);
    assert.equal(await redis.call('EVAL', "return struct.unpack('<I4', redis.call('GET', KEYS[1]))", 1, key), 100);
  }
  await end(...nodes, redis);
});

test('one script for all limits of a request, with digests for keys and no time of ours', async () => {
  const fake = await new Fake(() => packed(1, 4, 0, 60000, 6, 0, 1500)).start();
  const nginx = await node({ redis: fake.url,
    limits: 'toolgate_limit requests=5/m key=$http_authorization burst=5; toolgate_limit requests=7/h key=all dry_run;' });
  const answer = await nginx.chat(BODY);
  assert.equal(answer.status, 200);
  assert.deepEqual(rate(answer), ['10', '4', '1m0s']);
  const asked = fake.commands.filter((words) => words[3].startsWith('tg:l:'));
  assert.equal(asked.length, 1);
  const [name, , ...rest] = asked[0];
  assert.equal(name, 'EVALSHA');
  assert.deepEqual([numbers(rest[3]), rest[4], numbers(rest[5]), rest[6]],
    [[10, 120000, 0], '122000', [7, 3600000, 1], '3660000']);
  assert.match(rest[1], /^tg:l:\{default\}:5\/m\+5:[\w-]{22}$/);
  assert.ok(!JSON.stringify(asked).includes(KEY));
  await end(nginx);
  await fake.stop();
});

for (const store of ['redis', 'zone']) {
  test(`${store}: windows go by, and refused attempts do not make them longer`, async () => {
    const redis = store === 'redis' ? await redisServer() : undefined;
    const nginx = await node({ redis: redis && `${redis.unix} ${PATIENT}`, limits: 'toolgate_limit requests=3/s key=$toolgate_project burst=3;' });
    const began = performance.now();
    assert.equal(passed(await chats(nginx, 8)), 6);
    while (performance.now() - began < 1700) {
      assertRefused(await nginx.chat(BODY));
      await sleep(40);
    }
    await until('the window is over', async () => (await nginx.chat(BODY)).status === 200, 2000);
    assert.ok(performance.now() - began < 2600 * SLOW, `${performance.now() - began} ms`);
    assert.equal(passed(await chats(nginx, 8)), 5);
    await end(nginx, ...(redis ? [redis] : []));
  });
}

test('an agent that is refused: no model is asked; streams get a status, not an event', async () => {
  const f = await startFixture({ api: 'toolgate_limit requests=2/h key=$toolgate_agent; toolgate_sse_ping 20ms;' });
  running.push(f);
  const first = await f.ask([textTurn('one')]);
  assert.deepEqual([first.status, rate(first).slice(0, 2)], [200, ['2', '1']]);
  const second = await f.stream([textTurn('two')]);
  assert.equal(second.content, 'two');
  assert.equal(second.headers['x-ratelimit-remaining-requests'], '0');

  for (const stream of [false, true]) {
    f.clear();
    assertRefused(await f.nginx.chat(f.body({ stream })));
    assert.equal(f.model.journal.length, 0);
  }
  assert.equal(lines(f.nginx, /\[info\].*toolgate: limit 2\/h key=\$toolgate_agent refuses for \d+ ms/).length, 2);
  assert.equal(lines(f.nginx, /run run_\w+ failed: rate_limit_exceeded/).length, 2);
  await end(f);
});

test('counted here for the request and for its tools: the head says so once', async () => {
  const f = await startFixture({ api: 'toolgate_limit requests=9/h key=all;' });
  running.push(f);
  const answer = await f.ask([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), textTurn('ok')]);
  assert.equal(answer.status, 200);
  assert.equal(answer.rawHeaders.filter((h) => h.toLowerCase() === MODE).length, 1);
  await end(f);
});

test('dry_run: only the log says what it would do', async () => {
  const nginx = await node({ limits: 'toolgate_limit requests=2/h key=$http_authorization dry_run;' });
  const answers = await chats(nginx, 5);
  assert.equal(passed(answers), 5);
  assert.ok(answers.every((a) => a.headers['retry-after'] === undefined));
  const said = lines(nginx, /would refuse/);
  assert.equal(said.length, 3);
  assert.match(said[0], /\[warn\].*toolgate: limit 2\/h key=\$http_authorization would refuse \(dry run\) for \d+ ms/);
  assert.equal(lines(nginx, new RegExp(KEY)).length, 0);
  await end(nginx);
});

const LIMIT = 'toolgate_limit requests=20/h key=$http_x_who;';
const who = (name) => ({ headers: { 'x-who': name } });

/** What on_failure promises, of answers that all came while Redis was away. */
const promises = {
  local: (answers) => {
    assert.equal(passed(answers), 20);
    assert.deepEqual(modes(answers), ['local']);
    answers.filter((a) => a.status !== 200).forEach(assertRefused);
  },
  closed: (answers) => {
    for (const a of answers) {
      assertError(a, 503, 'store_unavailable', null);
      assert.match(a.headers['retry-after'], /^[1-9]\d*$/);
      assert.deepEqual([a.headers[MODE], ...rate(a)], Array(4).fill(undefined));
    }
  },
  open: (answers) => {
    assert.equal(passed(answers), answers.length);
    assert.deepEqual(rate(answers[0]), Array(3).fill(undefined));
    assert.deepEqual(modes(answers), [undefined]);
  },
};

for (const [mode, assertMode] of Object.entries(promises)) {
  test(`on_failure=${mode}: absent from the start, one line in the log`, async () => {
    const nginx = await node({ redis: `127.0.0.1:${await freePort()} on_failure=${mode}`, limits: LIMIT });
    const answers = await chats(nginx, 30, who('x'));
    assertMode(answers);
    assert.ok(slowest(answers) < WAITS_MS, `${slowest(answers)} ms`);
    assert.equal(lines(nginx, /\[error\].*redis .* cannot count/).length, 1);

    // a request without a limit does not care
    assert.equal((await nginx.chat(BODY)).status, 200);
    await end(nginx);
  });

  test(`on_failure=${mode}: killed, hanging, and back`, async () => {
    const redis = await redisServer();
    const nginx = await node({ redis: `${redis.unix} on_failure=${mode}`, limits: LIMIT });
    const before = await chats(nginx, 5, who('before'));
    assert.deepEqual([passed(before), modes(before)], [5, [undefined]]);

    await redis.stop();
    const killed = await chats(nginx, 30, who('killed'));
    assertMode(killed);
    assert.ok(slowest(killed) < WAITS_MS, `${slowest(killed)} ms`);

    await redis.start();
    const back = (name) => until('the store counts again', async () => {
      const [a] = await chats(nginx, 1, who(`${name}${performance.now()}`));
      return a.status === 200 && rate(a)[1] === '19' && a.headers[MODE] === undefined;
    }, 5000 * SLOW);
    await back('a');
    assert.equal(passed(await chats(nginx, 30, who('again'))), 20);

    redis.signal('SIGSTOP');
    const met = await chats(nginx, 30, who('hanging'));
    assertMode(met);
    assert.ok(slowest(met) >= 200 && slowest(met) < WAITS_MS, `${slowest(met)} ms`);
    const later = await chats(nginx, 10, who('later'));
    assert.ok(slowest(later) < AT_ONCE_MS, `those after them do not wait: ${slowest(later)} ms`);
    redis.signal('SIGCONT');
    await back('b');
    await end(nginx, redis);
  });
}

for (const [what, bytes, rest] of [
  ['an error', '-OOM command not allowed\r\n'], ['a number', ':1\r\n'], ['a list', '*4\r\n:1\r\n:2\r\n:0\r\n:0\r\n'],
  ['nothing', '$-1\r\n'], ['too little', packed(1)], ['too much', packed(1, 4, 0, 0, 0)],
  ['more left than there is', packed(1, 21, 0, 0)], ['a pass that has to wait', packed(1, 0, 5, 5)],
  ['a refusal without a wait', packed(0, 0, 0, 5)], ['a wait beyond the window', packed(0, 0, 3600001, 5)],
  ['a reset beyond the window', packed(1, 4, 0, 3600001)], ['neither yes nor no', packed(2, 4, 0, 5)],
]) {
  test(`Redis answers with ${what}: counted here`, async () => {
    const fake = await new Fake(() => bytes).start();
    const nginx = await node({ redis: fake.url, limits: LIMIT });
    promises.local([...await chats(nginx, 15, who('x')), ...await chats(nginx, 15, who('x'))]);
    assert.equal(lines(nginx, /cannot count/).length, 1);
    await end(nginx);
    await fake.stop();
  });
}

test('scripts flushed: NOSCRIPT is no failure', async () => {
  const redis = await redisServer();
  const nginx = await node({ redis: `${redis.unix} ${PATIENT}`, limits: LIMIT });
  const answers = [];
  for (let i = 0; i < 3; i++) {
    answers.push(...await chats(nginx, 5, who('x')));
    await redis.call('SCRIPT', 'FLUSH');
  }
  assert.deepEqual([passed(answers), modes(answers)], [15, [undefined]]);
  assert.deepEqual(rate((await chats(nginx, 1, who('x')))[0]).slice(0, 2), ['20', '4']);
  await end(nginx, redis);
});

test('a worker that is to leave is not kept by what it asks Redis now and then', async () => {
  const redis = await redisServer();
  const fake = await new Fake(() => ':1\r\n').start();
  for (const store of [`${redis.unix} timeout=5s`, redis.unix, fake.url]) {
    const nginx = await node({ redis: store, limits: LIMIT });
    await chats(nginx, 3, who('x'));
    const began = performance.now();
    await end(nginx);
    assert.ok(performance.now() - began < 2000 * SLOW, `${store}: ${performance.now() - began} ms`);
  }
  await end(redis);
  await fake.stop();
});

test('while Redis hangs: clients leave, a run is over in time, no ping takes the status away', async () => {
  const redis = await redisServer();
  const nginx = await node({ redis: `${redis.unix} timeout=700ms on_failure=closed`, limits: LIMIT,
    server: `location /short/ { rewrite ^/short(/.*)$ $1 break; toolgate_api; toolgate_run_timeout 100ms; ${LIMIT} }
      location /ping/ { rewrite ^/ping(/.*)$ $1 break; toolgate_api; toolgate_sse_ping 20ms; ${LIMIT} }` });
  await chats(nginx, 1, who('warm'));
  redis.signal('SIGSTOP');

  const left = Array.from({ length: 20 }, () => {
    const req = http.request({ port: nginx.port, host: '127.0.0.1', path: '/v1/chat/completions', method: 'POST', agent: false,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'x-who': 'gone' } });
    req.on('error', () => {});
    req.end(JSON.stringify(BODY));
    return req;
  });
  const short = nginx.request('/short/v1/chat/completions', { body: AGENT, ...who('s') });
  const ping = nginx.request('/ping/v1/chat/completions', { body: { ...AGENT, stream: true }, ...who('p') });
  await sleep(150);
  left.forEach((req) => req.destroy());
  assertError(await short, 504, 'run_timeout');
  assertError(await ping, 503, 'store_unavailable');
  redis.signal('SIGCONT');
  await until('back', async () => passed(await chats(nginx, 1, who(`b${performance.now()}`))) === 1, 5000 * SLOW);
  await end(nginx, redis);
});

test('counted in the zone: a reload keeps the counts, a changed limit begins anew', async () => {
  const nginx = await node({ limits: 'toolgate_limit requests=3/h key=all;' });
  const reload = async (from, to) => {
    nginx.conf = nginx.conf.replace(from, to);
    fs.writeFileSync(path.join(nginx.dir, 'nginx.conf'), nginx.conf);
    const old = nginx.worker();
    nginx.child.kill('SIGHUP');
    await until('another worker', () => nginx.worker() !== old);
    await sleep(200);
  };
  assert.equal(passed(await chats(nginx, 2)), 2);
  await reload('', '');
  assert.equal(passed(await chats(nginx, 3)), 1);
  await reload('requests=3/h', 'requests=4/h');
  assert.equal(passed(await chats(nginx, 6)), 4);
  await end(nginx);
});

test('a zone full of keys: the oldest are forgotten, which is told once; tools still count', async () => {
  const f = await startFixture({ api: 'toolgate_limit requests=1000/h key=$http_x_who; toolgate_limit requests=1/h key=$http_x_one;' });
  running.push(f);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  const ask = (headers) => f.nginx.request('/v1/chat/completions', { body: { ...f.body(), model: 'm' }, headers, agent });

  f.clear();
  assert.equal((await ask({ 'x-one': 'old' })).status, 200);
  assert.equal((await ask({ 'x-one': 'old' })).status, 429);
  const asked = [];
  for (let i = 0; i < 900; i++) asked.push(ask({ 'x-who': `w${i}` }));
  const answers = await Promise.all(asked);
  assert.equal(passed(answers), 900);
  assert.ok(answers.every((a) => rate(a)[1] === '999'));
  assert.equal((await ask({ 'x-one': 'old' })).status, 200, 'forgotten');
  assert.deepEqual(rate(await ask({ 'x-who': 'w899' })).slice(0, 2), ['1000', '998'], 'not forgotten');
  assert.equal(lines(f.nginx, /no room for a request limit in zone "tg"/).length, 1);

  const answer = await f.ask([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), textTurn('ok')]);
  assert.deepEqual([answer.status, f.tool.count()], [200, 1]);
  agent.destroy();
  await end(f);
});
