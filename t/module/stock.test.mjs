// The distribution's own nginx.conf with a site of its own: "load_module" and six lines
// more make toolgate work, and the site answers as it did without them.

import test, { after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { startMockModel } from '../lib/mock-model.mjs';
import { freePort } from '../lib/stack.mjs';
import { KEY, startNginx } from './nginx.mjs';

const STOCK = '/etc/nginx/nginx.conf';
const here = fs.existsSync(STOCK);
const skip = here ? false : `there is no ${STOCK}`;

const model = await startMockModel();
after(() => model.close());

const SIX = `
toolgate_zone tg 10m;
toolgate_admin_key @DIR@/admin.key;
toolgate_catalog @DIR@/catalog.json;
toolgate_model default location=/_model;
server {
  listen 127.0.0.1:@API@;
  location /v1/ { toolgate_api; }
  location = /_model { internal; proxy_pass ${model.url}/v1/chat/completions; }
}
`;

const SITE = `server {
  listen 127.0.0.1:@SITE@;
  root @DIR@/html;
  location / { try_files $uri $uri/ =404; }
  location /old { return 301 /index.html; }
  location /app/ { proxy_pass http://127.0.0.1:@SITE@/index.html; }
  location /small/ { client_max_body_size 4; proxy_pass http://127.0.0.1:@SITE@/index.html; }
}
`;

/** Starts the stock configuration, its paths moved into a folder of the test. */
async function start(withToolgate) {
  const nginx = await startNginx({ quiet: true, files: {} });
  const dir = nginx.dir;
  const site = await freePort();
  const api = await freePort();
  const put = (text) => text.replaceAll('@DIR@', dir).replaceAll('@SITE@', site).replaceAll('@API@', api);
  for (const folder of ['html', 'conf.d', 'sites-enabled', 'cache']) fs.mkdirSync(path.join(dir, folder));
  fs.writeFileSync(path.join(dir, 'html/index.html'), `<html>${'the site '.repeat(200)}</html>\n`);
  fs.writeFileSync(path.join(dir, 'catalog.json'), '{"agents":[{"name":"a","model":"default"}]}');
  fs.writeFileSync(path.join(dir, 'sites-enabled/default'), put(SITE));
  if (withToolgate) fs.writeFileSync(path.join(dir, 'conf.d/toolgate.conf'), put(SIX));

  const load = /load_module .*;/.exec(nginx.conf)[0];
  const stock = fs.readFileSync(STOCK, 'utf8')
    .replace(/^user .*$/m, process.getuid() === 0 ? 'user root;' : '')
    .replace('worker_processes auto;', 'worker_processes 1; daemon off;')
    .replaceAll('/run/nginx.pid', `${dir}/nginx.pid`)
    .replaceAll('/var/log/nginx', `${dir}/logs`)
    .replace(/^error_log (\S+);$/m, 'error_log $1 info;')
    .replaceAll('/etc/nginx/conf.d', `${dir}/conf.d`)
    .replaceAll('/etc/nginx/sites-enabled', `${dir}/sites-enabled`)
    // other modules of the machine are not part of this
    .replace(/^include .*modules-enabled.*$/m, withToolgate ? load : '')
    .replace('http {', `http { client_body_temp_path ${dir}/cache; proxy_temp_path ${dir}/cache; fastcgi_temp_path ${dir}/cache;
      uwsgi_temp_path ${dir}/cache; scgi_temp_path ${dir}/cache;`);
  fs.writeFileSync(path.join(dir, 'nginx.conf'), stock);
  nginx.port = withToolgate ? api : site;
  nginx.url = `http://127.0.0.1:${nginx.port}`;
  nginx.site = site;
  nginx.plain = !withToolgate;
  await nginx.start();
  return nginx;
}

const REQUESTS = [
  ['/', {}], ['/index.html', { headers: { 'accept-encoding': 'gzip' } }], ['/none', {}], ['/old', {}], ['/app/', {}],
  ['/index.html', { headers: { range: 'bytes=1-5' } }], ['/index.html', { method: 'HEAD' }], ['/small/', { body: '12345' }],
  ['/app/', { body: 'x=1', headers: { 'content-type': 'text/plain' } }], ['/v1/models', {}],
];

async function answers(nginx) {
  const all = [];
  for (const [pathname, options] of REQUESTS) {
    const a = await nginx.request(pathname, { key: null, port: nginx.site, ...options });
    const { date, etag, 'last-modified': modified, ...headers } = a.headers;
    if (headers.location) headers.location = headers.location.replace(/:\d+/, '');
    all.push({ pathname, status: a.status, headers, body: a.bytes.toString('latin1') });
  }
  return all;
}

test('the other site answers as it did; six lines and toolgate works', { skip }, async () => {
  const before = await start(false);
  const wanted = await answers(before);
  await before.stop();
  assert.deepEqual(wanted.map((a) => a.status), [200, 200, 404, 301, 200, 206, 200, 413, 405, 404]);

  const nginx = await start(true);
  try {
    assert.deepEqual(await answers(nginx), wanted);
    const list = await nginx.request('/v1/models');
    assert.deepEqual(list.json.data.map((m) => m.id), ['a', 'default']);
    const chat = await nginx.chat({ model: 'a', messages: [{ role: 'user', content: 'hi' }] });
    assert.equal(chat.json.choices[0].message.content, 'You said: hi');
    const stream = await nginx.stream({ model: 'a', messages: [{ role: 'user', content: 'hi' }] }, { headers: { 'accept-encoding': 'gzip' } });
    assert.ok(stream.done);
    assert.equal(stream.headers['content-encoding'], undefined, 'gzip on does not hold events back');
    assert.equal((await nginx.request('/v1/models', { key: 'wrong-key-0123456789' })).status, 401);
    assert.deepEqual(await answers(nginx), wanted);
    assert.ok(!fs.readFileSync(path.join(nginx.dir, 'logs/access.log'), 'utf8').includes(KEY));
  } finally {
    await nginx.stop();
  }
});
