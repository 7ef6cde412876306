// The control plane's objects: made, shown, listed, changed and deleted, by whom, and
// with which answer. What agents and tools then do is in the other control tests.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { agentsOf, assertError, textTurn } from './fixture.mjs';
import { agentOf, soon, startWorld, toolOf } from './control.mjs';
import { tempDir } from '../lib/stack.mjs';

const URL_OF = 'https://api.example.com/x';
const OTHER = 'key-of-the-other-project-0123';
const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const tool = (name, config, more) => toolOf(name, URL_OF, config, more);

let w;
let dir;
let other;

before(async () => {
  dir = tempDir();
  fs.writeFileSync(`${dir}/value`, 'value-of-the-file\n');
  w = await startWorld({
    agents: agentsOf().slice(0, 3),
    http: 'toolgate_catalog @DIR@/other.json;',
    files: { 'other.json': JSON.stringify({ project: 'filed', api_keys: [{ name: 'k', sha256: sha256(OTHER), scopes: ['admin'] }] }) },
    catalog: { secrets: [{ name: 'FILED', value_file: `${dir}/value`, allowed_hosts: ['api.example.com'] }] },
  });
  other = await w.make('/v1/projects', { name: 'other' });
});
after(async () => {
  await w?.stop();
  fs.rmSync(dir, { recursive: true });
});

const ids = (page) => page.data.map((o) => o.id);
let names = 0;
const fresh = (prefix = 'n') => `${prefix}${++names}`;

test('a tool: 201, shown, changed by a merge patch, deleted', async () => {
  const name = fresh('tool_');
  const made = await w.make('/v1/tools', tool(name, { headers: { 'X-A': '1', 'X-B': '2' }, timeout_ms: 900 }));
  assert.match(made.id, /^tool_[0-9A-Za-z]{22}$/);
  assert.deepEqual([made.object, made.version, made.name, made.effect], ['tool', 1, name, 'read']);
  assert.ok(Math.abs(made.created_at - Date.now() / 1000) < 60);
  assert.deepEqual(await w.ok('GET', `/v1/tools/${made.id}`), made);

  // null removes, objects are merged, arrays are replaced
  const fields = [{ path: 'a' }, { path: 'b', label: 'B' }];
  const changed = await w.ok('PATCH', `/v1/tools/${made.id}`, {
    description: 'y', config: { headers: { 'X-A': null, 'X-C': '3' }, timeout_ms: null, response: { fields } },
  });
  assert.equal(changed.version, 2);
  assert.equal(changed.description, 'y');
  assert.deepEqual(changed.config, {
    ...strip(made.config, 'timeout_ms'), headers: { 'X-B': '2', 'X-C': '3' }, response: { items_path: 'data', fields },
  });

  const gone = await w.ok('DELETE', `/v1/tools/${made.id}`);
  assert.deepEqual(gone, { id: made.id, deleted: true });
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    assertError(await w.api(method, `/v1/tools/${made.id}`, method === 'PATCH' ? { description: 'z' } : undefined), 404, 'not_found');
  }
  // its name is free again
  await w.make('/v1/tools', tool(name));
});

const strip = (object, key) => Object.fromEntries(Object.entries(object).filter(([k]) => k !== key));

test('the effect follows the method until it is named', async () => {
  const made = await w.make('/v1/tools', tool(fresh('e'), { method: 'POST', body: {} }));
  assert.equal(made.effect, 'action');
  const named = await w.ok('PATCH', `/v1/tools/${made.id}`, { effect: 'read' });
  assert.equal(named.effect, 'read');
  const back = await w.ok('PATCH', `/v1/tools/${made.id}`, { effect: null });
  assert.equal(back.effect, 'action');
});

