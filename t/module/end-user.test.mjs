// End users: what a token proves reaches tools and nobody else, what is no proof is
// refused before the model is asked, and what a verified user may do and how often.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { assertError, assertWhole, callsTurn, order, startFixture, stepsOf, textTurn } from './fixture.mjs';
import { PATIENT } from './nginx.mjs';
import { ALGS, makeKey, token } from '../lib/jwt.mjs';
import { Redis } from '../store/harness.mjs';

const keys = Object.fromEntries(ALGS.map((alg) => [alg, makeKey(alg)]));
const strict = makeKey('HS256');
const inFile = makeKey('HS256');
const named = makeKey('ES256');
const foreign = makeKey('ES256');
const sha256 = (text) => crypto.createHash('sha256').update(text).digest('hex');
const OTHER_KEY = 'key-of-the-other-project';

const OK = textTurn('ok');
const now = () => Math.floor(Date.now() / 1000);
// each one another user, since a user has 20 calls an hour
let users = 0;
const claims = (more = {}) => ({ sub: `u-${++users}`, exp: now() + 300, traits: { plan: 'gold', n: 7 }, ...more });
const good = (more, header) => token(keys.ES256, claims(more), header);
const headers = (text) => ({ headers: { 'x-end-user-token': text } });

const closed = { parameters: { type: 'object', properties: {}, additionalProperties: false } };
const userTool = (name, config, rest = {}) => (url) => ({
  name, description: 'x', requires_verified_user: true, ...rest, config: { ...closed, ...config(url) },
});
const userTools = [
  userTool('whoami', (url) => ({
    method: 'GET', url: `${url}/users/{{end_user.external_id}}?n={{end_user.traits.n}}`,
    headers: { 'X-Plan': '{{end_user.traits.plan}}' },
  })),
  userTool('change', (url) => ({
    method: 'POST', url: `${url}/users/{{end_user.external_id}}`, body: { plan: '{{end_user.traits.plan}}', n: '{{end_user.traits.n}}' },
  })),
];

const http = ['order_status', 'add_note', 'do_it', 'my_orders', 'whoami', 'change'].map((tool) => ({ tool }));

let f;
before(async () => {
  f = await startFixture({
    http: 'toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_catalog @DIR@/other.json;',
    files: {
      'user.secret': `${inFile.secret}\n`,
      'other.json': JSON.stringify({
        project: 'other', agents: [{ name: 'a', model: 'm' }],
        api_keys: [{ name: 'k', sha256: sha256(OTHER_KEY), scopes: ['run'] }],
        end_user_keys: [{ name: 'k', alg: 'ES256', ...foreign.register }],
      }),
    },
    catalog: {
      end_user_keys: [
        ...ALGS.map((alg) => ({ name: alg, alg, ...(alg === 'ES256' ? { public_key: keys[alg].jwk } : keys[alg].register) })),
        { name: 'strict', alg: 'HS256', ...strict.register, issuer: 'https://login.example', audience: 'shop' },
        { name: 'file', alg: 'HS256', secret_file: 'user.secret' },
        { name: 'named', alg: 'ES256', ...named.register, kid: 'k-1' },
      ],
    },
    moreTools: userTools,
    agents: [
      ...[['users', {}], ['guarded', { allow_anonymous_actions: false }], ['long', { max_tool_rounds: 5 }]].map(([name, more]) => ({
        name, model: 'm', tools: { allow_anonymous_actions: true, http, ...more },
      })),
      { name: 'paused', model: 'm', actions_paused: true, tools: { http } },
    ],
  });
});
after(() => f?.stop());

/** One call of a tool on behalf of the token's user; what the model was told. */
async function call(n, more, options) {
  const answer = await f.ask([callsTurn({ id: 'c', n, a: n === 'order_status' ? order('1') : '{}' }), OK], { model: 'users', ...more }, options);
  assert.equal(answer.status, 200, answer.text);
  call.answer = answer;
  return f.told()[0].result;
}

