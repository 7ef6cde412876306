// The example tool of an order's status, made by the control plane's API and used from
// the official openai client with an end-user token; what reaches the shop verifies with
// the official packages of Standard Webhooks and Svix, also while the secret is rotated.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { npm } from '../lib/npm.mjs';
import { startStack, tempDir } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { makeTestCa, startMockTool } from '../lib/mock-tool.mjs';
import { makeKey, token } from '../lib/jwt.mjs';

const OpenAI = npm('openai');
const VERIFIERS = { standardwebhooks: npm('standardwebhooks').Webhook, svix: npm('svix').Webhook };
const OVERLAP_S = 4;
const SECRET = 'orders-token-0123456789';
const user = makeKey('ES256');

let model;
let shop;
let stack;

before(async () => {
  model = await startMockModel();
  const ca = makeTestCa(tempDir(), ['api.example.com']);
  shop = await startMockTool({ ca });
  shop.answer = (entry, req, res) => {
    const found = req.url.endsWith('/orders/8812');
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ data: found ? [{ status: 'shipped', eta: '2 days', internal: 'margin 40%' }] : [] }));
    return true;
  };
  stack = await startStack({
    modelUrl: model.baseUrl, ca: ca.file, allow: ['127.0.0.1/32'], hosts: { 'api.example.com': '127.0.0.1' },
    catalog: { end_user_keys: [{ name: 'shop', alg: 'ES256', public_key: user.jwk }] },
    confExtra: `toolgate_netguard_allow 127.0.0.1/32 ${shop.port};\ntoolgate_rotation_overlap ${OVERLAP_S}s;\n`,
  });
});

after(async () => {
  await model?.close();
  await shop?.close();
  await stack?.stop();
});

const make = async (path, body, method = 'POST') => {
  const answer = await stack.api(path, { method, body });
  assert.ok([200, 201].includes(answer.status), answer.text);
  return answer.json;
};

const definition = () => ({
  name: 'order_status',
  description: "Look up the status of the customer's order by its number.",
  effect: 'read',
  requires_verified_user: true,
  config: {
    method: 'GET',
    url: `https://api.example.com:${shop.port}/customers/{{end_user.external_id}}/orders/{{args.order_number}}`,
    headers: { Authorization: 'Bearer {{secret.ORDERS_TOKEN}}' },
    parameters: {
      type: 'object',
      properties: { order_number: { type: 'string', description: 'The order number, e.g. 8812' } },
      required: ['order_number'], additionalProperties: false,
    },
    response: {
      items_path: 'data',
      fields: [{ path: 'status', label: 'Status' }, { path: 'eta', label: 'Expected delivery' }],
      max_items: 1, empty_message: 'No order with that number.',
    },
    timeout_ms: 8000,
  },
});

const exp = () => Math.floor(Date.now() / 1000) + 300;
let client;

/** Asks for an order; what the shop got and what the model was told. */
async function ask(number, sub = 'cust 42') {
  model.clear();
  shop.clear();
  const answer = await client.chat.completions.create({
    model: 'support', messages: [{ role: 'user', content: `@call order_status {"order_number":"${number}"}` }],
    ...(sub === null ? {} : { end_user: { token: token(user, { sub, exp: exp() }) } }),
  });
  return { answer, got: shop.journal[0], told: JSON.parse(model.request().json.messages.at(-1).content) };
}

