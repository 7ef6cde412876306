// GET /v1/runs/{run}/steps: what is written down of a run and what is not, who may read
// it, pages, secrets, and a store that is away.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http2 from 'node:http2';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { CH, FIN, assertError, callsTurn, closing, order, startFixture, textTurn } from './fixture.mjs';
import { PATIENT, SLOW } from './nginx.mjs';
import { startRedis } from '../lib/redis.mjs';
import { makeTestCa, startMockTool } from '../lib/mock-tool.mjs';
import { freePort, tempDir } from '../lib/stack.mjs';

// one for each place, with every sign that an escape may change
const SECRETS = {
  PATH_KEY: 'p-4f9c0d22', QUERY_KEY: 'k+/=é 22&"x', HEADER_KEY: 'h3ad3r;"q"\\z', BODY_KEY: 'line "one" ü/\\end',
  BASIC: Buffer.from('shop:correct-horse').toString('base64'), LOGIN: 'correct-horse', PIN: 'zqx', NUMBER: '8675309',
};
const bytes = (text) => Buffer.from(text).toString('latin1');
const ID = { call: /^call_[0-9A-Za-z]{22}$/, step: /^step_[0-9A-Za-z]{22}$/ };
const OK = textTurn('ok');
const KEYS = { bound: 'bound-key-0123456789', other: 'other-key-0123456789', tools: 'tools-key-0123456789' };
const sha256 = (text) => createHash('sha256').update(text).digest('hex');

let f;
let h2port;
let dir;
let redis;
let tls;

const args = (...names) => ({
  parameters: { type: 'object', properties: Object.fromEntries(names.map((n) => [n, { type: 'string' }])), required: names, additionalProperties: false },
});
const tool = (name, config, rest = {}) => ({ name, description: 'x', ...rest, config: { method: 'GET', ...args(), ...config } });
const shaped = { items_path: 'data', fields: [{ path: 'status', label: 'Status' }], empty_message: 'None.' };
const whole = { fields: [{ path: 'path', label: 'Path' }, { path: 'headers', label: 'Headers' }, { path: 'body', label: 'Body' }] };

before(async () => {
  dir = tempDir();
  redis = await startRedis();
  h2port = await freePort();
  const ca = makeTestCa(dir, ['shop.test']);
  tls = await startMockTool({ ca });
  const shop = `https://shop.test:${tls.port}`;
  for (const [name, value] of Object.entries(SECRETS)) fs.writeFileSync(`${dir}/${name}`, `${value}\n`);
  const own = [
    tool('all_places', {
      method: 'POST', url: `${shop}/v1/{{secret.PATH_KEY}}/x{{secret.PIN}}y?key={{secret.QUERY_KEY}}&n={{args.n}}`, response: whole,
      headers: { 'X-Key': 'Key {{secret.HEADER_KEY}}', Authorization: 'Basic {{secret.BASIC}}' },
      body: { key: '{{secret.BODY_KEY}}', text: 'a {{secret.BODY_KEY}} b', n: '{{args.n}}' }, ...args('n'),
    }),
    tool('mirror', { method: 'POST', url: `${shop}/mirror`, response: whole, body: { t: '{{args.t}}' },
      parameters: { type: 'object', properties: { t: { type: 'string', 'x-kagent-format': 'text' } } } }),
    tool('rotated', { url: `${shop}/echo/{{args.n}}`, response: whole, headers: { 'X-Key': '{{secret.ROTATED}}' }, ...args('n') }),
    tool('private', { url: 'https://inner.test/orders/1' }),
    tool('wrong_secret', { url: `https://other.test:${tls.port}/orders/1`, headers: { 'X-Key': '{{secret.HEADER_KEY}}' } }),
    tool('no_dns', { url: 'https://nowhere.test/orders/1' }),
    tool('refused', { url: 'http://127.0.0.1:9/x', response: shaped }),
    tool('wrong_name', { url: `https://other.test:${tls.port}/orders/1`, response: shaped }),
    tool('at_shop', { url: `${shop}/orders/{{args.n}}`, response: shaped, ...args('n') }),
  ];
  const agent = (name, more = {}, http = ['order_status', 'add_note', 'lookup', 'do_it', 'my_orders', 'switched_off', ...own.map((t) => t.name)]) => ({
    name, model: 'm', tools: { allow_anonymous_actions: true, http: http.map((t) => ({ tool: t })), ...more },
  });
  f = await startFixture({
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_netguard_allow 127.0.0.1/32 ${tls.port};
      toolgate_redis unix:${redis.socket} prefix=t: ${PATIENT || 'timeout=1s'}; toolgate_retention 2h;
      toolgate_catalog @DIR@/other.json; toolgate_ca ${ca.file}; toolgate_hosts @DIR@/hosts;`,
    server: `listen 127.0.0.1:${h2port} http2; location /short/v1/ { rewrite ^/short(.*) $1 break; toolgate_api; toolgate_run_timeout 400ms; }`,
    files: {
      hosts: '127.0.0.1 shop.test other.test\n10.0.0.7 inner.test\n',
      'other.json': JSON.stringify({ project: 'other', agents: [{ name: 'a', model: 'm' }],
        api_keys: [{ name: 'other', sha256: sha256(KEYS.other), scopes: ['run'] }] }),
    },
    catalog: {
      secrets: Object.keys(SECRETS).map((name) => ({ name, value_file: `${dir}/${name}`, allowed_hosts: ['shop.test'] })),
      api_keys: [{ name: 'bound', sha256: sha256(KEYS.bound), scopes: ['run'], account_id: 'acme' },
        { name: 'tools', sha256: sha256(KEYS.tools), scopes: ['tools'] }],
    },
    moreTools: own,
    models: { keyed: [{ conf: `proxy_pass http://127.0.0.1:@MODEL@/v1/chat/completions; proxy_set_header Connection "";
      proxy_set_header Authorization "Bearer sk-vendor-77aa11"; proxy_set_header X-Api-Key other-88bb22;` }] },
    agents: [agent('a'), agent('off', { enabled: false }), agent('one', { max_tool_rounds: 1 }), agent('five', { max_tool_rounds: 5 }),
      { ...agent('closed', { http: [{ tool: 'order_status', hours_only: true }] }), business_hours: { timezone: 'UTC', days: {} } },
      ...[['by-url', `${shop}/v1`], ['inner', 'https://inner.test/v1'], ['astray', `https://other.test:${tls.port}/v1`]].map(([name, url]) => ({
        ...agent(name), model: { name: 'vendor-7b', base_url: url, ...(name === 'inner' ? {} : { secret: 'LOGIN' }) } })),
      ...['dead', 'fallback', 'renamed', 'keyed'].map((name) => ({ ...agent(`${name}-agent`), model: name }))],
  });
});
after(async () => {
  await f?.stop();
  await tls?.close();
  await redis?.stop();
  fs.rmSync(dir, { recursive: true });
});

