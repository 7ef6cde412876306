// scripts/run as a person uses it: the printed call works when it is pasted, a second
// start is refused, reload takes a good catalog and keeps the old one when the new one
// is bad, stop leaves nothing behind and keeps the state, keys that lie in the folder
// are used.

import test, { after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { startMockModel } from '../lib/mock-model.mjs';
import { freePort, scriptsRun, startStack, tempDir } from '../lib/stack.mjs';

const running = [];

after(async () => {
  await Promise.all(running.map((stack) => stack.stop()));
});

async function start(options) {
  const stack = await startStack(options);
  running.push(stack);
  return stack;
}

const alive = (pid) => {
  try {
    // a zombie that nobody has waited for is gone all the same
    return !/^\d+ \(.*\) Z/s.test(fs.readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
};

test('the printed call works as it is pasted', async () => {
  const demo = await start();
  assert.match(demo.output, /NOT a language model/);
  assert.match(demo.output, new RegExp(`toolgate answers at ${demo.url}`));
  assert.match(demo.output, /allow_actions/);
  const line = demo.output.split('\n').find((l) => l.startsWith('curl '));
  const said = execFileSync('bash', ['-c', line], { encoding: 'utf8', timeout: 30_000 });
  const text = [...said.matchAll(/^data: (\{.*\})$/gm)]
    .map(([, json]) => JSON.parse(json).choices[0]?.delta?.content ?? '').join('');
  assert.match(text, /Order: 8812/);
  assert.match(text, /exit code 0 and printed: Linux /);
  assert.match(said, /data: \[DONE\]\n\n$/);

  const health = await fetch(`${demo.url}/healthz`);
  assert.equal(health.status, 200);
  assert.equal(await health.text(), '{"status":"ok"}');
  assert.equal((await demo.api('/somewhere')).json.error.code, 'unknown_url');
});

test('keys have mode 0600 and hold one line; sockets are not for everybody', async () => {
  const [demo] = running;
  for (const name of ['admin.key', 'master.key', 'conf/model.inc', 'conf/toolgated.conf']) {
    const file = path.join(demo.state, name);
    assert.equal(fs.statSync(file).mode & 0o777, 0o600, name);
  }
  assert.equal(fs.readFileSync(path.join(demo.state, 'admin.key'), 'utf8'), `${demo.key}\n`);
  for (const name of ['run', 'run/redis']) {
    assert.equal(fs.statSync(path.join(demo.state, name)).mode & 0o007, 0, name);
  }
});

test('a second start on a live state folder is refused and says why', async () => {
  const [demo] = running;
  const port = await freePort();
  const again = await scriptsRun(['--state', demo.state, '--listen', `127.0.0.1:${port}`,
    '--detach'], { env: demo.env });
  assert.notEqual(again.code, 0);
  assert.match(again.stderr, /runs already on/);
  assert.equal((await fetch(`${demo.url}/healthz`)).status, 200);
});

test('reload takes a good catalog and refuses a bad one', async () => {
  const agent = (name) => ({ agents: [{ name, model: 'default', instructions: 'x' }] });
  const stack = await start({ catalog: agent('first') });
  const names = async () => (await stack.api('/v1/models')).json.data.map((m) => m.id);
  assert.deepEqual((await names()).sort(), ['default', 'first']);

  stack.writeCatalog(agent('second'));
  assert.equal((await stack.reload()).code, 0);
  assert.deepEqual((await names()).sort(), ['default', 'second']);

  stack.writeCatalog('{"agents":[{"name":');
  const bad = await stack.reload();
  assert.notEqual(bad.code, 0);
  assert.match(bad.stderr, /catalog\.json:\d/);
  assert.deepEqual((await names()).sort(), ['default', 'second']);
  stack.expectAlerts = true;
});

test('stop ends all that was started, keeps the state, and the key is used again', async () => {
  const dir = tempDir();
  const state = path.join(dir, 'state');
  const first = await startStack({ state });
  const pids = ['nginx', 'helper', 'redis'].map((name) => first.pid(name));
  pids.push(...first.workers());
  assert.ok(pids.every(alive));
  await first.stop();
  assert.deepEqual(pids.filter(alive), []);
  assert.ok(!fs.existsSync(path.join(state, 'nginx.pid')));

  fs.writeFileSync(path.join(state, 'admin.key'), 'a-key-that-was-given-1234\n');
  const second = await startStack({ state });
  assert.equal(second.key, 'a-key-that-was-given-1234');
  assert.equal((await second.api('/v1/models')).status, 200);
  const again = await scriptsRun(['stop', '--state', state], { env: second.env });
  assert.equal(again.code, 0);
  const third = await scriptsRun(['stop', '--state', state], { env: second.env });
  assert.equal(third.code, 0, 'stop of what is stopped is no error');
  await second.stop();
  fs.rmSync(dir, { recursive: true, force: true });
});

test('model options: key, vendor name, path; extra files in http and server', async (t) => {
  const model = await startMockModel();
  t.after(() => model.close());
  const dir = tempDir();
  const keyFile = path.join(dir, 'model.key');
  fs.writeFileSync(keyFile, 'vendor-key-1\n');
  const stack = await start({
    modelUrl: `${model.url}/deep/v1/chat/completions`, modelName: 'vendor/model-1',
    confExtra: 'map $uri $extra { default from-http; }',
    serverExtra: 'location = /extra { return 200 "$extra\\n"; }',
    args: ['--model-key-file', keyFile],
  });
  const answer = await stack.chat({ model: 'default', messages: [{ role: 'user', content: 'hi' }] });
  assert.equal(answer.status, 200, answer.text);
  const sent = model.request();
  assert.equal(sent.path, '/deep/v1/chat/completions');
  assert.equal(sent.json.model, 'vendor/model-1');
  assert.equal(sent.headers.authorization, 'Bearer vendor-key-1');
  assert.equal(sent.headers.host, `127.0.0.1:${model.port}`);
  assert.equal(sent.headers['x-forwarded-for'], undefined);
  assert.equal((await stack.api('/extra')).text, 'from-http\n');
  assert.ok(!stack.output.includes('vendor-key-1'));

  // connections to the model are kept
  await stack.chat({ model: 'default', messages: [{ role: 'user', content: 'again' }] });
  const connections = new Set(model.journal.map((e) => e.connection));
  assert.ok(connections.size <= 2, 'one for each worker at most');
  fs.rmSync(dir, { recursive: true, force: true });
});

test('bad options are refused before anything is started', async () => {
  const dir = tempDir();
  for (const [args, why] of [
    [['--listen', 'nowhere'], /--listen must be ADDR:PORT/],
    [['--allow', 'everything'], /--allow must be a CIDR/],
    [['--model-url', 'ftp://x/'], /--model-url must look like/],
    [['--model-key-file', '/nonexistent'], /cannot be read/],
    [['--workers', '0'], /--workers must be/],
    [['--colour', 'blue'], /unknown option/],
    [['stop', '--listen', '127.0.0.1:1'], /stop takes no --listen/],
  ]) {
    const done = await scriptsRun([...args, '--state', path.join(dir, 's')]);
    assert.notEqual(done.code, 0, args.join(' '));
    assert.match(done.stderr, why);
  }
  fs.rmSync(dir, { recursive: true, force: true });
});
