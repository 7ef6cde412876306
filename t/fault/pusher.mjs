// A process of its own that sends chats with bodies of nearly 8 MB and is the model
// that takes them, so that none of that work happens where a test watches the clock.
// Started by fork with the size of a body; told by messages:
//   { start: { url, key, models, connections } }   { stop: true }
// says { port } of its model, then { sent, answered, received, bytes, slowest }.

import http from 'node:http';
import { textTurn } from '../lib/openai-wire.mjs';

const size = Number(process.argv[2]);
const answer = textTurn('ok').join('');
const seen = { sent: 0, answered: 0, received: 0, bytes: 0, slowest: 0 };
let stopped = false;

const model = http.createServer((req, res) => {
  let bytes = 0;
  req.on('data', (part) => { bytes += part.length; });
  req.on('end', () => {
    seen.bytes += bytes;
    if (bytes >= size - 4096) seen.received++;
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.end(answer);
  });
});

/** A conversation of many messages, with escapes and letters of several bytes. */
function bodyFor(name) {
  const message = { role: 'user', content: 'A "line"\n\tof conversation, نص, 文字. '.repeat(40) };
  const body = { model: name, stream: true, messages: [] };
  const each = Buffer.byteLength(JSON.stringify(message)) + 1;
  for (let total = 200; total + each < size; total += each) body.messages.push(message);
  const text = JSON.stringify(body);
  const rest = size - Buffer.byteLength(text);
  return Buffer.from(text.replace(/\]}$/,
    `,{"role":"user","content":"${'x'.repeat(Math.max(0, rest - 31))}"}]}`));
}

function push(url, key, body) {
  return new Promise((resolve) => {
    const began = performance.now();
    const req = http.request(url, {
      method: 'POST', agent: false, headers: {
        authorization: `Bearer ${key}`, 'content-type': 'application/json',
        'content-length': body.length,
      },
    }, (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (part) => { text += part; });
      res.on('close', () => {
        if (res.statusCode === 200 && text.trimEnd().endsWith('data: [DONE]')) seen.answered++;
        seen.slowest = Math.max(seen.slowest, performance.now() - began);
        resolve();
      });
    });
    req.on('error', () => resolve());
    seen.sent++;
    req.end(body);
  });
}

async function client(url, key, bodies, first) {
  for (let n = first; !stopped; n++) await push(url, key, bodies[n % bodies.length]);
}

process.on('message', async (message) => {
  if (message.stop) stopped = true;
  if (!message.start) return;
  const { url, key, models, connections } = message.start;
  const bodies = models.map(bodyFor);
  await Promise.all(Array.from({ length: connections }, (_, n) => client(url, key, bodies, n)));
  process.send(seen, () => process.exit(0));
});
process.on('disconnect', () => process.exit(0));
model.listen(0, '127.0.0.1', () => process.send({ port: model.address().port }));