const prop = (more) => ({ parameters: { type: 'object', properties: more, additionalProperties: false } });
const many = (n, fn) => Array.from({ length: n }, (_, i) => fn(i));
const FAULTS = [
  ['invalid_schema', 'config.parameters', { config: prop({ a: { type: 'strin' } }) }],
  ['too_many_parameters', 'config.parameters', { config: prop(Object.fromEntries(many(9, (i) => [`p${i}`, { type: 'string' }]))) }],
  ['reserved_name', 'config.parameters', { config: prop({ secret: { type: 'string' } }) }],
  ['invalid_tool_name', 'name', { name: 'Not-A-Name' }],
  ['invalid_tool_name', 'name', { name: 'a'.repeat(31) }],
  ['tool_name_conflict', 'name', { name: 'transfer_to_human' }],
  ['identity_as_parameter', 'config.parameters', { requires_verified_user: true, config: { url: `${URL_OF}/{{end_user.external_id}}`, ...prop({ 'Customer-ID': { type: 'string' } }) } }],
  ['verified_user_required', 'config.url', { config: { url: `${URL_OF}/{{end_user.external_id}}` } }],
  ['url_not_https', 'config.url', { config: { url: 'ftp://api.example.com/x' } }],
  ['url_host_placeholder', 'config.url', { config: { url: 'https://{{args.h}}.example.com/x', ...prop({ h: { type: 'string' } }) } }],
  ['url_port_not_allowed', 'config.url', { config: { url: 'https://api.example.com:444/x' } }],
  ['address_not_allowed', 'config.url', { config: { url: 'https://10.0.0.1/x' } }],
  ['address_not_allowed', 'config.url', { config: { url: 'https://169.254.169.254/latest' } }],
  ['invalid_url', 'config.url', { config: { url: 'https://u:p@api.example.com/x' } }],
  ['invalid_url', 'config.url', { config: { url: 'https://api.example.com' } }],
  ['invalid_method', 'config.method', { config: { method: 'TRACE' } }],
  ['body_not_allowed', 'config.body', { config: { body: {} } }],
  ['header_not_allowed', 'config.headers', { config: { headers: { 'Webhook-Signature': 'v1,x' } } }],
  ['header_not_allowed', 'config.headers', { config: { headers: { Host: 'a' } } }],
  ['unknown_placeholder', 'config.url', { config: { url: `${URL_OF}/{{args.none}}` } }],
  ['format_not_allowed', 'config', { config: { url: `${URL_OF}/{{args.t}}`, ...prop({ t: { type: 'string', 'x-kagent-format': 'text' } }) } }],
  ['timeout_out_of_range', 'config.timeout_ms', { config: { timeout_ms: 15001 } }],
  ['too_many_fields', 'config.response.fields', { config: { response: { fields: many(13, (i) => ({ path: `f${i}` })) } } }],
  ['invalid_value', 'config.response.max_items', { config: { response: { max_items: 21 } } }],
  ['unknown_field', 'colour', { colour: 'red' }],
  ['unknown_field', 'config.colour', { config: { colour: 'red' } }],
  ['unknown_field', 'config.response.fields[1].colour', { config: { response: { fields: [{ path: 'a' }, { path: 'b', colour: 1 }] } } }],
  ['invalid_tool_name', 'name', { name: undefined }],
  ['invalid_tool_name', 'name', { name: 7 }],
  ['missing_parameter', 'config', { config: undefined }],
  ['invalid_type', 'config', { config: [] }],
];

test('each fault of a tool has its code and names its place; nothing is stored', async () => {
  const before_ = ids(await w.ok('GET', '/v1/tools?limit=100'));
  const whole = await w.make('/v1/tools', tool(fresh('whole')));
  for (const [code, param, { config, ...more }] of FAULTS) {
    const base = tool(fresh('faulty'));
    const body = { ...base, ...more, ...(Array.isArray(config) ? { config } : { config: { ...base.config, ...config } }) };
    if (code === 'missing_parameter') delete body.config;
    const answer = await w.api('POST', '/v1/tools', body);
    assertError(answer, 422, code);
    assert.ok(answer.json.error.param?.startsWith(param), `${code}: ${answer.json.error.param} is not at ${param}`);
    assert.equal(answer.json.error.type, 'invalid_request_error');

    // and so has a change that leads there
    if (config !== undefined && !Array.isArray(config)) {
      assertError(await w.api('PATCH', `/v1/tools/${whole.id}`, { ...more, config }), 422, code);
    }
  }
  assert.deepEqual(await w.ok('GET', `/v1/tools/${whole.id}`), whole);
  assert.deepEqual(ids(await w.ok('GET', '/v1/tools?limit=100')).sort(), [...before_, whole.id].sort());
});

test('a name that is taken: of a tool, of an agent, by a file, by a model', async () => {
  const name = fresh('taken');
  const first = await w.make('/v1/tools', tool(name));
  assertError(await w.api('POST', '/v1/tools', tool(name)), 422, 'tool_name_conflict', 'name');
  assertError(await w.api('POST', '/v1/tools', tool('order_status')), 422, 'tool_name_conflict', 'name');
  const second = await w.make('/v1/tools', tool(fresh('second')));
  assertError(await w.api('PATCH', `/v1/tools/${second.id}`, { name }), 422, 'tool_name_conflict', 'name');
  // renaming frees the old name, and nothing else
  await w.ok('PATCH', `/v1/tools/${first.id}`, { name: fresh('renamed') });
  await w.ok('PATCH', `/v1/tools/${second.id}`, { name });
  assertError(await w.api('POST', '/v1/tools', tool(name)), 422, 'tool_name_conflict');

  const agent = fresh('agent-');
  await w.make('/v1/agents', agentOf(agent));
  assertError(await w.api('POST', '/v1/agents', agentOf(agent)), 409, 'name_conflict', 'name');
  assertError(await w.api('POST', '/v1/agents', agentOf('plain')), 409, 'name_conflict', 'name');
  assertError(await w.api('POST', '/v1/agents', agentOf('m')), 409, 'name_conflict', 'name');
  assertError(await w.api('POST', '/v1/projects', { name: 'other' }), 409, 'name_conflict', 'name');
  assertError(await w.api('POST', '/v1/projects', { name: 'filed' }), 409, 'name_conflict', 'name');
});

