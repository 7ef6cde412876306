// The data sets through tg-probe, the way an outside judge runs them: one process, one
// JSON line in, one out, in order. Unit tests run the same sets inside of the library;
// this test holds the window itself.

import test from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const repo = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const data = process.env.TOOLGATE_TEST_DATA ?? path.join(repo, '../shared/data');
const build = process.env.TOOLGATE_BUILD ?? path.join(repo, 'build');
const program = path.join(build, 'tg-probe');

function probe(unit, lines, input = lines.map((l) => JSON.stringify(l)).join('\n') + '\n') {
  const run = spawnSync(program, [unit], { input, encoding: 'utf8', maxBuffer: 64 << 20 });
  assert.equal(run.error, undefined);
  return { code: run.status, out: run.stdout.split('\n').filter(Boolean).map((l) => JSON.parse(l)) };
}

/** Lines of a set; skips the test, and says so, when the set is not here. */
function load(t, file) {
  const name = path.join(data, file);
  if (!fs.existsSync(name)) {
    t.skip(`the data set ${file} is not here`);
    return undefined;
  }
  return fs.readFileSync(name, 'utf8').split('\n').filter(Boolean).map((l) => JSON.parse(l));
}

function judge(t, cases, out, verdict) {
  assert.equal(out.length, cases.length, 'one line out for each line in');
  const wrong = [];
  let choices = 0;
  cases.forEach((c, n) => {
    const fault = verdict(c, out[n]);
    if (fault === undefined) return;
    if (c.basis === 'choice') choices++;
    else wrong.push(`${c.id ?? n}: ${fault} (${c.reason ?? c.note ?? ''})`);
  });
  t.diagnostic(`${cases.length} cases, ${wrong.length} wrong, ${choices} other readings`);
  assert.deepEqual(wrong, []);
}

for (const kind of ['addr', 'url']) {
  test(`netguard-cases.jsonl: ${kind}`, (t) => {
    const cases = load(t, 'netguard-cases.jsonl')?.filter((c) => c.kind === kind);
    if (cases === undefined) return;
    const { code, out } = probe('netguard', cases);
    assert.equal(code, 0);
    judge(t, cases, out, (c, o) => {
      if (o.id !== c.id) return `answered for ${o.id}`;
      if (o.verdict !== c.expect) return `${JSON.stringify(c.input)}: ${o.verdict}, not ${c.expect}`;
      return undefined;
    });
  });
}

test('text-clean-cases.jsonl', (t) => {
  const cases = load(t, 'text-clean-cases.jsonl');
  if (cases === undefined) return;
  const { code, out } = probe('clean', cases);
  assert.equal(code, 0);
  judge(t, cases, out, (c, o) => ([c.expected, ...c.also ?? []].includes(o.output)
    ? undefined : `${JSON.stringify(o.output)}, not ${JSON.stringify(c.expected)}`));
});

test('standard-webhooks/sign.jsonl', (t) => {
  const cases = load(t, 'standard-webhooks/sign.jsonl');
  if (cases === undefined) return;
  const { out } = probe('sign', cases.map((c) => ({
    secret: c.secret, msg_id: c.id, timestamp: c.timestamp,
    body: c.body_repeat === undefined ? c.body : c.body_repeat[0].repeat(c.body_repeat[1]),
  })));
  judge(t, cases, out, (c, o) => (o.signature === c.signature ? undefined
    : `${JSON.stringify(o)}, not ${c.signature}`));
});

test('standard-webhooks/verify.jsonl', (t) => {
  const cases = load(t, 'standard-webhooks/verify.jsonl');
  if (cases === undefined) return;
  const { out } = probe('sign', cases.map(({ secret, headers, body, now }) => (
    { secret, headers, body, now })));
  judge(t, cases, out, (c, o) => (c.expect === 'either' || o.verdict === c.expect ? undefined
    : `${JSON.stringify(o)}, not ${c.expect}`));
});

test('a line that is not understood gives an error, and the next is answered', () => {
  const { out } = probe('netguard', [], 'nonsense\n{"id":"x","kind":"addr","input":"8.8.8.8"}\n');
  assert.equal(out.length, 2);
  assert.ok(out[0].error);
  assert.equal(out[1].verdict, 'allow');
});

test('an unknown unit is a usage error', () => {
  assert.equal(spawnSync(program, ['nothing'], { input: '' }).status, 2);
});
