// The distribution's own nginx.conf with another site in it, plus load_module and six
// lines: toolgate works, and the other site answers as before. Only the paths of that
// file are changed, so that it can run beside the machine's nginx.

import test from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { REPO, freePort, tempDir } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';

const STOCK = '/etc/nginx/nginx.conf';
const BUILD = process.env.TOOLGATE_BUILD ?? path.join(REPO, 'build');
const BINARY = fs.existsSync(path.join(BUILD, 'nginx')) ? path.join(BUILD, 'nginx') : '/usr/sbin/nginx';

/** Starts nginx on this text; resolves to a function that ends it. */
function nginx(dir, text) {
  const file = path.join(dir, 'nginx.conf');
  fs.writeFileSync(file, text);
  const args = ['-p', dir, '-c', file, '-e', path.join(dir, 'error.log')];
  execFileSync(BINARY, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  return async () => {
    const pid = Number(fs.readFileSync(path.join(dir, 'nginx.pid'), 'utf8'));
    process.kill(pid, 'SIGQUIT');
    for (let n = 0; n < 200 && fs.existsSync(path.join(dir, 'nginx.pid')); n++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
}

/** One request on a connection of its own: the server is another one soon. */
function get(url) {
  return new Promise((resolve, reject) => {
    http.get(url, { agent: false, headers: { 'accept-encoding': 'gzip' } }, (res) => {
      const parts = [];
      res.on('data', (part) => parts.push(part));
      res.on('end', () => resolve({ res, body: Buffer.concat(parts).toString('latin1') }));
    }).on('error', reject);
  });
}

async function snapshot(base) {
  const seen = [];
  for (const url of ['/', '/page.html', '/none', '/api/x?y=1', '/old']) {
    const { res, body } = await get(base + url);
    const headers = { ...res.headers };
    delete headers.date;
    seen.push({ url, status: res.statusCode, headers, body });
  }
  return seen;
}

test('six lines in the stock nginx.conf', async (t) => {
  if (!fs.existsSync(STOCK)) {
    t.skip(`there is no ${STOCK}`);
    return;
  }
  const dir = tempDir();
  const model = await startMockModel();
  const [sitePort, apiPort] = [await freePort(), await freePort()];
  const site = path.join(dir, 'site');
  let stop = async () => {};
  t.after(async () => {
    await model.close();
    await stop();
    fs.rmSync(dir, { recursive: true, force: true });
  });

  fs.mkdirSync(site);
  fs.mkdirSync(path.join(dir, 'sites'));
  fs.chmodSync(dir, 0o755);
  fs.writeFileSync(path.join(site, 'index.html'), '<h1>the other site</h1>\n');
  fs.writeFileSync(path.join(site, 'page.html'), 'x'.repeat(20_000));
  fs.writeFileSync(path.join(dir, 'admin.key'), 'key-of-the-stock-test-1\n');
  fs.writeFileSync(path.join(dir, 'catalog.json'), JSON.stringify({
    agents: [{ name: 'a', model: 'default', instructions: 'Be brief.' }],
  }));
  fs.writeFileSync(path.join(dir, 'sites/default'), `server {
    listen 127.0.0.1:${sitePort};
    root ${site};
    location /api/ { add_header X-Site yes; return 200 '{"args":"$args"}'; }
    location = /old { return 301 /page.html; }
  }`);

  const stock = fs.readFileSync(STOCK, 'utf8')
    .replace(/^pid .*;/m, `pid ${dir}/nginx.pid;`)
    .replace(/^error_log .*;/m, `error_log ${dir}/error.log;`)
    .replace(/^(\s*)error_log .*;/gm, `$1error_log ${dir}/error.log;`)
    .replace(/^(\s*)access_log .*;/gm, `$1access_log ${dir}/access.log;`)
    .replace(/^include \/etc\/nginx\/modules-enabled.*;/m, '')
    .replace(/^(\s*)include \/etc\/nginx\/conf\.d.*;/m, '')
    .replace(/^(\s*)include \/etc\/nginx\/sites-enabled.*;/m, `$1include ${dir}/sites/*;`);
  assert.match(stock, /sites\/\*;/, 'the stock file includes its sites');

  stop = nginx(dir, stock);
  const before = await snapshot(`http://127.0.0.1:${sitePort}`);
  await stop();
  stop = async () => {};
  assert.deepEqual(before.map((s) => s.status), [200, 200, 404, 200, 301]);
  assert.equal(before[0].headers['content-encoding'], 'gzip');

  const lines = `
    toolgate_zone tg 1m;
    toolgate_admin_key ${dir}/admin.key;
    toolgate_catalog ${dir}/catalog.json;
    toolgate_model default location=/_model/default;
    server { listen 127.0.0.1:${apiPort}; location /v1/ { toolgate_api; }
      location = /_model/default { internal; proxy_buffering off; proxy_pass ${model.baseUrl}/chat/completions; } }
  `;
  const close = stock.lastIndexOf('}', stock.search(/^#?mail/m) > 0 ? stock.search(/^#?mail/m) : undefined);
  stop = nginx(dir, `load_module ${BUILD}/ngx_http_toolgate_module.so;\n`
    + `${stock.slice(0, close)}${lines}${stock.slice(close)}`);
  assert.deepEqual(await snapshot(`http://127.0.0.1:${sitePort}`), before);

  for (const stream of [false, true]) {
    const res = await fetch(`http://127.0.0.1:${apiPort}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer key-of-the-stock-test-1', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'a', stream, messages: [{ role: 'user', content: 'salam' }] }),
    });
    assert.equal(res.status, 200);
    assert.match(await res.text(), stream ? /salam[^]*\[DONE\]\n\n$/ : /You said: salam/);
  }
});
