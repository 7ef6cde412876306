// tg-probe jwt with tokens that node signs: another implementation of every algorithm than
// the one under test.

import test from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ALGS, makeKey, token } from '../lib/jwt.mjs';

const repo = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const program = path.join(process.env.TOOLGATE_BUILD ?? path.join(repo, 'build'), 'tg-probe');
const NOW = 1_700_000_000;
const user = { sub: 'u-5', exp: NOW + 300, traits: { plan: 'gold', n: 7, deep: {} } };

function probe(...lines) {
  const run = spawnSync(program, ['jwt'], {
    input: lines.map((l) => `${JSON.stringify(l)}\n`).join(''), encoding: 'utf8',
  });
  assert.equal(run.status, 0);
  return run.stdout.split('\n').filter(Boolean).map((l) => JSON.parse(l));
}

const judge = (text, keys, now = NOW) => probe({ id: 1, token: text, keys, now })[0];

for (const alg of ALGS) {
  test(`${alg}: signed by node, PEM and JWK`, () => {
    const key = makeKey(alg);
    const forms = [{ alg, ...key.register }];
    if (key.jwk) forms.push({ alg, public_key: key.jwk }, { alg, public_key: JSON.stringify(key.jwk) });
    for (const form of forms) {
      assert.deepEqual(judge(token(key, user), [form]), {
        id: 1, verdict: 'accept', code: null, external_id: 'u-5', traits: { plan: 'gold', n: 7 },
      });
      const other = judge(token(makeKey(alg), user), [form]);
      assert.equal(other.verdict, 'reject');
      assert.equal(other.code, 'invalid_end_user_token');
    }
  });
}

test('the public key as an HMAC secret, and no signature', () => {
  const key = makeKey('RS256');
  const registered = [{ alg: 'RS256', ...key.register }];
  const forged = token({ alg: 'HS256', secret: key.register.public_key }, user);
  assert.equal(judge(forged, registered).verdict, 'reject');
  assert.equal(judge(`${token(key, user, { alg: 'none' }).split('.').slice(0, 2).join('.')}.`, registered).verdict, 'reject');
});

test('a short RSA key, a secret that is too short, no keys', () => {
  const { publicKey, privateKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 1024 });
  const weak = { alg: 'RS256', privateKey };
  const out = judge(token(weak, user), [{ alg: 'RS256', public_key: publicKey.export({ type: 'spki', format: 'pem' }) }]);
  assert.equal(out.verdict, 'reject');
  assert.equal(out.code, 'invalid_value');
  const secret = 'x'.repeat(31);
  assert.equal(judge(token({ alg: 'HS256', secret }, user), [{ alg: 'HS256', secret }]).verdict, 'reject');
  assert.equal(judge(token({ alg: 'HS256', secret }, user), []).code, 'invalid_end_user_token');
});

test('time is the line\'s, and a line that is not understood says so', () => {
  const key = makeKey('HS256');
  const keys = [{ alg: 'HS256', ...key.register }];
  const text = token(key, user);
  assert.equal(judge(text, keys, NOW + 359).verdict, 'accept');
  assert.equal(judge(text, keys, NOW + 360).verdict, 'reject');
  const out = probe({ id: 'a', token: 5, keys, now: NOW }, { id: 'b', token: text, keys }, { id: 'c', token: text, keys, now: NOW });
  assert.ok(out[0].error && out[1].error);
  assert.equal(out[2].verdict, 'accept');
});