const runOf = (answer) => answer.headers['x-toolgate-run'];
const read = (run, query = '', options = {}) => f.nginx.request(`/v1/runs/${run}/steps${query}`, options);

/** All steps of the run of an answer. */
async function steps(answer, query = '?limit=100', options = {}) {
  const got = await read(typeof answer === 'string' ? answer : runOf(answer), query, options);
  assert.equal(got.status, 200, got.text);
  assert.equal(got.json.object, 'list');
  for (const step of got.json.data) {
    assert.match(step.id, ID.step);
    assert.ok(Math.abs(step.started_at - Date.now() / 1000) < 60 && Number.isInteger(step.started_at));
    assert.ok(step.duration_ms >= 0 && step.duration_ms < 10_000);
  }
  return got.json.data;
}

const calls = async (...a) => (await steps(...a)).filter((s) => s.type === 'tool_call');

/** The step of one call of a tool. */
async function one(n, a = {}, more = {}) {
  const answer = await f.ask([callsTurn({ id: 'c', n, a: typeof a === 'string' ? a : JSON.stringify(a) }), OK], more);
  assert.equal(answer.status, 200, answer.text);
  const [step, ...rest] = await calls(answer);
  assert.deepEqual(rest, []);
  one.answer = answer;
  return step;
}

test('a model call, a tool call, the answer: every field', async () => {
  const usage = CH({}).replace('"choices":[{"index":0,"delta":{},"finish_reason":null}]',
    '"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}');
  assert.match(usage, /usage/);
  const answer = await f.ask([callsTurn({ id: 'c', n: 'order_status', a: '{ "order_number" : "8812" }' }),
    CH({ content: 'ok' }) + FIN('stop') + usage + 'data: [DONE]\n\n'], { model: 'renamed-agent' });
  const [first, call, last, ...rest] = await steps(answer);
  assert.deepEqual(rest, []);

  assert.deepEqual({ ...first, id: 0, started_at: 0, duration_ms: 0 }, {
    id: 0, type: 'model_call', round: 1, started_at: 0, duration_ms: 0, model: 'vendor-7b', finish_reason: 'tool_calls',
    usage: null, ok: true, code: null, detail: null, upstream: null,
  });
  assert.deepEqual([last.type, last.round, last.finish_reason, last.usage], ['model_call', 2, 'stop',
    { input_tokens: 11, output_tokens: 7, total_tokens: 18 }]);

  assert.equal(call.id, closing(answer).steps[0].id, 'the id that the chat has shown');
  assert.match(call.call_id, ID.call);
  assert.deepEqual([call.type, call.round, call.tool, call.owner, call.ok, call.code, call.detail],
    ['tool_call', 1, 'order_status', 'agent', true, null, null]);
  assert.deepEqual(call.arguments, { order_number: '8812' });
  assert.deepEqual(call.verdict, { allowed: true, check: null, code: null });
  assert.deepEqual(call.result, f.told()[0].result);

  const sent = f.tool.journal[0];
  const { request, upstream } = call;
  assert.deepEqual([request.method, request.url, request.body, request.body_truncated],
    ['GET', `${f.tool.url}/orders/8812`, null, false]);
  assert.deepEqual(request.headers, {
    'webhook-timestamp': sent.headers['webhook-timestamp'], 'webhook-signature': '***',
    'webhook-id': call.call_id, 'x-toolgate-run': runOf(answer),
  });
  assert.deepEqual([upstream.status, upstream.content_type, upstream.body_truncated, upstream.address],
    [200, 'application/json', false, '127.0.0.1']);
  assert.deepEqual(JSON.parse(upstream.body), { data: [{ number: '8812', status: 'shipped', eta: '2 days' }] });
  assert.deepEqual(Object.keys(upstream.timing), ['dns', 'connect', 'tls', 'first_byte', 'total']);
  assert.ok(Object.values(upstream.timing).every((ms) => Number.isInteger(ms) && ms >= 0 && ms <= call.duration_ms + 5));
});

