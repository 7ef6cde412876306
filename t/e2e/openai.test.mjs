// The official openai client, unchanged but for baseURL and apiKey: a configured model
// passed through, an agent with an HTTP tool, an agent that runs a command, errors and
// an abort, streamed and not. First against the demo (scripted model in njs), then
// against a model that does byte for byte what a test says.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { npm } from '../lib/npm.mjs';
import { startStack } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { startMockTool } from '../lib/mock-tool.mjs';
import { makeKey, token } from '../lib/jwt.mjs';
import { text, finish, DONE } from '../lib/openai-wire.mjs';

const OpenAI = npm('openai');

let demo;
let model;
let tool;
let stack;
const userKey = makeKey('ES256');

before(async () => {
  demo = await startStack();
  model = await startMockModel();
  tool = await startMockTool();
  stack = await startStack({
    modelUrl: model.baseUrl,
    modelName: 'vendor-model',
    allow: ['127.0.0.1/32'],
    catalog: {
      agents: [
        { name: 'plain', model: 'default', instructions: 'Be brief.' },
        { name: 'shop', model: 'default', tools: { http: [{ tool: 'my_plan' }] } },
      ],
      tools: [{
        name: 'my_plan', description: 'The plan of the customer.', requires_verified_user: true,
        config: {
          method: 'GET', url: `${tool.url}/plans/{{end_user.external_id}}`,
          headers: { 'X-Plan': '{{end_user.traits.plan}}' },
        },
      }],
      end_user_keys: [{ name: 'shop', alg: 'ES256', public_key: userKey.jwk }],
    },
  });
});

after(async () => {
  // the model first: a complaint of stop() must not leave it open
  await model?.close();
  await tool?.close();
  await Promise.all([demo?.stop(), stack?.stop()]);
});

const client = (of, options = {}) => new OpenAI({
  baseURL: of.baseURL, apiKey: of.key, maxRetries: 0, timeout: 20_000, ...options,
});

const user = (content) => [{ role: 'user', content }];

/** Reads a stream to its end: text, chunks, and what the last chunk carries. */
async function collect(stream) {
  const seen = { text: '', chunks: [], finish: [], toolCalls: 0, toolgate: undefined };
  for await (const chunk of stream) {
    seen.chunks.push(chunk);
    const choice = chunk.choices[0];
    seen.text += choice?.delta?.content ?? '';
    seen.toolCalls += choice?.delta?.tool_calls?.length ?? 0;
    if (choice?.finish_reason) seen.finish.push(choice.finish_reason);
    seen.toolgate ??= chunk.toolgate;
    seen.usage = chunk.usage ?? seen.usage;
  }
  return seen;
}

test('models.list and models.retrieve name the agent and the model', async () => {
  const ids = [];
  for await (const item of client(demo).models.list()) {
    assert.equal(item.object, 'model');
    ids.push(item.id);
  }
  assert.ok(ids.includes('demo'), `models: ${ids}`);
  assert.ok(ids.includes('default'), `models: ${ids}`);
  const one = await client(demo).models.retrieve('demo');
  assert.equal(one.id, 'demo');
  assert.equal(one.owned_by, 'toolgate');
});

test('an agent with an HTTP tool, not streamed', async () => {
  const answer = await client(demo).chat.completions.create({
    model: 'demo', messages: user('Where is order 8812?'),
  });
  assert.equal(answer.object, 'chat.completion');
  assert.equal(answer.model, 'demo');
  assert.equal(answer.choices.length, 1);
  assert.equal(answer.choices[0].finish_reason, 'stop');
  assert.equal(answer.choices[0].message.tool_calls, undefined);
  assert.match(answer.choices[0].message.content, /Order: 8812, Status: delivered/);
  assert.ok(answer.usage.total_tokens > 0);
  assert.equal(answer.toolgate.status, 'completed');
  assert.deepEqual(answer.toolgate.steps.map((s) => [s.tool, s.ok, s.code]),
    [['order_status', true, null]]);
});

test('an agent with an HTTP tool, streamed: one id, text only, one end', async () => {
  const seen = await collect(await client(demo).chat.completions.create({
    model: 'demo', messages: user('Where is order 8812?'), stream: true,
    stream_options: { include_usage: true },
  }));
  assert.match(seen.text, /Status: delivered/);
  assert.deepEqual(seen.finish, ['stop']);
  assert.equal(seen.toolCalls, 0, 'our own calls are not shown as tool_calls');
  assert.equal(new Set(seen.chunks.map((c) => c.id)).size, 1);
  assert.ok(seen.chunks.every((c) => c.model === 'demo'));
  assert.ok(seen.usage.total_tokens > 0);
  assert.equal(seen.toolgate.steps.length, 1);
});

