// A Redis of a test's own: on a unix socket in a folder of its own, with an
// append-only file and dumps, so that a test can look into what is on disk.

import fs from 'node:fs';
import path from 'node:path';
import { spawn, spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { tempDir } from './stack.mjs';

const START_MS = 10_000;

export async function startRedis() {
  const redis = new Redis();
  redis.dir = tempDir('toolgate-redis-');
  redis.socket = path.join(redis.dir, 'redis.sock');
  await redis.start();
  return redis;
}

class Redis {
  async start() {
    this.child = spawn('redis-server', ['--port', '0', '--unixsocket', this.socket,
      '--unixsocketperm', '777', '--dir', this.dir, '--appendonly', 'yes',
      '--appendfsync', 'no', '--save', '', '--daemonize', 'no'], { stdio: 'ignore' });
    this.exited = new Promise((resolve) => this.child.once('close', resolve));
    for (const deadline = Date.now() + START_MS; this.cli('ping') !== 'PONG';) {
      if (Date.now() > deadline) throw new Error('redis-server does not start');
      await sleep(20);
    }
  }

  /** What redis-cli prints for this command, or undefined when it fails. */
  cli(...args) {
    const { status, stdout } = spawnSync('redis-cli', ['-s', this.socket, ...args], { encoding: 'utf8' });
    return status === 0 ? stdout.trimEnd() : undefined;
  }

  /** All bytes that are on disk, an up-to-date dump among them. */
  files() {
    this.cli('config', 'set', 'rdbcompression', 'no');
    this.cli('save');
    return fs.readdirSync(this.dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => fs.readFileSync(path.join(entry.path, entry.name), 'latin1')).join('\n');
  }

  async kill() {
    this.child.kill('SIGKILL');
    await this.exited;
  }

  async stop() {
    await this.kill();
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}
