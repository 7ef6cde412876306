// Streamed answers of a model as vendors really send them, end to end: what the client
// sees, what runs, and what the model is told in its next turn. Cases C001 to C022.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import {
  CH, FIN, DONE, assertBroken, assertWhole, callsTurn, closing, order, startFixture, stepsOf, textTurn,
} from './fixture.mjs';
import { SLOW } from './nginx.mjs';

let f;
before(async () => {
  f = await startFixture({ api: 'toolgate_sse_ping 200ms;' });
});
after(() => f.stop());

const END = textTurn('Your order ', 'is shipped.');
const SAID = 'Your order is shipped.';

const one = (args = order('8812')) => [{ id: 'call_a', name: 'order_status', args }];

/** Turns that end in one or more calls of order_status; want = what the model is told. */
const CALLS = [
  ['C001 no index', CH({ tc: [{ id: 'call_a', n: 'order_status', a: order('8812') }] }) + FIN('tool_calls') + DONE,
    one()],
  ['C004 name in each fragment', CH({ tc: [{ i: 0, id: 'call_a', n: 'order_status', a: '{"order_' }] })
    + CH({ tc: [{ i: 0, id: 'call_a', n: 'order_status', a: 'number":"8812"}' }] }) + FIN('tool_calls') + DONE,
  one('{"order_number":"8812"}')],
  ['C005 empty id and name are absent', CH({ tc: [{ i: 0, id: 'call_a', n: 'order_status', a: '' }] })
    + CH({ tc: [{ i: 0, id: '', n: '', a: '{"order_number":' }] })
    + CH({ tc: [{ i: 0, id: '', n: '', a: '"8812"}' }] }) + FIN('tool_calls') + DONE,
  one()],
  ['C006 id and name come apart', CH({ tc: [{ i: 0, id: 'call_a' }] })
    + CH({ tc: [{ i: 0, n: 'order_status', a: order('8812') }] }) + FIN('tool_calls') + DONE,
  one()],
  ['C007 type and id repeat', ['{"order_', 'number":"88', '12"}']
    .map((a, k) => CH({ tc: [{ i: 0, id: 'call_a', ...(k === 0 ? { n: 'order_status' } : {}), type: 'function', a }] }))
    .join('') + FIN('tool_calls') + DONE,
  one('{"order_number":"8812"}')],
  ['C008 three calls in one chunk', CH({ tc: ['1', '2', '3'].map((n, i) => ({ i, id: `c${i}`, n: 'order_status', a: order(n) })) })
    + FIN('tool_calls') + DONE,
  ['1', '2', '3'].map((n, i) => ({ id: `c${i}`, name: 'order_status', args: order(n) }))],
  ['C012 CRLF framing', callsTurn({ id: 'call_a', n: 'order_status', a: order('8812') }).replaceAll('\n', '\r\n'),
    one()],
  ['C013 BOM', `\ufeff${callsTurn({ id: 'call_a', n: 'order_status', a: order('8812') })}`,
    one()],
  ['C015 empty data events', `data:\n\n${CH({ tc: [{ i: 0, id: 'call_a', n: 'order_status', a: order('8812') }] })}data: \n\n${FIN('tool_calls')}data\n\n${DONE}`,
    one()],
  ['C022 empty name first', CH({ tc: [{ i: 0, id: 'call_a', n: '', a: '' }] })
    + CH({ tc: [{ i: 0, id: 'call_a', n: 'order_status', a: order('8812') }] }) + FIN('tool_calls') + DONE,
  one()],
  ['comments and other fields between', `: hello\n\nevent: x\nid: 1\nretry: 5\n${callsTurn({ id: 'call_a', n: 'order_status', a: order('8812') })}`,
    one()],
];

for (const [name, turn, want] of CALLS) {
  for (const split of [undefined, 1]) {
    test(`${name}${split ? ', byte by byte' : ''}`, async () => {
      const client = await f.stream([[{ send: turn, split }], END]);
      assertWhole(client);
      assert.equal(client.content, SAID);
      assert.equal(f.model.journal.length, 2);
      const told = f.told();
      assert.deepEqual(told.map(({ id, name: n, args }) => ({ id, name: n, args })), want);
      for (const { args, result } of told) {
        assert.equal(result.ok, true);
        assert.deepEqual(result.items, [{ Order: JSON.parse(args).order_number, Status: 'shipped' }]);
      }
      assert.deepEqual(f.asked.sort(), want.map((c) => `/orders/${JSON.parse(c.args).order_number}`));
      assert.ok(!client.raw.includes('tool_calls"'), 'deltas of calls that run here are not forwarded');
      assert.deepEqual(stepsOf(client), want.map((c) => [c.name, 'ok']));
    });
  }

  test(`${name}, not streamed to the client`, async () => {
    const answer = await f.ask([turn, END]);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.choices[0].message.content, SAID);
    assert.equal(answer.json.choices[0].finish_reason, 'stop');
    assert.equal(f.told().length, want.length);
  });
}