test('an agent that runs a command in a sandbox, streamed and not', async () => {
  const request = {
    model: 'demo', allow_actions: true,
    messages: user('Run `echo from-$((6*7))-sandbox` please.'),
  };
  const whole = await client(demo).chat.completions.create(request);
  assert.match(whole.choices[0].message.content, /from-42-sandbox/);
  assert.deepEqual(whole.toolgate.steps.map((s) => [s.tool, s.ok]), [['run_command', true]]);

  const seen = await collect(await client(demo).chat.completions.create({
    ...request, stream: true,
  }));
  assert.match(seen.text, /exit code 0 and printed: from-42-sandbox/);
});

test('both tools in one round: answered in call order', async () => {
  const answer = await client(demo).chat.completions.create({
    model: 'demo', allow_actions: true,
    messages: user('Where is order 8812? And run `echo twelve` please.'),
  });
  const said = answer.choices[0].message.content;
  assert.ok(said.indexOf('8812') >= 0 && said.indexOf('8812') < said.indexOf('twelve'), said);
});

test('without allow_actions the command tool is not offered to a one-shot call', async () => {
  const answer = await client(demo).chat.completions.create({
    model: 'demo', messages: user('Run `echo hello` please.'),
  });
  assert.match(answer.choices[0].message.content, /run_command, and it is not offered/);
  assert.deepEqual(answer.toolgate.steps, []);
});

test('a configured model passes through, the caller\'s own tools included', async () => {
  const tools = [{
    type: 'function',
    function: { name: 'weather', parameters: { type: 'object', properties: {} } },
  }];
  const request = {
    model: 'default', messages: user('@call weather {"city":"Riyadh"}'), tools,
    temperature: 0.25, seed: 7,
  };
  const answer = await client(stack).chat.completions.create(request);
  assert.equal(answer.model, 'default');
  assert.equal(answer.choices[0].finish_reason, 'tool_calls');
  assert.equal(answer.choices[0].message.tool_calls[0].function.name, 'weather');
  const sent = model.request();
  assert.equal(sent.json.model, 'vendor-model');
  assert.deepEqual(sent.json.tools, tools);
  assert.equal(sent.json.temperature, 0.25);
  assert.equal(sent.json.seed, 7);
  assert.equal(sent.headers.authorization, undefined, 'the caller\'s key stays here');

  const seen = await collect(await client(stack).chat.completions.create({
    ...request, stream: true,
  }));
  assert.equal(seen.toolCalls, 1);
  assert.deepEqual(seen.finish, ['tool_calls']);
});

test('pass-through and agent text, streamed, is the model\'s text', async () => {
  for (const name of ['default', 'plain']) {
    const seen = await collect(await client(stack).chat.completions.create({
      model: name, messages: user('Grüße, مرحبا, 你好 👋'), stream: true,
    }));
    assert.equal(seen.text, 'You said: Grüße, مرحبا, 你好 👋');
    assert.ok(seen.chunks.every((c) => c.model === name));
  }
});

test('the agent\'s instructions come first and the caller\'s follow', async () => {
  await client(stack).chat.completions.create({
    model: 'plain',
    messages: [{ role: 'developer', content: 'And polite.' }, ...user('Hello')],
  });
  const { messages } = model.request().json;
  assert.deepEqual(messages.map((m) => m.role), ['system', 'system', 'user']);
  assert.equal(messages[0].content, 'Be brief.');
  assert.equal(messages[1].content, 'And polite.');
});

test('streaming is real: the second event is sent after the first has arrived', async () => {
  for (const name of ['default', 'plain']) {
    model.clear();
    model.plan([{ send: text('first') }, { until: 'seen' }, { send: [text(' second'), finish('stop'), DONE] }]);
    const stream = await client(stack).chat.completions.create({
      model: name, messages: user('x'), stream: true,
    });
    let said = '';
    for await (const chunk of stream) {
      said += chunk.choices[0]?.delta?.content ?? '';
      if (said === 'first') model.signal('seen');
    }
    assert.equal(said, 'first second');
  }
});