/** The token and its words are nowhere but in the request that brought them. */
function assertSecret(text) {
  const parts = [text, ...text.split('.').filter((p) => p.length > 20)];
  for (const e of f.model.journal) {
    const seen = `${e.body}${JSON.stringify(e.headers)}`;
    for (const p of parts) assert.ok(!seen.includes(p), 'the model has seen the token');
    assert.ok(!seen.includes('end_user') && !seen.includes('end-user'));
  }
  for (const e of f.tool.journal) {
    const seen = `${e.path}${e.body}${JSON.stringify(e.headers)}`;
    for (const p of parts) assert.ok(!seen.includes(p), 'the tool has seen the token');
  }
  const log = f.nginx.log();
  for (const p of parts) assert.ok(!log.includes(p), 'the log has the token');
}

for (const alg of ALGS) {
  test(`${alg}: in the field and in the header, streamed and not, to the tool's URL, header and body`, async () => {
    const text = token(keys[alg], claims());
    for (const [more, options] of [[{ end_user: { token: text } }], [{}, headers(text)],
      [{ end_user: { token: text } }, headers(text)], [{ end_user: null }, headers(text)]]) {
      assert.equal((await call('whoami', more, options)).ok, true);
      const [sent] = f.tool.journal;
      assert.equal(sent.path, `/users/u-${users}?n=7`);
      assert.equal(sent.headers['x-plan'], 'gold');
      assert.equal(f.model.request(0).json.end_user, undefined);
      assertSecret(text);
    }
    await call('change', { end_user: { token: text } });
    assert.equal(f.tool.journal[0].body.toString(), '{"plan":"gold","n":7}');
    const client = await f.stream([callsTurn({ id: 'c', n: 'whoami', a: '{}' }), OK], { model: 'users', end_user: { token: text } });
    assertWhole(client);
    assert.deepEqual(stepsOf(client), [['whoami', 'ok']]);
    assert.ok(!client.raw.includes(text));
  });
}

test('keys: a secret in a file, a kid, an issuer with an audience', async () => {
  const who = { iss: 'https://login.example', aud: ['web', 'shop'] };
  for (const text of [token(inFile, claims()), token(named, claims(), { kid: 'k-1' }), token(named, claims()),
    token(strict, claims(who)), token(strict, claims({ ...who, aud: 'shop' }))]) {
    assert.equal((await call('whoami', {}, headers(text))).ok, true);
  }
});

test('a configured model gets neither the field nor the header', async () => {
  const text = good();
  for (const [more, options] of [[{ end_user: { token: text } }], [{}, headers(text)]]) {
    const answer = await f.ask([OK], { model: 'm', seed: 7, ...more }, options);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(f.model.request().json.seed, 7);
    assertSecret(text);
  }
  assertError(await f.ask([], { model: 'm', end_user: { token: `${text}x` } }), 401, 'invalid_end_user_token');
});