test('C002 a null index is an absent one; empty arguments are refused', async () => {
  const turn = CH({ tc: [{ i: null, id: 'call_a', n: 'order_status', a: '{}' }] })
    + CH({ tc: [{ i: null, a: '' }] }) + FIN('tool_calls') + DONE;
  const client = await f.stream([turn, END]);
  assertWhole(client);
  assert.deepEqual(f.codes(), ['invalid_arguments']);
  assert.match(f.told()[0].result.error.guidance, /order_number/);
  assert.deepEqual(f.asked, []);
  assert.deepEqual(stepsOf(client), [['order_status', 'invalid_arguments']]);
});

test('C003 a new id under the same index is another call', async () => {
  const turn = CH({ tc: [{ i: 0, id: 'call_a', n: 'order_status', a: order('1') }] })
    + CH({ tc: [{ i: 0, id: 'call_b', n: 'order_status', a: order('2') }] }) + FIN('tool_calls') + DONE;
  assertWhole(await f.stream([turn, END]));
  assert.deepEqual(f.told().map((c) => [c.id, c.args, c.result.ok]),
    [['call_a', order('1'), true], ['call_b', order('2'), true]]);
});

test('C006 C022 a call for the caller has its id and name in the first fragment', async () => {
  const tools = [{ type: 'function', function: { name: 'get_cart', parameters: { type: 'object' } } }];
  for (const turn of [
    CH({ tc: [{ i: 0, id: 'call_a' }] }) + CH({ tc: [{ i: 0, n: 'get_cart', a: '{}' }] }),
    CH({ tc: [{ id: 'call_a', n: '', a: '' }] }) + CH({ tc: [{ n: 'get_cart', a: '{}' }] }),
  ]) {
    const client = await f.stream([turn + FIN('tool_calls') + DONE], { tools });
    assertWhole(client);
    const calls = client.events.flatMap((e) => e.json?.choices?.[0]?.delta?.tool_calls ?? []);
    assert.equal(closing(client).finish, 'tool_calls');
    assert.equal(calls.length, 1);
    assert.equal(calls[0].index, 0);
    assert.equal(calls[0].type, 'function');
    assert.match(calls[0].id, /^call_[0-9A-Za-z]{22}$/);
    assert.deepEqual(calls[0].function, { name: 'get_cart', arguments: '{}' });
  }
});

test('C009 an unknown tool in a round does not harm the others', async () => {
  const client = await f.stream([callsTurn({ id: 'c0', n: 'order_status', a: order('1') },
    { id: 'c1', n: 'no_such_tool', a: '{}' }, { id: 'c2', n: 'order_status', a: order('2') }), END]);
  assertWhole(client);
  assert.deepEqual(f.codes(), ['ok', 'tool_not_available', 'ok']);
  assert.ok(f.told()[1].result.error.guidance.length > 10);
  assert.deepEqual(f.told().map((c) => c.id), ['c0', 'c1', 'c2']);
});

test('C010 a cut at every byte of an event changes nothing', async () => {
  // the last event's own end is among the cuts, with CR LF
  const turn = Buffer.from(CH({ tc: [{ i: 0, id: 'call_a', n: 'order_status', a: order('طلب') }] })
    .replaceAll('\n', '\r\n'));
  const rest = FIN('tool_calls') + DONE;
  const cuts = Array.from({ length: turn.length - 1 }, (_, n) => n + 1);
  for (const cut of cuts) {
    f.clear();
    f.model.plan([{ send: turn.subarray(0, cut) }, { wait: 2 }, { send: turn.subarray(cut) },
      { send: rest }], [{ send: END }]);
    const client = await f.nginx.stream(f.body());
    assert.equal(client.content, SAID, `cut at ${cut}`);
    assert.equal(f.told()[0].args, order('طلب'), `cut at ${cut}`);
    assert.ok(!f.model.request(1).body.includes('\ufffd'));
  }
  assert.deepEqual(f.asked, [`/orders/${encodeURIComponent('طلب')}`]);
});

test('C010 text with characters cut byte by byte', async () => {
  const said = 'مرحبا 🚚 — ok';
  const client = await f.stream([[{ send: textTurn(said, said), split: 1 }]]);
  assertWhole(client);
  assert.equal(client.content, said + said);
});

test('C011 no blank after "data:"', async () => {
  const turn = 'data:{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
    + 'data:{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata:[DONE]\n\n';
  const client = await f.stream([turn]);
  assertWhole(client);
  assert.equal(client.content, 'Hi');
});