test('an end user: the token in the body or in a header, and a wrong one', async () => {
  const identity = { sub: 'customer-7', exp: Math.floor(Date.now() / 1000) + 300, traits: { plan: 'gold' } };
  const asked = { model: 'shop', messages: user('@call my_plan {}') };
  const steps = (answer) => answer.toolgate.steps.map((s) => [s.tool, s.code]);

  for (const create of [
    (jwt) => client(stack).chat.completions.create({ ...asked, end_user: { token: jwt } }),
    (jwt) => client(stack).chat.completions.create(asked, { headers: { 'X-End-User-Token': jwt } }),
    (jwt) => client(stack, { defaultHeaders: { 'X-End-User-Token': jwt } }).chat.completions.create(asked),
  ]) {
    tool.clear();
    assert.deepEqual(steps(await create(token(userKey, identity))), [['my_plan', null]]);
    assert.equal(tool.journal[0].path, '/plans/customer-7');
    assert.equal(tool.journal[0].headers['x-plan'], 'gold');

    const error = await create(token(makeKey('ES256'), identity)).then(() => assert.fail('no error'), (e) => e);
    assert.ok(error instanceof OpenAI.AuthenticationError);
    assert.equal(error.code, 'invalid_end_user_token');
  }
  const seen = await collect(await client(stack).chat.completions.create({
    ...asked, stream: true, end_user: { token: token(userKey, identity) },
  }));
  assert.deepEqual(steps(seen), [['my_plan', null]]);

  const anonymous = await client(stack).chat.completions.create(asked);
  assert.deepEqual(steps(anonymous), [['my_plan', 'verification_required']]);
});

test('errors arrive as the client\'s own error classes', async () => {
  const failing = async (promise, type, code, status) => {
    const error = await promise.then(() => assert.fail('no error'), (e) => e);
    assert.ok(error instanceof type, `${error?.constructor?.name}: ${error?.message}`);
    assert.equal(error.code, code);
    assert.equal(error.status, status);
    assert.ok(error.requestID, 'x-request-id');
    return error;
  };
  const create = (of, body) => of.chat.completions.create(body);

  await failing(create(client(stack, { apiKey: 'wrong-key-wrong-key' }),
    { model: 'plain', messages: user('x') }), OpenAI.AuthenticationError, 'invalid_api_key', 401);
  await failing(create(client(stack), { model: 'nobody', messages: user('x') }),
    OpenAI.NotFoundError, 'model_not_found', 404);
  const bad = await failing(create(client(stack), { model: 'plain', messages: 'x' }),
    OpenAI.BadRequestError, 'invalid_type', 400);
  assert.equal(bad.param, 'messages');
  await failing(create(client(stack), { model: 'plain' }),
    OpenAI.BadRequestError, 'missing_parameter', 400);

  model.plan([{ status: 429, headers: { 'content-type': 'application/json', 'retry-after': '7' } },
    { send: '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}' }]);
  const limited = await failing(create(client(stack), { model: 'plain', messages: user('x') }),
    OpenAI.RateLimitError, 'model_rate_limited', 429);
  assert.equal(limited.headers.get('retry-after'), '7');

  model.plan([{ status: 500 }, { send: '<html>oops</html>' }]);
  await failing(create(client(stack), { model: 'plain', messages: user('x') }),
    OpenAI.InternalServerError, 'model_unavailable', 502);
});

test('a model that dies in the middle is an error, never a clean end', async () => {
  model.plan([{ send: text('half') }, { wait: 30 }, { cut: true }]);
  let said = '';
  const stream = await client(stack).chat.completions.create({
    model: 'plain', messages: user('x'), stream: true,
  });
  await assert.rejects(async () => {
    for await (const chunk of stream) said += chunk.choices[0]?.delta?.content ?? '';
  }, (error) => error.code === 'model_stream_broken');
  assert.equal(said, 'half');
});

test('an aborted stream ends the model call within a second', async () => {
  for (const name of ['default', 'plain']) {
    model.clear();
    model.plan([{ send: text('first') }, { hang: true }]);
    const stream = await client(stack).chat.completions.create({
      model: name, messages: user('x'), stream: true,
    });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta?.content) break;
    }
    const left = performance.now();
    stream.controller.abort();
    await model.until(() => model.request().closedAt !== undefined, 3000, 'the close');
    assert.ok(model.request().closedAt - left < 1000);
  }
});