test('two at once take one name: one gets it', async () => {
  const name = fresh('raced');
  const answers = await Promise.all(many(6, () => w.api('POST', '/v1/tools', tool(name))));
  assert.deepEqual(answers.map((a) => a.status).sort(), [201, 422, 422, 422, 422, 422]);
  const projects = await Promise.all(many(4, () => w.api('POST', '/v1/projects', { name })));
  assert.deepEqual(projects.map((a) => a.status).sort(), [201, 409, 409, 409]);
  // and the key that was shown is one that works
  const { key } = projects.find((a) => a.status === 201).json.key;
  await w.ok('GET', '/v1/tools', undefined, { key });
});

test('If-Match: the version that was read, or a conflict', async () => {
  const made = await w.make('/v1/tools', tool(fresh('matched')));
  const path = `/v1/tools/${made.id}`;
  const match = (value) => ({ headers: { 'if-match': value } });
  assert.equal((await w.ok('PATCH', path, { description: 'a' }, match('1'))).version, 2);
  assert.equal((await w.ok('PATCH', path, { description: 'b' }, match('"2"'))).version, 3);
  assert.equal((await w.ok('PATCH', path, { description: 'c' }, match('*'))).version, 4);
  assertError(await w.api('PATCH', path, { description: 'd' }, match('3')), 409, 'version_conflict');
  assertError(await w.api('DELETE', path, undefined, match('1')), 409, 'version_conflict');
  assert.equal((await w.ok('GET', path, undefined, match('1'))).description, 'c');
  for (const odd of ['x', '0', '-1', '"', '1, 2', '99999999999999999999']) {
    assertError(await w.api('PATCH', path, { description: 'd' }, match(odd)), 422, 'invalid_value', 'If-Match');
  }
  // raced with the same version: one wins
  const raced = await Promise.all(many(5, (i) => w.api('PATCH', path, { description: `r${i}` }, match('4'))));
  assert.deepEqual(raced.map((a) => a.status).sort(), [200, 409, 409, 409, 409]);
  await w.ok('DELETE', path, undefined, match('5'));

  const secret = '/v1/secrets/MATCHED';
  const value = { value: 'v-0123456789', allowed_hosts: ['a.example.com'] };
  assertError(await w.api('PUT', secret, value, match('1')), 409, 'version_conflict');
  await w.ok('PUT', secret, value);
  assertError(await w.api('PUT', secret, value, match('2')), 409, 'version_conflict');
  assert.equal((await w.ok('PUT', secret, value, match('1'))).version, 2);

  const agent = await w.make('/v1/agents', agentOf(fresh('matched-')));
  assertError(await w.api('POST', `/v1/agents/${agent.id}/publish`, undefined, match('2')), 409, 'version_conflict');
  assert.equal((await w.ok('POST', `/v1/agents/${agent.id}/publish`, undefined, match('1'))).published_version, 1);
});

test('changes without If-Match that are raced all land', async () => {
  const made = await w.make('/v1/agents', agentOf(fresh('raced-'), [], { variables: {} }));
  const answers = await Promise.all(many(12, (i) =>
    w.api('PATCH', `/v1/agents/${made.id}`, { variables: { [`v${i}`]: `${i}` } })));
  assert.deepEqual(answers.map((a) => a.status), many(12, () => 200), answers.map((a) => a.text).join('\n'));
  const now = await w.ok('GET', `/v1/agents/${made.id}`);
  assert.deepEqual(now.variables, Object.fromEntries(many(12, (i) => [`v${i}`, `${i}`])));
  assert.equal(now.version, 13);
});

