// The files of the tree as git sees them (or a walk, where there is no git), for the
// checks that read sources instead of running them.

import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const REPO = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const DATA = process.env.TOOLGATE_TEST_DATA ?? path.join(REPO, '../shared/data');

/** Tracked files, and new ones that git does not ignore. */
export function treeFiles() {
  const listed = execFileSync('git',
    ['-C', REPO, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    { encoding: 'utf8', maxBuffer: 16 << 20 });
  return listed.split('\0').filter((name) => name !== '' && fs.existsSync(path.join(REPO, name)));
}

export const read = (name) => fs.readFileSync(path.join(REPO, name), 'latin1');

/** Prints TAP for [name, ok, details] and { name, skip }, and sets the exit code. */
export class Tap {
  #n = 0;

  ok(condition, name, details = []) {
    this.#n++;
    console.log(`${condition ? 'ok' : 'not ok'} ${this.#n} - ${name}`);
    if (!condition) {
      for (const line of details) console.log(`#   ${line}`);
      process.exitCode = 1;
    }
  }

  skip(name, why) {
    this.#n++;
    console.log(`ok ${this.#n} - ${name} # SKIP ${why}`);
  }

  end() {
    console.log(`1..${this.#n}`);
  }
}
