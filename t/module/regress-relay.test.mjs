// A relay beside pings, and runs where nginx starts them by itself. Each case failed once.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { assertWhole, startFixture, textTurn } from './fixture.mjs';

let f;
before(async () => {
  f = await startFixture({
    api: 'toolgate_sse_ping 100ms;',
    server: 'location = /copied/read { mirror /v1/chat/completions; proxy_pass http://$http_x_to/; }',
  });
});
after(() => f?.stop());

test('no ping gets into an answer that is no stream', async () => {
  f.clear();
  const whole = JSON.stringify({ id: 'x', object: 'chat.completion', choices: [] });
  f.model.plan([
    { raw: `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${whole.length}\r\n\r\n${whole.slice(0, 20)}` },
    { wait: 600 }, { send: whole.slice(20) },
  ]);
  const answer = await f.nginx.chat(f.body({ model: 'm', stream: true }));
  assert.equal(answer.status, 200);
  assert.equal(answer.text, whole);
});

test('a run does not start in a subrequest', async () => {
  f.clear();
  f.model.plan([{ send: textTurn('ok') }]);
  const answer = await f.nginx.request('/copied/read', {
    body: f.body({ stream: true }), headers: { 'x-to': `127.0.0.1:${f.tool.port}` },
  });
  assert.equal(answer.status, 200);
  assert.equal(f.model.journal.length, 0);
  assertWhole(await f.stream([textTurn('ok')]));
});