test('two rounds of several calls: in the order of the rounds and of the calls', async () => {
  const look = (n) => ({ id: `c${n}`, n: 'order_status', a: order(String(n)) });
  f.clear();
  f.tool.answer = async (entry) => {
    await sleep(entry.path.endsWith('/1') ? 150 : 0);
    return false;
  };
  f.model.plan([{ send: callsTurn(look(1), look(2), look(3)) }], [{ send: callsTurn(look(4), look(5)) }], [{ send: OK }]);
  const answer = await f.nginx.chat(f.body());
  assert.deepEqual((await steps(answer)).map((s) => [s.type, s.round, s.arguments?.order_number]), [
    ['model_call', 1, undefined], ['tool_call', 1, '1'], ['tool_call', 1, '2'], ['tool_call', 1, '3'],
    ['model_call', 2, undefined], ['tool_call', 2, '4'], ['tool_call', 2, '5'], ['model_call', 3, undefined]]);
  const [slow, quick] = await calls(answer);
  assert.ok(slow.duration_ms >= 140 && quick.duration_ms < slow.duration_ms);
  assert.deepEqual(new Set((await calls(answer)).map((s) => s.id)), new Set(closing(answer).steps.map((s) => s.id)));
});

test('streamed runs have the same steps', async () => {
  const client = await f.stream([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), OK]);
  assert.deepEqual((await steps(client)).map((s) => s.type), ['model_call', 'tool_call', 'model_call']);
});

test('a refusal at each check: number, code, nothing sent', async () => {
  const cases = [
    ['nothing', {}, {}, 1, 'tool_not_available'],
    ['order_status', { order_number: '1' }, { model: 'off' }, 1, 'tool_not_available'],
    ['switched_off', {}, {}, 1, 'tool_not_available'],
    ['add_note', { body: 'x' }, { allow_actions: false }, 1, 'tool_not_available'],
    ['order_status', {}, {}, 2, 'invalid_arguments'],
    ['order_status', { order_number: 'a/b' }, {}, 2, 'invalid_arguments'],
    ['order_status', '{"order_number":', {}, 2, 'invalid_arguments'],
    ['my_orders', {}, {}, 3, 'verification_required'],
    ['order_status', { order_number: '1' }, { model: 'closed' }, 4, 'outside_business_hours'],
  ];
  for (const [name, a, more, check, code] of cases) {
    const step = await one(name, a, more);
    assert.deepEqual(step.verdict, { allowed: false, check, code }, name);
    assert.deepEqual([step.ok, step.code, step.request, step.upstream], [false, code, null, null]);
    assert.equal(step.result.error.code, code);
    assert.deepEqual(step.arguments, a);
    assert.equal(f.tool.count(), 0);
  }
});

test('already_done, outcome_unknown, rate_limited, too_many_calls, round_limit', async () => {
  const look = (n, id) => ({ id: id ?? `c${n}`, n: 'order_status', a: order(String(n)) });
  const verdicts = async (answer) => (await calls(answer)).map((s) => [s.verdict.allowed, s.verdict.check, s.code]);
  const ran = [true, null, null];

  assert.deepEqual(await verdicts(await f.ask([callsTurn(look(1), look(1, 'd')), OK])), [ran, [false, 5, 'already_done']]);

  const lost = { n: 'do_it', a: '{"kind":"reset","n":"1"}' };
  assert.deepEqual(await verdicts(await f.ask([callsTurn({ id: 'a', ...lost }), callsTurn({ id: 'b', ...lost }), OK])),
    [[true, null, 'outcome_unknown'], [false, 5, 'outcome_unknown']]);

  const many = await f.ask([callsTurn(...Array.from({ length: 22 }, (_, n) => look(n))), OK]);
  assert.deepEqual(await verdicts(many), [...Array(5).fill(ran), ...Array(15).fill([false, 8, 'too_many_calls']), ...Array(2).fill([false, 7, 'rate_limited'])]);

  const late = await f.ask([callsTurn(look(1)), callsTurn(look(2), { id: 'x', n: 'nothing', a: '{"a":' })], { model: 'one' });
  assert.deepEqual(await verdicts(late), [ran, [false, 8, 'round_limit'], [false, 8, 'round_limit']]);
  const dropped = (await calls(late)).slice(1);
  assert.deepEqual(dropped.map((s) => [s.round, s.call_id, s.arguments, s.result]),
    [[2, null, { order_number: '2' }, null], [2, null, '{"a":', null]]);
  assert.deepEqual(new Set((await calls(late)).map((s) => s.id)), new Set(closing(late).steps.map((s) => s.id)));
});

test('the caller\'s own call is handed out: allowed, without a result', async () => {
  const tools = [{ type: 'function', function: { name: 'get_cart', description: 'd', parameters: { type: 'object' } } }];
  const step = await one('get_cart', { a: 1 }, { tools });
  assert.equal(one.answer.json.choices[0].finish_reason, 'tool_calls');
  assert.deepEqual([step.owner, step.verdict.allowed, step.arguments, step.result, step.request], ['caller', true, { a: 1 }, null, null]);
});

