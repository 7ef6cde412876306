// A model upstream for tests. A test plans byte scripts, one for each coming request;
// without a plan it behaves as a small OpenAI-compatible model that does what the
// last user message says (see planFor). Every request is kept in a journal.
//
//   const model = await startMockModel();
//   model.plan([{ send: text('a') }, { until: 'go' }, { send: text('b') }, { end: true }]);
//   model.signal('go');
//
// Steps of a script, played in order:
//   { status, headers }   the head; 200 and text/event-stream when not given
//   { raw: bytes }        to the socket as they are, instead of a head (first step)
//   { send: bytes|[…], split?: n, gap?: ms, times?: n }
//                         body bytes; split sends n bytes at a time, gap waits between
//   { json: value }       a whole JSON answer
//   { wait: ms }          { until: 'name' } waits for signal('name')
//   { call: fn(entry) }   runs a function of the test
//   { end: true }         a clean end; { cut: true } closes without one; { reset: true }
//   { hang: true }        nothing more until the peer leaves
// A script that stops without end, cut, reset or hang ends cleanly.

import http from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { textTurn, callTurn, usage, wholeAnswer, DONE } from './openai-wire.mjs';

const MAX_BODY = 64 * 1024 * 1024;

export async function startMockModel({ port = 0, host = '127.0.0.1', tls } = {}) {
  const model = new MockModel();
  const handler = (req, res) => model.take(req, res);
  model.server = tls ? https.createServer(tls, handler) : http.createServer(handler);
  model.server.keepAliveTimeout = 60_000;
  await new Promise((resolve, reject) => {
    model.server.once('error', reject);
    model.server.listen(port, host, resolve);
  });
  model.port = model.server.address().port;
  model.url = `${tls ? 'https' : 'http'}://${host}:${model.port}`;
  model.baseUrl = `${model.url}/v1`;
  return model;
}

class MockModel {
  journal = [];
  /** What a request without a plan gets: a function that makes a script, or undefined. */
  answer;
  #plans = [];
  #signals = new Set();
  #waiters = new Set();
  #sockets = 0;

  /** Plans the answers of the next requests: an array of steps, or a function. */
  plan(...scripts) {
    this.#plans.push(...scripts);
    return this;
  }

  /** Scripts that were planned and not yet asked for. */
  get unplayed() {
    return this.#plans.length;
  }

  /** Lets every script go on that waits, or will wait, for this name. */
  signal(name) {
    this.#signals.add(name);
    this.#wake();
  }

  /** Forgets plans, signals and the journal: for the next test. */
  clear() {
    this.#plans.length = 0;
    this.#signals.clear();
    this.journal.length = 0;
    this.answer = undefined;
  }

