// A proxy on a unix socket between nginx and a real Redis, by which a test gets hold of
// the very moment of a command: before it reaches Redis, or when Redis has done it and
// nginx has not heard of it yet. Bytes pass unchanged in both directions; commands of a
// connection keep their order, so one that is held holds those behind it, as a slow
// Redis would. It knows the names of our scripts and nothing of what they do.
//
//   const proxy = await startRedisProxy(redis.socket);     proxy.socket is for nginx
//   await proxy.once('before', 'script:run_intent', () => { kill(); return 'drop'; });
//   const held = proxy.hold('after', 'XADD');  await held.come;  held.release();
//   proxy.count('script:run_intent'), proxy.drop(), proxy.refusing = true
//
// A hook is called with { name, words, keys, args, at, connection, reply }: name is
// "script:" and the name of its file for EVALSHA and EVAL of conf/redis/*.lua, else the
// command in upper case; words are Buffers; keys and args are those of a script, as
// text; reply, only in "after", is what parseReply makes. What it returns (or resolves
// to) says what follows: 'drop' closes the connection instead of passing the command or
// the answer on, all else passes it.

import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { REPO, tempDir } from './stack.mjs';

const MAX_NESTING = 32;
const JOURNAL = 100_000;          // names that are remembered
const CR = 13;

const sha1 = (bytes) => crypto.createHash('sha1').update(bytes).digest('hex');

function scriptNames(dir = path.join(REPO, 'conf/redis')) {
  return new Map(fs.readdirSync(dir).filter((file) => file.endsWith('.lua'))
    .map((file) => [sha1(fs.readFileSync(path.join(dir, file))), path.basename(file, '.lua')]));
}

export async function startRedisProxy(to) {
  const proxy = new RedisProxy(to);
  await proxy.listen();
  return proxy;
}

/** Thrown by a parser when the value goes on after the bytes that are there. */
class More extends Error {
  constructor(wanted) {
    super('incomplete');
    this.wanted = wanted;
  }
}

function line(bytes, at) {
  const end = bytes.indexOf(CR, at);
  if (end < 0 || end + 1 >= bytes.length) throw new More(bytes.length + 1);
  return [bytes.toString('latin1', at, end), end + 2];
}

/**
 * The value at an offset, and where it ends: numbers, strings, Buffers for bulk
 * strings, null, arrays, and an Error for an error reply.
 */
export function parseReply(bytes, at = 0, depth = 0) {
  if (depth > MAX_NESTING) throw new Error('RESP: nested too deeply');
  const [head, next] = line(bytes, at);
  const rest = head.slice(1);
  const size = Number(rest);
  const many = (count) => {
    const items = [];
    let end = next;
    for (let n = 0; n < count; n++) {
      const item = parseReply(bytes, end, depth + 1);
      items.push(item.value);
      end = item.end;
    }
    return { value: items, end };
  };
  switch (head[0]) {
    case '+': case ',': case '(': case '#': return { value: rest, end: next };
    case '-': return { value: new Error(rest), end: next };
    case ':': return { value: size, end: next };
    case '_': return { value: null, end: next };
    case '$': case '=': case '!': {
      if (size < 0) return { value: null, end: next };
      if (next + size + 2 > bytes.length) throw new More(next + size + 2);
      return { value: bytes.subarray(next, next + size), end: next + size + 2 };
    }
    case '*': case '~': case '>': return size < 0 ? { value: null, end: next } : many(size);
    case '%': case '|': return many(2 * size);
    default: throw new Error(`RESP: ${JSON.stringify(head.slice(0, 40))}`);
  }
}

/** Cuts a stream into whole values; a long one is not looked through for each part of it. */
class Cutter {
  #parts = [];
  #size = 0;
  #wanted = 1;

  add(part) {
    this.#parts.push(part);
    this.#size += part.length;
  }

