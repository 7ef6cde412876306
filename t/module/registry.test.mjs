// How a worker follows the store: it does not keep the worker.

import test from 'node:test';
import assert from 'node:assert/strict';
import { startFixture } from './fixture.mjs';
import { PATIENT, SLOW } from './nginx.mjs';
import { Redis } from '../store/harness.mjs';

const ENDS_MS = 5000 * SLOW;

for (const [what, signal] of [['answers', undefined], ['hangs', 'SIGSTOP'], ['is gone', 'SIGKILL']]) {
  test(`a worker that is asked to end does so while Redis ${what}`, async () => {
    const redis = await new Redis().start();
    const f = await startFixture({ http: `toolgate_redis ${redis.unix} ${PATIENT};`, catalog: { tools: [], agents: [] } });
    assert.equal((await f.nginx.request('/v1/models')).status, 200);
    if (signal) redis.signal(signal);
    const asked = performance.now();
    await f.stop();
    const took = performance.now() - asked;
    assert.ok(took < ENDS_MS, `${took} ms`);
    await redis.stop();
  });
}
