// Runs as such: /v1/runs, their events, their list, cancellation, an invocation id that
// comes again, in chat too.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { CH, assertError, callsTurn, order, startFixture, textTurn } from './fixture.mjs';
import { PATIENT, SLOW } from './nginx.mjs';
import { startRedis } from '../lib/redis.mjs';

const RUN = /^run_[0-9A-Za-z]{22}$/;
const OK = textTurn('ok');
const ENDED = ['completed', 'failed', 'cancelled', 'superseded', 'expired'];

let f;
let redis;
let n = 0;

before(async () => {
  redis = await startRedis();
  f = await startFixture({
    workers: 2, runHost: 'toolgate_run_timeout 5s;',
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_redis unix:${redis.socket} prefix=t: ${PATIENT};`,
    api: 'toolgate_sse_ping 200ms;',
  });
});
after(async () => {
  await f.stop();
  await redis.stop();
});

const plan = (...turns) => {
  f.clear();
  f.model.plan(...turns.map((t) => (typeof t === 'string' ? [{ send: t }] : t)));
};
const ask = (more = {}) => ({ agent: 'a', input: 'where is 8812?', allow_actions: true, ...more });
const post = (more, options = {}) => f.nginx.request('/v1/runs', { method: 'POST', body: ask(more), ...options });
const get = (path, options) => f.nginx.request(`/v1/runs/${path}`, options);
const cancel = (id, options = {}) => f.nginx.request(`/v1/runs/${id}/cancel`, { method: 'POST', ...options });
// a model that goes on and on, and is not silent for too long
const talks = () => Array.from({ length: 8 }, (_, i) => [{ send: CH({ content: `${i} ` }) }, { wait: 1000 }]).flat();
const fresh = () => `inv-${process.pid}-${++n}`;
const ended = async (id) => {
  for (let i = 0; i < 500; i++) {
    const { json } = await get(id);
    if (ENDED.includes(json.status)) return json;
    await sleep(20);
  }
  throw new Error(`run ${id} does not end`);
};
const events = (text) => text.split('\n\n').filter((e) => /^id: /m.test(e)).map((e) => {
  const [, id, type, data] = /^id: (\d+)\nevent: (\S+)\ndata: (.*)$/.exec(e);
  const json = JSON.parse(data);
  assert.equal(json.seq, Number(id));
  assert.equal(json.type, type);
  return json;
});

test('a run: waited for, its object', async () => {
  plan(callsTurn({ id: 'c', n: 'order_status', a: order('8812') }), textTurn('It is ', 'on its way.'));
  const { status, json, text, headers } = await post({ metadata: { ticket: '7' } });
  assert.equal(status, 200, text);
  assert.match(json.id, RUN);
  assert.equal(headers['x-toolgate-run'], json.id);
  const { id, created_at, completed_at, usage, ...rest } = json;
  assert.deepEqual(rest, {
    object: 'run', invocation_id: id, agent: 'a', agent_version: 1, session_id: null, account_id: null, status: 'completed',
    required_action: null, output: [{ type: 'text', text: 'It is on its way.' }], output_text: 'It is on its way.',
    error: null, metadata: { ticket: '7' },
  });
  assert.ok(Math.abs(created_at - Date.now() / 1000) < 60 && completed_at >= created_at);
  assert.deepEqual((await get(id)).json, json);
  const steps = (await get(`${id}/steps`)).json.data;
  assert.deepEqual(steps.map((s) => s.type), ['model_call', 'tool_call', 'model_call']);
});

test('in the background: 202 at once, and it goes on alone', async () => {
  plan([{ wait: 300 }, { send: textTurn('later') }]);
  const start = Date.now();
  const { status, json } = await post({ background: true });
  assert.equal(status, 202);
  assert.ok(Date.now() - start < 300);
  assert.ok(['queued', 'running'].includes(json.status), json.status);
  assert.equal((await ended(json.id)).output_text, 'later');
});

test('its events: numbered, typed, whole, and again from any of them', async () => {
  plan(callsTurn({ id: 'c', n: 'order_status', a: order('8812') }), textTurn('fine'));
  const { status, text, headers } = await post({ stream: true });
  assert.equal(status, 200);
  assert.match(headers['content-type'], /^text\/event-stream/);
  const all = events(text);
  assert.deepEqual(all.map((e) => e.type), ['run.started', 'run.tool_call', 'run.tool_result', 'run.text_delta', 'run.completed']);
  assert.deepEqual(all.map((e) => e.seq), [1, 2, 3, 4, 5]);
  const [started, call, result, delta] = all;
  assert.match(started.run, RUN);
  assert.ok(all.every((e) => e.run === started.run && Number.isInteger(e.at)));
  assert.deepEqual([call.name, call.arguments], ['order_status', order('8812')]);
  assert.deepEqual([result.name, result.call_id, result.status, result.error, result.artifacts], ['order_status', call.call_id, 'ok', null, []]);
  assert.equal(JSON.parse(result.content).ok, true);
  assert.equal(delta.delta, 'fine');
  const id = started.run;
  assert.deepEqual(events((await get(`${id}/events`)).text), all);
  for (const after of [0, 1, 3, 4]) {
    assert.deepEqual(events((await get(`${id}/events?after=${after}`)).text), all.slice(after));
    assert.deepEqual(events((await get(`${id}/events`, { headers: { 'last-event-id': String(after) } })).text), all.slice(after));
  }
  assert.equal((await get(`${id}/events?after=5`)).text, '');
});

test('events that are asked for badly', async () => {
  plan(OK);
  const { json: { id } } = await post();
  for (const after of ['99', 'x', '-1']) assertError(await get(`${id}/events?after=${after}`), 400, 'invalid_value');
  assertError(await get(`run_${'0'.repeat(22)}/events`), 404, 'not_found');
});

test('text comes while the model speaks, with pings while it does not', async () => {
  plan([{ send: textTurn('first').split('data: [DONE]')[0].replace(/data: \{[^\n]*"finish_reason":"stop"[^\n]*\n\n/, '') }, { wait: 700 }, { send: textTurn(' second') }]);
  const { json: { id } } = await post({ background: true });
  const { text } = await get(`${id}/events`);
  assert.deepEqual(events(text).filter((e) => e.delta).map((e) => e.delta), ['first', ' second']);
  assert.ok(text.includes(': ping'), text);
});

test('cancelled: the model is let go, the status is there at once, again is no fault', async () => {
  plan([{ send: textTurn('never').slice(0, 60) }, { wait: 8000 }]);
  const { json: { id } } = await post({ background: true });
  await f.model.until(() => f.model.journal.length === 1);
  const follow = get(`${id}/events`);
  await sleep(100);
  for (let i = 0; i < 2; i++) {
    const { status, json } = await cancel(id);
    assert.equal(status, 200);
    assert.equal(json.status, 'cancelled');
  }
  assert.equal(events((await follow).text).at(-1).type, 'run.cancelled');
  await f.model.until(() => f.model.journal[0].closedAt);
  assert.equal((await get(id)).json.status, 'cancelled');
});

test('a run that has ended is not cancelled any more', async () => {
  plan(OK);
  const { json: { id } } = await post();
  assert.equal((await cancel(id)).json.status, 'completed');
  assertError(await cancel(`run_${'1'.repeat(22)}`), 404, 'not_found');
});

test('an invocation id: the same request is the same run, another one is refused', async () => {
  const invocation_id = fresh();
  plan(callsTurn({ id: 'c', n: 'add_note', a: '{"body":"x"}' }), textTurn('noted'));
  const first = await post({ invocation_id });
  const again = await post({ invocation_id });
  assert.equal(first.json.status, 'completed');
  assert.equal(first.headers['x-toolgate-run'], invocation_id);
  assert.equal(first.json.invocation_id, invocation_id);
  assert.deepEqual(again.json, first.json);
  assert.equal(f.tool.journal.length, 1);
  assert.equal(f.tool.journal[0].headers['x-toolgate-run'], invocation_id);
  assertError(await post({ invocation_id, input: 'another' }), 409, 'invocation_conflict');
  for (const path of [invocation_id, `${invocation_id}/steps`, `${invocation_id}/events`]) assert.equal((await get(path)).status, 200, path);
  assert.equal((await get(invocation_id)).json.id, first.json.id);
  assertError(await get('never-heard-of'), 404, 'not_found');
});

test('the same in chat, streamed and not, while it runs and after', async () => {
  for (const stream of [false, true]) {
    const invocation_id = fresh();
    plan([{ send: callsTurn({ id: 'c', n: 'add_note', a: '{"body":"x"}' }) }], [{ wait: 300 }, { send: textTurn('noted ', 'once') }]);
    const go = () => (stream ? f.nginx.stream(f.body({ invocation_id, stream })) : f.nginx.chat(f.body({ invocation_id })));
    const first = go();
    await f.model.until(() => f.model.journal.length >= 1);
    const all = [await go(), await first, await go()];
    for (const answer of all) {
      assert.equal(answer.headers['x-toolgate-run'], invocation_id);
      const said = stream ? answer.events.slice(0, -1).flatMap((e) => e.json.choices).map((c) => c.delta.content ?? '').join('')
        : answer.json.choices[0].message.content;
      assert.equal(said, 'noted once');
    }
    assert.equal(f.tool.journal.length, 1, 'one note');
    assert.equal(f.model.journal.length, 2);
    const runs = all.map((a) => (stream ? a.events.at(-2).json.toolgate : a.json.toolgate));
    assert.deepEqual(runs[0], runs[1]);
    assert.deepEqual(runs[2], runs[1]);
    assertError(await f.nginx.chat(f.body({ invocation_id, temperature: 1 })), 409, 'invocation_conflict');
  }
});

test('an invocation id that is none, or that nothing could keep', async () => {
  for (const invocation_id of ['', 'a b', 'x'.repeat(65), 7]) assertError(await f.nginx.chat(f.body({ invocation_id })), 400, 'invalid_value');
  assertError(await f.nginx.chat(f.body({ invocation_id: fresh(), store: false })), 400, 'invalid_value');
  assertError(await f.nginx.chat(f.body({ invocation_id: fresh(), model: 'm' })), 400, 'invalid_value');
  assertError(await f.nginx.chat(f.body({ invocation_id: 'a', metadata: { agentengine: { invocation_id: 'b' } } })), 400, 'invalid_value');
});

test('a run of another account is not there', async () => {
  plan(OK);
  const { json } = await post({ account_id: 'acme' });
  assert.equal(json.account_id, 'acme');
  for (const path of [json.id, `${json.id}/events`, `${json.id}/steps`]) {
    assertError(await get(path), 404, 'not_found');
    assert.equal((await get(`${path}?account_id=acme`)).status, 200);
  }
  assertError(await cancel(json.id), 404, 'not_found');
});

test('the list: newest first, page by page, of one account', async () => {
  const ids = [];
  for (let i = 0; i < 5; i++) {
    plan(OK);
    ids.unshift((await post({ account_id: 'lists' })).json.id);
  }
  const list = (query) => f.nginx.request(`/v1/runs?account_id=lists&${query}`);
  assert.deepEqual((await list('')).json.data.map((r) => r.id), ids);
  const page = (await list('limit=2')).json;
  assert.deepEqual([page.data.map((r) => r.id), page.has_more], [ids.slice(0, 2), true]);
  const rest = (await list(`limit=3&after=${ids[1]}`)).json;
  assert.deepEqual([rest.data.map((r) => r.id), rest.has_more], [ids.slice(2), false]);
  assertError(await list('after=run_x'), 400, 'invalid_value');
});

test('requests that are wrong', async () => {
  const faults = [
    [{ agent: undefined }, 'missing_parameter', 'agent'], [{ agent: 7 }, 'invalid_type', 'agent'],
    [{ input: undefined }, 'missing_parameter', 'input'], [{ input: 7 }, 'invalid_type', 'input'],
    [{ input: [] }, 'invalid_value', 'input'], [{ input: [{ content: 'x' }] }, 'missing_parameter', 'input[0].role'],
    [{ stream: 1 }, 'invalid_type', 'stream'], [{ background: 'yes' }, 'invalid_type', 'background'],
    [{ store: false }, 'invalid_value', 'store'],
  ];
  for (const [more, code, param] of faults) {
    const answer = await post(more);
    assertError(answer, 400, code);
    assert.equal(answer.json.error.param, param);
  }
  for (const agent of ['nobody', 'm']) assertError(await post({ agent }), 404, 'model_not_found');
});

test('a run whose model fails, and one that takes too long', async () => {
  plan([{ status: 500 }, { send: 'x' }]);
  const failed = await post();
  assert.equal(failed.status, 200);
  assert.deepEqual([failed.json.status, failed.json.error.code], ['failed', 'model_unavailable']);
});

test('messages as input, and the caller who leaves changes nothing', async () => {
  plan([{ wait: 400 }, { send: textTurn('still here') }]);
  const controller = new AbortController();
  const gone = fetch(`${f.nginx.url}/v1/runs`, {
    method: 'POST', signal: controller.signal, headers: { authorization: `Bearer ${f.nginx.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(ask({ input: [{ role: 'user', content: 'hello' }], invocation_id: 'left-alone' })),
  }).catch(() => {});
  await f.model.until(() => f.model.journal.length === 1);
  controller.abort();
  await gone;
  assert.equal((await ended('left-alone')).output_text, 'still here');
});

test('a run that another worker has taken over is let go of', async () => {
  const invocation_id = fresh();
  plan([{ send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }], talks());
  const asked = f.nginx.chat(f.body({ invocation_id }));
  await f.model.until(() => f.model.journal.length === 2);
  const { json: { id } } = await get(invocation_id);
  redis.cli('hset', `t:r:{default/}:${id}`, 'owner', 'somebody-else');
  assertError(await asked, 503, 'run_moved');
  await f.model.until(() => f.model.journal[1].closedAt);
  await cancel(id);
});

test('more events than a run may have: it fails, and its last one says so', async () => {
  plan([{ send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }], talks());
  const { json: { id } } = await post({ background: true });
  await f.model.until(() => f.model.journal.length === 2);
  redis.cli('hset', `t:r:{default/}:${id}`, 'seq', '20000');
  const { status, error } = await ended(id);
  assert.deepEqual([status, error.code], ['failed', 'too_many_events']);
});

/** An action that has been sent, and its answer a while later. */
function slowNote(ms = 600) {
  plan([{ send: callsTurn({ id: 'c', n: 'add_note', a: '{"body":"x"}' }) }], [{ send: textTurn('never') }]);
  f.tool.answer = async (entry, req, res) => {
    await sleep(ms);
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"data":[]}');
    return true;
  };
}
const sent = async () => {
  for (let i = 0; i < 200 && f.tool.journal.length === 0; i++) await sleep(10);
  return f.tool.journal[0];
};
const noted = async (id) => {
  for (let i = 0; i < 100; i++) {
    const { json } = await get(`${id}/steps`);
    const step = json.data?.find((s) => s.type === 'tool_call');
    if (step) return step;
    await sleep(50);
  }
  throw new Error('no step');
};

