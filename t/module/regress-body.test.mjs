// A body that another module has read before us. Both cases failed once.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertWhole, startFixture, textTurn } from './fixture.mjs';

let f;
before(async () => {
  f = await startFixture({
    api: 'mirror /_mirror;',
    server: 'location = /_mirror { internal; proxy_pass http://$http_x_mirror/mirrored; }',
  });
});
after(() => f?.stop());

for (const size of [1000, 300_000]) {
  test(`a body of ${size} bytes that "mirror" has read reaches both`, async () => {
    f.clear();
    const content = 'm'.repeat(size);
    f.model.plan([{ send: textTurn('ok') }]);
    const client = await f.nginx.stream(f.body({ model: 'm', messages: [{ role: 'user', content }] }),
      { headers: { 'x-mirror': `127.0.0.1:${f.tool.port}` } });
    assertWhole(client);
    assert.equal(f.model.request().json.messages[0].content, content);
    for (let n = 0; n < 100 && f.tool.count('/mirrored') === 0; n++) await sleep(50);
    assert.equal(JSON.parse(f.tool.journal[0].body).messages[0].content, content);
  });
}
