// A model upstream that misbehaves, models with several places, and the pass-through of a
// configured model: bytes as they are, the model's own words for the caller's faults.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import {
  CH, DONE, FIN, assertBroken, assertError, assertWhole, callsTurn, order, startFixture, textTurn,
} from './fixture.mjs';
import { SLOW } from './nginx.mjs';
import { event } from '../lib/openai-wire.mjs';

let f;
const page = '<html><body>502 Bad Gateway at cache-17</body></html>';
const proxied = (url, more) => `proxy_pass ${url}/v1/chat/completions; proxy_http_version 1.1; proxy_buffering off; ${more}`;

before(async () => {
  f = await startFixture({
    api: 'toolgate_sse_ping 150ms;',
    models: {
      html: [{ conf: `default_type text/html; return 200 "${page}";` }],
      nothing: [{ conf: 'return 204;' }],
      missing: [{ conf: 'root @DIR@/none;' }],
      denied: [{ conf: 'deny all; return 403;' }],
      hosts: [{ conf: 'set $x "no-such-host.invalid"; proxy_pass http://$x/; resolver 127.0.0.1:9; resolver_timeout 200ms;' }],
      patched: [{ conf: 'proxy_intercept_errors on; error_page 500 502 504 = @sorry; proxy_pass http://127.0.0.1:9;' }],
      third: [{ url: 'http://127.0.0.1:9' }, { conf: `default_type text/html; return 200 "${page}";` }, { url: 'http://127.0.0.1:9', backup: true }],
    },
    server: `location @sorry { default_type application/json; return 200 '{"sorry":1}'; }
      location /other/ { return 200 "other\\n"; }`,
    agents: [
      ...['m', 'html', 'nothing', 'missing', 'denied', 'hosts', 'patched', 'dead', 'fallback', 'backup', 'renamed', 'buffered']
        .map((model) => ({ name: `a-${model}`, model, tools: { allow_anonymous_actions: true, http: [{ tool: 'order_status' }] } })),
    ],
  });
});
after(() => f.stop());

const OK = textTurn('ok');
const json = (status, value, headers = {}) => [
  { status, headers: { 'content-type': 'application/json', ...headers } }, { send: typeof value === 'string' ? value : JSON.stringify(value) }];

/** The same fault seen by an agent and through pass-through, streamed and not. */
function each(title, fn) {
  for (const model of ['a-m', 'm']) {
    for (const stream of [false, true]) {
      test(`${title}: ${model === 'm' ? 'pass-through' : 'agent'}${stream ? ', streamed' : ''}`, () =>
        fn({ model, stream, relay: model === 'm' }));
    }
  }
}

const vendorError = { error: { message: 'Invalid \'temperature\': 9 is too high', type: 'invalid_request_error', param: 'temperature', code: 'too_high' } };

each('the model refuses our key', async (o) => {
  for (const status of [401, 403]) {
    const answer = await f.ask([json(status, { error: { message: 'bad key sk-proj-abc', code: 'invalid_api_key' } })], o);
    assertError(answer, 502, 'model_auth_failed');
    assert.ok(!answer.text.includes('sk-proj'));
  }
});

each('the model is at its limit: Retry-After comes along', async (o) => {
  const answer = await f.ask([json(429, { error: { message: 'slow down', code: 'rate' } }, { 'retry-after': '17' })], o);
  assertError(answer, 429, 'model_rate_limited');
  assert.equal(answer.headers['retry-after'], '17');
  const without = await f.ask([json(429, '')], o);
  assertError(without, 429, 'model_rate_limited');
});

each('the model refuses the content, in its own words', async (o) => {
  for (const status of [400, 404, 413, 422]) {
    const answer = await f.ask([json(status, vendorError)], o);
    if (o.relay) {
      assert.equal(answer.status, status);
      assert.deepEqual(answer.json, vendorError);
    } else {
      assertError(answer, 400, 'model_rejected_request');
      assert.match(answer.json.error.message, /9 is too high/);
      assert.match(answer.json.error.message, /too_high/);
    }
  }
  const long = { error: { message: `\u0000\u202e${'long '.repeat(2000)}`, code: 'x'.repeat(500) } };
  const answer = await f.ask([json(400, long)], o);
  assert.ok(answer.json.error.message.length <= 500, `${answer.json.error.message.length}`);
  assert.ok(!/[\u0000\u202e]/.test(answer.json.error.message));
  for (const error of [{ message: 'long '.repeat(2000), code: 'x'.repeat(500), type: 't' }, { message: 'a\u202eb', code: 5, extra: 'y'.repeat(9000) }]) {
    const cut = await f.ask([json(400, { error })], o);
    assert.equal(cut.status, 400);
    assert.ok(cut.text.length < 1000, `${cut.text.length}`);
    assert.ok(cut.json.error.message.length > 1 && cut.json.error.message.length <= 500);
    assert.ok(!cut.text.includes('\u202e'));
    if (o.relay) assert.equal(cut.json.error.code, error.code === 5 ? 5 : 'x'.repeat(64));
  }
  for (const body of ['', 'not json', '[]', '{"detail":"x"}', '{"error":"text"}']) {
    const odd = await f.ask([json(400, body)], o);
    assert.equal(odd.status, 400, body);
    assert.equal(odd.json.error.code, 'model_rejected_request');
  }
});