test('what an endpoint did wrong is told here, and only here', async () => {
  const cases = [
    ['lookup', { kind: 'status', n: '404' }, 'upstream_failed', 404, /not 2xx/],
    ['lookup', { kind: 'status', n: '429' }, 'rate_limited', 429, /not 2xx/],
    ['lookup', { kind: 'redirect', n: '1' }, 'upstream_failed', 302, /redirects are not followed/],
    ['lookup', { kind: 'html', n: '1' }, 'unreadable', 200, /not the JSON/],
    ['lookup', { kind: 'stall', n: '1' }, 'upstream_failed', 200, /timed out/],
    ['lookup', { kind: 'half', n: '1' }, 'upstream_failed', 200, /cut short/],
    ['lookup', { kind: 'reset', n: '1' }, 'upstream_failed', null, /broke|without an answer/],
    ['lookup', { kind: 'bomb', n: '1' }, 'unreadable', 200, /size bound/],
    ['do_it', { kind: 'reset', n: '1' }, 'outcome_unknown', null, /broke|without an answer/],
    ['no_dns', {}, 'upstream_failed', null, /no resolver/],
    ['refused', {}, 'upstream_failed', null, /refused or unreachable/],
    ['wrong_name', {}, 'upstream_failed', null, /certificate/],
    ['private', {}, 'address_not_allowed', null, /./],
  ];
  for (const [name, a, code, status, detail] of cases) {
    const step = await one(name, a);
    const label = `${name} ${JSON.stringify(a)}`;
    assert.deepEqual(step.verdict, { allowed: true, check: null, code: null });
    assert.equal(step.code, code, label);
    assert.match(step.detail, detail, label);
    assert.equal(step.upstream.status, status, label);
    assert.equal(step.request.method, name === 'do_it' ? 'POST' : 'GET');
    assert.deepEqual(step.result, f.told()[0].result);
    assert.ok(!JSON.stringify(step.result).includes(step.detail), 'not for the model');
    assert.ok(!one.answer.text.includes(step.detail), 'nor for the caller of the chat');
  }
  assert.match((await one('lookup', { kind: 'html', n: '1' })).upstream.body, /It works/);
  assert.deepEqual(JSON.parse((await one('lookup', { kind: 'status', n: '503' })).upstream.body), { status: 503, note: 'as asked' });
  assert.equal((await one('private')).upstream.address, '10.0.0.7', 'the address that was refused');
  assert.equal((await one('refused')).upstream.address, '127.0.0.1');
  const hole = await one('wrong_secret');
  assert.deepEqual([hole.code, hole.detail, hole.request, hole.upstream],
    ['secret_host_not_allowed', 'a secret may not be sent to this host', null, null]);
});

test('timing: look-up, connect, TLS, first byte, total', async () => {
  f.clear();
  tls.answer = async () => {
    await sleep(120);
    return false;
  };
  const { timing, address } = (await one('at_shop', { n: '5' })).upstream;
  tls.answer = undefined;
  assert.equal(address, '127.0.0.1');
  assert.ok(timing.first_byte >= 100 && timing.total >= timing.first_byte, JSON.stringify(timing));
});

test('bodies are cut at 8 KiB, cleaned, and say so', async () => {
  const big = await one('lookup', { kind: 'size', n: String(100 * 1024) });
  assert.equal(Buffer.byteLength(big.upstream.body), 8192);
  assert.equal(big.upstream.body_truncated, true);
  const fits = await one('lookup', { kind: 'size', n: '8192' });
  assert.deepEqual([fits.upstream.body.length, fits.upstream.body_truncated], [8192, false]);
  const over = await one('lookup', { kind: 'size', n: '8193' });
  assert.deepEqual([over.upstream.body.length, over.upstream.body_truncated], [8192, true]);

  f.clear();
  f.tool.answer = (entry, req, res) => {
    res.writeHead(500, { 'content-type': 'text/plain' });
    res.end(Buffer.concat([Buffer.from('a\u202eb\u0000c'), Buffer.from([0xff]), Buffer.from('\u200b\u001b[31md')]));
    return true;
  };
  f.model.plan([{ send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }], [{ send: OK }]);
  const [step] = await calls(await f.nginx.chat(f.body()));
  assert.equal(step.upstream.body, 'abc\ufffd[31md');
});

test('long arguments are cut and say so', async () => {
  const long = 'y'.repeat(9000);
  const step = await one('mirror', { t: long });
  assert.equal(step.verdict.code, 'invalid_arguments');
  assert.equal(typeof step.arguments, 'string');
  assert.equal(step.arguments.length, 8192);
  assert.equal(step.arguments_truncated, true);
});

/** No secret in any form that a person would recognise. */
function assertNoSecret(text, where) {
  for (const [name, value] of Object.entries(SECRETS)) {
    if (name === 'PIN') continue;
    const forms = [value, bytes(value), encodeURIComponent(value), JSON.stringify(value).slice(1, -1),
      JSON.stringify(JSON.stringify(value)).slice(3, -3), Buffer.from(value).toString('base64').replace(/=+$/, '').slice(0, -1)];
    for (const form of forms) assert.ok(!text.includes(form), `${name} as ${form} in ${where}`);
  }
}

