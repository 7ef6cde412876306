// Every code that this product can answer with is named in a test, and so is every case
// of the data sets. Finds names only: whether the test is a good one, its reader judges.

import fs from 'node:fs';
import path from 'node:path';
import { DATA, Tap, read, treeFiles } from './files.mjs';

// themes of field-cases.md whose subject is built: each of their cases needs a test
const BUILT_THEMES = ['Streamed answers and tool-call fragments'];

// what no request and no peer can bring about from outside
const NOT_FROM_OUTSIDE = {
  internal_error: 'it is the answer when memory runs out or a fault of our own shows',
};

const tap = new Tap();
const files = treeFiles();
const isTest = (f) => /^t\/.*\.(c|h|mjs|js|t|pm)$/.test(f) && !f.startsWith('t/tree/');
// this one only reads the table itself
const tests = files.filter((f) => isTest(f) && f !== 't/unit/test_error.c');
const testText = tests.map(read).join('\n');
const words = new Set(testText.match(/[A-Za-z][A-Za-z0-9_]*(?:-\d+)?/g));
const sources = files.filter((f) => /^(core|ngx_module|helper)\/.*\.[ch]$/.test(f));

const tables = ['core/tg_error.c', ...files.filter((f) => /^core\/tg_policy.*\.c$/.test(f))];
const codes = new Map();
for (const table of tables.filter((f) => files.includes(f))) {
  for (const [, code] of read(table).matchAll(/^\s*\{\s*"([a-z][a-z0-9_]+)",/gm)) {
    codes.set(code, table);
  }
}
tap.ok(codes.size > 20, `the tables have ${codes.size} codes`);

for (const [code, table] of [...codes].sort()) {
  const users = sources.filter((f) => f !== table && read(f).includes(`"${code}"`)
    || f === table && read(f).split(`"${code}"`).length > 2);
  if (words.has(code)) tap.ok(true, `${code} is named in a test`);
  else if (code in NOT_FROM_OUTSIDE) tap.skip(code, NOT_FROM_OUTSIDE[code]);
  else if (users.length === 0) tap.skip(code, 'nothing answers with it yet');
  else tap.ok(false, `${code} is named in a test`, [`used in ${users.join(', ')}`]);
}

function cases(file, check) {
  const name = path.join(DATA, file);
  if (fs.existsSync(name)) check(fs.readFileSync(name, 'utf8'));
  else tap.skip(file, 'the data set is not here');
}

// a table-driven test runs the whole file, so the file's name is what it names
for (const file of ['netguard-cases.jsonl', 'text-clean-cases.jsonl']) {
  cases(file, () => tap.ok(testText.includes(file), `a test runs ${file}`));
}

cases('field-cases.md', (text) => {
  for (const section of text.split(/^## /m).slice(1)) {
    const theme = section.slice(0, section.indexOf('\n'));
    const ids = [...section.matchAll(/^### (C\d{3})/gm)].map((m) => m[1]);
    const missing = ids.filter((id) => !words.has(id));
    if (BUILT_THEMES.includes(theme)) {
      for (const id of ids) tap.ok(words.has(id), `${id} is named in a test`, [theme]);
    } else if (missing.length > 0) {
      tap.skip(`${theme}: ${ids.length - missing.length} of ${ids.length} named`,
        `its subject is not built whole: ${missing.join(' ')}`);
    } else if (ids.length > 0) {
      tap.ok(true, `${theme}: all ${ids.length} named`);
    }
  }
});

cases('sandbox-abuse-cases.md', (text) => {
  for (const section of text.split(/^## /m).slice(1)) {
    const theme = section.slice(0, section.indexOf('\n'));
    const ids = [...section.matchAll(/^\| ([A-Z]\d{2,3}) \|/gm)].map((m) => m[1]);
    const missing = ids.filter((id) => !words.has(id));
    if (ids.length === 0) continue;
    if (missing.length === 0) tap.ok(true, `${theme}: all ${ids.length} named`);
    else {
      tap.skip(`${theme}: ${ids.length - missing.length} of ${ids.length} named`,
        `the helper is not built whole: ${missing.join(' ')}`);
    }
  }
});

tap.end();
