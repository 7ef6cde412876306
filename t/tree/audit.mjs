// What must not be in the tree: credentials, paths and hosts of somebody's machine, files
// that a build makes, marks of unfinished work, scripts that cannot be run.

import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { REPO, Tap, read, treeFiles } from './files.mjs';

const tap = new Tap();
const files = treeFiles();
const self = 't/tree/audit.mjs';
const texts = files.filter((f) => f !== self && !read(f).slice(0, 8000).includes('\0'));

/** Lines that match, but for those that a test needs as an example. */
function lines(pattern, { among = texts, except = () => false } = {}) {
  const found = [];
  for (const f of among) {
    read(f).split('\n').forEach((line, n) => {
      if (pattern.test(line) && !except(line, f)) found.push(`${f}:${n + 1}: ${line.trim().slice(0, 120)}`);
    });
  }
  return found;
}

function none(name, found) {
  tap.ok(found.length === 0, name, found.slice(0, 40));
}

// vectors of signature tests are public, and say so by their name
const vector = (line, f) => f.startsWith('t/') && /example|test|vector|whsec_/i.test(line);

none('no private key', lines(/-----BEGIN [A-Z ]*PRIVATE KEY-----/));
none('no key of a known vendor', lines(
  /\b(sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30,}|xox[abp]-[A-Za-z0-9-]{20,}|AIza[0-9A-Za-z_-]{35}|e2b_[0-9a-f]{40})\b/));
none('no key of ours', lines(/\btg_[A-Za-z0-9]{40,}\b/));
none('no signing secret', lines(/\bwhsec_[A-Za-z0-9+/=]{24,}/, { except: vector }));
none('no bearer token', lines(/Bearer [A-Za-z0-9._-]{32,}/, { except: vector }));
none('no password in a URL', lines(/\b[a-z][a-z0-9+]*:\/\/[^\s/:@'"`$]+:[^\s/@'"`$]{6,}@/, {
  // the guard's cases are about just such URLs
  except: (line, f) => f.startsWith('t/') || f.startsWith('core/'),
}));

const parent = path.dirname(REPO);
none('no path of this machine', parent === '/' ? []
  : lines(new RegExp(`${parent.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}/`)));
none('no home folder', lines(/\/(home|Users)\/[a-z][a-z0-9_-]+\//, {
  // paths inside of a sandbox
  except: (line) => /\/home\/(user|sandbox|agent)\//.test(line),
}));
none('no package registry host', lines(
  /registry\.npmjs\.org|deb\.debian\.org|snapshot\.debian\.org|deb\.nodesource\.com|pypi\.org|proxy\.golang\.org/));
none('no mark of unfinished work', lines(/\b(TODO|FIXME|XXX|HACK)\b/, {
  // mktemp's pattern
  except: (line) => /XXXX/.test(line),
}));

none('no generated file', files.filter((f) =>
  /\.(o|a|so|gcda|gcno|pyc|log|pid|sock|swp|orig|rej)$|(^|\/)(package-lock\.json|node_modules|servroot\w*|core\.\d+)(\/|$)/
    .test(f)));
none('no big file', files.filter((f) => fs.statSync(path.join(REPO, f)).size > 1 << 20));
none('no trailing blanks, no carriage returns', lines(/[ \t\r]$/, {
  among: texts.filter((f) => /\.(c|h|mjs|js|sh|pm|t|md|json|conf|in|lua)$/.test(f)
    || f.startsWith('scripts/')),
}));

const scripts = files.filter((f) => read(f).startsWith('#!')
  && /^(scripts|\.ci)\//.test(f));
none('scripts can be run', scripts.filter((f) => {
  try {
    fs.accessSync(path.join(REPO, f), fs.constants.X_OK);
    return false;
  } catch {
    return true;
  }
}));
none('scripts have no syntax error', scripts.filter((f) => /^#!.*\b(bash|sh)\b/.test(read(f)))
  .flatMap((f) => {
    try {
      execFileSync('bash', ['-n', path.join(REPO, f)], { stdio: 'pipe' });
      return [];
    } catch (error) {
      return [`${f}: ${String(error.stderr).split('\n')[0]}`];
    }
  }));

none('every C source says in its first lines what it is for', files.filter((f) =>
  /^(core|ngx_module|helper)\/.*\.[ch]$/.test(f) && !read(f).startsWith('/*')));

tap.end();