test('secrets are masked in the URL, headers and body, and in what comes back', async () => {
  const step = await one('all_places', { n: '7' });
  const sent = tls.journal.at(-1);
  assert.equal(sent.headers.authorization, `Basic ${SECRETS.BASIC}`);
  assert.equal(JSON.parse(sent.body).key, SECRETS.BODY_KEY);
  assert.equal(sent.path, `/v1/${SECRETS.PATH_KEY}/x${SECRETS.PIN}y?key=${encodeURIComponent(SECRETS.QUERY_KEY)}&n=7`);

  assert.equal(step.request.url, `https://shop.test:${tls.port}/v1/***/x***y?key=***&n=7`);
  assert.equal(step.request.headers['X-Key'], 'Key ***');
  assert.equal(step.request.headers.Authorization, 'Basic ***');
  assert.equal(step.request.headers['webhook-signature'], '***');
  assert.deepEqual(JSON.parse(step.request.body), { key: '***', text: 'a *** b', n: '7' });

  // the mock sends back all that it got
  assert.equal(step.upstream.status, 200);
  const echo = JSON.parse(step.upstream.body);
  assert.equal(echo.headers.authorization, 'Basic ***');
  assert.match(echo.path, /^\/v1\/\*\*\*\/xzqxy\?key=\*\*\*&n=7$/, 'a short one is found where it stands alone');
  assert.deepEqual(JSON.parse(echo.body), { key: '***', text: 'a *** b', n: '7' });
  assertNoSecret(JSON.stringify(step), 'the step');
  assert.equal(step.result.items[0].Path, echo.path);
});

// what a model or a caller has written himself, as in the tests behind it, is kept
test('no secret is in the files of Redis or in the log', async () => {
  const log = f.nginx.log();
  assert.ok(log.includes('"all_places"'));
  assertNoSecret(log, 'the log');
  const files = redis.files();
  assert.ok(files.includes('"tool":"all_places"'), 'the steps are on disk');
  assertNoSecret(files, 'the files of Redis');
});

test('secrets in what a model or an endpoint says of its own accord', async () => {
  const basic = Buffer.from(`user:${SECRETS.LOGIN}`).toString('base64');
  const all = Object.values(SECRETS).join(' | ');
  const step = await one('mirror', { t: `all of ${all} and ${basic}, ${encodeURIComponent(SECRETS.QUERY_KEY)} = ${SECRETS.PIN}.` });
  assert.ok(tls.journal.at(-1).body.includes(SECRETS.LOGIN));
  assertNoSecret(JSON.stringify(step), 'the step');
  assert.ok(!JSON.stringify(step).includes(basic.slice(6, -3)));
  assert.match(step.arguments.t, /^all of \*\*\* \| \*\*\*/);
  assert.match(step.arguments.t, / = \*\*\*\.$/);
  const named = await one(SECRETS.LOGIN, {});
  assert.equal(named.tool, '***');
  // across the place where a body is cut
  f.clear();
  f.tool.answer = (entry, req, res) => {
    res.writeHead(400, { 'content-type': 'text/plain' });
    res.end(`${'x'.repeat(8192 - 6)}${SECRETS.LOGIN}${'y'.repeat(20000)}`);
    return true;
  };
  f.model.plan([{ send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }], [{ send: OK }]);
  const [cut] = await calls(await f.nginx.chat(f.body()));
  assert.ok(cut.upstream.body.endsWith('x***yyy') && cut.upstream.body_truncated, cut.upstream.body.slice(-40));
});

test('a secret that is replaced while a run lasts: neither value is kept', async () => {
  const values = ['first-value-1111', 'second-value-2222'];
  const put = async (value) => {
    const { status, text } = await f.nginx.request('/v1/secrets/ROTATED', { method: 'PUT', body: { value, allowed_hosts: ['shop.test'] } });
    assert.equal(status, 200, text);
  };
  const call = (n) => callsTurn({ id: `c${n}`, n: 'rotated', a: JSON.stringify({ n }) });
  await put(values[0]);
  f.clear();
  tls.clear();
  f.model.plan([{ send: call('1') }], [{ call: () => put(values[1]) }, { wait: 1200 }, { send: call('2') }], [{ send: OK }]);
  const answer = await f.nginx.chat(f.body());
  assert.deepEqual(tls.journal.map((e) => e.headers['x-key']), values);
  const got = await calls(answer);
  for (const step of got) {
    assert.equal(step.request.headers['X-Key'], '***');
    assert.equal(JSON.parse(step.upstream.body).headers['x-key'], '***');
  }
  const all = JSON.stringify(got);
  for (const value of values) assert.ok(!all.includes(value) && !redis.files().includes(value));
});

test('a mask in the place of a number leaves the steps readable', async () => {
  const step = await one('lookup', `{"kind":${JSON.stringify(SECRETS.PATH_KEY)},"n":${SECRETS.NUMBER}}`);
  assert.equal(step.arguments, '{"kind":"***","n":***}');
});

