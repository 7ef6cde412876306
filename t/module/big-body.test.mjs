// Bodies around the size from which their memory is mapped: whatever the size and the
// framing, the model gets every byte, in the first turn and in those that follow, and
// what a relay gave back early is not missed by anybody.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { KEY } from './nginx.mjs';
import { callsTurn, order, startFixture, textTurn } from './fixture.mjs';

const MAPPED = 256 * 1024;      // of _bytes.c
const PIECE = 50_000;

let f;
before(async () => { f = await startFixture(); });
after(() => f?.stop());

/** Posts a body, whole with its length or in pieces of unknown number. */
function post(body, chunked) {
  return new Promise((resolve, reject) => {
    const text = Buffer.from(body);
    const request = http.request({
      host: '127.0.0.1', port: f.nginx.port, path: '/v1/chat/completions', method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json',
        ...(chunked ? {} : { 'content-length': text.length }) },
    }, (response) => {
      const got = [];
      response.on('data', (d) => got.push(d));
      response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(got).toString() }));
    });
    request.on('error', reject);
    for (let at = 0; at < text.length; at += PIECE) request.write(text.subarray(at, at + PIECE));
    request.end();
  });
}

const question = (model, bytes) => {
  const body = { model, stream: true, messages: [{ role: 'user', content: '' }] };
  body.messages[0].content = 'a "b"\n'.repeat(bytes).slice(0, Math.max(1, bytes - JSON.stringify(body).length));
  return body;
};

for (const bytes of [1000, MAPPED - 600, MAPPED, MAPPED + 600, 3 << 20]) {
  for (const chunked of [false, true]) {
    test(`relay: about ${bytes} bytes, ${chunked ? 'chunked' : 'with their length'}`, async () => {
      f.clear();
      const body = question('m', bytes);
      f.model.plan([{ send: textTurn('one', 'two') }]);
      const answer = await post(JSON.stringify(body), chunked);
      assert.equal(answer.status, 200, answer.text);
      assert.match(answer.text, /"two"[^]*data: \[DONE\]\n\n$/);
      assert.deepEqual(f.model.request().json, body);
    });
  }
}

test('agent: a big body is still there in the turn after a tool call', async () => {
  f.clear();
  const body = question('plain', 1 << 20);
  f.model.plan([{ send: callsTurn({ id: 'c1', n: 'order_status', a: order('7') }) }, { send: textTurn('done') }]);
  const answer = await post(JSON.stringify(body), true);
  assert.equal(answer.status, 200, answer.text);
  for (const turn of [0, 1]) {
    const asked = f.model.request(turn).json.messages.filter((m) => m.role === 'user');
    assert.equal(asked[0].content, body.messages[0].content);
  }
});

test('relay: the second place of a model gets the body of the first', async () => {
  f.clear();
  const body = question('fallback', 1 << 20);
  f.model.plan([{ send: textTurn('ok') }]);
  const answer = await post(JSON.stringify(body), false);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(f.model.request().json.messages[0].content, body.messages[0].content);
});

test('nothing was logged as an alert', () => {
  assert.deepEqual(f.nginx.log().match(/\[alert\].*/g) ?? [], []);
});
