// Answers of a model that are none, and what they must not do to a worker. Each case
// failed once.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { assertError, assertWhole, callsTurn, startFixture, textTurn } from './fixture.mjs';

let f;
before(async () => { f = await startFixture(); });
after(() => f?.stop());

for (const model of ['m', 'renamed', 'a']) {
  for (const stream of [false, true]) {
    test(`${model}, stream ${stream}: a 200 without a content type is no answer, and the worker lives`, async () => {
      const worker = f.nginx.worker();
      for (const raw of ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
        'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 'HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno']) {
        assertError(await f.ask([[{ raw }]], { model, stream }), 502, 'model_unavailable');
      }
      assert.equal(f.nginx.worker(), worker);
    });
  }
}

test('a name that a model made up stays out of the log', async () => {
  const name = 'x\n2026/01/01 00:00:00 [alert] 1#1: forged';
  const client = await f.stream([callsTurn({ id: 'c1', n: name, a: '{}' }), textTurn('done')]);
  assertWhole(client);
  assert.deepEqual(f.codes(), ['tool_not_available']);
  assert.ok(!f.nginx.log().includes('forged'));
});
