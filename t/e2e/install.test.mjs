// Installing Debian packages must not start their services: while apt-get runs,
// policy-rc.d says no; afterwards that file is what it was before, whatever happened.
// apt-get and dpkg-query are stand-ins here.

import test from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { REPO, tempDir } from '../lib/stack.mjs';

const COMMON = path.join(REPO, 'scripts/lib/common.sh');

/** Runs tg_need_packages with stand-ins; before = content of policy-rc.d or null. */
function install(t, { before, apt }) {
  const dir = tempDir();
  const policy = path.join(dir, 'policy-rc.d');
  const put = (name, text) => fs.writeFileSync(path.join(dir, name), text, { mode: 0o755 });
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  if (before !== null) put('policy-rc.d', before);
  put('dpkg-query', '#!/bin/sh\nexit 1\n');
  put('apt-get', `#!/bin/bash\necho "$@" >>${dir}/calls\n${policy} nginx start; echo $? >>${dir}/policy\n${apt}\n`);
  const run = () => spawnSync('bash', ['-c', `. ${COMMON}; tg_need_packages some-package`], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${dir}:${process.env.PATH}`, TG_POLICY_FILE: policy, TMPDIR: dir },
  });
  const read = (name) => (fs.existsSync(path.join(dir, name))
    ? fs.readFileSync(path.join(dir, name), 'utf8') : null);
  return { run, read, dir };
}

const OTHER = '#!/bin/sh\nexit 0\n';

for (const before of [null, OTHER]) {
  const what = before === null ? 'no policy-rc.d before' : 'a policy-rc.d of somebody else';

  test(`${what}: services may not start, and it is put back`, (t) => {
    const i = install(t, { before, apt: 'exit 0' });
    assert.equal(i.run().status, 0);
    assert.equal(i.read('policy'), '101\n');
    assert.match(i.read('calls'), /install -y --no-install-recommends some-package/);
    assert.equal(i.read('policy-rc.d'), before);
  });

  test(`${what}: the same when apt-get fails, after one try with new lists`, (t) => {
    const i = install(t, { before, apt: 'echo "no such package" >&2; exit 100' });
    const done = i.run();
    assert.equal(done.status, 1);
    assert.match(done.stderr, /no such package[^]*could not install: some-package/);
    assert.match(i.read('calls'), /^install .*\nupdate\n/);
    assert.equal(i.read('policy-rc.d'), before);
  });

  test(`${what}: what a killed run left behind is mended by the next`, (t) => {
    const i = install(t, { before, apt: `[ -e ${'$0'}.done ] || { touch ${'$0'}.done; kill -9 $PPID; }` });
    assert.notEqual(i.run().status, 0);
    assert.match(i.read('policy-rc.d'), /temporary/);
    assert.equal(i.run().status, 0);
    assert.equal(i.read('policy-rc.d'), before);
  });
}

test('nothing is missing: nothing is called', (t) => {
  const i = install(t, { before: null, apt: 'exit 0' });
  fs.writeFileSync(path.join(i.dir, 'dpkg-query'), '#!/bin/sh\necho ii\n', { mode: 0o755 });
  assert.equal(i.run().status, 0);
  assert.equal(i.read('calls'), null);
});
