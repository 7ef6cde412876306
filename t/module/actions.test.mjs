// The KsADK actions: runs under other names and shapes. Their envelope, what is wrong
// with requests, events that can be read again from any number on, cancellation,
// resumption, receipts of what was done to the world.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { CH, assertError, callsTurn, order, startFixture, textTurn } from './fixture.mjs';
import { PATIENT } from './nginx.mjs';
import { startRedis } from '../lib/redis.mjs';

const BASE = '/agentengine/api/v1';
const RUN = /^run_[0-9A-Za-z]{22}$/;

let f;
let redis;
let n = 0;

before(async () => {
  redis = await startRedis();
  f = await startFixture({
    workers: 2, runHost: 'toolgate_run_timeout 20s;',
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http; toolgate_redis unix:${redis.socket} prefix=t: ${PATIENT};`,
    api: 'toolgate_sse_ping 200ms;',
  });
});

after(async () => {
  await f?.stop();
  await redis?.stop();
});

const plan = (...turns) => {
  f.clear();
  f.model.plan(...turns.map((t) => (typeof t === 'string' ? [{ send: t }] : t)));
};
const fresh = (name) => `${name}-${process.pid}-${++n}`;
const post = (action, body, options = {}) => f.nginx.request(`${BASE}/${action}`, { method: 'POST', body, ...options });
const hello = (more = {}) => ({ AgentId: 'a', Messages: [{ role: 'user', content: 'hello' }], ...more });
const runAgent = (more, options) => post('RunAgent', hello(more), options);
const subscribe = (query, options = {}) => f.nginx.request(
  `${BASE}/SubscribeRunEvents?${new URLSearchParams(query)}`, { method: 'GET', ...options });
const note = (text) => JSON.stringify({ body: text });

/** What an action answers inside of its envelope. */
function data(answer, action) {
  assert.equal(answer.status, 200, answer.text);
  const { Data, ...rest } = answer.json;
  assert.deepEqual(rest, {
    Code: 0, Message: 'Success', RequestId: answer.headers['x-request-id'], Action: action,
  });
  return Data;
}

const blocks = (text) => text.split('\n\n').filter(Boolean);
const frames = (text) => blocks(text).map((block) => /^data: (\{.*)$/m.exec(block)?.[1])
  .filter(Boolean).map((json) => JSON.parse(json));

/** A run in the background, to its end. */
async function started(more, turns) {
  plan(...turns);
  const begun = data(await runAgent({ Background: true, ...more }), 'RunAgent');
  const text = (await subscribe({ SessionId: begun.SessionId, InvocationId: begun.InvocationId })).text;
  return { ...begun, text, frames: frames(text) };
}

test('RunAgent: an answer of chat or of Responses in the envelope', async () => {
  plan(callsTurn({ id: 'c', n: 'order_status', a: order('8812') }), textTurn('It is ', 'on its way.'));
  const chat = data(await runAgent({ ApiFormat: 'chat_completions', SessionId: fresh('s') }), 'RunAgent');
  assert.equal(chat.object, 'chat.completion');
  assert.equal(chat.choices[0].message.content, 'It is on its way.');
  assert.equal(f.tool.count('/orders/8812'), 1);

  for (const ApiFormat of ['responses', undefined]) {
    plan(textTurn('Hi.'));
    const response = data(await runAgent({ ApiFormat }), 'RunAgent');
    assert.equal(response.object, 'response');
    assert.equal(response.status, 'completed');
    assert.deepEqual(response.output.map((item) => item.content[0].text), ['Hi.']);
  }
});

test('RunAgent: what it says in the form of Responses', async () => {
  for (const ResponsesInput of ['hello', [{ role: 'user', content: [{ type: 'input_text', text: 'hello' }] }]]) {
    plan(textTurn('Hi.'));
    data(await post('RunAgent', { AgentId: 'a', Messages: [], ResponsesInput }), 'RunAgent');
    const [message] = f.model.request().json.messages.slice(-1);
    assert.equal(message.role, 'user');
    assert.match(JSON.stringify(message.content), /hello/);
  }
});

test('RunAgent, streamed: chunks, or events of Responses', async () => {
  plan(textTurn('one ', 'two'));
  const chat = await runAgent({ Stream: true, ApiFormat: 'chat_completions' });
  assert.match(chat.headers['content-type'], /^text\/event-stream/);
  assert.equal(frames(chat.text).map((c) => c.choices[0].delta.content ?? '').join(''), 'one two');
  assert.match(chat.text, /data: \[DONE\]\n\n$/);

  plan(textTurn('one ', 'two'));
  const events = frames((await runAgent({ Stream: true })).text);
  assert.equal(events.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join(''), 'one two');
  assert.equal(events.at(-1).type, 'response.completed');
});

test('RunAgent in the background: at once, and it can be followed at once', async () => {
  plan([{ wait: 300 }, { send: textTurn('later') }]);
  const InvocationId = fresh('inv');
  const begun = data(await runAgent({ Background: true, Stream: true, InvocationId }), 'RunAgent');
  assert.match(begun.RunId, RUN);
  assert.equal(begun.InvocationId, InvocationId);
  assert.equal(begun.Status, 'running');
  assert.equal(begun.Background, true);
  assert.equal(begun.SubscribeUrl, `${BASE}/SubscribeRunEvents?SessionId=${begun.SessionId}&InvocationId=${InvocationId}`);
  const answer = await f.nginx.request(begun.SubscribeUrl, { method: 'GET' });
  assert.equal(answer.status, 200, answer.text);
  const seen = frames(answer.text);
  assert.deepEqual(seen.map((e) => e.EventType),
    ['run_status', 'assistant_stream_snapshot', 'assistant_message', 'run_status']);
  assert.match(answer.text, /: heartbeat\n\n/);
  assert.match(answer.text, /data: \[DONE\]\n\n$/);
  for (const e of seen) {
    assert.equal(e.InvocationId, InvocationId);
    assert.equal(e.SessionId, begun.SessionId);
    assert.ok(Math.abs(e.Timestamp - Date.now()) < 60_000);
  }
  assert.equal(seen[2].Content, 'later');
  assert.equal(seen[2].Author, 'a');
  assert.equal(seen[3].Metadata.status, 'completed');
});

test('the same invocation is one run; with another request it is a conflict', async () => {
  plan(textTurn('once'));
  const InvocationId = fresh('inv');
  const first = data(await runAgent({ Background: true, InvocationId }), 'RunAgent');
  const again = data(await runAgent({ Background: true, InvocationId }), 'RunAgent');
  assert.equal(again.RunId, first.RunId);
  assert.equal(again.SessionId, first.SessionId, 'which nobody has named');
  await subscribe({ SessionId: first.SessionId, InvocationId });
  assert.equal(data(await runAgent({ Background: true, InvocationId }), 'RunAgent').Status, 'completed');
  assert.equal(f.model.journal.length, 1);
  assertError(await runAgent({ Background: true, InvocationId, UserId: 'other' }), 409, 'invocation_conflict');
});

test('a session is made on first use, and has what was said', async () => {
  const SessionId = fresh('chat');
  for (const [said, answered] of [['My name is Sara.', 'Hello Sara.'], ['Who am I?', 'Sara.']]) {
    plan(textTurn(answered));
    data(await runAgent({ SessionId, Messages: [{ role: 'user', content: said }] }), 'RunAgent');
  }
  assert.deepEqual(f.model.request().json.messages.filter((m) => m.role !== 'system').map((m) => m.content),
    ['My name is Sara.', 'Hello Sara.', 'Who am I?']);
});

test('events from any number on: none again, none missing', async () => {
  const run = await started({}, [callsTurn({ id: 'c', n: 'add_note', a: note('x') }), textTurn('Noted', ' it.')]);
  assert.deepEqual(run.frames.map((e) => e.EventType).filter((type) => type !== 'assistant_stream_snapshot'),
    ['run_status', 'tool_call', 'tool_result', 'assistant_message', 'run_status']);
  const seqs = run.frames.map((e) => e.SeqId);
  assert.deepEqual(seqs, [...new Set(seqs)].sort((a, b) => a - b));
  const call = run.frames.find((e) => e.EventType === 'tool_call');
  assert.equal(call.Metadata.tool_name, 'add_note');
  assert.deepEqual(call.Metadata.tool_args, { body: 'x' });
  const result = run.frames.find((e) => e.EventType === 'tool_result');
  assert.equal(result.Metadata.tool_output.ok, true);
  assert.equal(result.Metadata.tool_receipt.IdempotencyKey, call.Metadata.tool_call_id);
  for (let after_ = 0; after_ <= seqs.at(-1); after_++) {
    const answer = await subscribe({ SessionId: run.SessionId, InvocationId: run.RunId, AfterSeqId: after_ });
    assert.deepEqual(frames(answer.text), run.frames.filter((e) => e.SeqId > after_));
    assert.match(answer.text, /data: \[DONE\]\n\n$/);
  }
});

test('SubscribeRunEvents: what is wrong', async () => {
  const run = await started({}, [textTurn('x')]);
  const { SessionId, InvocationId } = run;
  assertError(await subscribe({ InvocationId }), 400, 'missing_parameter', 'SessionId');
  assertError(await subscribe({ SessionId }), 400, 'missing_parameter', 'InvocationId');
  assertError(await subscribe({ SessionId, InvocationId: fresh('none') }), 404, 'not_found');
  assertError(await subscribe({ SessionId, InvocationId: 'run_0000000000000000000000' }), 404, 'not_found');
  assertError(await subscribe({ SessionId: fresh('other'), InvocationId }), 409, 'session_mismatch');
  assertError(await subscribe({ SessionId, InvocationId, AgentId: 'plain' }), 404, 'not_found');
  for (const AfterSeqId of ['-1', 'x', '999999']) {
    assertError(await subscribe({ SessionId, InvocationId, AfterSeqId }), 400, 'invalid_value', 'AfterSeqId');
  }
  assertError(await subscribe({ SessionId, InvocationId, AccountId: 'acme' }), 404, 'not_found');
  assertError(await subscribe({ SessionId, InvocationId }, { key: null }), 401, 'missing_api_key');
  assertError(await post('SubscribeRunEvents', {}), 405, 'method_not_allowed');
  assertError(await post('DeleteEverything', {}), 404, 'unknown_url');
});

test('CancelRun: a run under way, one that has ended, and none', async () => {
  plan([{ send: CH({ content: 'one' }) }, { hang: true }]);
  const run = data(await runAgent({ Background: true }), 'RunAgent');
  await f.model.until(() => f.model.journal.length === 1);
  const { InvocationId, SessionId } = run;
  assertError(await post('CancelRun', { InvocationId, SessionId: fresh('other') }), 409, 'session_mismatch');
  assertError(await post('CancelRun', { InvocationId, UserId: 'u' }), 400, 'missing_parameter', 'AgentId');
  assertError(await post('CancelRun', { InvocationId, AgentId: 'plain' }), 404, 'not_found');
  assertError(await post('CancelRun', { SessionId }), 400, 'missing_parameter', 'InvocationId');
  assertError(await post('CancelRun', { InvocationId: 7 }), 400, 'invalid_type', 'InvocationId');
  assertError(await post('CancelRun', []), 400, 'invalid_type');

  const following = subscribe({ SessionId, InvocationId });
  const cancelled = data(await post('CancelRun', { InvocationId, SessionId, AgentId: 'a', UserId: 'u' }), 'CancelRun');
  assert.deepEqual(cancelled, { Cancelled: true, Found: true, Status: 'cancelling', RunnerCancelStatus: 'accepted' });
  const last = frames((await following).text).at(-1);
  assert.deepEqual([last.EventType, last.Metadata.status], ['run_status', 'cancelled']);
  await f.model.until(() => f.model.request().closedAt !== undefined, 3000, 'the close');

  assert.deepEqual(data(await post('CancelRun', { InvocationId }), 'CancelRun'),
    { Cancelled: true, Found: true, Status: 'cancelling', RunnerCancelStatus: 'cancelled' });
  assert.deepEqual(data(await post('CancelRun', { InvocationId: fresh('none') }), 'CancelRun'),
    { Cancelled: false, Found: false, Status: 'not_found', RunnerCancelStatus: 'not_found' });
  const done = await started({}, [textTurn('x')]);
  assert.deepEqual(data(await post('CancelRun', { InvocationId: done.RunId }), 'CancelRun'),
    { Cancelled: false, Found: true, Status: 'not_found', RunnerCancelStatus: 'not_found' });
});

test('ResumeRun: nothing to do, nothing to take over, not from there', async () => {
  const done = await started({}, [textTurn('x')]);
  const body = { AgentId: 'a', SessionId: done.SessionId, RunId: done.RunId, CheckpointId: `${done.RunId}:0` };
  const noop = data(await post('ResumeRun', { ...body, ResumeAttemptId: 'again-1' }), 'ResumeRun');
  assert.equal(noop.status, 'noop');
  assert.equal(noop.Reason, 'completed');
  assert.equal(noop.ResumeAttemptId, 'again-1');
  assert.equal(noop.RunId, done.RunId);
  for (const name of ['AgentId', 'SessionId', 'RunId', 'CheckpointId']) {
    assertError(await post('ResumeRun', { ...body, [name]: undefined }), 400, 'missing_parameter', name);
  }
  assertError(await post('ResumeRun', { ...body, RunId: fresh('none') }), 404, 'not_found');
  assertError(await post('ResumeRun', { ...body, SessionId: fresh('s') }), 409, 'session_mismatch');

  plan([{ send: CH({ content: 'one' }) }, { hang: true }]);
  const live = data(await runAgent({ Background: true }), 'RunAgent');
  await f.model.until(() => f.model.journal.length === 1);
  const of = { AgentId: 'a', SessionId: live.SessionId, RunId: live.RunId, CheckpointId: `${live.RunId}:0` };
  assertError(await post('ResumeRun', of), 409, 'resume_already_running');
  // as when its worker has gone; what it has said so far was written before
  await sleep(200);
  const [key] = redis.cli('keys', `*${live.RunId}`).split('\n');
  redis.cli('hset', key, 'lease', '0');
  assertError(await post('ResumeRun', { ...of, CheckpointId: `${live.RunId}:7` }), 409, 'checkpoint_not_resumable');
  data(await post('CancelRun', { InvocationId: live.RunId }), 'CancelRun');
});

test('ListToolReceipts: what was done, newest first, page by page', async () => {
  const SessionId = fresh('receipts');
  const first = await started({ SessionId }, [
    callsTurn({ id: 'c', n: 'add_note', a: note('1') }, { id: 'd', n: 'order_status', a: order('8812') }),
    callsTurn({ id: 'c', n: 'do_it', a: JSON.stringify({ kind: 'status', n: '500' }) }), textTurn('x')]);
  const second = await started({ SessionId }, [callsTurn({ id: 'c', n: 'add_note', a: note('2') }), textTurn('x')]);
  const list = async (more = {}) => data(await post('ListToolReceipts', { AgentId: 'a', SessionId, ...more }), 'ListToolReceipts');

  const all = await list();
  assert.deepEqual([all.Total, all.Offset, all.Limit], [3, 0, 200]);
  assert.deepEqual(all.ToolReceipts.map((r) => [r.RunId, r.ToolName, r.Status, r.CheckpointId, r.Metadata.error_code]), [
    [second.RunId, 'add_note', 'completed', `${second.RunId}:0`, null],
    [first.RunId, 'do_it', 'failed', `${first.RunId}:1`, 'upstream_failed'],
    [first.RunId, 'add_note', 'completed', `${first.RunId}:0`, null],
  ], 'reads have none');
  for (const r of all.ToolReceipts) {
    assert.equal(r.IdempotencyKey, r.ToolCallId);
    assert.equal(r.SessionId, SessionId);
    assert.match(r.Metadata.arguments_sha256, /^[0-9a-f]{64}$/);
    assert.ok(Math.abs(r.Timestamp - Date.now()) < 60_000);
  }
  const sent = f.tool.journal.filter((e) => e.path === '/notes').map((e) => e.headers['webhook-id']);
  assert.ok(sent.includes(all.ToolReceipts[0].IdempotencyKey), 'the id under which it was sent');

  assert.deepEqual((await list({ Offset: 1, Limit: 1 })).ToolReceipts, [all.ToolReceipts[1]]);
  assert.deepEqual((await list({ RunId: first.RunId })).ToolReceipts, all.ToolReceipts.slice(1));
  assert.deepEqual((await list({ RunId: first.RunId, CheckpointId: `${first.RunId}:1` })).ToolReceipts, [all.ToolReceipts[1]]);
  assert.equal((await list({ AgentId: 'plain' })).Total, 0);
  assert.equal((await list({ SessionId: fresh('none') })).Total, 0);
  assertError(await post('ListToolReceipts', { AgentId: 'a', SessionId, Limit: 501 }), 400, 'invalid_value', 'Limit');
  assertError(await post('ListToolReceipts', { AgentId: 'a', SessionId, Offset: '1' }), 400, 'invalid_value', 'Offset');
  assertError(await post('ListToolReceipts', { AgentId: 'a', SessionId, RunId: fresh('none') }), 404, 'not_found');
  assertError(await post('ListToolReceipts', { AgentId: 'a', SessionId: fresh('s'), RunId: first.RunId }), 409, 'session_mismatch');
  assertError(await post('ListToolReceipts', { AgentId: 'a', SessionId, x: 'y'.repeat(70_000) }), 413, 'request_too_large');
});

test('a run that waits for a person: interrupted, and followed further from there', async () => {
  plan(callsTurn({ id: 'c', n: 'add_note', a: note('x') }), textTurn('Noted.'));
  const { SessionId, RunId, InvocationId } = data(await runAgent({
    Background: true, Metadata: { agentengine: { tool_approval_mode: 'strict' } },
  }), 'RunAgent');
  const first = await subscribe({ SessionId, InvocationId });
  assert.match(first.text, /data: \[DONE\]\n\n$/);
  const last = frames(first.text).at(-1);
  assert.deepEqual([last.EventType, last.Content, last.Metadata.detail], ['run_status', 'interrupted', 'requires_action']);
  const asked = frames(first.text).find((e) => e.EventType === 'approval_request');
  assert.match(JSON.stringify(asked.Metadata.interrupt_info), /"add_note"/);
  const body = { AgentId: 'a', SessionId, RunId, CheckpointId: `${RunId}:0` };
  assertError(await post('ResumeRun', body), 409, 'checkpoint_not_resumable');
  assert.equal(f.tool.count('/notes'), 0);

  const { json: { required_action: { approvals: [approval] } } } = await f.nginx.request(`/v1/runs/${RunId}`);
  const decided = await f.nginx.request(`/v1/approvals/${approval.id}`, { method: 'POST', body: { approved: true } });
  assert.equal(decided.status, 200, decided.text);
  const rest = frames((await subscribe({ SessionId, InvocationId, AfterSeqId: last.SeqId })).text);
  assert.ok(rest.every((e) => e.SeqId > last.SeqId));
  assert.deepEqual([rest.at(-1).Metadata.status, rest.at(-2).Content], ['completed', 'Noted.']);
  assert.equal(rest.find((e) => e.EventType === 'tool_result').Metadata.tool_output.ok, true);
  assert.equal(f.tool.count('/notes'), 1);
});

test('RunAgent: what is wrong', async () => {
  const cases = [
    [[], 'invalid_type'], [{ Messages: [] }, 'missing_parameter', 'AgentId'], [hello({ AgentId: 7 }), 'invalid_type', 'AgentId'],
    [{ AgentId: 'a' }, 'missing_parameter', 'Messages'], [hello({ Messages: 'x' }), 'invalid_type', 'Messages'],
    [hello({ ResponsesInput: 'x' }), 'invalid_value', 'ResponsesInput'], [{ AgentId: 'a', ResponsesInput: {} }, 'invalid_type', 'ResponsesInput'],
    [hello({ ApiFormat: 'grpc' }), 'invalid_value', 'ApiFormat'], [hello({ Stream: 1 }), 'invalid_type', 'Stream'],
    [hello({ SessionId: 'a b' }), 'invalid_value', 'SessionId'], [hello({ InvocationId: '' }), 'invalid_value', 'InvocationId'],
    [hello({ PreviousResponseId: 'resp_1' }), 'invalid_value', 'PreviousResponseId'],
    [hello({ Messages: [{ content: 'x' }] }), 'missing_parameter', 'messages[0].role'],
  ];
  for (const [body, code, param] of cases) assertError(await post('RunAgent', body), 400, code, param);
  assertError(await runAgent({ AgentId: 'nobody' }), 404, 'model_not_found');
  assertError(await runAgent({ AgentId: 'm' }), 400, 'invalid_value', 'session_id');

  plan([{ status: 500 }, { send: 'oops' }]);
  const failed = await runAgent({ ApiFormat: 'chat_completions' });
  assertError(failed, 502, 'model_unavailable');
  assert.equal(failed.json.Code, undefined, 'an error has no envelope');
});

test('Redis away: none of them waits or pretends', async () => {
  process.kill(redis.child.pid, 'SIGSTOP');
  try {
    await post('CancelRun', { InvocationId: 'x' });
    for (const answer of [await post('CancelRun', { InvocationId: 'x' }),
      await post('ListToolReceipts', { AgentId: 'a', SessionId: 's' }),
      await subscribe({ SessionId: 's', InvocationId: 'x' }), await runAgent({ Background: true })]) {
      assertError(answer, 503, 'store_unavailable');
    }
  } finally {
    process.kill(redis.child.pid, 'SIGCONT');
  }
});
