// Peers of the protected client under test: servers that are driven byte by byte, a
// name server that lies on demand, a listener that never accepts, and certificates.
// They know nothing of the probe nginx.

import { spawn, execFileSync } from 'node:child_process';
import dgram from 'node:dgram';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// A CA and certificates signed by it; one more CA that signed none of them.
export function certificates(dir) {
  const file = (name) => path.join(dir, name);
  const openssl = (...args) => execFileSync('openssl', args, { stdio: 'ignore' });
  const ca = (name) => openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
    '-nodes', '-days', '2', '-subj', `/CN=${name}`, '-keyout', file(`${name}.key`), '-out', file(`${name}.pem`),
    '-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign,cRLSign');
  const leaf = (name, altNames, days = '2') => {
    openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', `/CN=${name}`,
      '-keyout', file(`${name}.key`), '-out', file(`${name}.csr`));
    fs.writeFileSync(file(`${name}.ext`), `subjectAltName=${altNames}\n`);
    openssl('x509', '-req', '-in', file(`${name}.csr`), '-CA', file('ca.pem'), '-CAkey', file('ca.key'),
      '-CAcreateserial', '-days', days, '-extfile', file(`${name}.ext`), '-out', file(`${name}.pem`));
    return { key: fs.readFileSync(file(`${name}.key`)), cert: fs.readFileSync(file(`${name}.pem`)) };
  };

  ca('ca');
  ca('foreign');
  return {
    ca: file('ca.pem'),
    foreign: file('foreign.pem'),
    good: leaf('good', 'DNS:api.test,DNS:two.test,DNS:again.test,IP:127.0.1.1,IP:::1'),
    other: leaf('other', 'DNS:other.test'),
    expired: leaf('expired', 'DNS:api.test', '-1'),
  };
}

const servers = new Set();

// for the end, so that a test that failed does not keep the process
export async function closeAll() {
  for (const server of [...servers]) await server.close();
}

// A server that reads one request after another and hands each to answer(peer).
// peer: {socket, head, body, n (of all), nth (on its connection)}. raw(socket) takes
// the connection as it comes instead. Counts connections, requests and closes.
export async function serve({ host = '127.0.1.1', port = 0, tlsOptions, answer, raw }) {
  const server = { connections: 0, requests: 0, closed: 0, sockets: new Set(), heads: [] };
  const onSocket = (socket) => {
    let buffered = Buffer.alloc(0);
    let nth = 0;

    socket.on('error', () => {});
    if (raw) {
      raw(socket, server);
      return;
    }
    socket.on('data', (chunk) => {
      buffered = Buffer.concat([buffered, chunk]);
      for (;;) {
        const end = buffered.indexOf('\r\n\r\n');
        if (end < 0) return;
        const head = buffered.subarray(0, end).toString('latin1');
        const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
        if (buffered.length < end + 4 + length) return;
        const body = buffered.subarray(end + 4, end + 4 + length);
        buffered = buffered.subarray(end + 4 + length);
        server.heads.push(head);
        answer({ socket, head, body, n: ++server.requests, nth: ++nth });
      }
    });
  };
  const onTcp = (socket) => {
    server.connections++;
    server.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => { server.closed++; server.sockets.delete(socket); });
  };
  const listener = tlsOptions
    ? tls.createServer(tlsOptions, onSocket)
    : net.createServer({ noDelay: true }, (socket) => { onTcp(socket); onSocket(socket); });

  if (tlsOptions) {
    listener.on('connection', onTcp);
    listener.on('tlsClientError', () => {});
  }
  await new Promise((done, failed) => {
    listener.once('error', failed);
    listener.listen(port, host, done);
  });
  server.port = listener.address().port;
  server.url = (target = '/', name = host) =>
    `${tlsOptions ? 'https' : 'http'}://${name.includes(':') ? `[${name}]` : name}:${server.port}${target}`;
  servers.add(server);
  server.close = () => new Promise((done) => {
    servers.delete(server);
    for (const socket of server.sockets) socket.destroy();
    listener.close(done);
  });
  return server;
}