each('5xx, pages, 204 and empty answers are model_unavailable', async (o) => {
  const html = (status) => [{ status, headers: { 'content-type': 'text/html' } }, { send: page }];
  for (const script of [json(500, { error: { message: 'db-7 down' } }), json(503, ''), html(502), html(404), html(200),
    [{ status: 204 }], json(200, ''), json(200, 'no json'), json(200, '[]'), json(200, '{"choices":[]}'),
    [{ raw: 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n' }, { end: true }],
    [{ raw: 'hello\r\n' }, { end: true }], [{ raw: '' }, { reset: true }], [{ raw: '' }, { end: true }]]) {
    const name = JSON.stringify(script).slice(0, 120);
    f.clear();
    f.model.plan(script);
    let answer;
    try {
      answer = await f.nginx.chat(f.body(o));
    } catch (error) {
      assert.ok(o.relay, `${name}: ${error}`);
      continue; // a whole 2xx JSON head was passed on, then the connection broke: as it is
    }
    if (o.relay && answer.status === 200) continue;
    assert.equal(answer.status, 502, `${name}: ${answer.text}`);
    assert.ok(['model_unavailable', 'model_stream_broken'].includes(answer.json.error.code), name);
    assert.ok(!answer.text.includes('db-7') && !answer.text.includes('cache-17'));
  }
});

each('a model that hangs before its head', async (o) => {
  f.clear();
  f.model.plan([{ hang: true }]);
  const start = performance.now();
  if (o.stream) {
    const client = await f.nginx.stream(f.body(o));
    assert.ok(client.comments.length >= 2, 'comments keep the client');
    assert.ok(client.comments[0].at - client.started < 400 * SLOW);
    assertBroken(client, 'model_timeout');
  } else {
    assertError(await f.nginx.chat(f.body(o)), 504, 'model_timeout');
  }
  assert.ok(performance.now() - start < 3500 * SLOW);
});

each('a model that hangs in the middle', async (o) => {
  f.clear();
  f.model.plan([{ send: CH({ content: 'one' }) }, { hang: true }]);
  const answer = o.stream ? await f.nginx.stream(f.body(o)) : await f.nginx.chat(f.body(o)).catch(() => null);
  if (o.stream) {
    assertBroken(answer, 'model_stream_broken');
    assert.equal(answer.content, 'one');
    assert.ok(answer.comments.length >= 2, 'comments in the middle of the stream, too');
  } else if (!o.relay) {
    assertError(answer, 502, 'model_stream_broken');
  }
});

each('a line that never ends', async (o) => {
  f.clear();
  f.model.plan([{ send: CH({ content: 'one' }) }, { send: `data: ${'x'.repeat(65536)}`, times: 400 }, { hang: true }]);
  const start = performance.now();
  const answer = o.stream ? await f.nginx.stream(f.body(o)) : await f.nginx.chat(f.body(o)).catch(() => null);
  if (o.stream) assertBroken(answer, 'model_stream_broken');
  else if (!o.relay) assertError(answer, 502, 'model_stream_broken');
  assert.ok(performance.now() - start < 1900 * SLOW, 'it does not wait for the model');
  await f.model.until(() => f.model.request().closedAt !== undefined);
  assert.ok(f.model.request().bytesSent < 16 << 20);
});

each('what is no JSON inside of the stream', async (o) => {
  f.clear();
  f.model.plan([{ send: `${CH({ content: 'one' })}data: nonsense\n\n${OK}` }]);
  const client = await f.nginx.stream(f.body({ ...o, stream: true }));
  if (!o.relay) assertBroken(client, 'model_stream_broken');
  else assert.ok(client.done, 'bytes of a pass-through are the model\'s own');
});

for (const [model, want] of [['html', 'model_unavailable'], ['nothing', 'model_unavailable'], ['missing', 'model_unavailable'],
  ['denied', 'model_auth_failed'], ['hosts', 'model_unavailable'], ['dead', 'model_unavailable'], ['third', 'model_unavailable']]) {
  test(`a location that is no proxy, or reaches nobody: ${model}`, async () => {
    for (const name of model === 'third' ? ['third'] : [model, `a-${model}`]) {
      for (const stream of [false, true]) {
        const answer = await f.nginx.chat(f.body({ model: name, stream }));
        if (model === 'hosts' && answer.status === 200) {
          assert.match(answer.text, /: ping\n\n/);
          assert.match(answer.text, new RegExp(`"code":"${want}"`));
          continue;
        }
        assert.equal(answer.status, 502, `${name}: ${answer.text}`);
        assert.equal(answer.json.error.code, want);
        assert.ok(!answer.text.includes('<html>'));
      }
    }
  });
}

test('an error page in the model\'s location does not reach the client', async () => {
  for (const model of ['patched', 'a-patched']) {
    const answer = await f.nginx.chat(f.body({ model }));
    if (model === 'a-patched') assertError(answer, 502, 'model_unavailable');
    assert.ok(answer.status === 502 || answer.json.sorry === 1, answer.text);
  }
});

test('places in order: the next one before the first byte, with its own name', async () => {
  for (const [model, name] of [['a-fallback', 'second'], ['fallback', 'second'], ['backup', 'spare'], ['a-backup', 'spare']]) {
    for (const stream of [false, true]) {
      f.clear();
      f.model.plan(stream || model.startsWith('a-') ? [{ send: OK }] : json(200, { id: 'x', model: name, choices: [] }));
      const answer = await f.nginx.chat(f.body({ model, stream }));
      assert.equal(answer.status, 200, answer.text);
      assert.equal(f.model.request().json.model, name);
      if (!stream) assert.equal(answer.json.model, model);
    }
  }
});

test('no other place after the first byte, none for the caller\'s own fault', async () => {
  f.clear();
  f.model.plan([{ send: CH({ content: 'one' }) }, { wait: 20 }, { reset: true }], [{ send: OK }]);
  const client = await f.nginx.stream(f.body({ model: 'a-twice' in {} ? '' : 'a-fallback' }));
  assertBroken(client, 'model_stream_broken');
  assert.equal(f.model.journal.length, 1);
  const refused = await f.ask([json(400, vendorError)], { model: 'a-fallback' });
  assertError(refused, 400, 'model_rejected_request');
});

test('pass-through of a stream is byte for byte, whatever the split', async () => {
  const odd = `: note\n\n${CH({ content: 'a' })}event: x\nid: 7\ndata: {"choices":[],"b":  1}\n\ndata:{"choices":[]}\r\n\r\n${CH({ content: 'طلب 🚚' })}${FIN('stop')}${DONE}`;
  for (const split of [undefined, 1, 7]) {
    f.clear();
    f.model.plan([{ send: odd, split }]);
    const client = await f.nginx.stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
    const raw = Buffer.from(client.raw, 'latin1').toString().replaceAll(': ping\n\n', '');
    assert.equal(raw, odd);
    assert.match(client.headers['content-type'], /^text\/event-stream/);
    assert.match(client.headers['x-toolgate-run'], /^run_/);
  }
});

test('pass-through of a request is byte for byte; only our own fields go', async () => {
  const raw = ' {"model": "m", "messages":[ {"role":"developer","content":[]} ],"seed":12345678901234567890,\n"tools":[],"metadata":{"a":"b"},"store":true, "é":1.0 }';
  f.clear();
  f.model.plan(json(200, '{"id":"x"}'));
  const answer = await f.nginx.chat(raw);
  assert.equal(answer.text, '{"id":"x"}');
  assert.equal(f.model.request().body.toString(), raw);

  f.clear();
  f.model.plan(json(200, '{"id":"x"}'));
  await f.nginx.chat('{"account_id":"a","model":"m","allow_actions":true,"messages":[{"role":"user","content":"\\u0041"}],"variables":{},"x":1e2}');
  assert.deepEqual(f.model.request().json, { model: 'm', messages: [{ role: 'user', content: 'A' }], x: 100 });
  assert.ok(f.model.request().body.includes('[{"role":"user","content":"\\u0041"}]'));
  assert.ok(f.model.request().body.includes('"x":1e2'));
});

test('pass-through of a whole answer is byte for byte, large ones and without a length, too', async () => {
  for (const size of [0, 10, 70_000, 5_000_000]) {
    const body = `{"id":"x", "object":"chat.completion","text":"${'é'.repeat(size / 2)}" }`;
    const answer = await f.ask([json(200, body, size === 10 ? { 'content-length': Buffer.byteLength(body) } : {})], { model: 'm' });
    assert.equal(answer.status, 200);
    assert.ok(answer.bytes.equals(Buffer.from(body)), `${size}`);
    assert.match(answer.headers['content-type'], /^application\/json/);
  }
});

test('model=: the vendor\'s name upstream, the caller\'s name in the answer', async () => {
  f.clear();
  f.model.plan([{ send: `${event({ id: 'u', model: 'vendor-7b', choices: [{ index: 0, delta: { content: 'model vendor-7b' } }] })}: note\n\n${DONE}`, split: 3 }]);
  const client = await f.nginx.stream({ model: 'renamed', messages: [{ role: 'user', content: 'x' }] });
  assert.equal(f.model.request().json.model, 'vendor-7b');
  assert.equal(client.events[0].json.model, 'renamed');
  assert.equal(client.events[0].json.choices[0].delta.content, 'model vendor-7b');
  assert.ok(client.done);

  const answer = await f.ask([json(200, '{"id":"x","model":"vendor-7b", "n":1.0}')], { model: 'renamed' });
  assert.equal(answer.text, '{"id":"x","model":"renamed", "n":1.0}');
  assert.equal(f.model.request().json.model, 'vendor-7b');
  const odd = await f.ask([json(200, '{"id":"x"}')], { model: 'renamed' });
  assert.equal(odd.text, '{"id":"x"}');

  const agent = await f.ask([OK], { model: 'a-renamed' });
  assert.equal(agent.json.model, 'a-renamed');
  assert.equal(f.model.request().json.model, 'vendor-7b');
});

test('pass-through of a broken stream: no clean end', async () => {
  for (const [script, want] of [
    [[{ send: CH({ content: 'one' }) }, { send: 'data: {"half' }, { end: true }], 'one'],
    [[{ send: CH({ content: 'one' }) }, { wait: 20 }, { reset: true }], 'one'],
    [[{ send: CH({ content: 'one' }) + FIN('stop') }, { end: true }], 'one'],
  ]) {
    f.clear();
    f.model.plan(script);
    const client = await f.nginx.stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
    assertBroken(client, 'model_stream_broken');
    assert.equal(client.content, want);
    assert.ok(!client.raw.includes('half'), 'half of an event does not reach the client');
  }
});

test('pass-through: a model that stays after [DONE], and one that resets after it', async () => {
  for (const tail of [{ hang: true }, { reset: true }, { cut: true }]) {
    f.clear();
    f.model.plan([{ send: OK }, { wait: 20 }, tail]);
    const start = performance.now();
    const client = await f.nginx.stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
    assertWhole(client);
    assert.equal(client.raw, OK);
    assert.ok(performance.now() - start < 1500 * SLOW);
  }
});

test('pass-through of the request\'s own tools', async () => {
  const tools = [{ type: 'function', function: { name: 'order_status', parameters: {} } }];
  const turn = callsTurn({ id: 'c', n: 'order_status', a: order('1') });
  f.clear();
  f.model.plan([{ send: turn }]);
  const client = await f.nginx.stream({ model: 'm', tools, messages: [{ role: 'user', content: 'x' }] });
  assert.equal(client.raw, turn);
  assert.deepEqual(f.model.request().json.tools, tools);
  assert.deepEqual(f.asked, []);
});

test('proxy_buffering on, nginx\'s default, gives the same answer', async () => {
  const client = await f.stream([[{ send: CH({ content: 'a' }) }, { wait: 30 }, { send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }], textTurn('b')],
    { model: 'a-buffered' });
  assertWhole(client);
  assert.equal(client.content, 'a\n\nb');
  f.clear();
  const turn = textTurn('x'.repeat(300_000), 'y');
  f.model.plan([{ send: turn, split: 50_000 }]);
  const relay = await f.nginx.stream({ model: 'buffered', messages: [{ role: 'user', content: 'x' }] });
  assert.equal(relay.raw, turn);
});

test('pings of a pass-through come before the head and between events', async () => {
  f.clear();
  f.model.plan([{ wait: 400 }, { send: CH({ content: 'a' }) }, { wait: 400 }, { send: textTurn('b') }]);
  const client = await f.nginx.stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
  assertWhole(client);
  assert.equal(client.content, 'ab');
  const first = client.events[0].at;
  assert.ok(client.comments.some((c) => c.at < first));
  assert.ok(client.comments.some((c) => c.at > first));
  f.clear();
  f.model.plan([{ wait: 400 }, ...json(400, vendorError)]);
  const refused = await f.nginx.stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
  assertBroken2(refused);
});

function assertBroken2(client) {
  assert.equal(client.status, 200);
  const last = client.events.at(-1).json.error;
  assert.equal(last.code, 'model_rejected_request');
  assert.ok(!client.done);
}

test('an upstream connection is kept for the next turn', async () => {
  await f.ask([callsTurn({ id: 'c', n: 'order_status', a: order('1') }), OK], { model: 'a-m' });
  assert.equal(f.model.journal.length, 2);
});