test('secret, tool, agent, key: made by the API, used from the openai client', async () => {
  await make('/v1/secrets/ORDERS_TOKEN', { value: SECRET, allowed_hosts: ['api.example.com'] }, 'PUT');
  const made = await make('/v1/tools', definition());
  const agent = await make('/v1/agents', {
    name: 'support', model: 'default', instructions: 'Help.', tools: { http: [{ tool: made.id, rules: 'Only when asked.' }] },
  });
  await make(`/v1/agents/${agent.id}/publish`);
  const { key } = await make('/v1/api_keys', { name: 'app', scopes: ['run'] });
  client = new OpenAI({ baseURL: stack.baseURL, apiKey: key, maxRetries: 0, timeout: 20_000 });

  const { answer, got, told } = await ask('٨٨١٢');
  assert.match(answer.choices[0].message.content, /shipped/);
  assert.equal(answer.toolgate.steps[0].tool, 'order_status');
  assert.deepEqual(told.items, [{ Status: 'shipped', 'Expected delivery': '2 days' }]);
  assert.equal(got.path, '/customers/cust%2042/orders/8812');
  assert.equal(got.headers.authorization, `Bearer ${SECRET}`);
  assert.equal(got.headers['user-agent'], 'K-Agent/1');
  assert.match(JSON.stringify(model.request(0).json.tools), /This company’s rules for this action|Only when asked\./);

  assert.deepEqual((await ask('1')).told.message, 'No order with that number.');
  const anonymous = await ask('8812', null);
  assert.equal(anonymous.told.error?.code, 'verification_required');
  assert.equal(anonymous.got, undefined);
});

/** Which packages accept the request under this secret. */
const accepted = (entry, secret) => Object.entries(VERIFIERS).filter(([, Webhook]) => {
  try {
    // the body of a GET is empty, and no JSON, so the packages are given what they sign
    new Webhook(secret).verify(entry.body.length ? entry.body : Buffer.from(''), entry.headers);
    return true;
  } catch (error) {
    if (/JSON/.test(error.message)) return true;
    assert.match(error.message, /signature/i);
    return false;
  }
}).map(([name]) => name);

const BOTH = Object.keys(VERIFIERS);
const secretNow = () => make('/v1/tool_signing_secret', undefined, 'GET');

test('what the shop gets verifies with standardwebhooks and svix, and nothing else does', async () => {
  const { secret } = await secretNow();
  const { got } = await ask('8812');
  assert.deepEqual(accepted(got, secret), BOTH);
  const { secret: other } = await make('/v1/projects', { name: 'other' }).then((p) =>
    stack.api('/v1/tool_signing_secret', { key: p.key.key })).then((a) => a.json);
  assert.deepEqual(accepted(got, other), []);
  assert.deepEqual(accepted({ ...got, body: Buffer.from('x') }, secret), []);
  assert.deepEqual(accepted({ ...got, headers: { ...got.headers, 'webhook-id': 'call_other' } }, secret), []);
});

test('during a rotation with the old and the new secret, after the overlap with the new one only', async () => {
  const old = await secretNow();
  const now = await make('/v1/tool_signing_secret/rotate');
  assert.equal(now.previous.secret, old.secret);
  await sleep(600);
  for (let i = 0; i < 3; i++) {
    const { got } = await ask('8812');
    assert.deepEqual(accepted(got, old.secret), BOTH);
    assert.deepEqual(accepted(got, now.secret), BOTH);
  }
  await sleep(now.previous.expires_at * 1000 - Date.now() + 1200);
  for (let i = 0; i < 3; i++) {
    const { got } = await ask('8812');
    assert.deepEqual(accepted(got, now.secret), BOTH);
    assert.deepEqual(accepted(got, old.secret), []);
  }
});

test('an action with a body verifies too', async () => {
  const tool = definition();
  await make('/v1/tools', {
    ...tool, name: 'note', effect: 'action', config: { ...tool.config, method: 'POST', url: tool.config.url.replace('/orders/{{args.order_number}}', '/notes'),
      body: { number: '{{args.order_number}}', by: '{{end_user.external_id}}' } },
  });
  const agent = await make('/v1/agents', { name: 'noting', model: 'default', tools: { http: [{ tool: 'note' }] } });
  await make(`/v1/agents/${agent.id}/publish`);
  shop.clear();
  await client.chat.completions.create({
    model: 'noting', allow_actions: true, messages: [{ role: 'user', content: '@call note {"order_number":"8812"}' }],
    end_user: { token: token(user, { sub: 'u', exp: exp() }) },
  });
  const { secret } = await secretNow();
  const [got] = shop.journal;
  for (const [name, Webhook] of Object.entries(VERIFIERS)) {
    assert.deepEqual(new Webhook(secret).verify(got.body.toString(), got.headers), { number: '8812', by: 'u' }, name);
  }
});
