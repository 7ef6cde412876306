// The distribution's own nginx.conf and its default site, then the same with the
// load_module line and six lines more: every answer of the site is the same, byte for
// byte, and toolgate works beside it. Changed in the stock files are only what two
// nginxes cannot share: ports, the pid file, the logs, the site's folder.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { REPO, freePort, tempDir } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { openSse } from '../lib/sse-client.mjs';

const NGINX = process.env.NGINX ?? '/usr/sbin/nginx';
const BUILD = process.env.TOOLGATE_BUILD ?? path.join(REPO, 'build');
const STOCK = '/etc/nginx/nginx.conf';
const SITE = '/etc/nginx/sites-available/default';
const KEY = 'tg_test_0123456789abcdefghij';
const START_MS = 20_000;

const why = process.env.TOOLGATE_ASAN ? 'the distribution\'s own nginx takes no sanitized module'
  : [STOCK, SITE].some((file) => !fs.existsSync(file))
  ? `there is no ${STOCK} or ${SITE}`
  : process.getuid() !== 0 ? 'the stock configuration is for root' : undefined;

let dir;
let model;
const running = [];

before(async () => {
  dir = tempDir('toolgate-site-');
  model = await startMockModel();
  const html = path.join(dir, 'html');
  fs.mkdirSync(path.join(html, 'folder'), { recursive: true });
  fs.writeFileSync(path.join(html, 'index.html'), `<h1>the other site</h1>${'<p>text</p>'.repeat(500)}`);
  fs.writeFileSync(path.join(html, 'data.bin'), Buffer.alloc(300_000, 7));
  fs.writeFileSync(path.join(html, 'folder', 'a.txt'), 'a');
  fs.mkdirSync(path.join(html, 'v1x'));
  fs.writeFileSync(path.join(html, 'v1x', 'index.html'), 'not the API');
  fs.writeFileSync(path.join(dir, 'admin.key'), `${KEY}\n`);
  fs.writeFileSync(path.join(dir, 'catalog.json'), JSON.stringify({
    agents: [{ name: 'helpful', model: 'default', instructions: 'Help.' }],
  }));
});

after(async () => {
  await Promise.all(running.map((nginx) => nginx.stop()));
  await model?.close();
  fs.rmSync(dir, { recursive: true, force: true });
});

/** from in text replaced, which must be there. */
function put(text, from, to) {
  assert.match(text, from, `the stock file has ${from}`);
  return text.replace(from, to);
}

/** The stock files with what is added: lines at the top, in http{}, in the site's server{}. */
async function start(name, { top = '', http = '', server = '' } = {}) {
  const port = await freePort();
  const own = path.join(dir, name);
  fs.mkdirSync(own);

  let site = fs.readFileSync(SITE, 'utf8');
  site = put(site, /^\s*listen 80 default_server;$/m, `listen 127.0.0.1:${port} default_server;`);
  site = site.replace(/^\s*listen \[::\]:80 default_server;$/m, '');
  site = put(site, /root \/var\/www\/html;/, `root ${dir}/html;`);
  site = put(site, /^\tserver_name _;$/m, `\tserver_name _;\n${server}`);
  fs.writeFileSync(path.join(own, 'site'), site);

  let conf = fs.readFileSync(STOCK, 'utf8');
  conf = put(conf, /^pid .*;$/m, `pid ${own}/nginx.pid;`);
  conf = put(conf, /^(\s*)access_log .*;$/m, `$1access_log ${own}/access.log;`);
  conf = conf.replace(/^error_log .*;$/m, '');
  conf = put(conf, /^(\s*)include \/etc\/nginx\/sites-enabled\/\*;$/m, `$1include ${own}/site;`);
  conf = put(conf, /^worker_processes .*;$/m, 'worker_processes 1;');
  conf = put(conf, /^http \{$/m, `http {\n${http}`);
  fs.writeFileSync(path.join(own, 'nginx.conf'),
    `${top}\nerror_log ${own}/error.log notice;\n${conf}`);

  const child = spawn(NGINX, ['-c', path.join(own, 'nginx.conf'), '-g', 'daemon off;'],
    { stdio: ['ignore', 'ignore', 'pipe'] });
  const nginx = { port, child, url: `http://127.0.0.1:${port}` };
  let said = '';
  child.stderr.on('data', (part) => { said += part; });
  const gone = new Promise((resolve) => child.once('close', resolve));
  nginx.log = () => fs.readFileSync(path.join(own, 'error.log'), 'utf8');
  nginx.stop = async () => {
    child.kill('SIGQUIT');
    await gone;
    assert.doesNotMatch(nginx.log(), /\[(alert|crit|emerg)\]/);
  };
  running.push(nginx);
  for (const end = Date.now() + START_MS; ;) {
    if (await raw(port, 'GET / HTTP/1.0\r\n\r\n').then((b) => b.length > 0, () => false)) break;
    assert.ok(child.exitCode === null && Date.now() < end, `nginx does not start:\n${said}`);
    await sleep(30);
  }
  return nginx;
}

/** All bytes that the server answers to these bytes. */
function raw(port, bytes) {
  return new Promise((resolve, reject) => {
    const parts = [];
    const socket = net.connect(port, '127.0.0.1', () => socket.end(bytes));
    socket.on('data', (part) => parts.push(part));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(parts).toString('latin1')));
    socket.setTimeout(10_000, () => socket.destroy(new Error('no end of the answer')));
  });
}

