// An https (or http) service for HTTP tools to call in tests, with a certificate
// authority of its own. Keeps a journal of all requests.
//
//   const ca = makeTestCa(dir, ['shop.test']);          ca.file is for --ca
//   const shop = await startMockTool({ ca });
//
// Paths: /orders/N · /status/N · /size/N (a JSON body of N bytes) · /stall (head, then
// nothing) · /hang (nothing at all) · /drip?n=&ms= · /half (less than announced) ·
// /reset · /redirect?to=URL&code= · /html · /text · /empty · /badgzip · /gzip ·
// /bomb (small when packed, 4 MiB when not) · /crlf (a header with odd bytes) · else
// an echo of the request as JSON.

import http from 'node:http';
import https from 'node:https';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

/** Makes an authority and one certificate for these names and for 127.0.0.1 and ::1. */
export function makeTestCa(dir, names = ['localhost'], { addresses = ['127.0.0.1', '::1'] } = {}) {
  const file = (name) => path.join(dir, name);
  const openssl = (...args) => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' });
  const san = [...names.map((n) => `DNS:${n}`), ...addresses.map((a) => `IP:${a}`)].join(',');

  fs.mkdirSync(dir, { recursive: true });
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
    '-nodes', '-keyout', file('ca.key'), '-out', file('ca.pem'), '-days', '2',
    '-subj', '/CN=toolgate test authority');
  openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
    '-keyout', file('server.key'), '-out', file('server.csr'), '-subj', '/CN=toolgate test');
  fs.writeFileSync(file('san.ext'), `subjectAltName=${san}\nbasicConstraints=CA:FALSE\n`);
  openssl('x509', '-req', '-in', file('server.csr'), '-CA', file('ca.pem'),
    '-CAkey', file('ca.key'), '-CAcreateserial', '-out', file('server.pem'), '-days', '2',
    '-extfile', file('san.ext'));
  return {
    file: file('ca.pem'),
    cert: fs.readFileSync(file('server.pem')),
    key: fs.readFileSync(file('server.key')),
  };
}

export async function startMockTool({ ca, port = 0, host = '127.0.0.1', answer } = {}) {
  const tool = { journal: [], connections: 0, answer };
  const handler = (req, res) => take(tool, req, res);

  tool.server = ca ? https.createServer({ cert: ca.cert, key: ca.key }, handler)
    : http.createServer(handler);
  tool.server.on('connection', () => { tool.connections++; });
  // a peer that refuses our certificate is part of some tests
  tool.server.on('tlsClientError', () => {});
  tool.server.on('clientError', (error, socket) => socket.destroy());
  await new Promise((resolve, reject) => {
    tool.server.once('error', reject);
    tool.server.listen(port, host, resolve);
  });
  tool.port = tool.server.address().port;
  tool.url = `${ca ? 'https' : 'http'}://${host}:${tool.port}`;
  tool.count = (prefix = '/') => tool.journal.filter((e) => e.path.startsWith(prefix)).length;
  tool.clear = () => { tool.journal.length = 0; tool.connections = 0; };
  tool.close = async () => {
    const closed = new Promise((resolve) => tool.server.close(resolve));
    tool.server.closeAllConnections();
    await closed;
  };
  return tool;
}

async function take(tool, req, res) {
  const entry = {
    at: performance.now(), method: req.method, path: req.url, headers: req.headers,
    rawHeaders: req.rawHeaders, body: Buffer.alloc(0), closedEarly: false,
  };
  const parts = [];
  try {
    for await (const part of req) parts.push(part);
  } catch {
    return;
  }
  entry.body = Buffer.concat(parts);
  res.on('close', () => { entry.closedEarly = !res.writableFinished; });
  tool.journal.push(entry);
  if (tool.answer !== undefined && await tool.answer(entry, req, res)) return;

  const url = new URL(req.url, 'http://mock');
  const [, first, second] = url.pathname.split('/');
  const play = PATHS[first] ?? echo;
  await play({ req, res, entry, url, arg: second });
}

function json(res, status, value) {
  const body = JSON.stringify(value);
  res.writeHead(status, {
    'content-type': 'application/json', 'content-length': Buffer.byteLength(body),
  });
  res.end(body);
}

function echo({ req, res, entry }) {
  json(res, 200, {
    method: req.method, path: req.url, headers: req.headers,
    body: entry.body.toString('utf8'),
  });
}

const PATHS = {
  orders: ({ res, arg }) => json(res, 200, {
    data: [{ number: arg, status: 'shipped', eta: '2 days' }],
  }),
  status: ({ res, arg }) => json(res, Number(arg), { status: Number(arg), note: 'as asked' }),
  size: ({ res, arg }) => {
    const frame = '{"data":[{"status":""}]}';
    const body = frame.replace('""', `"${'x'.repeat(Math.max(0, Number(arg) - frame.length))}"`);
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(body);
  },
  stall: ({ res }) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
    res.write('{"data":');
  },
  hang: () => {},
  drip: async ({ res, url }) => {
    const body = Buffer.from(JSON.stringify({ data: [{ status: 'slow' }] }).padEnd(
      Number(url.searchParams.get('n') ?? 40)));
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    for (const byte of body) {
      if (res.destroyed) return;
      res.write(Buffer.from([byte]));
      await sleep(Number(url.searchParams.get('ms') ?? 10));
    }
    res.end();
  },
  half: ({ req, res }) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
    res.write('{"data":[{"status":"half"}]}', () => req.socket.destroySoon());
  },
  reset: ({ req }) => {
    // a TLS socket cannot be reset itself, the one beneath it can
    (req.socket._parent ?? req.socket).resetAndDestroy();
  },
  redirect: ({ res, url }) => {
    res.writeHead(Number(url.searchParams.get('code') ?? 302), {
      location: url.searchParams.get('to') ?? '/orders/1', 'content-length': 0,
    });
    res.end();
  },
  html: ({ res }) => {
    res.writeHead(200, { 'content-type': 'text/html' });
    res.end('<html><body>It works</body></html>');
  },
  text: ({ res }) => {
    res.writeHead(200, { 'content-type': 'text/plain' });
    res.end('plain text');
  },
  empty: ({ res }) => {
    res.writeHead(204);
    res.end();
  },
  gzip: ({ res }) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    res.end(zlib.gzipSync('{"data":[{"status":"packed"}]}'));
  },
  badgzip: ({ res }) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    res.end('this is not gzip');
  },
  bomb: ({ res }) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    res.end(zlib.gzipSync(`{"data":[{"status":"${'x'.repeat(4 << 20)}"}]}`));
  },
  crlf: ({ req }) => {
    req.socket.end('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
      + 'X-Odd: a\x01b\r\nContent-Length: 11\r\n\r\n{"data":[]}');
  },
};
