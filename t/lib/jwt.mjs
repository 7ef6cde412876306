// Signs end user tokens as an issuer does, with node's own cryptography.
//
//   const key = makeKey('ES256');    key.register: { secret } or { public_key }, a PEM text
//   token(key, { sub: 'u-1', exp: … }, { kid: '1' })

import crypto from 'node:crypto';

export const ALGS = ['HS256', 'HS384', 'HS512', 'RS256', 'PS256', 'ES256', 'EdDSA'];

const pair = {
  RS256: () => crypto.generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => crypto.generateKeyPairSync('ed25519'),
};
pair.PS256 = pair.RS256;

/** A new key: { alg, register, jwk (not for HS), and what signs }. */
export function makeKey(alg) {
  if (alg.startsWith('HS')) {
    const secret = crypto.randomBytes(32).toString('hex');
    return { alg, secret, register: { secret } };
  }
  const { publicKey, privateKey } = pair[alg]();
  return {
    alg, privateKey, jwk: publicKey.export({ format: 'jwk' }),
    register: { public_key: publicKey.export({ type: 'spki', format: 'pem' }) },
  };
}

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The token of these claims; header adds to or replaces {"alg","typ"}. */
export function token(key, claims, header = {}) {
  const text = `${encode({ alg: key.alg, typ: 'JWT', ...header })}.${encode(claims)}`;
  return `${text}.${sign(key, Buffer.from(text)).toString('base64url')}`;
}

function sign({ alg, secret, privateKey }, text) {
  if (secret !== undefined) {
    return crypto.createHmac(`sha${alg.slice(2)}`, secret).update(text).digest();
  }
  if (alg === 'EdDSA') return crypto.sign(null, text, privateKey);
  const options = { key: privateKey };
  if (alg === 'ES256') options.dsaEncoding = 'ieee-p1363';
  if (alg === 'PS256') {
    options.padding = crypto.constants.RSA_PKCS1_PSS_PADDING;
    options.saltLength = crypto.constants.RSA_PSS_SALTLEN_DIGEST;
  }
  return crypto.sign('sha256', text, options);
}