  /** { value, bytes } of the next whole one, or undefined. */
  next() {
    if (this.#size < this.#wanted) return undefined;
    const all = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
    this.#parts = [all];
    try {
      const { value, end } = parseReply(all);
      this.#parts = [all.subarray(end)];
      this.#size -= end;
      this.#wanted = 1;
      return { value, bytes: all.subarray(0, end) };
    } catch (error) {
      if (!(error instanceof More)) throw error;
      this.#wanted = error.wanted;
      return undefined;
    }
  }

  /** What is left, as it is. */
  rest() {
    return Buffer.concat(this.#parts.splice(0));
  }
}

function write(socket, bytes) {
  return new Promise((resolve) => {
    if (socket.destroyed || bytes.length === 0 || socket.write(bytes)) return resolve();
    const done = () => {
      socket.off('drain', done);
      socket.off('close', done);
      resolve();
    };
    socket.on('drain', done);
    socket.on('close', done);
    return undefined;
  });
}

function fits(name, command) {
  if (typeof name === 'function') return name(command);
  return name instanceof RegExp ? name.test(command.name) : name === command.name;
}

/** Of EVAL and EVALSHA: their keys and arguments. */
function scriptWords(words) {
  const count = Number(words[2]);
  const texts = words.slice(3).map((word) => word.toString('latin1'));
  return { keys: texts.slice(0, count), args: texts.slice(count) };
}

class RedisProxy {
  /** Every command: (command) => 'drop' or anything else. */
  before;
  after;
  /** Whether new connections are closed at once. */
  refusing = false;
  /** Names of the commands that Redis was given, in order. */
  journal = [];
  /** What went wrong here, for a test to look at. */
  errors = [];
  #to;
  #dir = tempDir('toolgate-redis-proxy-');
  #scripts = scriptNames();
  #counts = new Map();
  #watches = new Set();
  #links = new Set();
  #made = 0;

  constructor(to) {
    this.#to = to;
    this.socket = path.join(this.#dir, 'redis.sock');
  }

  async listen() {
    this.server = net.createServer((client) => this.#take(client));
    await new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(this.socket, resolve);
    });
    fs.chmodSync(this.socket, 0o777);
  }

  /** How often Redis was given this command; a script that it did not know is not counted. */
  count(name) {
    return this.#counts.get(name) ?? 0;
  }

  /** Connections that are open. */
  get connections() {
    return this.#links.size;
  }

  clear() {
    this.#counts.clear();
    this.#watches.clear();
    this.journal.length = 0;
    this.before = undefined;
    this.after = undefined;
  }

  /** Closes every connection, as a server that restarts does. */
  drop() {
    for (const link of this.#links) link.close();
  }

  /**
   * Calls fn at the nth command from now with this name (a string, a pattern, or a
   * function of the command), once. Resolves with the command when fn is through.
   */
  once(when, name, fn = () => {}, nth = 1) {
    if (when !== 'before' && when !== 'after') throw new Error(`"${when}"?`);
    return new Promise((resolve, reject) => {
      this.#watches.add({ when, name, fn, left: nth, resolve, reject });
    });
  }

  /** Holds the nth such command: { come, release(action) }. */
  hold(when, name, nth = 1) {
    let release;
    let came;
    const released = new Promise((resolve) => { release = resolve; });
    const come = new Promise((resolve) => { came = resolve; });
    this.once(when, name, (command) => {
      came(command);
      return released;
    }, nth).catch((error) => this.errors.push(error));
    return { come, release };
  }

  async close() {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.drop();
    await closed;
    fs.rmSync(this.#dir, { recursive: true, force: true });
  }

  #name(words) {
    const verb = words[0]?.toString('latin1').toUpperCase() ?? '';
    if ((verb !== 'EVALSHA' && verb !== 'EVAL') || words.length < 2) return verb;
    const sum = verb === 'EVAL' ? sha1(words[1]) : words[1].toString('latin1').toLowerCase();
    return `script:${this.#scripts.get(sum) ?? sum}`;
  }

  /** Whether the command, or its answer, is to be passed on. */
  async #hook(when, command) {
    let action = await this[when]?.(command);
    for (const watch of [...this.#watches]) {
      const { name } = watch;
      if (watch.when !== when || !fits(name, command)) continue;
      watch.left--;
      if (watch.left > 0) continue;
      this.#watches.delete(watch);
      try {
        action = await watch.fn(command) ?? action;
        watch.resolve(command);
      } catch (error) {
        watch.reject(error);
      }
    }
    return action !== 'drop';
  }

  #take(client) {
    const server = net.connect(this.#to);
    const link = { pending: [], id: ++this.#made, loose: false };
    link.close = () => {
      client.destroy();
      server.destroy();
      this.#links.delete(link);
    };
    for (const socket of [client, server]) {
      socket.on('error', link.close);
      socket.on('close', link.close);
    }
    this.#links.add(link);
    if (this.refusing) {
      link.close();
      return;
    }
    const failed = (error) => {
      // of a connection that was closed nobody reads on
      if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') this.errors.push(error);
      link.close();
    };
    this.#commands(link, client, server).then(link.close, failed);
    this.#replies(link, client, server).then(link.close, failed);
  }

  async #commands(link, client, server) {
    const cutter = new Cutter();
    for await (const part of client) {
      cutter.add(part);
      for (let found; (found = cutter.next()) !== undefined;) {
        const words = found.value;
        const command = { name: this.#name(words), words, at: performance.now(), connection: link.id };
        if (command.name.startsWith('script:')) Object.assign(command, scriptWords(words));
        if (!await this.#hook('before', command) || client.destroyed) return;
        this.#counts.set(command.name, this.count(command.name) + 1);
        if (this.journal.length < JOURNAL) this.journal.push(command.name);
        link.pending.push(command);
        if (/^(P|S)?SUBSCRIBE$|^MONITOR$/.test(command.name)) link.loose = true;
        await write(server, found.bytes);
      }
    }
  }

  async #replies(link, client, server) {
    const cutter = new Cutter();
    for await (const part of server) {
      cutter.add(part);
      // what is published comes without being asked for
      if (link.loose) {
        await write(client, cutter.rest());
        continue;
      }
      for (let found; (found = cutter.next()) !== undefined;) {
        const command = link.pending.shift();
        command.reply = found.value;
        if (command.reply instanceof Error && command.reply.message.startsWith('NOSCRIPT')) {
          // it comes once more, as EVAL
          this.#counts.set(command.name, this.count(command.name) - 1);
        } else if (!await this.#hook('after', command)) {
          return;
        }
        await write(client, found.bytes);
      }
    }
  }
}
