// A long mixed load on one toolgate: streamed and whole answers, tool rounds, callers
// that leave in the middle, models that break off. Nothing may be answered wrongly, and
// memory and descriptors of the workers must stop growing after the warm-up.
//   SOAK_SECONDS (600) is how long; SOAK_CLIENTS (16) how many at a time.

import test from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { startStack } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { startMockTool } from '../lib/mock-tool.mjs';
import { openSse } from '../lib/sse-client.mjs';
import { text } from '../lib/openai-wire.mjs';

const SECONDS = Number(process.env.SOAK_SECONDS ?? 600);
const CLIENTS = Number(process.env.SOAK_CLIENTS ?? 16);
const GROWTH_KIB = process.env.TOOLGATE_ASAN ? 512 * 1024 : 16 * 1024;

function catalog(tool) {
  return {
    tools: [{
      name: 'order_status', description: 'State of an order.',
      config: {
        method: 'GET', url: `${tool.url}/orders/{{args.order_number}}`,
        parameters: {
          type: 'object', properties: { order_number: { type: 'string' } },
          required: ['order_number'], additionalProperties: false,
        },
        response: { items_path: 'data', fields: [{ path: 'status', label: 'Status' }] },
      },
    }],
    agents: [{
      name: 'a', model: 'default', instructions: 'Be brief.',
      tools: { http: [{ tool: 'order_status' }] },
    }],
  };
}

function usage(pids) {
  return pids.map((pid) => ({
    pid,
    rss: Number(fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+)/m)[1]),
    fds: fs.readdirSync(`/proc/${pid}/fd`).length,
  }));
}

test('a long mixed load', { timeout: (SECONDS + 120) * 1000 }, async (t) => {
  const model = await startMockModel();
  const tool = await startMockTool();
  const stack = await startStack({
    modelUrl: model.baseUrl, catalog: catalog(tool), allow: ['127.0.0.1/32'],
  });
  const counts = { whole: 0, streamed: 0, tools: 0, left: 0, broken: 0 };
  const url = `${stack.baseURL}/chat/completions`;
  const body = (content, more = {}) => ({
    model: 'a', messages: [{ role: 'user', content }], ...more,
  });

  const kinds = {
    async whole(n) {
      const answer = await stack.chat(body(`whole ${n}`));
      assert.equal(answer.json.choices[0].message.content, `You said: whole ${n}`);
    },
    async streamed(n) {
      const s = await openSse(url, { key: stack.key, body: body(`streamed ${n}`, { stream: true }) });
      await s.end();
      assert.equal(s.content, `You said: streamed ${n}`);
      assert.ok(s.done);
    },
    async tools(n) {
      const answer = await stack.chat(body(`@call order_status {"order_number":"${n}"}`));
      assert.match(answer.json.choices[0].message.content, /"Status":"shipped"/);
    },
    async left(n) {
      const s = await openSse(url, {
        key: stack.key, body: body(`leaves ${n}\n@slow 20`, { stream: true }),
      });
      await s.next();
      s.leave();
    },
  };
  const names = Object.keys(kinds);
  const until = Date.now() + SECONDS * 1000;
  let n = 0;
  const client = async () => {
    while (Date.now() < until) {
      const kind = names[n++ % names.length];
      await kinds[kind](n);
      counts[kind]++;
      // the journals are not what grows here
      if (model.journal.length > 1000) model.journal.length = 0;
      if (tool.journal.length > 1000) tool.journal.length = 0;
    }
  };
  const pids = stack.workers();
  let warm;
  const watch = setTimeout(() => { warm = usage(pids); }, SECONDS * 300);

  await Promise.all(Array.from({ length: CLIENTS }, client));
  clearTimeout(watch);
  // a plan goes to whoever asks next, so these come when nobody else asks
  for (let i = 0; i < 20; i++) {
    model.plan([{ send: text('half') }, { cut: true }]);
    const answer = await stack.chat(body('breaks'));
    assert.equal(answer.json.error.code, 'model_stream_broken');
    counts.broken++;
  }
  const end = usage(pids);
  t.diagnostic(`${JSON.stringify(counts)} warm ${JSON.stringify(warm)} end ${JSON.stringify(end)}`);
  end.forEach((e, i) => {
    assert.ok(e.rss - warm[i].rss < GROWTH_KIB, `worker ${e.pid} grew ${e.rss - warm[i].rss} KiB`);
    assert.ok(e.fds <= warm[i].fds + CLIENTS, `worker ${e.pid}: ${e.fds} descriptors`);
  });
  assert.deepEqual(stack.workers(), pids, 'no worker was started again');
  await model.close();
  await tool.close();
  await stack.stop();
});
