// A client that sees what a person would see: each event with the time at which it
// came. It can read slowly and leave early. It judges nothing.
//
//   const s = await openSse(url, { key, body });
//   const first = await s.next();          { data, json, event, id, at } or null
//   await s.end();                          all events, in s.events

import http from 'node:http';
import http2 from 'node:http2';

export async function openSse(url, {
  key, body, headers = {}, method = 'POST', bytesPerSecond, signal,
} = {}) {
  const client = new SseClient(bytesPerSecond);
  const payload = body === undefined ? undefined
    : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);

  await new Promise((resolve, reject) => {
    client.started = performance.now();
    client.request = http.request(url, {
      method, agent: false, signal,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(payload === undefined ? {} : {
          'content-type': 'application/json', 'content-length': Buffer.byteLength(payload),
        }),
        ...headers,
      },
    }, (res) => {
      client.attach(res);
      resolve();
    });
    client.request.on('error', (error) => {
      client.fail(error);
      reject(error);
    });
    client.request.end(payload);
  });
  return client;
}

/** The same over HTTP/2 without TLS; session is one of http2.connect(). */
export async function openSseH2(session, pathname, { key, body, headers = {} } = {}) {
  const client = new SseClient();
  client.started = performance.now();
  const stream = session.request({
    [http2.constants.HTTP2_HEADER_METHOD]: 'POST',
    [http2.constants.HTTP2_HEADER_PATH]: pathname,
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    'content-type': 'application/json', ...headers,
  });
  client.request = stream;
  await new Promise((resolve, reject) => {
    stream.once('error', (error) => {
      client.fail(error);
      reject(error);
    });
    stream.once('response', (head) => {
      stream.statusCode = head[http2.constants.HTTP2_HEADER_STATUS];
      stream.headers = head;
      client.attach(stream);
      resolve();
    });
    stream.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  return client;
}

class SseClient {
  events = [];
  comments = [];
  bytes = 0;
  raw = '';
  error = undefined;
  closed = false;
  #rest = '';
  #read = 0;
  #waiters = [];
  #rate;
  #decoder = new TextDecoder();

  constructor(bytesPerSecond) {
    this.#rate = bytesPerSecond;
  }

  attach(res) {
    this.status = res.statusCode;
    this.headers = res.headers;
    this.response = res;
    res.on('data', (part) => this.#data(part));
    res.on('end', () => this.#over());
    res.on('error', (error) => this.fail(error));
    res.on('close', () => this.#over());
  }

  /** The next event, or null when the stream is over; fails after ms. */
  async next(ms = 5000) {
    const deadline = performance.now() + ms;
    while (this.#read >= this.events.length) {
      if (this.closed) return null;
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`no event within ${ms} ms`);
      await this.#change(left);
    }
    return this.events[this.#read++];
  }

  /** Waits for the end of the stream. */
  async end(ms = 30_000) {
    const deadline = performance.now() + ms;
    while (!this.closed) {
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`the stream is not over after ${ms} ms`);
      await this.#change(left);
    }
    return this.events;
  }

  /** All text deltas of a chat stream, joined. */
  get content() {
    return this.events.map((e) => e.json?.choices?.[0]?.delta?.content ?? '').join('');
  }

  get done() {
    return this.events.at(-1)?.data === '[DONE]';
  }

  /** Leaves at once, as a closed browser tab does. */
  leave() {
    this.request.destroy();
  }

  fail(error) {
    this.error ??= error;
    this.#over();
  }

  #over() {
    this.closed = true;
    this.#wake();
  }

  #wake() {
    for (const wake of this.#waiters.splice(0)) wake();
  }

  #change(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#waiters.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #data(part) {
    const at = performance.now();
    this.bytes += part.length;
    if (this.#rate !== undefined) {
      // a slow reader keeps nothing: what it reads is only counted and parsed
      this.response.pause();
      setTimeout(() => this.response.resume(), (part.length / this.#rate) * 1000);
    } else if (this.bytes < 16 << 20) {
      this.raw += part.toString('latin1');
    }
    this.#rest += this.#decoder.decode(part, { stream: true });
    for (;;) {
      const m = /\r?\n\r?\n/.exec(this.#rest);
      if (m === null) break;
      this.#block(this.#rest.slice(0, m.index), at);
      this.#rest = this.#rest.slice(m.index + m[0].length);
    }
    this.#wake();
  }

  #block(block, at) {
    const item = { at, since: at - this.started };
    const data = [];
    for (const line of block.split(/\r?\n/)) {
      if (line.startsWith(':')) this.comments.push({ text: line.slice(1).trim(), at });
      else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
      else if (line.startsWith('event:')) item.event = line.slice(6).trim();
      else if (line.startsWith('id:')) item.id = line.slice(3).trim();
    }
    if (data.length === 0) return;
    item.data = data.join('\n');
    try {
      item.json = JSON.parse(item.data);
    } catch { /* [DONE] */ }
    this.events.push(item);
  }
}
