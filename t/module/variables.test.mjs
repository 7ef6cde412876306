// What the access log can say of a run: the $toolgate_… variables.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { callsTurn, order, startFixture, textTurn } from './fixture.mjs';

let f;

before(async () => {
  f = await startFixture({
    http: `toolgate_netguard_allow 127.0.0.1/32 insecure_http;
      log_format toolgate '$uri|$status|$toolgate_run|$toolgate_project|$toolgate_account|$toolgate_agent|$toolgate_model|$toolgate_status|$toolgate_rounds|$toolgate_tools';`,
    server: 'access_log @DIR@/logs/toolgate.log toolgate;',
  });
});
after(() => f.stop());

/** The last line of the log, in fields; it is written when the request has ended. */
async function logged(lines) {
  const file = path.join(f.nginx.dir, 'logs/toolgate.log');
  for (let i = 0; i < 100; i++) {
    const all = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n').filter((l) => l.startsWith('/v1/chat')) : [];
    if (all.length >= lines) return all[lines - 1].split('|');
    await sleep(50);
  }
  throw new Error(`the log has no line ${lines}`);
}

test('a run with a call', async () => {
  const answer = await f.ask([callsTurn({ id: 'c1', n: 'order_status', a: order('8812') }), textTurn('ok')], { account_id: 'acme' });
  assert.equal(answer.status, 200, answer.text);
  const [uri, status, run, project, account, agent, , state, rounds, tools] = await logged(1);
  assert.deepEqual([uri, status, project, account, agent, state, rounds, tools],
    ['/v1/chat/completions', '200', 'default', 'acme', 'a', 'completed', '1', '1']);
  assert.match(run, /^run_[A-Za-z0-9]{22}$/);
});

test('a run that failed', async () => {
  const answer = await f.ask([[{ status: 500 }, { close: true }]]);
  assert.equal(answer.status, 502, answer.text);
  assert.equal((await logged(2))[7], 'failed');
});

test('a request that was refused before a run began has none', async () => {
  const answer = await f.ask([], { model: 'nobody' });
  assert.equal(answer.status, 404, answer.text);
  assert.deepEqual((await logged(3)).slice(1), ['404', '-', '-', '-', '-', '-', '-', '-', '-']);
});