test('what proves nothing is 401, and nobody is asked', async () => {
  const forged = (secret) => token({ alg: 'HS256', secret }, claims());
  const [head, body, signature] = good().split('.');
  const odd = (c) => (c === 'A' ? 'B' : 'A');
  const cases = {
    'expired': good({ exp: now() - 61 }),
    'without exp': good({ exp: undefined }),
    'exp as text': good({ exp: String(now() + 300) }),
    'not yet valid': good({ nbf: now() + 120 }),
    'issued in the future': good({ iat: now() + 120 }),
    'without sub': good({ sub: undefined }),
    'an empty sub': good({ sub: '' }),
    'a sub that is a number': good({ sub: 5 }),
    'traits that are a list': good({ traits: [] }),
    'alg none': `${token(keys.ES256, claims(), { alg: 'none' }).split('.').slice(0, 2).join('.')}.`,
    'alg none with a signature': good({}, { alg: 'none' }),
    'the public key as a secret': forged(keys.RS256.register.public_key),
    'a JWK as a secret': forged(JSON.stringify(keys.ES256.jwk)),
    'another key': token(makeKey('ES256'), claims()),
    'the key of another project': token(foreign, claims()),
    'another secret': forged('x'.repeat(64)),
    'the secret with its line feed': forged(`${inFile.secret}\n`),
    'an unknown kid': token(named, claims(), { kid: 'k-2' }),
    'the kid of another key': good({}, { kid: 'k-1' }),
    'another issuer': token(strict, claims({ iss: 'https://evil.example', aud: 'shop' })),
    'no issuer': token(strict, claims({ aud: 'shop' })),
    'another audience': token(strict, claims({ iss: 'https://login.example', aud: 'shops' })),
    'crit': good({}, { crit: ['exp'] }),
    'b64': good({}, { b64: false }),
    'a typ for something else': good({}, { typ: 'at+jwt' }),
    'a payload that was changed': `${head}.${odd(body[0])}${body.slice(1)}.${signature}`,
    'a signature that was changed': `${head}.${body}.${odd(signature[0])}${signature.slice(1)}`,
    'padding': `${head}.${body}.${signature}==`,
    'no signature': `${head}.${body}.`,
    'two parts': `${head}.${body}`,
    'words': 'somebody',
    'nothing': '',
    'too long': good({ x: 'x'.repeat(8192) }),
  };
  for (const [name, text] of Object.entries(cases)) {
    for (const model of ['users', 'm']) {
      const answer = await f.ask([], { model, end_user: { token: text } });
      assertError(answer, 401, 'invalid_end_user_token', 'end_user');
      assert.equal(answer.json.error.type, 'authentication_error', name);
      assert.ok(text.length < 20 || !answer.text.includes(text.slice(-20)), name);
      assert.equal(f.model.journal.length, 0, name);
    }
    // a header of this size is nginx's own matter
    if (text.length < 7000) assertError(await f.ask([], { model: 'users' }, headers(text)), 401, 'invalid_end_user_token', 'end_user');
    if (text.includes('.')) assertSecret(text);
  }
  const huge = await f.ask([], { model: 'users', end_user: { token: 'x'.repeat(70_000) } });
  assertError(huge, 401, 'invalid_end_user_token', 'end_user');
  const streamed = await f.ask([], { model: 'users', stream: true, end_user: { token: 'x' } });
  assertError(streamed, 401, 'invalid_end_user_token', 'end_user');
});

test('a project knows its own keys only', async () => {
  const ask = (text) => {
    f.clear();
    f.model.plan([{ send: OK }]);
    return f.nginx.chat({ model: 'a', messages: [{ role: 'user', content: 'x' }], end_user: { token: text } }, { key: OTHER_KEY });
  };
  assert.equal((await ask(token(foreign, claims()))).status, 200);
  assertError(await ask(good()), 401, 'invalid_end_user_token', 'end_user');
});

test('a leeway of a minute, and times that are no whole seconds', async () => {
  for (const more of [{ exp: now() - 30 }, { exp: now() + 10.5 }, { nbf: now() + 30 }, { iat: now() + 30.25 }]) {
    assert.equal((await call('whoami', {}, headers(good(more)))).ok, true, JSON.stringify(more));
  }
});

test('the field has a token and nothing else', async () => {
  for (const [value, code, param] of [
    ['x', 'invalid_type', 'end_user'], [[], 'invalid_type', 'end_user'], [7, 'invalid_type', 'end_user'],
    [{}, 'missing_parameter', 'end_user.token'], [{ external_id: 'u-1' }, 'missing_parameter', 'end_user.token'],
    [{ token: 5 }, 'invalid_type', 'end_user.token'], [{ token: null }, 'invalid_type', 'end_user.token'],
    [{ token: good(), external_id: 'u-1' }, 'invalid_value', 'end_user'],
  ]) {
    assertError(await f.ask([], { model: 'users', end_user: value }), 400, code, param);
    assert.equal(f.model.journal.length, 0);
  }
  assertError(await f.ask([], { model: 'users', end_user: { token: good() } }, headers(good({ sub: 'u-6' }))), 400, 'invalid_value', 'end_user');
  // as sent by a client whose variable is empty: not anonymous
  assertError(await f.ask([], { model: 'users' }, headers('')), 401, 'invalid_end_user_token', 'end_user');
});