test('a vendor\'s failure: status and body; each place that was tried is a step', async () => {
  const error = JSON.stringify({ error: { message: `bad ${SECRETS.LOGIN} key`, code: 'x' } });
  const status = (code) => [{ status: code, headers: { 'content-type': 'application/json' } }, { send: error }];
  f.clear();
  f.model.plan(status(400));
  const answer = await f.nginx.chat(f.body());
  assert.equal(answer.status, 400, answer.text);
  const [step, ...rest] = await steps(answer);
  assert.deepEqual(rest, []);
  assert.deepEqual([step.type, step.ok, step.code, step.detail, step.finish_reason], ['model_call', false, 'model_rejected_request', 'the status is not 2xx', null]);
  assert.deepEqual(step.upstream, { status: 400, content_type: 'application/json', body: error.replace(SECRETS.LOGIN, '***'), body_truncated: false });

  // the key of the vendor is the operator's, in the model's location
  f.clear();
  const said = `Incorrect API key provided: sk-vendor-77aa11. (${Buffer.from('sk-vendor-77aa11').toString('base64')}, other-88bb22)`;
  f.model.plan([{ status: 401, headers: { 'content-type': 'text/plain' } }, { send: said }]);
  const keyed = await steps(await f.nginx.chat(f.body({ model: 'keyed-agent' })));
  assert.equal(f.model.request().headers.authorization, 'Bearer sk-vendor-77aa11');
  assert.deepEqual([keyed[0].code, keyed[0].upstream.status], ['model_auth_failed', 401]);
  assert.match(keyed[0].upstream.body, /^Incorrect API key provided: \*\*\*\. \(\*\*\*.?=?=?, \*\*\*\)$/);

  const dead = await steps(await f.ask([], { model: 'dead-agent' }));
  assert.deepEqual(dead.map((s) => [s.code, s.upstream.status]), [['model_unavailable', 502]]);
  const fallback = await steps(await f.ask([OK], { model: 'fallback-agent' }));
  assert.deepEqual(fallback.map((s) => [s.model, s.ok, s.finish_reason]), [['fallback', false, null], ['second', true, 'stop']]);
});

test('a stream that breaks, and one with an error in it', async () => {
  const broken = await f.stream([CH({ content: 'half' })]);
  assert.deepEqual((await steps(broken)).map((s) => [s.code, s.detail, s.upstream.status]),
    [['model_stream_broken', 'the answer ended before it was whole', 200]]);
  const said = await f.ask(['data: {"error":{"message":"over capacity"}}\n\n']);
  assert.deepEqual((await steps(said)).map((s) => [s.ok, s.detail]), [[false, 'over capacity']]);
});

test('a model by its base URL: the facts of the call, its key masked', async () => {
  const step = async (model) => {
    const [first, ...rest] = await steps(await f.ask([], { model }));
    assert.deepEqual(rest, []);
    assert.deepEqual([first.type, first.model, first.ok], ['model_call', 'vendor-7b', false]);
    return first;
  };
  const echo = await step('by-url');
  assert.equal(tls.journal.at(-1).headers.authorization, `Bearer ${SECRETS.LOGIN}`);
  assert.deepEqual([echo.code, echo.detail, echo.upstream.status, echo.upstream.address],
    ['model_unavailable', 'the answer is no chat completion', 200, '127.0.0.1']);
  assert.equal(JSON.parse(echo.upstream.body).headers.authorization, 'Bearer ***');
  assert.ok(echo.upstream.timing.total >= 0);

  const inner = await step('inner');
  assert.equal(inner.upstream.status, null);
  assert.equal(inner.upstream.address, '10.0.0.7');
  assert.match(inner.detail, /./);
  const astray = await step('astray');
  assert.deepEqual([astray.code, astray.detail, astray.upstream], ['model_auth_failed', 'secret_host_not_allowed', null]);
});

test('a run over its time: what was under way is there, as cancelled', async () => {
  f.clear();
  f.model.plan([{ send: callsTurn({ id: 'c', n: 'lookup', a: '{"kind":"hang","n":"1"}' }) }], [{ send: OK }]);
  const answer = await f.nginx.request('/short/v1/chat/completions', { body: f.body() });
  assertError(answer, 504, 'run_timeout');
  const [model, call, ...rest] = await steps(answer);
  assert.deepEqual(rest, []);
  assert.equal(model.ok, true);
  assert.deepEqual([call.ok, call.code, call.verdict.allowed, call.result, call.upstream], [false, 'run_cancelled', true, null, null]);
  assert.match(call.request.url, /\/hang\/1$/);
  assert.ok(call.duration_ms >= 300);
});

test('a client that leaves: what happened until then', async () => {
  for (const [turns, want] of [
    [[CH({ content: 'x' }) + callsTurn({ id: 'c', n: 'lookup', a: '{"kind":"hang","n":"1"}' })], [['model_call', null], ['tool_call', 'run_cancelled']]],
    [[CH({ content: 'x' }) + callsTurn({ id: 'c', n: 'order_status', a: order('1') }), [{ send: CH({ content: 'x' }) }, { wait: 5000 }]],
      [['model_call', null], ['tool_call', null], ['model_call', 'run_cancelled']]],
  ]) {
    f.clear();
    f.model.plan(...turns.map((t) => (typeof t === 'string' ? [{ send: t }] : t)));
    const client = await f.nginx.open(f.body());
    const run = runOf(client);
    for (let n = 0; n < 200 && (f.tool.count() < 1 || f.model.journal.length < turns.length); n++) await sleep(10);
    await sleep(50);
    client.leave();
    let got;
    for (let n = 0; n < 200; n++) {
      got = await read(run);
      if (got.status === 200 && got.json.data.length === want.length) break;
      await sleep(10);
    }
    assert.deepEqual(got.json.data?.map((s) => [s.type, s.code]), want, got.text);
  }
});