  /** Resolves as soon as predicate() is true; fails after ms. */
  async until(predicate, ms = 5000, what = 'the mock model') {
    const deadline = Date.now() + ms;
    while (!predicate()) {
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`waited ${ms} ms for ${what} in vain`);
      await this.#woken(Math.min(left, 50));
    }
  }

  request(n = -1) {
    return this.journal.at(n);
  }

  async close() {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  #wake() {
    for (const wake of this.#waiters) wake();
    this.#waiters.clear();
  }

  #woken(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      const waiters = this.#waiters;
      function done() {
        clearTimeout(timer);
        waiters.delete(done);
        resolve();
      }
      waiters.add(done);
    });
  }

  async take(req, res) {
    req.socket.mockId ??= ++this.#sockets;
    const entry = {
      n: this.journal.length, at: performance.now(), method: req.method,
      path: req.url, headers: req.headers, rawHeaders: req.rawHeaders,
      connection: req.socket.mockId, body: Buffer.alloc(0), json: undefined,
      bytesSent: 0, ended: false, closedAt: undefined,
    };
    const parts = [];
    let size = 0;
    try {
      for await (const part of req) {
        size += part.length;
        if (size > MAX_BODY) throw new Error('body too large');
        parts.push(part);
      }
    } catch {
      return;
    }
    entry.body = Buffer.concat(parts);
    try {
      entry.json = JSON.parse(entry.body.toString('utf8'));
    } catch { /* the test sees that json is undefined */ }
    this.journal.push(entry);

    // when the peer leaves before the script has ended
    res.on('close', () => {
      if (!entry.ended) entry.closedAt = performance.now();
      this.#wake();
    });
    this.#wake();

    const planned = this.#plans.shift();
    const steps = typeof planned === 'function' ? planned(entry)
      : planned ?? this.answer?.(entry) ?? planFor(entry.json);
    try {
      await this.#play(steps, entry, req.socket, res);
    } catch (error) {
      if (!res.destroyed) res.destroy();
      entry.error = error;
    }
    this.#wake();
  }

  async #play(steps, entry, socket, res) {
    let raw = false;
    const write = (bytes) => this.#write(raw ? socket : res, bytes, entry);
    const head = (status = 200, headers = {}) => {
      if (!raw && !res.headersSent) {
        res.writeHead(status, { 'content-type': 'text/event-stream', ...headers });
        res.flushHeaders();
        socket.setNoDelay(true);
      }
    };

    for (const step of steps) {
      if (res.destroyed && !raw) return;
      if (step.status !== undefined || step.headers !== undefined) {
        head(step.status, step.headers);
      } else if (step.raw !== undefined) {
        raw = true;
        await write(step.raw);
      } else if (step.json !== undefined) {
        const body = JSON.stringify(step.json);
        head(200, {
          'content-type': 'application/json', 'content-length': Buffer.byteLength(body),
        });
        await write(body);
      } else if (step.send !== undefined) {
        head();
        for (let n = 0; n < (step.times ?? 1); n++) {
          for (const bytes of [step.send].flat()) await this.#send(write, bytes, step);
        }
      } else if (step.wait !== undefined) {
        await sleep(step.wait);
      } else if (step.until !== undefined) {
        while (!this.#signals.has(step.until) && !socket.destroyed) {
          await this.#woken(1000);
        }
      } else if (step.call !== undefined) {
        await step.call(entry);
      } else if (step.reset) {
        entry.ended = true;
        socket.resetAndDestroy();
        return;
      } else if (step.cut) {
        entry.ended = true;
        socket.destroySoon();
        return;
      } else if (step.hang) {
        while (!socket.destroyed) await this.#woken(1000);
        return;
      } else if (!step.end) {
        throw new Error(`mock model: unknown step ${JSON.stringify(step)}`);
      }
    }
    head();
    entry.ended = true;
    if (raw) socket.end();
    else res.end();
  }

  async #send(write, bytes, { split, gap }) {
    const all = Buffer.from(bytes);
    const size = split ?? all.length;
    for (let at = 0; at < all.length; at += size) {
      await write(all.subarray(at, at + size));
      if (split !== undefined) await sleep(gap ?? 0);
    }
  }

  // honours back-pressure: the bytes of a slow reader are not piled up here
  #write(stream, bytes, entry) {
    if (stream.destroyed) return undefined;
    const length = Buffer.byteLength(bytes);
    return new Promise((resolve) => {
      const done = () => {
        entry.bytesSent += length;
        stream.off('close', done);
        resolve();
      };
      stream.on('close', done);
      stream.write(bytes, done);
    });
  }
}

/**
 * What the model does without a plan. Lines of the last user message:
 *   @call NAME {json}   calls this tool (several lines = several calls in one turn)
 *   @rounds N           does so in the first N turns (1)
 *   @slow MS            waits between the pieces of its answer
 * Else, and after the last round, it says what it got.
 */
export function planFor(request) {
  const messages = request?.messages;
  if (!Array.isArray(messages)) {
    return [{ status: 400, headers: { 'content-type': 'application/json' } },
      { send: '{"error":{"message":"no messages","code":"bad"}}' }];
  }
  const from = messages.findLastIndex((m) => m.role === 'user');
  const said = from < 0 ? '' : contentText(messages[from].content);
  const calls = [...said.matchAll(/^@call +(\S+) *(.*)$/gm)]
    .map(([, name, args]) => ({ name, args: args || '{}' }));
  const rounds = Number(said.match(/^@rounds +(\d+)/m)?.[1] ?? 1);
  const gap = Number(said.match(/^@slow +(\d+)/m)?.[1] ?? 0);
  const after = messages.slice(from + 1);
  const turns = after.filter((m) => m.role === 'assistant').length;
  const results = after.filter((m) => m.role === 'tool').map((m) => contentText(m.content));
  const calling = calls.length > 0 && turns < rounds && request.tool_choice !== 'none';
  const numbered = calls.map((c, n) => ({ ...c, id: `call_${turns}_${n}` }));
  const pieces = results.length > 0
    ? ['results: ', results.join(' | ')] : ['You said: ', said];
  const tokens = [10 * messages.length, calling ? 4 : 6];

  if (!request.stream) {
    return [{
      json: wholeAnswer(calling ? { calls: numbered, tokens }
        : { content: pieces.join(''), tokens }),
    }];
  }
  const events = (calling ? callTurn(numbered) : textTurn(...pieces))
    .filter((bytes) => bytes !== DONE);
  if (request.stream_options?.include_usage) events.push(usage(...tokens));
  events.push(DONE);
  return events.flatMap((bytes) => [{ send: bytes }, { wait: gap }]);
}

function contentText(content) {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map((p) => p.text ?? '').join(' ');
  return '';
}
