// Packages of the npm registry for end-to-end tests: scripts/test installs those that
// t/e2e/package.json pins into build/npm/, outside of the source tree.

import path from 'node:path';
import { createRequire } from 'node:module';
import { REPO } from './stack.mjs';

const root = process.env.TOOLGATE_NPM ?? path.join(REPO, 'build/npm');
const requireFrom = createRequire(path.join(root, 'package.json'));

export function npm(name) {
  return requireFrom(name);
}