test('lists: pages, has_more, bounds of limit, odd cursors', async () => {
  const { key } = (await w.make('/v1/projects', { name: 'pages' })).key;
  const options = { key };
  assert.deepEqual(await w.ok('GET', '/v1/tools', undefined, options), { object: 'list', data: [], has_more: false });
  for (let i = 0; i < 23; i++) await w.make('/v1/tools', tool(`t${i}`), options);

  const all = await w.ok('GET', '/v1/tools?limit=100', undefined, options);
  assert.equal(all.data.length, 23);
  assert.equal(all.has_more, false);
  const first = await w.ok('GET', '/v1/tools', undefined, options);
  assert.deepEqual([first.data.length, first.has_more], [20, true]);
  const seen = [];
  for (let after = ''; ;) {
    const page = await w.ok('GET', `/v1/tools?limit=7${after}`, undefined, options);
    seen.push(...ids(page));
    if (!page.has_more) break;
    after = `&after=${page.data.at(-1).id}`;
  }
  assert.deepEqual(seen, ids(all));
  assert.equal((await w.ok('GET', `/v1/tools?after=${seen.at(-1)}`, undefined, options)).data.length, 0);

  for (const odd of ['0', '101', '-1', 'x']) {
    assertError(await w.api('GET', `/v1/tools?limit=${odd}`, undefined, options), 422, 'invalid_value', 'limit');
  }
  assertError(await w.api('GET', '/v1/tools?after=tool_none', undefined, options), 422, 'invalid_value', 'after');
  // a cursor may come percent-encoded
  await w.make('/v1/projects', { name: 'a:b' });
  const projects = ids(await w.ok('GET', '/v1/projects?limit=100'));
  const rest = projects.slice(projects.indexOf('a:b') + 1);
  assert.deepEqual(ids(await w.ok('GET', '/v1/projects?limit=100&after=a%3Ab')), rest);
});

test('a page of big objects ends before its bytes are too many', async () => {
  const { key } = (await w.make('/v1/projects', { name: fresh('big-') })).key;
  const instructions = 'x'.repeat(256 << 10);
  const made = [];
  // together more than an answer may have
  for (let i = 0; i < 66; i++) made.push((await w.make('/v1/agents', agentOf(`big-${i}`, [], { instructions }), { key })).id);
  const seen = [];
  for (let more = true; more;) {
    const after = seen.length ? `&after=${seen.at(-1)}` : '';
    const page = await w.ok('GET', `/v1/agents?limit=100${after}`, undefined, { key });
    assert.ok(page.data.length > 0);
    seen.push(...ids(page));
    more = page.has_more;
  }
  assert.deepEqual(seen.toSorted(), made.toSorted());
});

test('objects of files are shown and cannot be changed', async () => {
  for (const [path, name, change] of [['/v1/tools', 'order_status', { description: 'mine' }], ['/v1/agents', 'plain', { instructions: 'mine' }]]) {
    const shown = (await w.ok('GET', `${path}?limit=100`)).data.find((o) => o.name === name);
    assert.equal(shown.read_only, true);
    assert.deepEqual(await w.ok('GET', `${path}/${shown.id}`), shown);
    assertError(await w.api('PATCH', `${path}/${shown.id}`, change), 409, 'read_only');
    assertError(await w.api('DELETE', `${path}/${shown.id}`), 409, 'read_only');
    if (path === '/v1/agents') {
      assertError(await w.api('POST', `${path}/${shown.id}/publish`), 409, 'read_only');
      assertError(await w.api('GET', `${path}/${shown.id}/none`), 404, 'unknown_url');
    }
  }
  const secret = await w.ok('GET', '/v1/secrets/FILED');
  assert.deepEqual([secret.read_only, secret.allowed_hosts, 'value' in secret], [true, ['api.example.com'], false]);
  assertError(await w.api('PUT', '/v1/secrets/FILED', { value: 'mine', allowed_hosts: ['evil.example.com'] }), 409, 'read_only');
  assertError(await w.api('DELETE', '/v1/secrets/FILED'), 409, 'read_only');
});