test('without a token a tool for verified users is there, and says what it needs', async () => {
  for (const n of ['whoami', 'change', 'my_orders']) {
    const result = await call(n);
    assert.ok(f.model.request(0).json.tools.some((t) => t.function.name === n));
    assert.equal(result.error.code, 'verification_required');
    assert.equal(f.tool.count(), 0);
  }
  assert.equal((await call('order_status')).ok, true);
  // "user" is a label
  assert.equal((await call('whoami', { user: 'u-1' })).error.code, 'verification_required');
});

test('an argument never says who the user is', async () => {
  const text = good();
  const answer = await f.ask([callsTurn({ id: 'c', n: 'whoami', a: '{"external_id":"u-1"}' }), OK], { model: 'users', end_user: { token: text } });
  assert.equal(answer.status, 200);
  assert.deepEqual(f.codes(), ['invalid_arguments']);
});

test('which actions are offered: three reasons, each of its own', async () => {
  const text = good();
  const actions = ['add_note', 'change', 'do_it'];
  for (const [model, more, options, want] of [
    ['guarded', { allow_actions: true }, headers(text), actions],
    ['guarded', { allow_actions: true }, {}, []],
    ['guarded', { allow_actions: false }, headers(text), []],
    ['users', { allow_actions: true }, {}, actions],
    ['users', { allow_actions: false }, headers(text), []],
    ['paused', { allow_actions: true }, headers(text), []],
  ]) {
    await f.ask([OK], { model, ...more }, options);
    const offered = f.model.request().json.tools.map((t) => t.function.name);
    assert.deepEqual(offered.filter((n) => actions.includes(n)), want, `${model} ${JSON.stringify(more)}`);
    assert.ok(offered.includes('order_status') && offered.includes('whoami'));
  }
});

test('a trait that is missing, blank or no scalar: nothing is sent', async () => {
  for (const [traits, code] of [[undefined, 'unresolved_placeholder'], [{ plan: 'gold' }, 'unresolved_placeholder'],
    [{ plan: ' ', n: 1 }, 'unresolved_placeholder'], [{ plan: null, n: 1 }, 'unresolved_placeholder'],
    [{ plan: ['gold'], n: 1 }, 'unresolved_placeholder'], [{ plan: { a: 1 }, n: 1 }, 'unresolved_placeholder'],
    [{ plan: 'gold\r\nX-Admin: 1', n: 1 }, 'invalid_arguments']]) {
    assert.equal((await call('whoami', {}, headers(good({ traits })))).error.code, code, JSON.stringify(traits));
    assert.equal(f.tool.count(), 0);
  }
});

test('an id is one segment of the path, whatever is in it', async () => {
  for (const [sub, path] of [['a b?c=1#d', '/users/a%20b%3Fc%3D1%23d?n=7'], ['مها', `/users/${encodeURIComponent('مها')}?n=7`], ['a%2Fb', '/users/a%252Fb?n=7']]) {
    assert.equal((await call('whoami', {}, headers(good({ sub })))).ok, true);
    assert.equal(f.tool.journal[0].path, path);
  }
  for (const sub of ['..', '.', 'a/b', 'a\\b', '../admin']) {
    assert.equal((await call('whoami', {}, headers(good({ sub })))).error.code, 'invalid_arguments', sub);
    assert.equal(f.tool.count(), 0);
  }
});