test('store: false, pass-through: nothing is kept', async () => {
  const keys = redis.cli('dbsize');
  const answer = await f.ask([OK], { store: false });
  assert.equal(answer.status, 200);
  assertError(await read(runOf(answer)), 404, 'not_found');
  const relayed = await f.ask([OK], { model: 'm', store: true });
  assert.equal(relayed.status, 200);
  assertError(await read(runOf(relayed)), 404, 'not_found');
  assert.equal(redis.cli('dbsize'), keys);
  assert.equal((await steps(await f.ask([OK], { store: null }))).length, 1);
  assert.equal((await steps(await f.ask([OK], { store: true }))).length, 1);
  assertError(await f.ask([], { store: 'yes' }), 400, 'invalid_type', 'store');
});

test('pages: limit, after, has_more', async () => {
  const look = (n) => ({ id: `c${n}`, n: 'order_status', a: order(String(n)) });
  const answer = await f.ask([...Array.from({ length: 5 }, (_, r) => callsTurn(...Array.from({ length: 5 }, (_x, k) => look(r * 5 + k)))), OK], { model: 'five' });
  const all = await steps(answer);
  assert.equal(all.length, 31);
  const first = (await read(runOf(answer))).json;
  assert.equal(first.data.length, 20);
  assert.equal(first.has_more, true);
  const seen = [];
  for (let after = ''; ;) {
    const { data, has_more: more } = (await read(runOf(answer), `?limit=7${after}`)).json;
    seen.push(...data);
    if (!more) break;
    assert.equal(data.length, 7);
    after = `&after=${data.at(-1).id}`;
  }
  assert.deepEqual(seen, all);
  assert.deepEqual((await read(runOf(answer), `?after=${all.at(-1).id}`)).json, { object: 'list', data: [], has_more: false });
  assert.equal((await read(runOf(answer), '?limit=31')).json.has_more, false);
  for (const [query, param] of [['?limit=0', 'limit'], ['?limit=101', 'limit'], ['?limit=x', 'limit'], ['?limit=', 'limit'], ['?limit=-1', 'limit'],
    ['?after=x', 'after'], ['?after=', 'after'], [`?after=step_${'0'.repeat(22)}`, 'after'], ['?after=%22%7d', 'after']]) {
    assertError(await read(runOf(answer), query), 400, 'invalid_value', param);
  }
});

test('a page of large steps ends before its bound of bytes', async () => {
  f.clear();
  f.tool.answer = (entry, req, res) => {
    res.writeHead(500, { 'content-type': 'text/plain' });
    res.end('"'.repeat(9000));
    return true;
  };
  const round = (r) => callsTurn(...Array.from({ length: 64 }, (_, k) => ({ id: `c${r}-${k}`, n: 'order_status', a: JSON.stringify({ order_number: `${r}${k}`, more: '"'.repeat(3000) }) })));
  f.model.plan(...[1, 2, 3, 4, 5].map((r) => [{ send: round(r) }]), [{ send: OK }]);
  const answer = await f.nginx.chat(f.body({ model: 'five' }));
  assert.equal(answer.status, 200, answer.text);
  const got = await read(runOf(answer), '?limit=100');
  assert.ok(got.bytes.length < (1 << 20) + 200_000);
  const all = [];
  for (let after = '', more = true; more;) {
    const page = (await read(runOf(answer), `?limit=100${after}`)).json;
    all.push(...page.data);
    more = page.has_more;
    after = `&after=${page.data.at(-1).id}`;
  }
  // beyond the bound of a run its steps come without their texts, but they come
  assert.equal(all.length, 5 * 64 + 6);
  assert.ok(all.some((s) => s.texts_left_out) && all.at(-2).texts_left_out, JSON.stringify(all.at(-2)));
  assert.deepEqual(all.at(-2).verdict, { allowed: false, check: 2, code: 'invalid_arguments' });
});

test('other accounts, other projects, other scopes', async () => {
  const run = async (headers, more = {}, key = undefined) => runOf(await f.ask([OK], more, { headers, ...(key ? { key } : {}) }));
  const own = await run({});
  const acme = await run({ 'x-account-id': 'acme' });
  const blue = await run({}, { account_id: 'blue:1' });
  const bound = await run({}, {}, KEYS.bound);

  const status = async (id, query, options) => (await read(id, query, options)).status;
  assert.equal(await status(own, ''), 200);
  assert.equal(await status(acme, '?account_id=acme'), 200);
  assert.equal(await status(acme, '', { headers: { 'x-account-id': 'acme' } }), 200);
  assert.equal(await status(acme, '?account_id=acme', { headers: { 'x-account-id': 'acme' } }), 200);
  assert.equal(await status(acme, '', { key: KEYS.bound }), 200);
  assert.equal(await status(bound, '?account_id=acme'), 200);
  assert.equal(await status(blue, '?account_id=blue%3A1'), 200);

  for (const [id, query, options] of [[own, '?account_id=acme'], [acme, ''], [acme, '?account_id=blue:1'], [own, '', { key: KEYS.bound }],
    [own, '', { key: KEYS.other }], [acme, '?account_id=acme', { key: KEYS.other }], [`run_${'0'.repeat(22)}`, ''], ['run_x', ''],
    ['x', ''], [`${own}0`, ''], [own.toUpperCase(), ''], ['*', '']]) {
    assertError(await read(id, query, options), 404, 'not_found');
  }
  assertError(await read(own, '?account_id=a', { headers: { 'x-account-id': 'b' } }), 400, 'invalid_value', 'account_id');
  assertError(await read(own, '?account_id='), 400, 'invalid_value', 'account_id');
  assertError(await read(own, '?account_id=a%20b'), 400, 'invalid_value', 'account_id');
  assertError(await read(own, '?account_id=blue', { key: KEYS.bound }), 403, 'account_mismatch');
  assertError(await read(own, '', { key: KEYS.tools }), 403, 'insufficient_scope');
  assertError(await read(own, '', { key: null }), 401, 'missing_api_key');
});