test('what is of another project is not there', async () => {
  const { key } = other.key;
  const options = { key };
  const mine = await w.make('/v1/tools', tool('same_name'));
  const theirs = await w.make('/v1/tools', tool('same_name'), options);
  const agent = await w.make('/v1/agents', agentOf('same-name', ['same_name']));
  const published = await w.ok('POST', `/v1/agents/${agent.id}/publish`);
  await w.ok('PUT', '/v1/secrets/MINE', { value: 'v-0123456789', allowed_hosts: ['a.example.com'] });
  const apiKey = await w.make('/v1/api_keys', { name: 'mine', scopes: ['run'] });

  assert.deepEqual(ids(await w.ok('GET', '/v1/tools', undefined, options)), [theirs.id]);
  for (const [path, patch] of [[`/v1/tools/${mine.id}`, { description: 'x' }], [`/v1/agents/${agent.id}`, { instructions: 'x' }],
    ['/v1/secrets/MINE'], [`/v1/api_keys/${apiKey.id}`], [`/v1/agents/${agent.id}/versions`], [`/v1/agents/${agent.id}/versions/1`]]) {
    assertError(await w.api('GET', path, undefined, options), 404, 'not_found');
    if (!path.includes('versions')) assertError(await w.api('DELETE', path, undefined, options), 404, 'not_found');
    if (patch) assertError(await w.api('PATCH', path, patch, options), 404, 'not_found');
  }
  assertError(await w.api('POST', `/v1/agents/${agent.id}/publish`, undefined, options), 404, 'not_found');
  // nor can it be granted, or run
  assertError(await w.api('POST', '/v1/agents', agentOf('thief', [mine.id]), options), 422, 'invalid_value');
  for (const model of ['same-name', agent.id, `${agent.id}@1`]) {
    assertError(await w.node.nginx.chat({ model, messages: [{ role: 'user', content: 'x' }] }, options), 404, 'model_not_found');
  }
  assert.equal(published.published_version, 1);
  assert.notEqual((await w.ok('GET', '/v1/tool_signing_secret', undefined, options)).secret,
    (await w.ok('GET', '/v1/tool_signing_secret')).secret);
});

test('unknown ids, paths and methods', async () => {
  for (const path of ['/v1/tools/none', '/v1/agents/none', '/v1/api_keys/none', '/v1/secrets/NONE', `/v1/tools/${'x'.repeat(3000)}`,
    '/v1/agents/none/publish', '/v1/agents/none/versions']) {
    assertError(await w.api('GET', path), 404, 'not_found');
  }
  const agent = await w.make('/v1/agents', agentOf(fresh('paths-')));
  for (const path of ['/v1/toolsx', '/v1/tool_signing_secret/none', '/v1/tool_signing_secret/rotate/x', '/v1/projects/default',
    `/v1/agents/${agent.id}/none`, `/v1/agents/${agent.id}/versionsx`, `/v1/agents/${agent.id}/publish/x`]) {
    assertError(await w.api('GET', path), 404, 'unknown_url');
  }
  for (const [method, path, allow] of [
    ['PUT', '/v1/tools', 'GET, POST'], ['DELETE', '/v1/tools', 'GET, POST'], ['POST', `/v1/agents/${agent.id}`, 'GET, PATCH, DELETE'],
    ['PUT', `/v1/agents/${agent.id}`, 'GET, PATCH, DELETE'], ['GET', `/v1/agents/${agent.id}/publish`, 'POST'],
    ['POST', `/v1/agents/${agent.id}/versions`, 'GET'], ['POST', '/v1/secrets', 'GET'], ['POST', '/v1/secrets/FILED', 'GET, PUT, DELETE'],
    ['PATCH', '/v1/secrets/FILED', 'GET, PUT, DELETE'], ['POST', '/v1/tool_signing_secret', 'GET'], ['GET', '/v1/tool_signing_secret/rotate', 'POST'],
    ['DELETE', '/v1/projects', 'GET, POST'],
  ]) {
    const answer = await w.api(method, path, method === 'GET' || method === 'DELETE' ? undefined : {});
    assertError(answer, 405, 'method_not_allowed');
    assert.equal(answer.headers.allow, allow, `${method} ${path}`);
  }
  const key = await w.make('/v1/api_keys', { name: 'k', scopes: ['tools'] });
  const patch = await w.api('PATCH', `/v1/api_keys/${key.id}`, { name: 'x' });
  assertError(patch, 405, 'method_not_allowed');
  assert.equal(patch.headers.allow, 'GET, DELETE');
});

