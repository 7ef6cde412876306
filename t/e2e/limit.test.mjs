// The official openai client against request limits, with two workers and Redis: its own
// retry waits for as long as Retry-After says; without retries it sees OpenAI's error and
// headers; a stream has them too.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { npm } from '../lib/npm.mjs';
import { startStack } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';

const OpenAI = npm('openai');
const SECONDS = 3;

let model;
let stack;

before(async () => {
  model = await startMockModel();
  stack = await startStack({
    modelUrl: model.baseUrl,
    catalog: { agents: [{ name: 'agent', model: 'default', instructions: 'Be brief.' }] },
    // three in three seconds, all of them at once
    confExtra: `toolgate_limit requests=1/s burst=2 key=$toolgate_account;
toolgate_limit requests=3/h key=$http_x_few;
`,
  });
});

after(async () => {
  await model?.close();
  await stack?.stop();
});

const client = (account, options = {}) => new OpenAI({
  baseURL: stack.baseURL, apiKey: stack.key, maxRetries: 0, timeout: 20_000,
  defaultHeaders: { 'x-account-id': account }, ...options,
});

const request = { model: 'agent', messages: [{ role: 'user', content: 'Hello' }] };

test('without retries: a RateLimitError after exactly the limit, with code and headers', async () => {
  const openai = client('plain', { defaultHeaders: { 'x-few': 'few' } });
  for (const left of ['2', '1', '0']) {
    const { data, response } = await openai.chat.completions.create(request).withResponse();
    assert.ok(data.choices[0].message.content.length > 0);
    assert.equal(response.headers.get('x-ratelimit-limit-requests'), '3');
    assert.equal(response.headers.get('x-ratelimit-remaining-requests'), left);
    assert.equal(response.headers.get('x-ratelimit-reset-requests'), '1h0m0s');
    assert.equal(response.headers.get('x-toolgate-limit-mode'), null);
  }
  await assert.rejects(() => openai.chat.completions.create(request), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.equal(error.status, 429);
    assert.equal(error.code, 'rate_limit_exceeded');
    assert.equal(error.type, 'rate_limit_error');
    assert.match(new Headers(error.headers).get('retry-after'), /^3[56]\d\d$/);
    return true;
  });
});

for (const stream of [false, true]) {
  test(`its retry waits for Retry-After and then gets its answer, ${stream ? 'streamed' : 'whole'}`, async () => {
    const account = stream ? 'streams' : 'retries';
    const statuses = [];
    const openai = client(account, {
      maxRetries: 1,
      fetch: async (...args) => {
        const answer = await fetch(...args);
        statuses.push([answer.status, answer.headers.get('retry-after')]);
        return answer;
      },
    });
    const began = performance.now();
    for (let n = 0; n < 4; n++) {
      const answer = await openai.chat.completions.create({ ...request, stream });
      if (!stream) continue;
      let text = '';
      for await (const chunk of answer) text += chunk.choices[0]?.delta?.content ?? '';
      assert.ok(text.length > 0);
    }
    const waited = performance.now() - began;
    assert.deepEqual(statuses.map(([status]) => status), [200, 200, 200, 429, 200]);
    const told = Number(statuses[3][1]);
    assert.ok(told >= 1 && told <= SECONDS);
    assert.ok(waited >= told * 1000 - 20, `${waited} ms, told ${told} s`);
  });
}

test('twelve at once, one client each, over both workers: all get through in the end, and not too soon', async () => {
  const began = performance.now();
  const answers = await Promise.all(Array.from({ length: 12 }, () =>
    client('crowd', { maxRetries: 6 }).chat.completions.create(request)));
  assert.ok(answers.every((a) => a.choices[0].message.content.length > 0));

  // never more than three in any three seconds: the last three came in the fourth window
  const took = performance.now() - began;
  assert.ok(took >= 3 * SECONDS * 1000 - 20, `${took} ms`);
});