test('cancelled while an action is on its way: that is heard of, nothing else begins', async () => {
  slowNote();
  const { json: { id } } = await post({ background: true });
  const entry = await sent();
  assert.equal((await cancel(id)).json.status, 'cancelled');
  const step = await noted(id);
  assert.deepEqual([step.tool, step.result.ok], ['add_note', true]);
  assert.equal(entry.closedEarly, false);
  assert.equal(f.model.journal.length, 1);
  const { json } = await get(id);
  assert.equal(json.status, 'cancelled');
});

test('a chat client that leaves then: the same; a read is let go of', async () => {
  for (const stream of [true, false]) {
    slowNote();
    const invocation_id = fresh();
    const controller = new AbortController();
    const asked = fetch(`${f.nginx.url}/v1/chat/completions`, {
      method: 'POST', signal: controller.signal, headers: { authorization: `Bearer ${f.nginx.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(f.body({ invocation_id, stream })),
    }).catch(() => {});
    const entry = await sent();
    controller.abort();
    await asked;
    const left = await ended(invocation_id);
    assert.equal(left.status, 'cancelled', JSON.stringify(left.error));
    const step = await noted(invocation_id);
    assert.deepEqual([step.tool, step.result.ok], ['add_note', true]);
    assert.equal(entry.closedEarly, false);
    assert.equal(f.model.journal.length, 1);
    // it is the same run when it comes again, and runs nothing
    assertError(await f.nginx.chat(f.body({ invocation_id, stream })), 409, 'run_cancelled');
    assert.equal(f.tool.journal.length, 1);
  }
  plan([{ send: callsTurn({ id: 'c', n: 'lookup', a: '{"kind":"hang","n":"1"}' }) }], [{ send: OK }]);
  const controller = new AbortController();
  const asked = fetch(`${f.nginx.url}/v1/chat/completions`, {
    method: 'POST', signal: controller.signal, headers: { authorization: `Bearer ${f.nginx.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(f.body()),
  }).catch(() => {});
  const entry = await sent();
  controller.abort();
  await asked;
  for (let i = 0; i < 100 && !entry.closedEarly; i++) await sleep(10);
  assert.ok(entry.closedEarly);
});

/** Makes the events of a run that has ended n ones, in steps that do not hold Redis up. */
function inflate(id, n, text = 'x') {
  const key = `t:r:{default/}:${id}`;
  redis.cli('del', `${key}:events`);
  for (let from = 1; from <= n; from += 250) {
    redis.cli('eval', `for i = ${from}, ${Math.min(n, from + 249)} do
      redis.call('XADD', KEYS[1], i .. '-0', 'e', '{"type":"' .. (i < ${n} and 'run.text_delta' or 'run.completed') .. '","seq":' .. i .. ',"run":"${id}","at":1,"delta":"${text}"}')
    end`, '1', `${key}:events`);
  }
  redis.cli('hset', key, 'seq', String(n));
}

test('10,000 events come in order, whole, and the worker goes on meanwhile', async () => {
  plan(OK);
  const { json: { id } } = await post();
  inflate(id, 10_000);
  const start = Date.now();
  const follow = get(`${id}/events`);
  assert.equal((await get(id)).status, 200);
  const all = events((await follow).text);
  assert.equal(all.length, 10_000);
  assert.ok(all.every((e, i) => e.seq === i + 1));
  assert.ok(Date.now() - start < 20_000);
  assert.deepEqual(events((await get(`${id}/events?after=9990`)).text).map((e) => e.seq), Array.from({ length: 10 }, (_, i) => 9991 + i));
});

test('two follow, and one of them hardly reads: the other has all at once', async () => {
  plan(OK);
  const { json: { id } } = await post();
  inflate(id, 3000, 'y'.repeat(3000));
  const slow = await new Promise((done, failed) => {
    http.get(`${f.nginx.url}/v1/runs/${id}/events`, { agent: false, headers: { authorization: `Bearer ${f.nginx.key}` } }, (res) => {
      res.pause();
      done(res);
    }).on('error', failed);
  });
  const all = events((await get(`${id}/events`)).text);
  assert.equal(all.length, 3000);
  // what the slow one has not read is not in the worker
  const [pid] = f.nginx.children();
  const rss = Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
  assert.ok(rss < 60_000 * SLOW, `${rss} kB`);
  let text = '';
  slow.setEncoding('utf8').on('data', (part) => { text += part; });
  slow.resume();
  await new Promise((done) => slow.once('end', done));
  assert.deepEqual(events(text).map((e) => e.seq), all.map((e) => e.seq));
});

test('a turn with more calls than one write takes events: none of them is lost', async () => {
  plan(callsTurn(...Array.from({ length: 64 }, (_, i) => ({ id: `c${i}`, n: `no_tool_${i}`, a: '{}' }))), OK);
  const { json: { id, status } } = await post();
  assert.equal(status, 'completed');
  const all = events((await get(`${id}/events`)).text);
  assert.deepEqual(all.filter((e) => e.type === 'run.tool_result').map((e) => e.name), Array.from({ length: 64 }, (_, i) => `no_tool_${i}`));
  assert.deepEqual(all.map((e) => e.seq), all.map((e, i) => i + 1));
  assert.equal(all.at(-1).type, 'run.completed');
});

test('hundreds follow at once, more than one question asks for: each has all', async () => {
  plan([{ wait: 1000 }, { send: textTurn('for all') }]);
  const { json: { id } } = await post({ background: true });
  const texts = await Promise.all(Array.from({ length: 600 }, () => get(`${id}/events`)));
  for (const { text } of texts) assert.deepEqual(events(text).map((e) => e.type), ['run.started', 'run.text_delta', 'run.completed']);
});

test('streams that last do not grow the worker', async (t) => {
  const runs = 150;
  const turn = [...Array.from({ length: 150 }, () => [{ send: CH({ content: 'x' }) }, { wait: 60 }]).flat(), { send: textTurn('.') }];
  const g = await startFixture({
    runHost: 'toolgate_run_timeout 60s;',
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_redis unix:${redis.socket} prefix=g: ${PATIENT || 'timeout=2s'};`,
  });
  try {
    g.model.plan(...Array.from({ length: runs }, () => turn));
    // one by one: what many at once leave behind would hide what is taken later
    for (let i = 0; i < runs; i++) await g.nginx.request('/v1/runs', { method: 'POST', body: ask({ background: true }) });
    const [pid] = g.nginx.children();
    const rss = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
    const before = rss();
    await sleep(6000);
    const grown = rss() - before;
    t.diagnostic(`${grown} kB for ${runs} streams`);
    if (!process.env.TOOLGATE_ASAN) assert.ok(grown < 2 * runs, `${grown} kB`);
  } finally {
    await g.stop();
  }
});

test('an input of some megabytes is kept whole and reaches the model as it is', async () => {
  plan(OK);
  const content = 'é'.repeat(3_500_000);
  const { status, json } = await post({ input: [{ role: 'user', content }] });
  assert.equal(status, 200);
  assert.equal(json.status, 'completed');
  const { messages } = f.model.request().json;
  assert.equal(messages.at(-1).content, content);
  assert.equal(redis.cli('exists', `t:r:{default/}:${json.id}:input`), '0', 'and is not kept longer than it is needed');
});
