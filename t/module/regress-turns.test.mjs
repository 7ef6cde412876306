// A model turn under directives that operators really write into their locations, and
// ways to end that nginx has and a model has not. Each case failed once.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { startMockModel } from '../lib/mock-model.mjs';
import { CH, FIN, DONE, assertWhole, textTurn } from './fixture.mjs';
import { SLOW, startNginx } from './nginx.mjs';

const MODELS = ['plain', 'buffered', 'paced', 'cached', 'stored'];
let model;
let nginx;

before(async () => {
  model = await startMockModel();
  const proxy = `proxy_pass ${model.url}/v1/chat/completions; proxy_http_version 1.1;
    proxy_set_header Connection "";`;
  nginx = await startNginx({
    models: {
      plain: [{ conf: `${proxy} proxy_buffering off;` }],
      buffered: [{ conf: proxy }],
      cached: [{ conf: `${proxy} proxy_cache z; proxy_cache_methods POST; proxy_cache_key x; proxy_cache_valid 1m;` }],
      stored: [{ conf: `${proxy} proxy_store @DIR@/stored;` }],
      paced: [{ conf: `${proxy} proxy_buffering off; limit_req zone=vendor burst=5;` }],
    },
    http: 'proxy_cache_path @DIR@/cache keys_zone=z:1m; limit_req_zone $binary_remote_addr zone=vendor:1m rate=4r/s;',
    api: 'limit_rate 150k;',
    catalog: { agents: MODELS.map((name) => ({ name: `${name}-agent`, model: name })) },
  });
});
after(async () => {
  await nginx?.stop();
  await model.close();
});

const body = (more) => ({ messages: [{ role: 'user', content: 'hi' }], ...more });
const PIECE = 'x'.repeat(1000);
const long = (n) => [{ send: CH({ content: PIECE }), times: n }, { send: FIN('stop') + DONE }];

for (const name of ['buffered', 'buffered-agent']) {
  test(`${name}: proxy_buffering on, a long answer to a client that reads slowly`, async () => {
    model.clear();
    model.plan(long(400));
    const client = await nginx.open(body({ model: name }), { bytesPerSecond: 1_000_000 });
    await client.end(30_000 * SLOW);
    assertWhole(client);
    assert.equal(client.content.length, 400_000);
  });

  test(`${name}: proxy_buffering on does not hold events back`, async () => {
    model.clear();
    model.plan([{ send: CH({ content: 'a' }) }, { until: 'seen' }, { send: FIN('stop') + DONE }]);
    const client = await nginx.open(body({ model: name }));
    let text = '';
    while (text === '') text = (await client.next(3000 * SLOW)).json.choices[0].delta.content ?? '';
    assert.equal(text, 'a');
    model.signal('seen');
    await client.end();
    assertWhole(client);
  });
}

for (const name of ['cached', 'cached', 'cached-agent', 'stored', 'stored-agent']) {
  test(`${name}: what nginx has whole waits for a client that reads slowly`, async () => {
    model.clear();
    model.plan(long(400));
    const client = await nginx.open(body({ model: name }), { bytesPerSecond: 1_000_000 });
    await client.end(30_000 * SLOW);
    assertWhole(client);
    assert.equal(client.content.length, 400_000);
  });
}

for (const name of ['plain', 'plain-agent']) {
  test(`${name}: limit_rate in the API's location does not stop a stream for good`, async () => {
    model.clear();
    model.plan([{ send: CH({ content: PIECE }), times: 300 }, { wait: 100 },
      { send: CH({ content: PIECE }), times: 100 }, { send: FIN('stop') + DONE }]);
    const client = await nginx.open(body({ model: name }));
    await client.end(20_000 * SLOW);
    assertWhole(client);
    assert.equal(client.content.length, 400_000);
  });
}

test('limit_req with a delay in the model location delays, no more', async () => {
  model.clear();
  model.plan(...Array.from({ length: 3 }, () => textTurn('ok')).map((send) => [{ send }]));
  const clients = await Promise.all(Array.from({ length: 3 }, () =>
    nginx.open(body({ model: 'paced' }))));
  for (const client of clients) {
    await client.end(5000 * SLOW);
    assertWhole(client);
  }
});

for (const name of ['plain', 'plain-agent']) {
  test(`${name}: a chat over nginx's own bound of bodies reaches the model`, async () => {
    model.clear();
    const content = 'y'.repeat(3 << 20);
    const client = await nginx.stream(body({ model: name, messages: [{ role: 'user', content }] }));
    assert.equal(client.status, 200, client.raw.slice(0, 500));
    assert.ok(client.done);
    assert.equal(model.request().json.messages.at(-1).content, content);
  });
}