/** A run of one agent that makes n calls, five a round; their codes in order. */
async function calls(from, n, more, options) {
  const turns = [];
  for (let i = 0; i < n; i += 5) {
    turns.push(callsTurn(...Array.from({ length: Math.min(5, n - i) }, (_, j) => ({
      id: `c${i + j}`, n: 'order_status', a: order(String(from + i + j)),
    }))));
  }
  const answer = await f.ask([...turns, OK], { model: 'long', ...more }, options);
  assert.equal(answer.status, 200, answer.text);
  return stepsOf(answer).map(([, code]) => code);
}

const ok = (n) => Array(n).fill('ok');

test('20 calls an hour for one end user over all runs; another one has 20 of their own', async () => {
  const one = (more) => headers(good({ sub: 'limited {1}:\u00e9', ...more }));
  assert.deepEqual(await calls(0, 15, {}, one()), ok(15));
  // another token of the same user, and another way to send it
  assert.deepEqual(await calls(15, 6, { end_user: { token: good({ sub: 'limited {1}:\u00e9', traits: {} }) } }), [...ok(5), 'rate_limited']);
  assert.deepEqual(await calls(30, 1, {}, one()), ['rate_limited']);
  assert.deepEqual(await calls(0, 20, {}, headers(good({ sub: 'another' }))), ok(20));
  assert.deepEqual(await calls(0, 1, {}, headers(good({ sub: 'another' }))), ['rate_limited']);
  // the same id in another account is somebody else
  assert.deepEqual(await calls(0, 5, { account_id: 'acme' }, one()), ok(5));
  // who is anonymous is counted by the run
  assert.deepEqual(await calls(0, 20), ok(20));
  assert.deepEqual(await calls(0, 20), ok(20));
});

test('an id of 255 bytes is counted, too', async () => {
  assert.deepEqual(await calls(0, 2, { account_id: 'a'.repeat(64) }, headers(good({ sub: 'x'.repeat(255) }))), ok(2));
});

test('many users at once keep apart', async () => {
  f.clear();
  const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => f.nginx.chat({
    model: 'users', messages: [{ role: 'user', content: '@call whoami {}' }],
    end_user: { token: good({ sub: `user-${n}`, traits: { plan: `p${n}`, n } }) },
  })));
  for (const answer of answers) assert.deepEqual(stepsOf(answer), [['whoami', 'ok']]);
  const seen = f.tool.journal.map((e) => [e.path, e.headers['x-plan']]).sort();
  const want = Array.from({ length: 30 }, (_, n) => [`/users/user-${n}?n=${n}`, `p${n}`]).sort();
  assert.deepEqual(seen, want);
});

test('two nodes on one Redis, raced: 30 calls of one end user, exactly 20 run', async () => {
  const redis = await new Redis().start();
  const nodes = [];
  try {
    for (let i = 0; i < 2; i++) {
      nodes.push(await startFixture({
        http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_redis ${redis.unix} prefix=t: ${PATIENT};`,
        catalog: { end_user_keys: [{ name: 'k', alg: 'ES256', ...keys.ES256.register }] },
      }));
    }
    const text = good({ sub: 'somebody@example.com' });
    const answers = await Promise.all(Array.from({ length: 6 }, (_, run) => nodes[run % 2].nginx.chat({
      model: 'plain', end_user: { token: text },
      messages: [{ role: 'user', content: Array.from({ length: 5 }, (__, n) => `@call order_status ${order(`${run}${n}`)}`).join('\n') }],
    })));
    const codes = answers.flatMap((a) => stepsOf(a).map(([, code]) => code)).sort();
    assert.deepEqual(codes, [...ok(20), ...Array(10).fill('rate_limited')]);
    assert.equal(nodes[0].tool.count() + nodes[1].tool.count(), 20);

    const stored = (await redis.call('KEYS', '*')).filter((key) => key.includes(':http:'));
    assert.equal(stored.length, 1);
    assert.match(stored[0], /\{default\/\}:http:user:[0-9a-f]{64}\}?$/);
  } finally {
    for (const node of nodes) await node.stop();
    await redis.stop();
  }
});