test('methods and neighbours of the path', async () => {
  const run = runOf(await f.ask([OK]));
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    const got = await read(run, '', { method });
    assertError(got, 405, 'method_not_allowed');
    assert.equal(got.headers.allow, 'GET');
  }
  assert.equal((await read(run, '', { method: 'HEAD' })).headers.allow, 'GET');
  for (const path of [`/${run}/steps/x`, `/${run}/other`]) {
    assertError(await f.nginx.request(`/v1/runs${path}`), 404, 'unknown_url');
  }
  const body = await read(run, '', { method: 'GET', body: '{"x":1}' });
  assert.equal(body.status, 200);
});

test('over HTTP/2, several at once, one that leaves', async () => {
  const run = runOf(await f.ask([OK]));
  const session = http2.connect(`http://127.0.0.1:${h2port}`);
  const get = () => session.request({ ':path': `/v1/runs/${run}/steps`, authorization: `Bearer ${f.nginx.key}` });
  const text = async (req) => {
    let all = '';
    for await (const part of req.setEncoding('utf8')) all += part;
    return all;
  };
  const leaving = get();
  leaving.on('error', () => {});
  leaving.close(http2.constants.NGHTTP2_CANCEL);
  const answers = await Promise.all([get(), get(), get()].map(text));
  session.close();
  for (const answer of answers) assert.equal(JSON.parse(answer).data.length, 1);
});

test('keys of Redis: one a run, with project and account, and a time to live', async () => {
  const run = runOf(await f.ask([OK], { account_id: 'acme' }));
  const key = `t:r:{default/acme}:${run}:steps`;
  assert.equal(redis.cli('exists', key), '1');
  const ttl = Number(redis.cli('ttl', key));
  assert.ok(ttl > 7100 && ttl <= 7200, `${ttl}`);
  assert.equal(redis.cli('llen', key), '1');
  const keys = redis.cli('keys', 't:r:*').split('\n');
  assert.ok(keys.length > 10 && keys.every((name) => /^t:r:\{(default|other)\/[\w.:-]*\}:(run_\w{22}(:steps|:events)?)?$/.test(name)), keys.join());
  for (const name of keys) assert.ok(Number(redis.cli('ttl', name)) > 0, name);
});

test('commands of a run: it is made and ended, its steps once a round, a checkpoint between rounds', async () => {
  const count = () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(redis.cli('info', 'commandstats'))?.[1] ?? 0);
  await f.ask([OK]);
  const start = count();
  const unknown = (id) => ({ id, n: 'nothing', a: '{}' });
  await f.ask([callsTurn(unknown('a'), unknown('b'), unknown('c')), callsTurn(unknown('d'), unknown('e')), OK]);
  // one of the worker's own questions may fall between
  const n = count() - start - (2 + 3 + 2);
  assert.ok(n >= 0 && n <= 2, `${n} more`);
});

test('a script that Redis has forgotten is sent again', async () => {
  redis.cli('script', 'flush');
  assert.equal((await steps(await f.ask([OK]))).length, 1);
});

test('Redis away: runs go on, reading says so, one line in the log; and back', async () => {
  const answer = await f.ask([OK]);
  await steps(answer);
  await redis.kill();
  for (let n = 0; n < 3; n++) assert.equal((await f.ask([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), OK])).status, 200);
  assertError(await read(runOf(answer)), 503, 'store_unavailable');
  assert.equal(f.nginx.log().split('does not take the steps of runs').length, 2);
  await redis.start();
  for (let n = 0; n < 300; n++) {
    if ((await read(runOf(answer))).status === 200) break;
    await sleep(20);
  }
  assert.equal((await steps(answer)).length, 1);
  assert.equal((await steps(await f.ask([OK]))).length, 1);
  assert.equal(f.nginx.log().split('takes the steps of runs again').length, 2);
});

test('a Redis that hangs: reading ends with 503 in time', async () => {
  const run = runOf(await f.ask([OK]));
  redis.child.kill('SIGSTOP');
  try {
    const start = performance.now();
    assertError(await read(run), 503, 'store_unavailable');
    assert.ok(performance.now() - start < 3000 * SLOW);
  } finally {
    redis.child.kill('SIGCONT');
  }
});

test('no Redis configured: 503', async () => {
  const g = await startFixture();
  try {
    const answer = await g.ask([OK]);
    assert.equal(answer.status, 200);
    assertError(await g.nginx.request(`/v1/runs/${runOf(answer)}/steps`), 503, 'store_unavailable');
  } finally {
    await g.stop();
  }
});