const nested = (depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

test('bodies: type, form, size, depth', async () => {
  const post = (body, headers) => w.api('POST', '/v1/tools', body, headers && { headers });
  assertError(await post('{}', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type');
  for (const bad of ['{', '{"a":1,"a":2}', '{"name":"\\ud800"}', '{} x', '{"name":"\\u0000"}', '']) {
    assertError(await post(bad), 400, 'invalid_json');
  }
  assertError(await w.api('POST', '/v1/tools'), 400, 'invalid_json');
  for (const kind of ['[]', '"x"', '1', 'null']) assertError(await post(kind), 422, 'invalid_type');
  assertError(await post(JSON.stringify(tool('big', {}, { description: 'x'.repeat(600_000) }))), 413, 'request_too_large');
  assertError(await post(`{"name":"${'x'.repeat(9 << 20)}"}`), 413, 'request_too_large');
  assertError(await post(nested(129)), 400, 'invalid_json');

  // what is taken can be stored, read, granted and published
  let taken = 0;
  for (let depth = 100; depth <= 127; depth++) {
    const body = JSON.stringify(tool(`deep${depth}`, { method: 'POST', body: '@' })).replace('"@"', nested(depth));
    const answer = await post(body);
    if (answer.status === 400) {
      assertError(answer, 400, 'invalid_json');
      continue;
    }
    assert.equal(answer.status, 201, `${depth}: ${answer.text}`);
    taken = depth;
    await w.ok('GET', `/v1/tools/${answer.json.id}`);
    await w.agent(`deep-${depth}`, [answer.json.id]);
    await w.node.ask([textTurn('ok')], { model: `deep-${depth}` });
  }
  assert.ok(taken >= 100);
  assert.doesNotMatch(w.node.nginx.log(), /cannot be used|cannot run here/);
});

test('a project has so many of a kind and no more', async () => {
  const { key } = (await w.make('/v1/projects', { name: 'full' })).key;
  const answers = [];
  for (let i = 0; i < 1000; i += 50) {
    answers.push(...await Promise.all(many(50, (j) => w.api('POST', '/v1/api_keys', { name: `k${i + j}`, scopes: ['run'] }, { key }))));
  }
  // its first key is one of the thousand
  assert.equal(answers.filter((a) => a.status === 201).length, 999);
  const refused = answers.filter((a) => a.status !== 201);
  assert.equal(refused.length, 1);
  assertError(refused[0], 422, 'too_many_objects');
  await w.ok('DELETE', `/v1/api_keys/${answers.find((a) => a.status === 201).json.id}`, undefined, { key });
  await w.make('/v1/api_keys', { name: 'again', scopes: ['run'] }, { key });
  assertError(await w.api('POST', '/v1/api_keys', { name: 'more', scopes: ['run'] }, { key }), 422, 'too_many_objects');
  // other kinds and other projects have their own room
  await w.make('/v1/tools', tool('room'), { key });
  await w.make('/v1/api_keys', { name: 'room', scopes: ['run'] });
});

test('keys: shown once, in the store only as a digest, deleted ones refused by every worker', async () => {
  const made = await w.make('/v1/api_keys', { name: 'app', scopes: ['run', 'admin'] });
  assert.match(made.id, /^key_[0-9A-Za-z]{22}$/);
  assert.match(made.key, /^tg_[0-9A-Za-z]{44}$/);
  assert.deepEqual([made.object, made.name, made.scopes, made.account_id], ['api_key', 'app', ['run', 'admin'], null]);
  const shown = await w.ok('GET', `/v1/api_keys/${made.id}`);
  assert.deepEqual(shown, strip(made, 'key'));
  const listed = await w.api('GET', '/v1/api_keys?limit=100');
  for (const text of [listed.text, w.redis.files(), w.node.nginx.log()]) assert.ok(!text.includes(made.key));
  assert.ok(!listed.text.includes(sha256(made.key)));

  // many connections reach both workers
  const all = () => Promise.all(many(24, () => w.api('GET', '/v1/tools', undefined, { key: made.key })));
  assert.deepEqual(new Set((await all()).map((a) => a.status)), new Set([200]));
  await w.ok('DELETE', `/v1/api_keys/${made.id}`);
  // the worker that was not told hears of it within a second
  await sleep(1000);
  assert.deepEqual(new Set((await all()).map((a) => a.status)), new Set([401]));
  assertError(await w.api('GET', '/v1/tools', undefined, { key: made.key }), 401, 'invalid_api_key');
});

test('keys: what a new one may be', async () => {
  for (const [body, code, param] of [
    [{ scopes: ['run'] }, 'missing_parameter', 'name'], [{ name: 'k' }, 'missing_parameter', 'scopes'],
    [{ name: 7, scopes: ['run'] }, 'invalid_type', 'name'], [{ name: '', scopes: ['run'] }, 'invalid_value', 'name'],
    [{ name: 'k', scopes: [] }, 'invalid_value', 'scopes'], [{ name: 'k', scopes: ['root'] }, 'invalid_value', 'scopes'],
    [{ name: 'k', scopes: ['run', 'run'] }, 'invalid_value', 'scopes'], [{ name: 'k', scopes: 'run' }, 'invalid_value', 'scopes'],
    [{ name: 'k', scopes: ['run'], account_id: 'a b' }, 'invalid_value', 'account_id'],
    [{ name: 'k', scopes: ['run'], account_id: 'a'.repeat(65) }, 'invalid_value', 'account_id'],
    [{ name: 'k', scopes: ['run'], sha256: sha256('mine') }, 'unknown_field', 'sha256'],
    [{ name: 'k', scopes: ['run'], root: true }, 'unknown_field', 'root'],
  ]) assertError(await w.api('POST', '/v1/api_keys', body), 422, code, param);
});

test('scopes: each opens its own doors; admin implies nothing; projects are for the file\'s key', async () => {
  const keys = Object.fromEntries(await Promise.all(['admin', 'run', 'approve', 'tools'].map(async (scope) =>
    [scope, (await w.make('/v1/api_keys', { name: scope, scopes: [scope] })).key])));
  const chat = (key) => w.node.nginx.chat({ model: 'm', messages: [{ role: 'user', content: 'x' }] }, { key });
  for (const [scope, key] of Object.entries(keys)) {
    for (const path of ['/v1/tools', '/v1/agents', '/v1/secrets', '/v1/api_keys', '/v1/tool_signing_secret']) {
      const answer = await w.api('GET', path, undefined, { key });
      if (scope === 'admin') assert.equal(answer.status, 200);
      else assertError(answer, 403, 'insufficient_scope');
    }
    if (scope === 'run') assert.equal((await chat(key)).status, 200);
    else assertError(await chat(key), 403, 'insufficient_scope');
    assertError(await w.api('GET', '/v1/projects', undefined, { key }), 403, 'insufficient_scope');
    assertError(await w.api('POST', '/v1/projects', { name: fresh('p') }, { key }), 403, 'insufficient_scope');
  }
  assertError(await w.api('GET', '/v1/projects', undefined, { key: other.key.key }), 403, 'insufficient_scope');
  assertError(await w.api('GET', '/v1/projects', undefined, { key: OTHER }), 403, 'insufficient_scope');
  assertError(await w.api('GET', '/v1/tools', undefined, { key: null }), 401, 'missing_api_key');
  assertError(await w.api('GET', '/v1/tools', undefined, { key: 'tg_none' }), 401, 'invalid_api_key');
});

test('a key bound to an account acts for no other', async () => {
  const { key, account_id } = await w.make('/v1/api_keys', { name: 'bound', scopes: ['run'], account_id: 'acme' });
  assert.equal(account_id, 'acme');
  const chat = (more, headers) => w.node.nginx.chat({ model: 'm', messages: [{ role: 'user', content: 'x' }], ...more }, { key, headers });
  assert.equal((await chat()).status, 200);
  assert.equal((await chat({ account_id: 'acme' })).status, 200);
  assertError(await chat({ account_id: 'else' }), 403, 'account_mismatch');
  assertError(await chat({}, { 'x-account-id': 'else' }), 403, 'account_mismatch');
});

test('projects: a project and its first key; names', async () => {
  const made = await w.make('/v1/projects', { name: 'Shop_1.x:y-z' });
  assert.deepEqual([made.object, made.name, made.id], ['project', 'Shop_1.x:y-z', 'Shop_1.x:y-z']);
  assert.deepEqual(made.key.scopes.toSorted(), ['admin', 'approve', 'run', 'tools']);
  const { key } = made.key;
  await w.make('/v1/tools', tool('mine'), { key });
  assert.equal((await w.node.nginx.chat({ model: 'm', messages: [{ role: 'user', content: 'x' }] }, { key })).status, 200);
  assert.deepEqual(ids(await w.ok('GET', '/v1/api_keys', undefined, { key })), [made.key.id]);
  const listed = await w.api('GET', '/v1/projects?limit=100');
  assert.ok(ids(listed.json).includes('default') && ids(listed.json).includes('filed') && ids(listed.json).includes(made.id));
  assert.ok(!listed.text.includes(key));
  for (const [body, code, param] of [[{}, 'missing_parameter', 'name'], [{ name: 'a/b' }, 'invalid_value', 'name'],
    [{ name: 'a'.repeat(65) }, 'invalid_value', 'name'], [{ name: 'p', key: 'x' }, 'unknown_field', 'key']]) {
    assertError(await w.api('POST', '/v1/projects', body), 422, code, param);
  }
  assertError(await w.api('POST', '/v1/projects'), 422, 'missing_parameter', 'name');
});

test('secrets: names, values, hosts; the value is never shown', async () => {
  const value = 's3cr3t-0123456789';
  const made = await w.ok('PUT', '/v1/secrets/SHOP_1', { value, allowed_hosts: ['API.Example.com.', '10.0.0.1:8443'] });
  assert.deepEqual([made.name, made.object, made.version, made.allowed_hosts],
    ['SHOP_1', 'secret', 1, ['api.example.com', '10.0.0.1:8443']]);
  const again = await w.ok('PUT', '/v1/secrets/SHOP_1', { value: 'other-value', allowed_hosts: ['b.example.com'] });
  assert.deepEqual([again.version, again.created_at], [2, made.created_at]);
  for (const path of ['/v1/secrets', '/v1/secrets/SHOP_1']) {
    const { text } = await w.api('GET', path);
    assert.doesNotMatch(text, /s3cr3t|other-value|"value"/);
  }
  const hosts = ['a.example.com'];
  for (const name of ['lower', '1A', '_A', 'A-B', 'A'.repeat(65)]) {
    assertError(await w.api('PUT', `/v1/secrets/${name}`, { value, allowed_hosts: hosts }), 422, 'invalid_value', 'name');
  }
  for (const [body, code, param] of [
    [{ allowed_hosts: hosts }, 'missing_parameter', 'value'], [{ value }, 'missing_parameter', 'allowed_hosts'],
    [{ value, allowed_hosts: [] }, 'invalid_value', 'allowed_hosts'], [{ value: 7, allowed_hosts: hosts }, 'invalid_type', 'value'],
    [{ value: '', allowed_hosts: hosts }, 'invalid_value', 'value'], [{ value: 'a\r\nb', allowed_hosts: hosts }, 'invalid_value', 'value'],
    [{ value: 'x'.repeat(5000), allowed_hosts: hosts }, 'invalid_value', 'value'], [{ value, allowed_hosts: ['*.example.com'] }, 'invalid_value'],
    [{ value, allowed_hosts: ['https://a.example.com'] }, 'invalid_value'], [{ value, allowed_hosts: 'a.example.com' }, 'invalid_type'],
    [{ value, allowed_hosts: hosts, ttl: 1 }, 'unknown_field', 'ttl'],
  ]) {
    const answer = await w.api('PUT', '/v1/secrets/BAD', body);
    assertError(answer, 422, code, param);
    assert.ok(!answer.text.includes(value));
  }
  assertError(await w.api('GET', '/v1/secrets/BAD'), 404, 'not_found');
  assert.deepEqual(await w.ok('DELETE', '/v1/secrets/SHOP_1'), { id: 'SHOP_1', deleted: true });
  assertError(await w.api('DELETE', '/v1/secrets/SHOP_1'), 404, 'not_found');
});

test('the signing secret: shown, rotated, the one before it kept', async () => {
  const { key } = (await w.make('/v1/projects', { name: 'signs' })).key;
  const first = await w.ok('GET', '/v1/tool_signing_secret', undefined, { key });
  assert.match(first.secret, /^whsec_[A-Za-z0-9+/]{32}$/);
  assert.equal(first.previous, null);
  const second = await w.ok('POST', '/v1/tool_signing_secret/rotate', undefined, { key });
  assert.match(second.secret, /^whsec_[A-Za-z0-9+/]{32}$/);
  assert.notEqual(second.secret, first.secret);
  assert.equal(second.previous.secret, first.secret);
  assert.ok(Math.abs(second.previous.expires_at - Date.now() / 1000 - 24 * 3600) < 60);
  assert.ok(Math.abs(second.created_at - Date.now() / 1000) < 60);
  await soon(async () => (await Promise.all(many(8, () => w.ok('GET', '/v1/tool_signing_secret', undefined, { key }))))
    .every((s) => JSON.stringify(s) === JSON.stringify(second)), 'every worker shows it');
  const third = await w.ok('POST', '/v1/tool_signing_secret/rotate', {}, { key });
  assert.equal(third.previous.secret, second.secret);
});

test('nothing of this is there without a store, and it says so', async () => {
  const plain = await startWorld({ redis: { socket: '/nowhere' }, agents: agentsOf().slice(0, 2), http: '' });
  try {
    // the store is away from the start
    assertError(await plain.api('GET', '/v1/tools'), 503, 'store_unavailable');
    assertError(await plain.api('POST', '/v1/tools', tool('x')), 503, 'store_unavailable');
    assertError(await plain.api('GET', '/v1/tools', undefined, { key: 'tg_unknown' }), 503, 'store_unavailable');
  } finally {
    await plain.stop();
  }
  const { startFixture } = await import('./fixture.mjs');
  const f = await startFixture();
  try {
    const listed = await f.nginx.request('/v1/tools?limit=100');
    assert.equal(listed.status, 200);
    assert.ok(listed.json.data.every((o) => o.read_only));
    assertError(await f.nginx.request('/v1/tools', { body: tool('x') }), 503, 'store_unavailable');
    assertError(await f.nginx.request('/v1/tool_signing_secret/rotate', { method: 'POST' }), 503, 'store_unavailable');
    assert.equal((await f.nginx.request('/v1/tool_signing_secret')).status, 200);
    assertError(await f.nginx.request('/v1/secrets/A', { method: 'PUT', body: { value: 'v', allowed_hosts: ['a.b'] } }), 503, 'store_unavailable');
  } finally {
    await f.stop();
  }
});
