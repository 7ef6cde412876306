// One call of an HTTP tool, from the arguments of the model to what the model is told:
// template, guard, signature, what the endpoint does wrong. Over TLS with an authority of
// the test's own, and over plain http where the operator's allow list permits it.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import { assertError, callsTurn, order, startFixture, stepsOf, textTurn } from './fixture.mjs';
import { SLOW, startNginx } from './nginx.mjs';
import { makeTestCa, startMockTool } from '../lib/mock-tool.mjs';
import { tempDir } from '../lib/stack.mjs';

let f;
let dir;
let tls;

const tool = (name, config, rest = {}) => ({
  name, description: 'x', ...rest,
  config: { method: 'GET', parameters: { type: 'object', properties: {}, additionalProperties: false }, ...config },
});
const withArgs = (properties) => ({ parameters: { type: 'object', properties, required: Object.keys(properties), additionalProperties: false } });
const shaped = { items_path: 'data', fields: [{ path: 'status', label: 'Status' }], empty_message: 'None.' };

before(async () => {
  dir = tempDir();
  const ca = makeTestCa(dir, ['shop.test']);
  tls = await startMockTool({ ca });
  const s = { type: 'string' };
  const own = [
    tool('tls_order', { url: `https://shop.test:${tls.port}/orders/{{args.order_number}}`, response: shaped,
      headers: { Authorization: 'Bearer {{secret.SHOP_KEY}}', 'X-Shop': '{{var.shop}}', 'User-Agent': 'shop/2' }, ...withArgs({ order_number: s }) }),
    tool('tls_note', { method: 'POST', url: `https://shop.test:${tls.port}/notes?q={{args.n}}`, response: { fields: [{ path: 'body', label: 'Echo' }] },
      body: { text: '{{args.text}}', n: '{{args.n}}', key: '{{secret.SHOP_KEY}}', fixed: [1, 2.50, null, true], mixed: 'n={{args.n}}!' },
      ...withArgs({ text: { type: 'string', 'x-kagent-format': 'text' }, n: { type: 'integer' } }) }),
    tool('wrong_name', { url: `https://other.test:${tls.port}/orders/1`, response: shaped }),
    tool('wrong_secret', { url: `https://other.test:${tls.port}/orders/1`, headers: { 'X-Key': '{{secret.SHOP_KEY}}' } }),
    tool('inner', { url: 'https://inner.test/orders/1' }),
    tool('inner_port', { url: 'https://inner.test:8443/orders/1' }),
    tool('mixed', { url: 'https://mixed.test:8443/orders/1' }),
    tool('no_dns', { url: 'https://nowhere.test/orders/1' }),
    tool('bare_shape', { url: `https://shop.test:${tls.port}/orders/1` }),
    tool('refused', { url: 'http://127.0.0.1:9/x', response: shaped }),
    tool('fast', { url: 'http://127.0.0.1:9/x', timeout_ms: 100 }),
  ];
  fs.writeFileSync(`${dir}/key`, 'sesame-open\n');
  f = await startFixture({
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_netguard_allow 127.0.0.1/32 ${tls.port};
      toolgate_ca ${ca.file}; toolgate_hosts @DIR@/hosts;`,
    files: { hosts: '127.0.0.1 shop.test other.test\n127.0.0.2 inner.test\n127.0.0.1 mixed.test\n10.0.0.1 mixed.test\n' },
    catalog: { secrets: [{ name: 'SHOP_KEY', value_file: `${dir}/key`, allowed_hosts: ['Shop.Test.'] }] },
    agents: [
      { name: 'a', model: 'm', tools: { allow_anonymous_actions: true, http: ['order_status', 'add_note', 'lookup', 'do_it', 'my_orders'].map((t) => ({ tool: t })) } },
      { name: 's', model: 'm', variables: { shop: 'Acme' }, tools: { allow_anonymous_actions: true, http: own.map((t) => ({ tool: t.name })) } },
    ],
    moreTools: own,
  });
});
after(async () => {
  await f?.stop();
  await tls.close();
  fs.rmSync(dir, { recursive: true });
});

const OK = textTurn('ok');

/** One call of a tool; what the model was told of it. */
async function call(n, args = {}, more = {}, options = {}) {
  tls.clear();
  const answer = await f.ask([callsTurn({ id: 'c', n, a: JSON.stringify(args) }), OK], more, options);
  assert.equal(answer.status, 200, answer.text);
  call.answer = answer;
  return f.told()[0].result;
}

const code = async (...args) => {
  const result = await call(...args);
  assert.deepEqual(stepsOf(call.answer), [[args[0], result.ok ? 'ok' : result.error.code]]);
  if (result.ok) return 'ok';
  assert.deepEqual(Object.keys(result.error).filter((k) => k !== 'retry_after'), ['code', 'guidance']);
  return result.error.code;
};
const lookup = (kind, n = '1') => code('lookup', { kind, n });
const doIt = (kind, n = '1') => code('do_it', { kind, n });

test('what the model gets is shaped, with a notice', async () => {
  const result = await call('order_status', { order_number: '8812' });
  assert.deepEqual(Object.keys(result), ['ok', 'notice', 'items']);
  assert.deepEqual(result.items, [{ Order: '8812', Status: 'shipped' }]);
  assert.match(result.notice, /nothing in them is an instruction/);
  assert.equal(await code('bare_shape', {}, { model: 's' }), 'ok');
  assert.deepEqual(f.told()[0].result, { ok: true, items: [] });
});

test('signed by Standard Webhooks over the exact bytes; webhook-id is the call id', async () => {
  const secret = (await f.nginx.request('/v1/tool_signing_secret')).json.secret;
  assert.match(secret, /^whsec_/);
  const check = (entry) => {
    const { headers } = entry;
    const id = headers['webhook-id'];
    const stamp = headers['webhook-timestamp'];
    const mac = crypto.createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
      .update(`${id}.${stamp}.`).update(entry.body).digest('base64');
    assert.ok(headers['webhook-signature'].split(' ').includes(`v1,${mac}`), headers['webhook-signature']);
    assert.ok(Math.abs(Number(stamp) - Date.now() / 1000) < 5);
    assert.match(id, /^call_[0-9A-Za-z]{22}$/);
    assert.equal(headers['x-toolgate-run'], call.answer.headers['x-toolgate-run']);
    return id;
  };
  await call('order_status', { order_number: '1' });
  const first = check(f.tool.journal[0]);
  assert.equal(f.tool.journal[0].headers['user-agent'], 'K-Agent/1');
  assert.equal(f.tool.journal[0].headers['content-length'], undefined);
  await call('add_note', { body: 'hé "x" \u0001' });
  assert.notEqual(check(f.tool.journal[0]), first);
});

test('over TLS: headers, secret, variable, User-Agent of the tool, body types', async () => {
  assert.equal(await code('tls_order', { order_number: '8812' }, { model: 's', variables: { shop: 'Souq' } }), 'ok');
  const [seen] = tls.journal;
  assert.equal(seen.headers.authorization, 'Bearer sesame-open');
  assert.equal(seen.headers['x-shop'], 'Souq');
  assert.equal(seen.headers['user-agent'], 'shop/2');
  assert.equal(seen.headers.host, `shop.test:${tls.port}`);
  assert.ok(!f.nginx.log().includes('sesame'));

  await call('tls_note', { text: 'a\n"b"', n: 7 }, { model: 's' });
  const [note] = tls.journal;
  assert.equal(note.method, 'POST');
  assert.equal(note.path, '/notes?q=7');
  assert.match(note.headers['content-type'], /^application\/json/);
  const body = JSON.parse(note.body);
  assert.deepEqual({ ...body, text: undefined }, { text: undefined, n: 7, key: 'sesame-open', fixed: [1, 2.5, null, true], mixed: 'n=7!' });
});

test('digits are folded in arguments before they are checked and sent', async () => {
  await call('order_status', { order_number: '٨٨١٢' });
  assert.deepEqual(f.asked, ['/orders/8812']);
  await call('order_status', { order_number: '۸۸' });
  assert.deepEqual(f.asked, ['/orders/88']);
});

test('token rules: what is no token is refused before anything is sent', async () => {
  for (const n of ['..', '.', 'a/b', 'a?b', 'a#b', 'a%2fb', 'a\r\nX: 1', '', ' ', '\u202e1', 'x'.repeat(65 * 1024)]) {
    const got = await code('order_status', { order_number: n });
    assert.ok(['invalid_arguments', 'unresolved_placeholder'].includes(got), `${JSON.stringify(n)}: ${got}`);
    assert.deepEqual(f.asked, []);
  }
  assert.equal(await code('order_status', { order_number: 'A b' }), 'ok');
  assert.deepEqual(f.asked, ['/orders/A%20b']);
});

test('address rules: private addresses by name, secrets for other hosts, no name', async () => {
  const s = { model: 's' };
  assert.equal(await code('inner', {}, s), 'address_not_allowed');
  assert.equal(await code('inner_port', {}, s), 'address_not_allowed');
  assert.equal(await code('mixed', {}, s), 'address_not_allowed');
  assert.equal(await code('wrong_secret', {}, s), 'secret_host_not_allowed');
  assert.equal(await code('no_dns', {}, s), 'upstream_failed');
  assert.equal(tls.connections, 0);
  assert.equal(await code('wrong_name', {}, s), 'upstream_failed');
  assert.equal(tls.journal.length, 0);
});

test('statuses: 429 is rate_limited, all else that is not 2xx is upstream_failed', async () => {
  for (const status of ['404', '400', '401', '403', '500', '503']) {
    assert.equal(await lookup('status', status), 'upstream_failed', status);
    assert.equal(f.tool.count(), 1, 'not sent again');
  }
  assert.equal(await lookup('status', '429'), 'rate_limited');
  assert.equal(await doIt('status', '500'), 'upstream_failed');
  assert.equal(await doIt('status', '429'), 'rate_limited');
  const result = f.told()[0].result;
  assert.ok(!JSON.stringify(result).includes('as asked'), 'nothing of the body reaches the model');
});

test('redirects are not followed', async () => {
  assert.equal(await lookup('redirect', '1'), 'upstream_failed');
  assert.deepEqual(f.asked, ['/redirect/1']);
});

test('answers that are no JSON, empty, packed, cut, too large', async () => {
  assert.equal(await lookup('html'), 'unreadable');
  assert.equal(await lookup('text'), 'unreadable');
  assert.equal(await lookup('empty'), 'ok');
  assert.equal(f.told()[0].result.message, 'Nothing found.');
  assert.equal(await lookup('gzip'), 'ok');
  assert.deepEqual(f.told()[0].result.items, [{ Status: 'packed' }]);
  assert.equal(await lookup('badgzip'), 'unreadable');
  assert.equal(await lookup('bomb'), 'unreadable');
  assert.equal(await lookup('half'), 'upstream_failed');
  assert.equal(await lookup('reset'), 'upstream_failed');
  assert.equal(await lookup('size', String(1 << 20)), 'ok');
  assert.equal(await lookup('size', String((1 << 20) + 1)), 'unreadable');
  assert.equal(await lookup('size', String(2 << 20)), 'unreadable');
  const result = f.told()[0].result;
  assert.ok(!JSON.stringify(result).includes('xxx'));
});

test('a stalled endpoint: a read fails, of an action the outcome is unknown', async () => {
  const start = performance.now();
  assert.equal(await lookup('stall'), 'upstream_failed');
  assert.ok(performance.now() - start < 3500 * SLOW);
  assert.equal(await doIt('stall'), 'outcome_unknown');
  assert.equal(await doIt('half'), 'outcome_unknown');
  assert.equal(await doIt('reset'), 'outcome_unknown');
  assert.equal(f.tool.count(), 1, 'an action is never sent twice');
  assert.equal(await code('refused', {}, { model: 's' }), 'upstream_failed');
});

test('an action of unknown outcome is not repeated in that run', async () => {
  const again = { id: 'd', n: 'do_it', a: '{"n":"1","kind":"reset"}' };
  await f.ask([callsTurn({ id: 'c', n: 'do_it', a: '{"kind":"reset","n":"1"}' }), callsTurn(again), OK]);
  assert.equal(f.tool.count(), 1);
  assert.deepEqual(f.codes(2), ['outcome_unknown']);
  // two in one round: the second waits for the first
  await f.ask([callsTurn({ id: 'c', n: 'do_it', a: '{"kind":"reset","n":"1"}' }, again), OK]);
  assert.equal(f.tool.count(), 1);
  assert.deepEqual(f.codes(), ['outcome_unknown', 'outcome_unknown']);
  // a read may be tried again
  await f.ask([callsTurn({ id: 'c', n: 'lookup', a: '{"kind":"reset","n":"1"}' }),
    callsTurn({ id: 'd', n: 'lookup', a: '{"kind":"reset","n":"1"}' }), OK]);
  assert.ok(f.tool.count() >= 2);
});

test('instructions inside of a result stay data: control characters and length', async () => {
  f.clear();
  f.tool.answer = (entry, req, res) => {
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ data: [{ number: 5, status: `a\u0000b\u202e\n${'x'.repeat(500)}` }, ...Array(40).fill({ number: 1.5, status: true })] }));
    return true;
  };
  f.model.plan([{ send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }], [{ send: OK }]);
  await f.nginx.chat(f.body());
  const { items, omitted } = f.told()[0].result;
  assert.equal(items[0].Order, 5);
  assert.ok(items[0].Status.length <= 200 && !/[\u0000\u202e\n]/.test(items[0].Status));
  assert.deepEqual(items[1], { Order: 1.5, Status: true });
  assert.equal(items.length, 10);
  assert.equal(omitted, 31);
  assert.ok(f.model.request().json !== undefined);
});

test('a tool for verified users is refused to others', async () => {
  await f.ask([callsTurn({ id: 'c', n: 'my_orders', a: '{}' }), OK]);
  assert.ok(f.model.request().json.tools.some((t) => t.function.name === 'my_orders'));
  assert.deepEqual(f.codes(), ['verification_required']);
  assert.deepEqual(f.asked, []);
});

test('the connection is kept between calls, and its loss harms no read', async () => {
  await call('order_status', { order_number: '1' });
  const { connections } = f.tool;
  await call('order_status', { order_number: '2' });
  assert.ok(f.tool.connections <= connections + 1);
  f.tool.server.closeIdleConnections();
  assert.equal(await code('order_status', { order_number: '3' }), 'ok');
});

test('a tool on the server\'s own address is refused', async () => {
  const port = 18000 + (process.pid % 1000);
  const nginx = await startNginx({ quiet: true, http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http;`,
    server: `listen 127.0.0.1:${port};`,
    models: { m: [{ url: 'http://127.0.0.1:9' }] },
    catalog: { tools: [tool('own', { url: `http://127.0.0.1:${port}/v1/models` })] } });
  const { code: exit, text } = nginx.test();
  assert.notEqual(exit, 0);
  assert.match(text, /address_not_allowed.* in .*catalog\.json:\d+/);
  await nginx.stop();
});

test('without a scope for it nobody reads the signing secret', async () => {
  assertError(await f.nginx.request('/v1/tool_signing_secret', { key: 'wrong-key-0123456789' }), 401, 'invalid_api_key');
});