const head = (...lines) => `${lines.join('\r\n')}\r\nHost: site.test\r\nConnection: close\r\n\r\n`;

const REQUESTS = {
  'a page': head('GET / HTTP/1.1'),
  'a page, compressed': head('GET /index.html HTTP/1.1', 'Accept-Encoding: gzip'),
  'its head': head('HEAD /index.html HTTP/1.1'),
  'a big file': head('GET /data.bin HTTP/1.1'),
  'a range of it': head('GET /data.bin HTTP/1.1', 'Range: bytes=10-19,100000-100009'),
  'what has not changed': head('GET /index.html HTTP/1.1', 'If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT'),
  'what is not there': head('GET /none HTTP/1.1'),
  'a folder without its slash': head('GET /folder HTTP/1.1'),
  'a folder without an index': head('GET /folder/ HTTP/1.1'),
  'a method that files do not take': `POST /index.html HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc`,
  'two requests on one connection': `GET /folder/a.txt HTTP/1.1\r\nHost: a\r\n\r\n${head('GET / HTTP/1.1')}`,
  'a path that begins like the API': head('GET /v1x/ HTTP/1.1'),
  'HTTP/1.0': 'GET / HTTP/1.0\r\n\r\n',
  'no request at all': 'nonsense\r\n\r\n',
  'a body that is too big': 'POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\nConnection: close\r\n\r\nx',
  'a host that it does not know': 'GET / HTTP/1.1\r\nHost: other.test\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n',
};

// what differs from one request to the next by itself
const plain = (text) => text.replace(/^Date: .*\r\n/gm, 'Date\r\n')
  .replace(/--\d{20}|boundary=\d{20}/g, 'boundary').replace(/:\d{4,5}\//g, ':PORT/');

test('a stock nginx.conf and its site, then load_module and six lines more', { skip: why }, async (t) => {
  const without = await start('without');
  const six = {
    http: `toolgate_zone tg 10m;
      toolgate_admin_key ${dir}/admin.key;
      toolgate_catalog ${dir}/catalog.json;
      toolgate_model default location=/_model/default;`,
    server: `location /v1/ { toolgate_api; }
      location = /_model/default { internal; proxy_pass ${model.url}/v1/chat/completions; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }`,
  };
  const withIt = await start('with',
    { top: `load_module ${BUILD}/ngx_http_toolgate_module.so;`, ...six });

  await t.test('the site is the same', async () => {
    let same = 0;
    for (const [name, bytes] of Object.entries(REQUESTS)) {
      const [a, b] = [plain(await raw(without.port, bytes)), plain(await raw(withIt.port, bytes))];
      assert.ok(a.startsWith('HTTP/1.') || name === 'HTTP/1.0', `${name}: ${a.slice(0, 60)}`);
      assert.equal(b, a, name);
      same++;
    }
    assert.match(plain(await raw(withIt.port, REQUESTS['a page, compressed'])), /Content-Encoding: gzip/);
    t.diagnostic(`${same} kinds of request answered alike`);
  });

  await t.test('toolgate works beside it, streamed and not, for a model and an agent', async () => {
    const url = `${withIt.url}/v1/chat/completions`;
    for (const name of ['default', 'helpful']) {
      const body = { model: name, messages: [{ role: 'user', content: 'Hello' }] };
      const stream = await openSse(url, { key: KEY, body: { ...body, stream: true } });
      await stream.end();
      assert.equal(stream.status, 200);
      assert.ok(stream.done);
      assert.equal(stream.content, 'You said: Hello');
      assert.equal(stream.headers['content-encoding'], undefined, 'the site\'s gzip is not for events');
      const res = await fetch(url, {
        method: 'POST', body: JSON.stringify(body),
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      });
      assert.equal((await res.json()).choices[0].message.content, 'You said: Hello');
    }
    assert.equal((await fetch(`${withIt.url}/v1/models`)).status, 401);
    assert.equal((await fetch(`${withIt.url}/_model/default`)).status, 404, 'the model is not open');
    assert.equal((await fetch(`${without.url}/v1/models`)).status, 404);
  });

  await t.test('and the site is still the same', async () => {
    for (const [name, bytes] of Object.entries(REQUESTS)) {
      assert.equal(plain(await raw(withIt.port, bytes)), plain(await raw(without.port, bytes)), name);
    }
  });
});