test('C012 C013 text with CRLF, CR, and a BOM cut in two', async () => {
  for (const turn of [textTurn('first').replaceAll('\n', '\r\n'), textTurn('first').replaceAll('\n', '\r'),
    `\ufeff${textTurn('first')}`]) {
    const client = await f.stream([[{ send: Buffer.from(turn).subarray(0, 1) }, { wait: 5 },
      { send: Buffer.from(turn).subarray(1) }]]);
    assertWhole(client);
    assert.equal(client.content, 'first');
  }
  const later = await f.stream([textTurn('a', '\ufeffb')]);
  assert.equal(later.content, 'a\ufeffb', 'a BOM later in the stream is text');
});

test('C014 the client sees a comment while the model only pings', async () => {
  const client = await f.stream([[...Array(8).fill([{ send: ': ping\n\n' }, { wait: 100 }]).flat(),
    { send: textTurn('ok') }]]);
  assertWhole(client);
  assert.equal(client.content, 'ok');
  assert.ok(client.comments.length >= 2, `${client.comments.length} comments`);
  assert.ok(client.comments[0].at - client.started < 400 * SLOW);
});

test('C016 one usage event, after the finish and before [DONE], only when asked for', async () => {
  const used = (p, c) => `data: {"id":"u1","choices":[],"usage":{"prompt_tokens":${p},"completion_tokens":${c},"total_tokens":${p + c},"prompt_tokens_details":{"cached_tokens":1}}}\n\n`;
  const first = callsTurn({ id: 'c', n: 'order_status', a: order('1') }).replace(DONE, used(10, 2) + DONE);
  const second = textTurn('ok').replace(DONE, used(20, 3) + DONE);
  const client = await f.stream([first, second], { stream_options: { include_usage: true } });
  assertWhole(client);
  const at = client.events.findIndex((e) => e.json?.usage);
  assert.equal(client.events.filter((e) => e.json?.usage).length, 1);
  assert.equal(at, client.events.length - 2);
  assert.deepEqual(client.events[at].json.choices, []);
  const { usage } = client.events[at].json;
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens,
    usage.prompt_tokens_details.cached_tokens], [30, 5, 35, 2]);
  assert.ok(client.events[at - 1].json.choices[0].finish_reason);

  for (const options of [{}, { stream_options: { include_usage: false } }, { stream_options: null }]) {
    const quiet = await f.stream([second], options);
    assertWhole(quiet);
    assert.ok(!quiet.events.some((e) => e.json?.usage));
  }
  const whole = await f.ask([first, second]);
  assert.equal(whole.json.usage.total_tokens, 35);
  assert.ok(f.model.journal.every((e) => e.json.stream === true
    && e.json.stream_options.include_usage === true));
});

test('C017 tool_calls without a call on each round ends', async () => {
  const turn = CH({ content: '' }) + FIN('tool_calls') + DONE;
  const client = await f.stream([turn, turn, turn, turn, turn, turn]);
  assertWhole(client);
  assert.ok(f.model.journal.length <= 4);
  assert.equal(closing(client).finish, 'stop');
});

test('C018 what comes after the finish is not run', async () => {
  const turn = CH({ content: 'Done.' }) + FIN('stop')
    + CH({ tc: [{ i: 0, id: 'call_z', n: 'add_note', a: '{"body":"x"}' }] }) + FIN('tool_calls') + DONE;
  const client = await f.stream([turn, turn, turn, turn, turn]);
  assertWhole(client);
  assert.equal(client.content, 'Done.');
  assert.equal(f.model.journal.length, 1);
  assert.deepEqual(f.asked, []);
});

test('C019 a cut call never runs', async () => {
  for (const a of ['{"body":"refund appro', '{"body":"refund"}']) {
    for (const tail of [[{ end: true }], [{ cut: true }], [{ reset: true }], [{ send: DONE }]]) {
      const client = await f.stream([[{ send: CH({ tc: [{ i: 0, id: 'call_a', n: 'add_note', a }] }) }, ...tail], END]);
      assert.equal(client.status, 502);
      assert.equal(JSON.parse(client.raw).error.code, 'model_stream_broken');
      assert.deepEqual(f.asked, []);
      assert.equal(f.model.journal.length, 1);
    }
  }
  for (const reason of ['length', 'content_filter']) {
    const answer = await f.ask([CH({ content: 'I' }) + CH({ tc: [{ i: 0, id: 'call_a', n: 'add_note', a: '{"body":"refund"}' }] })
      + FIN(reason) + DONE, END]);
    assert.equal(answer.status, 200);
    assert.equal(closing(answer).finish, reason);
    assert.deepEqual(f.asked, []);
  }
  const cut = await f.stream([CH({ tc: [{ i: 0, id: 'call_a', n: 'add_note', a: '{"body":"refund appro' }] })
    + FIN('tool_calls') + DONE, END]);
  assertWhole(cut);
  assert.deepEqual(f.codes(), ['invalid_arguments']);
  assert.equal(f.told()[0].args, '{}', 'what did not parse is not sent back as it is');
  assert.deepEqual(f.asked, []);
});