// A whole answer with Content-Length.
export function reply(body, { status = '200 OK', headers = [] } = {}) {
  const bytes = Buffer.from(body);
  const head = [`HTTP/1.1 ${status}`, `Content-Length: ${bytes.length}`, ...headers, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), bytes]);
}

// A name server on loopback. zone: name -> function(type, n) giving a list of
// addresses for this family, null (no answer at all) or 'nx'; n counts per type.
export async function nameServer(zone) {
  const socket = dgram.createSocket('udp4');
  const server = { asked: [] };
  const counts = new Map();

  socket.on('message', (query, from) => {
    const { name, type, end } = question(query);
    const key = `${name}/${type}`;
    const n = (counts.get(key) ?? 0) + 1;
    counts.set(key, n);
    server.asked.push(key);
    const answer = zone[name] ? zone[name](type, n) : 'nx';
    if (answer === null) return;
    socket.send(response(query, end, type, answer), from.port, from.address);
  });
  await new Promise((done) => socket.bind(0, '127.0.0.1', done));
  server.port = socket.address().port;
  server.close = () => new Promise((done) => socket.close(done));
  return server;
}

function question(query) {
  const labels = [];
  let at = 12;
  while (query[at] !== 0) {
    labels.push(query.subarray(at + 1, at + 1 + query[at]).toString('latin1'));
    at += 1 + query[at];
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1) === 28 ? 'AAAA' : 'A', end: at + 5 };
}

function response(query, end, type, answer) {
  const list = answer === 'nx' ? [] : answer;
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(answer === 'nx' ? 0x8183 : 0x8180, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(list.length, 6);
  head.writeUInt32BE(0, 8);
  const records = list.map((address) => {
    const data = type === 'A' ? Buffer.from(address.split('.').map(Number)) : bytesOf(address);
    const fixed = Buffer.alloc(12);
    fixed.writeUInt16BE(0xc00c, 0);
    fixed.writeUInt16BE(type === 'A' ? 1 : 28, 2);
    fixed.writeUInt16BE(1, 4);
    fixed.writeUInt32BE(0, 6); // TTL 0: every look-up asks again
    fixed.writeUInt16BE(data.length, 10);
    return Buffer.concat([fixed, data]);
  });
  return Buffer.concat([head, query.subarray(12, end), ...records]);
}

// 16 bytes of an IPv6 address with eight groups, "::" and dotted tail allowed
function bytesOf(text) {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  const hex = (a, b) => ((Number(a) << 8) | Number(b)).toString(16);
  const plain = dotted ? `${dotted[1]}${hex(dotted[2], dotted[3])}:${hex(dotted[4], dotted[5])}` : text;
  const [left, right] = plain.split('::');
  const groups = (part) => (part ? part.split(':') : []);
  const gap = right === undefined ? [] : Array(8 - groups(left).length - groups(right).length).fill('0');
  const out = Buffer.alloc(16);
  [...groups(left), ...gap, ...groups(right)].forEach((group, i) => out.writeUInt16BE(parseInt(group, 16), i * 2));
  return out;
}

// A listener whose queue is full and which never accepts: the kernel drops further
// SYNs, as an address behind a silent firewall does.
export async function deafListener(host) {
  const child = spawn(process.execPath, ['-e', `
    const s = require('net').createServer().listen({ port: 0, host: '${host}', backlog: 1 }, () => {
      require('fs').writeSync(1, String(s.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = Number(await new Promise((done) => child.stdout.once('data', done)));
  const fillers = [];
  for (let connected = true; connected && fillers.length < 16;) {
    const socket = net.connect(port, host);
    socket.on('error', () => {});
    fillers.push(socket);
    connected = await Promise.race([new Promise((done) => socket.once('connect', () => done(true))), sleep(300)]);
  }
  return {
    url: `http://${host}:${port}/`,
    close: () => { fillers.forEach((socket) => socket.destroy()); child.kill('SIGKILL'); },
  };
}