test('C020 an error inside of the stream fails the turn at once', async () => {
  const bad = 'data: {"choices":[],"error":{"message":"capacity of cluster-7","code":502}}\n\n';
  const client = await f.stream([[{ send: CH({ content: 'Let me' }) + bad + DONE }]]);
  assertBroken(client, 'model_stream_broken');
  assert.equal(client.content, 'Let me');
  assert.ok(!client.raw.includes('cluster-7'));

  const whole = await f.ask([CH({ content: 'Let me' }) + bad + DONE]);
  assert.equal(whole.status, 502);
  assert.equal(whole.json.error.code, 'model_stream_broken');
  assert.ok(!whole.text.includes('cluster-7'));

  // a model that says its error and then hangs
  f.clear();
  f.model.plan([{ send: CH({ content: 'Let me' }) + bad }, { hang: true }]);
  const start = performance.now();
  assertBroken(await f.nginx.stream(f.body()), 'model_stream_broken');
  assert.ok(performance.now() - start < 1000 * SLOW, 'it does not wait for the model to leave');
  await f.model.until(() => f.model.request().closedAt !== undefined);
});

test('C021 a reset in the middle of the stream', async () => {
  const client = await f.stream([[{ send: CH({ content: 'one ' }) }, { send: CH({ content: 'two' }) },
    { wait: 30 }, { reset: true }]]);
  assertBroken(client, 'model_stream_broken');
  assert.equal(client.content, 'one two');
  for (const end of [{ end: true }, { cut: true }]) {
    const cut = await f.stream([[{ send: CH({ content: 'one ' }) }, { wait: 10 }, end]]);
    assertBroken(cut, 'model_stream_broken');
    assert.equal(cut.content, 'one ');
  }
});

test('C001 a finish without [DONE] is an end', async () => {
  const client = await f.stream([CH({ content: 'Hi' }) + FIN('stop')]);
  assertWhole(client);
  assert.equal(client.content, 'Hi');
});

test('a model that stays after [DONE] does not hold the answer back', async () => {
  f.clear();
  f.model.plan([{ send: callsTurn({ id: 'c', n: 'order_status', a: order('1') }) }, { hang: true }],
    [{ send: textTurn('Hi') }, { hang: true }]);
  const start = performance.now();
  const client = await f.nginx.stream(f.body());
  assertWhole(client);
  assert.equal(client.content, 'Hi');
  assert.ok(performance.now() - start < 1500 * SLOW, `${performance.now() - start} ms`);
});

test('both forms of reasoning, refusal, and an unknown finish reason', async () => {
  const client = await f.stream([CH({ reasoning_content: 'hm ' }) + CH({ reasoning: 'so' })
    + CH({ refusal: 'I cannot.' }) + FIN('stop') + DONE]);
  assertWhole(client);
  const deltas = client.events.map((e) => e.json?.choices?.[0]?.delta ?? {});
  assert.equal(deltas.map((d) => d.reasoning_content ?? '').join(''), 'hm so');
  assert.equal(deltas.map((d) => d.refusal ?? '').join(''), 'I cannot.');
  const odd = await f.ask([CH({ content: 'Hi' }) + FIN('eos') + DONE]);
  assert.equal(closing(odd).finish, 'stop');
});

test('texts of two rounds are two paragraphs', async () => {
  const client = await f.stream([CH({ content: 'Let me look.' }) + callsTurn({ id: 'c', n: 'order_status', a: order('1') }),
    textTurn('It is shipped.')]);
  assertWhole(client);
  assert.equal(client.content, 'Let me look.\n\nIt is shipped.');
  const { messages } = f.model.request(1).json;
  assert.equal(messages.at(-2).content, 'Let me look.');
});

test('events reach the client one by one', async () => {
  f.clear();
  f.model.plan([{ send: CH({ content: 'a' }) }, { until: 'go' }, { send: textTurn('b') }]);
  const client = await f.nginx.open(f.body());
  const role = await client.next();
  assert.equal(role.json.choices[0].delta.role, 'assistant');
  assert.equal((await client.next()).json.choices[0].delta.content, 'a');
  await assert.rejects(client.next(100), /no event/);
  f.model.signal('go');
  assert.equal((await client.next()).json.choices[0].delta.content, 'b');
  await client.end();
  assertWhole(client);
});
