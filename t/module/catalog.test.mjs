// Every rule of a definition in a catalog file, by "nginx -t": the code, and the file and
// line of the value that is wrong. Each case is one catalog with one fault.

import test from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { startNginx } from './nginx.mjs';
import { makeKey } from '../lib/jwt.mjs';

const nginx = await startNginx({
  quiet: true, catalog: {}, models: { m: [{ url: 'http://127.0.0.1:9' }], default: [{ url: 'http://127.0.0.1:9' }] },
  http: 'toolgate_netguard_allow 127.0.0.0/8 8081 insecure_http; toolgate_own_host own.example;',
  files: { 'good.secret': 'sesame\n', 'empty.secret': '\n', 'odd.secret': 'a\u0007b\n', 'user.secret': `sesame${'x'.repeat(26)}\n` },
});
test.after(() => nginx.stop());

const file = path.join(nginx.dir, 'catalog.json');

/** Writes it with one key a line, and tests the configuration. */
function check(catalog, env) {
  const text = typeof catalog === 'string' ? catalog : JSON.stringify(catalog, null, 1);
  fs.writeFileSync(file, text);
  fs.rmSync(path.join(nginx.dir, 'logs/error.log'), { force: true });
  return { text, ...nginx.test(env) };
}

const tool = (more = {}, config = {}) => ({
  name: 'one', ...more, config: { method: 'GET', url: 'https://api.example.com/x', ...config },
});
const props = (properties, more = {}) => ({ parameters: { type: 'object', properties, ...more } });
const agent = (more = {}, tools) => ({ name: 'a', model: 'm', ...more, ...(tools === undefined ? {} : { tools }) });
const clients = (...client) => ({ agents: [agent({}, { client })] });
const hours = (more) => ({ timezone: 'Asia/Riyadh', days: { sun: [['09:00', '17:00']] }, ...more });
const own = (more) => ({ agents: [agent({ model: { base_url: 'https://api.example.com/v1', name: 'x', ...more } })] });
const sha256 = 'ab'.repeat(32);
const key = (more) => ({ name: 'k', sha256, scopes: ['run'], ...more });
const secret = (more) => ({ name: 'S', value_file: `${nginx.dir}/good.secret`, allowed_hosts: ['a.example'], ...more });
const hmac = 'sesame'.repeat(8);
const userKey = (more) => ({ name: 'u', alg: 'HS256', secret: hmac, ...more });
const fileKey = (more) => ({ name: 'u', alg: 'HS256', secret_file: 'user.secret', ...more });
const ec = makeKey('ES256');

test('what is right is accepted', () => {
  const ok = check({
    project: 'shop', secrets: [secret(), secret({ name: 'T_2', allowed_hosts: ['10.0.0.1:8443'] })], knowledge: [],
    end_user_keys: [userKey(), fileKey({ name: 'f', alg: 'HS512', kid: '1', issuer: 'https://a.example', audience: 'shop' }),
      { name: 'pem', alg: 'ES256', ...ec.register }, { name: 'jwk', alg: 'ES256', public_key: ec.jwk }, { name: 'text', alg: 'ES256', public_key: JSON.stringify(ec.jwk) },
      ...Array.from({ length: 27 }, (_, n) => userKey({ name: `k${n}` }))],
    tools: [tool(), tool({ name: 'a'.repeat(30) }), tool({ name: 'local' }, { url: 'http://127.0.0.1:8081/x' }),
      tool({ name: 'max' }, { timeout_ms: 15000, response: { fields: Array.from({ length: 12 }, (_, n) => ({ path: `f${n}` })), max_items: 20 } }),
      tool({ name: 'eight' }, props(Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`p${n}`, { type: 'string' }]))))],
    agents: [agent({ variables: { x: '1' }, instructions: '{{var.x}}', actions_paused: false, knowledge: { sources: [] } },
      { enabled: true, max_tool_rounds: 5, allow_anonymous_actions: false, builtin: { transfer_to_human: { enabled: true, rules: 'x' } }, client: [],
        http: [{ tool: 'one', rules: 'x'.repeat(4000) }, { tool: 'a'.repeat(30) }], toolset: { include: ['focused'].slice(1), approval_mode: 'off' } }), agent({ name: 'b.c:d-e_f' }),
      agent({ name: 'h', business_hours: hours({ days: { mon: [['00:00', '12:00'], ['12:00', '24:00']], tue: [] }, closed_dates: ['2026-12-25'] }) },
        { builtin: { create_ticket: { hours_only: true } }, http: [{ tool: 'one', hours_only: true }, { tool: 'local', hours_only: false }] }),
      agent({ name: 'client', business_hours: hours() }, {
        client: [{ name: 'a'.repeat(48) }, { name: 'get_cart', description: 'x', parameters: {}, effect: 'read', rules: 'x'.repeat(4000), hours_only: true },
          { name: 'web_search', effect: 'action', parameters: { type: 'object', properties: { q: { type: 'string' } } } }],
        toolset: { approval_mode: 'strict', require_approval: ['get_cart', 'run_command', 'create_ticket'] } }),
      ...['full', 'risk', 'ask'].map((approval_mode) => agent({ name: approval_mode }, { toolset: { approval_mode, require_approval: [] } })),
      ...['https://api.example.com/v1', 'https://api.example.com/v1/', 'https://API.example.com:8443', 'http://127.0.0.1:8081/v1'].map((base_url, n) => ({
        name: `own${n}`, model: { base_url, name: 'vendor/x', ...(n ? { secret: 'S' } : {}) } }))],
    api_keys: [key(), key({ name: 'k2', sha256: 'CD'.repeat(32), scopes: ['admin', 'run', 'approve', 'tools'], account_id: 'acme' })],
  });
  assert.equal(ok.code, 0, ok.text);
});

/** [name, catalog, code, JSON pointer]; the line is that of the pointer's last key. */
const CASES = [
  ['a project that is no label', { project: 'a b' }, 'invalid_value', '/project'],
  ['a project that is no string', { project: 5 }, 'invalid_type', '/project'],
  ['tools that are no list', { tools: {} }, 'invalid_type', '/tools'],
  ['agents that are no list', { agents: 'a' }, 'invalid_type', '/agents'],
  ['end_user_keys that are no list', { end_user_keys: {} }, 'invalid_type', '/end_user_keys'],
  ['knowledge', { knowledge: [{}] }, 'not_implemented', '/knowledge'],

  ['a tool that is no object', { tools: [5] }, 'invalid_type', '/tools/0'],
  ['an unknown field of a tool', { tools: [tool({ colour: 1 })] }, 'unknown_field', '/tools/0/colour'],
  ['an unknown field of its config', { tools: [tool({}, { colour: 1 })] }, 'unknown_field', '/tools/0/config/colour'],
  ['a tool without a config', { tools: [{ name: 'one' }] }, 'missing_parameter', '/tools/0/config'],
  ['C037 a name of 31 characters', { tools: [tool({ name: 'a'.repeat(31) })] }, 'invalid_tool_name', '/tools/0/name'],
  ['C036 a name in capitals', { tools: [tool({ name: 'Order_Status' })] }, 'invalid_tool_name', '/tools/0/name'],
  ['C036 a name with a hyphen', { tools: [tool({ name: 'order-status' })] }, 'invalid_tool_name', '/tools/0/name'],
  ['C036 the name of a built-in', { tools: [tool({ name: 'create_ticket' })] }, 'tool_name_conflict', '/tools/0/name'],
  ['C036 one name twice', { tools: [tool(), tool()] }, 'tool_name_conflict', '/tools/1/name'],
  ['a method that is none', { tools: [tool({}, { method: 'HEAD' })] }, 'invalid_method', '/tools/0/config/method'],
  ['an effect that is none', { tools: [tool({ effect: 'write' })] }, 'invalid_value', '/tools/0/effect'],
  ['enabled that is no boolean', { tools: [tool({ enabled: 'yes' })] }, 'invalid_type', '/tools/0/enabled'],
  ['a URL that is http, to a port that no allowed address has', { tools: [tool({}, { url: 'http://api.example.com/x' })] }, 'url_port_not_allowed', '/tools/0/config/url'],
  ['a URL that is ftp', { tools: [tool({}, { url: 'ftp://api.example.com/x' })] }, 'url_not_https', '/tools/0/config/url'],
  ['a placeholder in the host', { tools: [tool({}, { url: 'https://{{args.h}}/x', ...props({ h: { type: 'string' } }) })] }, 'url_host_placeholder', '/tools/0/config/url'],
  ['a port that is not allowed', { tools: [tool({}, { url: 'https://api.example.com:9999/x' })] }, 'url_port_not_allowed', '/tools/0/config/url'],
  ['a private address', { tools: [tool({}, { url: 'https://192.168.1.1/x' })] }, 'address_not_allowed', '/tools/0/config/url'],
  ['the metadata address', { tools: [tool({}, { url: 'https://169.254.169.254/x' })] }, 'address_not_allowed', '/tools/0/config/url'],
  ['an allowed address at another port', { tools: [tool({}, { url: 'http://127.0.0.1:8082/x' })] }, 'url_port_not_allowed', '/tools/0/config/url'],
  ['a user name in the URL', { tools: [tool({}, { url: 'https://u@api.example.com/x' })] }, 'invalid_url', '/tools/0/config/url'],
  ['a fragment', { tools: [tool({}, { url: 'https://api.example.com/x#y' })] }, 'invalid_url', '/tools/0/config/url'],
  ['an unknown placeholder', { tools: [tool({}, { url: 'https://api.example.com/{{args.none}}' })] }, 'unknown_placeholder', '/tools/0/config/url'],
  ['end_user without the flag', { tools: [tool({}, { url: 'https://api.example.com/{{end_user.external_id}}' })] }, 'verified_user_required', '/tools/0/config/url'],
  ['identity as a parameter', { tools: [tool({ requires_verified_user: true }, props({ user_id: { type: 'string' } }))] }, 'identity_as_parameter', '/tools/0/config/parameters/properties/user_id'],
  ['nine parameters', { tools: [tool({}, props(Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`p${n}`, {}]))))] }, 'too_many_parameters', '/tools/0/config/parameters/properties'],
  ['text in a URL', { tools: [tool({}, { url: 'https://api.example.com/{{args.t}}', ...props({ t: { type: 'string', 'x-kagent-format': 'text' } }) })] }, 'format_not_allowed', '/tools/0/config/url'],
  ['a list in a URL', { tools: [tool({}, { url: 'https://api.example.com/{{args.t}}', ...props({ t: { type: 'array' } }) })] }, 'format_not_allowed', '/tools/0/config/url'],
  ['an unknown format', { tools: [tool({}, props({ t: { type: 'string', 'x-kagent-format': 'html' } }))] }, 'invalid_schema', '/tools/0/config/parameters/properties/t/x-kagent-format'],
  ['C034 a remote reference', { tools: [tool({}, props({ t: { $ref: 'https://api.example.com/x.json' } }))] }, 'invalid_schema', '/tools/0/config/parameters/properties/t/$ref'],
  ['a schema of the wrong type', { tools: [tool({}, props({ t: { minLength: 'x' } }))] }, 'invalid_schema', '/tools/0/config/parameters/properties/t/minLength'],
  ['a pattern that is none', { tools: [tool({}, props({ t: { pattern: '(' } }))] }, 'invalid_schema', '/tools/0/config/parameters/properties/t/pattern'],
  ['a header that may not be set', { tools: [tool({}, { headers: { 'Webhook-Id': 'x' } })] }, 'header_not_allowed', '/tools/0/config/headers/Webhook-Id'],
  ['a header of ours', { tools: [tool({}, { headers: { 'X-Toolgate-Run': 'x' } })] }, 'header_not_allowed', '/tools/0/config/headers/X-Toolgate-Run'],
  ['a body for GET', { tools: [tool({}, { body: {} })] }, 'body_not_allowed', '/tools/0/config/body'],
  ['a time-out that is too long', { tools: [tool({}, { timeout_ms: 15001 })] }, 'timeout_out_of_range', '/tools/0/config/timeout_ms'],
  ['a time-out that is too short', { tools: [tool({}, { timeout_ms: 99 })] }, 'timeout_out_of_range', '/tools/0/config/timeout_ms'],
  ['13 fields', { tools: [tool({}, { response: { fields: Array.from({ length: 13 }, (_, n) => ({ path: `f${n}` })) } })] }, 'too_many_fields', '/tools/0/config/response/fields'],
  ['max_items out of range', { tools: [tool({}, { response: { fields: [{ path: 'a' }], max_items: 21 } })] }, 'invalid_value', '/tools/0/config/response/max_items'],
  ['an unknown field of a response', { tools: [tool({}, { response: { feilds: [] } })] }, 'unknown_field', '/tools/0/config/response/feilds'],

  ['an agent that is no object', { agents: ['a'] }, 'invalid_type', '/agents/0'],
  ['an agent without a name', { agents: [{ model: 'm' }] }, 'missing_parameter', '/agents/0/name'],
  ['an agent without a model', { agents: [{ name: 'a' }] }, 'missing_parameter', '/agents/0/model'],
  ['a name that is no label', { agents: [agent({ name: 'a b' })] }, 'invalid_value', '/agents/0/name'],
  ['a name with @', { agents: [agent({ name: 'a@1' })] }, 'invalid_value', '/agents/0/name'],
  ['the name of a model', { agents: [agent({ name: 'm' })] }, 'name_conflict', '/agents/0/name'],
  ['the name of another agent', { agents: [agent(), agent()] }, 'name_conflict', '/agents/1/name'],
  ['a model that is a number', { agents: [agent({ model: 5 })] }, 'invalid_type', '/agents/0/model'],
  ['an empty name of a model', { agents: [agent({ model: '' })] }, 'invalid_type', '/agents/0/model'],
  ['an unknown field of an own model', own({ key: 'x' }), 'unknown_field', '/agents/0/model/key'],
  ['an own model without a base URL', own({ base_url: undefined }), 'missing_parameter', '/agents/0/model/base_url'],
  ['an own model without a name', own({ name: undefined }), 'missing_parameter', '/agents/0/model/name'],
  ['an own model with an empty name', own({ name: '' }), 'invalid_type', '/agents/0/model/name'],
  ['an own model with a name of control characters', own({ name: 'a\nb' }), 'invalid_value', '/agents/0/model/name'],
  ['an own model with a very long name', own({ name: 'x'.repeat(257) }), 'invalid_value', '/agents/0/model/name'],
  ['a secret that does not exist', own({ secret: 'NOT_THERE' }), 'secret_not_found', '/agents/0/model/secret'],
  ['a secret without a name', own({ secret: '' }), 'secret_not_found', '/agents/0/model/secret'],
  ['a secret that is no string', own({ secret: null }), 'invalid_type', '/agents/0/model/secret'],
  ['a base URL that is no string', own({ base_url: 5 }), 'invalid_type', '/agents/0/model/base_url'],
  ['a base URL that is empty', own({ base_url: '' }), 'invalid_type', '/agents/0/model/base_url'],
  ...[
    ['ftp://api.example.com/v1', 'url_not_https'], ['https://api.example.com:9999/v1', 'url_port_not_allowed'],
    ['http://api.example.com/v1', 'url_port_not_allowed'], ['http://127.0.0.1:8082/v1', 'url_port_not_allowed'],
    ['https://10.0.0.1/v1', 'address_not_allowed'], ['https://[::ffff:169.254.169.254]/v1', 'address_not_allowed'],
    ['https://own.example/v1', 'address_not_allowed'], ['https://u:p@api.example.com/v1', 'invalid_url'],
    ['https://api.example.com/v1?k=v', 'invalid_url'], ['https://api.example.com?k=v', 'invalid_url'],
    ['https://api.example.com/v1#x', 'invalid_url'], ['https://api.example.com/../v1', 'invalid_url'],
    ['https://api.example.com/%2e%2e', 'invalid_url'], ['https://api.example.com\\v1', 'invalid_url'],
    ['https://api.example.com/{{args.x}}', 'invalid_url'], ['https://', 'invalid_url'], ['/', 'invalid_url'], ['/v1', 'invalid_url'],
    [`https://api.example.com/${'x'.repeat(8200)}`, 'invalid_url'],
  ].map(([base_url, code]) => [`the base URL ${base_url.slice(0, 60)}`, own({ base_url }), code, '/agents/0/model/base_url']),
  ['a model that is not configured', { agents: [agent({ model: 'x' })] }, 'model_not_found', '/agents/0/model'],
  ['instructions of a wrong type', { agents: [agent({ instructions: [] })] }, 'invalid_type', '/agents/0/instructions'],
  ['instructions that are too long', { agents: [agent({ instructions: 'x'.repeat(256 * 1024 + 1) })] }, 'invalid_value', '/agents/0/instructions'],
  ['variables of a wrong type', { agents: [agent({ variables: [] })] }, 'invalid_type', '/agents/0/variables'],
  ['a variable that is no string', { agents: [agent({ variables: { a: 'x', b: 5 } })] }, 'invalid_type', '/agents/0/variables/b'],
  ['an unknown field of an agent', { agents: [agent({ temperature: 1 })] }, 'unknown_field', '/agents/0/temperature'],
  ['actions_paused of a wrong type', { agents: [agent({ actions_paused: 'yes' })] }, 'invalid_type', '/agents/0/actions_paused'],
  ['business hours that are no object', { agents: [agent({ business_hours: null })] }, 'invalid_type', '/agents/0/business_hours'],
  ['business hours without a time zone', { agents: [agent({ business_hours: { days: {} } })] }, 'missing_parameter', '/agents/0/business_hours'],
  ['an unknown field of business hours', { agents: [agent({ business_hours: hours({ holidays: [] }) })] }, 'unknown_field', '/agents/0/business_hours/holidays'],
  ['a time zone that is none', { agents: [agent({ business_hours: hours({ timezone: 'Asia/Riad' }) })] }, 'invalid_value', '/agents/0/business_hours/timezone'],
  ['a time zone that is a path', { agents: [agent({ business_hours: hours({ timezone: '../zoneinfo/UTC' }) })] }, 'invalid_value', '/agents/0/business_hours/timezone'],
  ['a day that is none', { agents: [agent({ business_hours: hours({ days: { friday: [] } }) })] }, 'invalid_value', '/agents/0/business_hours/days/friday'],
  ['hours over midnight', { agents: [agent({ business_hours: hours({ days: { fri: [['22:00', '02:00']] } }) })] }, 'invalid_value', '/agents/0/business_hours/days/fri/0/1'],
  ['hours that overlap', { agents: [agent({ business_hours: hours({ days: { fri: [['09:00', '12:00'], ['11:00', '13:00']] } }) })] }, 'invalid_value', '/agents/0/business_hours/days/fri/1'],
  ['a date that is none', { agents: [agent({ business_hours: hours({ closed_dates: ['2026-02-29'] }) })] }, 'invalid_value', '/agents/0/business_hours/closed_dates/0'],
  ['knowledge sources', { agents: [agent({ knowledge: { sources: ['src_1'] } })] }, 'not_implemented', '/agents/0/knowledge'],
  ['an unknown field of knowledge', { agents: [agent({ knowledge: { source: [] } })] }, 'unknown_field', '/agents/0/knowledge/source'],
  ['tools of a wrong type', { agents: [agent({}, [])] }, 'invalid_type', '/agents/0/tools'],
  ['an unknown field of tools', { agents: [agent({}, { https: [] })] }, 'unknown_field', '/agents/0/tools/https'],
  ['tools.enabled of a wrong type', { agents: [agent({}, { enabled: 'false' })] }, 'invalid_type', '/agents/0/tools/enabled'],
  ['allow_anonymous_actions of a wrong type', { agents: [agent({}, { allow_anonymous_actions: 1 })] }, 'invalid_type', '/agents/0/tools/allow_anonymous_actions'],
  ['no rounds', { agents: [agent({}, { max_tool_rounds: 0 })] }, 'invalid_value', '/agents/0/tools/max_tool_rounds'],
  ['six rounds', { agents: [agent({}, { max_tool_rounds: 6 })] }, 'invalid_value', '/agents/0/tools/max_tool_rounds'],
  ['rounds that are no whole number', { agents: [agent({}, { max_tool_rounds: 1.5 })] }, 'invalid_value', '/agents/0/tools/max_tool_rounds'],
  ['http that is no list', { agents: [agent({}, { http: {} })] }, 'invalid_type', '/agents/0/tools/http'],
  ['a client tool that is no object', clients(5), 'invalid_type', '/agents/0/tools/client/0'],
  ['a client tool without a name', clients({}), 'missing_parameter', '/agents/0/tools/client/0/name'],
  // C037: 48 characters are accepted above
  ['a client tool with a name of 49 characters', clients({ name: 'a'.repeat(49) }), 'invalid_tool_name', '/agents/0/tools/client/0/name'],
  // C036
  ...['Get_Cart', 'get-cart', '1st', '_a', 'get cart'].map((name) => [`a client tool named ${name}`, clients({ name }), 'invalid_tool_name', '/agents/0/tools/client/0/name']),
  ...['create_ticket', 'transfer_to_human', 'flag_conversation', 'search_knowledge'].map((name) => [`a client tool named ${name}`, clients({ name }), 'tool_name_conflict', '/agents/0/tools/client/0/name']),
  ['two client tools of one name', clients({ name: 'x' }, { name: 'x' }), 'tool_name_conflict', '/agents/0/tools/client/1'],
  ['a client tool with the name of an HTTP tool', { tools: [tool()], agents: [agent({}, { client: [{ name: 'one' }], http: [{ tool: 'one' }] })] }, 'tool_name_conflict', '/agents/0/tools/client/0'],
  ['an unknown field of a client tool', clients({ name: 'x', url: 'https://a.example/' }), 'unknown_field', '/agents/0/tools/client/0/url'],
  ['a description that is no string', clients({ name: 'x', description: 5 }), 'invalid_type', '/agents/0/tools/client/0/description'],
  ['an effect that is none', clients({ name: 'x', effect: 'escalation' }), 'invalid_value', '/agents/0/tools/client/0/effect'],
  ['an effect that is no string', clients({ name: 'x', effect: true }), 'invalid_type', '/agents/0/tools/client/0/effect'],
  ['parameters of a client tool that are no object', clients({ name: 'x', parameters: [] }), 'invalid_schema', '/agents/0/tools/client/0/parameters'],
  ['parameters of a client tool of another type', clients({ name: 'x', parameters: { type: 'array' } }), 'invalid_schema', '/agents/0/tools/client/0/parameters'],
  ['parameters of a client tool that are no schema', clients({ name: 'x', parameters: { type: 'object', properties: { a: { type: 'strng' } } } }), 'invalid_schema', '/agents/0/tools/client/0/parameters/properties/a/type'],
  ['rules of a client tool that are too long', clients({ name: 'x', rules: 'x'.repeat(4001) }), 'rules_too_long', '/agents/0/tools/client/0/rules'],
  ['hours_only of a client tool without hours', clients({ name: 'x', hours_only: true }), 'invalid_value', '/agents/0/tools/client/0/hours_only'],
  ['client that is no list', { agents: [agent({}, { client: 5 })] }, 'invalid_type', '/agents/0/tools/client'],
  ['a grant of no tool', { agents: [agent({}, { http: [{ tool: 'none' }] })] }, 'tool_not_found', '/agents/0/tools/http/0/tool'],
  ['a grant without a tool', { agents: [agent({}, { http: [{}] })] }, 'missing_parameter', '/agents/0/tools/http/0/tool'],
  ['an unknown field of a grant', { tools: [tool()], agents: [agent({}, { http: [{ tool: 'one', rule: 'x' }] })] }, 'unknown_field', '/agents/0/tools/http/0/rule'],
  ['one tool granted twice', { tools: [tool()], agents: [agent({}, { http: [{ tool: 'one' }, { tool: 'one' }] })] }, 'tool_name_conflict', '/agents/0/tools/http/1'],
  ['rules that are too long', { tools: [tool()], agents: [agent({}, { http: [{ tool: 'one', rules: 'ط'.repeat(4001) }] })] }, 'rules_too_long', '/agents/0/tools/http/0/rules'],
  ['rules of a wrong type', { tools: [tool()], agents: [agent({}, { http: [{ tool: 'one', rules: 5 }] })] }, 'invalid_type', '/agents/0/tools/http/0/rules'],
  ['hours_only of an agent without hours', { tools: [tool()], agents: [agent({}, { http: [{ tool: 'one', hours_only: true }] })] }, 'invalid_value', '/agents/0/tools/http/0/hours_only'],
  ['hours_only that is neither true nor false', { tools: [tool()], agents: [agent({ business_hours: hours() }, { http: [{ tool: 'one', hours_only: 'yes' }] })] }, 'invalid_type', '/agents/0/tools/http/0/hours_only'],
  ['hours_only of a ticket without hours', { agents: [agent({}, { builtin: { create_ticket: { hours_only: true } } })] }, 'invalid_value', '/agents/0/tools/builtin/create_ticket/hours_only'],
  ['hours_only of a hand-over', { agents: [agent({ business_hours: hours() }, { builtin: { transfer_to_human: { hours_only: true } } })] }, 'unknown_field', '/agents/0/tools/builtin/transfer_to_human/hours_only'],
  ['an unknown built-in', { agents: [agent({}, { builtin: { teleport: {} } })] }, 'unknown_field', '/agents/0/tools/builtin/teleport'],
  ['an unknown field of a built-in', { agents: [agent({}, { builtin: { create_ticket: { on: true } } })] }, 'unknown_field', '/agents/0/tools/builtin/create_ticket/on'],
  ['a built-in that is neither on nor off', { agents: [agent({}, { builtin: { create_ticket: { enabled: 'no' } } })] }, 'invalid_type', '/agents/0/tools/builtin/create_ticket/enabled'],
  ['rules of a built-in that are too long', { agents: [agent({}, { builtin: { create_ticket: { rules: 'x'.repeat(4001) } } })] }, 'rules_too_long', '/agents/0/tools/builtin/create_ticket/rules'],
  ['instructions with a variable that has no value', { agents: [agent({ variables: { a: '1' }, instructions: '{{var.a}} {{var.b}}' })] }, 'unknown_placeholder', '/agents/0/instructions'],
  ['an unknown field of toolset', { agents: [agent({}, { toolset: { exclude: [] } })] }, 'unknown_field', '/agents/0/tools/toolset/exclude'],
  ['an unknown word of include', { agents: [agent({}, { toolset: { include: ['sandbocks'] } })] }, 'invalid_value', '/agents/0/tools/toolset/include'],
  ['include of a wrong type', { agents: [agent({}, { toolset: { include: [5] } })] }, 'invalid_type', '/agents/0/tools/toolset/include'],
  ['a helper\'s tool without a helper', { agents: [agent({}, { toolset: { include: 'web, Run_Command' } })] }, 'no_helper', '/agents/0/tools/toolset/include'],
  ['an approval mode that is none', { agents: [agent({}, { toolset: { approval_mode: 'loose' } })] }, 'invalid_value', '/agents/0/tools/toolset/approval_mode'],
  ['an approval mode that is no string', { agents: [agent({}, { toolset: { approval_mode: true } })] }, 'invalid_type', '/agents/0/tools/toolset/approval_mode'],
  ['an approval of a tool that the agent lacks', { agents: [agent({}, { toolset: { require_approval: ['x'] } })] }, 'invalid_value', '/agents/0/tools/toolset/require_approval/0'],
  ['an approval of a tool that is no string', { agents: [agent({}, { toolset: { require_approval: ['run_command', 5] } })] }, 'invalid_type', '/agents/0/tools/toolset/require_approval/1'],
  ['require_approval that is no list', { agents: [agent({}, { toolset: { require_approval: 'x' } })] }, 'invalid_type', '/agents/0/tools/toolset/require_approval'],

  ['a secret without a name', { secrets: [{ value_file: 'x', allowed_hosts: ['a'] }] }, 'missing_parameter', '/secrets/0/name'],
  ['a secret with a name in small letters', { secrets: [secret({ name: 'token' })] }, 'invalid_value', '/secrets/0/name'],
  ['one secret twice', { secrets: [secret(), secret()] }, 'name_conflict', '/secrets/1/name'],
  ['an unknown field of a secret', { secrets: [secret({ value: 'x' })] }, 'unknown_field', '/secrets/0/value'],
  ['a secret whose file is missing', { secrets: [secret({ value_file: '/nonexistent/x' })] }, 'invalid_value', '/secrets/0/value_file'],
  ['a secret whose file is a folder', { secrets: [secret({ value_file: nginx.dir })] }, 'invalid_value', '/secrets/0/value_file'],
  ['a secret whose file is empty', { secrets: [secret({ value_file: `${nginx.dir}/empty.secret` })] }, 'invalid_value', '/secrets/0/value_file'],
  ['a secret with control characters', { secrets: [secret({ value_file: `${nginx.dir}/odd.secret` })] }, 'invalid_value', '/secrets/0/value_file'],
  ['a secret without hosts', { secrets: [secret({ allowed_hosts: [] })] }, 'invalid_value', '/secrets/0/allowed_hosts'],
  ['a secret for a wildcard', { secrets: [secret({ allowed_hosts: ['*.example'] })] }, 'invalid_value', '/secrets/0/allowed_hosts'],

  ['an end-user key that is no object', { end_user_keys: ['x'] }, 'invalid_type', '/end_user_keys/0'],
  ['an end-user key without a name', { end_user_keys: [{ alg: 'HS256', secret: hmac }] }, 'missing_parameter', '/end_user_keys/0/name'],
  ['an end-user key without an alg', { end_user_keys: [userKey({ alg: undefined })] }, 'missing_parameter', '/end_user_keys/0/alg'],
  ['alg none', { end_user_keys: [userKey({ alg: 'none' })] }, 'invalid_value', '/end_user_keys/0/alg'],
  ['an end-user key without a key', { end_user_keys: [{ name: 'u', alg: 'HS256' }] }, 'missing_parameter', '/end_user_keys/0/secret'],
  ['a secret of 31 bytes', { end_user_keys: [userKey({ secret: 'x'.repeat(31) })] }, 'invalid_value', '/end_user_keys/0/secret'],
  ['a secret_file with a secret that is too short', { end_user_keys: [fileKey({ secret_file: 'good.secret' })] }, 'invalid_value', '/end_user_keys/0/secret_file'],
  ['a secret_file that is missing', { end_user_keys: [fileKey({ secret_file: '/nonexistent/x' })] }, 'invalid_value', '/end_user_keys/0/secret_file'],
  ['a secret_file that is empty', { end_user_keys: [fileKey({ secret_file: 'empty.secret' })] }, 'invalid_value', '/end_user_keys/0/secret_file'],
  ['a secret_file that is no string', { end_user_keys: [fileKey({ secret_file: 5 })] }, 'invalid_type', '/end_user_keys/0/secret_file'],
  ['a secret_file and a secret', { end_user_keys: [fileKey({ secret: hmac })] }, 'invalid_value', '/end_user_keys/0/secret'],
  ['a secret_file for a public key', { end_user_keys: [fileKey({ alg: 'ES256' })] }, 'invalid_value', '/end_user_keys/0/secret_file'],
  ['a public key as a secret', { end_user_keys: [userKey({ secret: ec.register.public_key })] }, 'invalid_value', '/end_user_keys/0/secret'],
  ['a public key for an HS alg', { end_user_keys: [userKey({ public_key: 'x' })] }, 'invalid_value', '/end_user_keys/0/public_key'],
  ['a public key that is none', { end_user_keys: [{ name: 'u', alg: 'ES256', public_key: 'x' }] }, 'invalid_value', '/end_user_keys/0/public_key'],
  ['a public key for another alg', { end_user_keys: [{ name: 'u', alg: 'EdDSA', ...ec.register }] }, 'invalid_value', '/end_user_keys/0/public_key'],
  ['a private key', { end_user_keys: [{ name: 'u', alg: 'ES256', public_key: ec.privateKey.export({ format: 'jwk' }) }] }, 'invalid_value', '/end_user_keys/0/public_key'],
  ['a kid that is no string', { end_user_keys: [userKey({ kid: 1 })] }, 'invalid_type', '/end_user_keys/0/kid'],
  ['an audience that is a list', { end_user_keys: [userKey({ audience: ['a'] })] }, 'invalid_type', '/end_user_keys/0/audience'],
  ['an unknown field of an end-user key', { end_user_keys: [userKey({ jwks_url: 'https://a.example' })] }, 'unknown_field', '/end_user_keys/0/jwks_url'],
  ['two end-user keys of one name', { end_user_keys: [userKey(), fileKey()] }, 'name_conflict', '/end_user_keys/1/name'],
  ['33 end-user keys', { end_user_keys: Array.from({ length: 33 }, (_, n) => userKey({ name: `k${n}` })) }, 'invalid_value', '/end_user_keys/32'],

  ['a key without a name', { api_keys: [{ sha256, scopes: ['run'] }] }, 'missing_parameter', '/api_keys/0/name'],
  ['a key whose digest is short', { api_keys: [key({ sha256: 'ab' })] }, 'invalid_value', '/api_keys/0/sha256'],
  ['a key whose digest is no hex', { api_keys: [key({ sha256: 'zz'.repeat(32) })] }, 'invalid_value', '/api_keys/0/sha256'],
  ['two keys of one digest', { api_keys: [key(), key({ name: 'k2' })] }, 'name_conflict', '/api_keys/1/sha256'],
  ['a key with an unknown scope', { api_keys: [key({ scopes: ['run', 'root'] })] }, 'invalid_value', '/api_keys/0/scopes'],
  ['a key without scopes', { api_keys: [key({ scopes: [] })] }, 'invalid_value', '/api_keys/0/scopes'],
  ['scopes that are no list', { api_keys: [key({ scopes: 'run' })] }, 'invalid_value', '/api_keys/0/scopes'],
  ['an account that is no label', { api_keys: [key({ account_id: 'a b' })] }, 'invalid_value', '/api_keys/0/account_id'],
  ['an unknown field of a key', { api_keys: [key({ key: 'x' })] }, 'unknown_field', '/api_keys/0/key'],
];

/** The line (from 1) where the value of a pointer begins, in text with one key a line. */
function lineOf(catalog, pointer) {
  const marked = structuredClone(catalog);
  const keys = pointer.split('/').slice(1);
  let at = marked;
  for (const k of keys.slice(0, -1)) at = at[k];
  const last = keys.at(-1);
  const mark = 'the place of the fault';
  // what is missing is told at the object that lacks it
  if (at[last] === undefined) return lineOf(catalog, `/${keys.slice(0, -1).join('/')}`);
  at[last] = mark;
  return JSON.stringify(marked, null, 1).split('\n').findIndex((line) => line.includes(mark)) + 1;
}

for (const [name, catalog, code, pointer] of CASES) {
  test(`${name}: ${code}`, () => {
    const { code: exit, text, } = check(catalog);
    assert.equal(exit, 1, 'it is refused');
    const line = text.split('\n').find((l) => l.includes('toolgate:') && l.includes('catalog.json')) ?? text;
    const found = /toolgate: (\S+): (.*) at "([^"]*)" in (.*):(\d+)$/.exec(line);
    assert.ok(found, line);
    assert.equal(found[1], code, line);
    assert.equal(found[3], pointer, line);
    assert.equal(found[4], file);
    assert.equal(Number(found[5]), lineOf(catalog, pointer), line);
    assert.ok(!text.includes('sesame'));
  });
}

test('a machine without time zones refuses agents with business hours, and nothing else', () => {
  const none = { TZDIR: `${nginx.dir}/none` };
  assert.equal(check({ agents: [agent()] }, none).code, 0);
  const refused = check({ agents: [agent({ business_hours: hours() })] }, none);
  assert.equal(refused.code, 1);
  assert.match(refused.text, /invalid_value: .*tzdata.* at "\/agents\/0\/business_hours\/timezone"/);
});

test('time zones come from the folder that TZDIR names, and what is none is left out', () => {
  const dir = path.join(nginx.dir, 'zones');
  fs.mkdirSync(path.join(dir, 'Own/Folder'), { recursive: true });
  fs.mkdirSync(path.join(dir, 'a/b/c/d'), { recursive: true });
  const utc = fs.readFileSync('/usr/share/zoneinfo/UTC');
  fs.writeFileSync(path.join(dir, 'Own/Folder/Time'), utc);
  fs.writeFileSync(path.join(dir, 'Cut'), utc.subarray(0, 60));
  fs.writeFileSync(path.join(dir, 'Huge'), Buffer.concat([utc, Buffer.alloc(1 << 17)]));
  fs.writeFileSync(path.join(dir, 'zone.tab'), 'TZif is not what this is\n');
  fs.symlinkSync('.', path.join(dir, 'loop'));
  const zone = (timezone) => check({ agents: [agent({ business_hours: hours({ timezone }) })] }, { TZDIR: dir });
  assert.equal(zone('Own/Folder/Time').code, 0, zone('Own/Folder/Time').text);
  for (const name of ['UTC', 'Cut', 'Huge', 'zone.tab', 'loop/loop/loop/Own/Folder/Time', 'Own']) {
    const refused = zone(name);
    assert.equal(refused.code, 1, name);
    assert.match(refused.text, /invalid_value: no time zone has this name/);
  }
});

test('broken JSON in all its forms has a line', () => {
  for (const [text, line] of [['{\n"agents": [}', 2], ['', 1], ['[]', 1], ['{"a":1}\n\nx', 3], ['{\n"tools":[],\n"tools":[]}', 3],
    ['{"project":"\ud800"}'.replace('\ud800', '\\ud800'), 1], ['\ufeff{}', 1], [`{"x":${'['.repeat(200)}${']'.repeat(200)}}`, 1]]) {
    const got = check(text);
    assert.equal(got.code, 1, text.slice(0, 40));
    assert.match(got.text, new RegExp(`\\[emerg\\].*toolgate: .*catalog\\.json:${line}(\\n|$)`), text.slice(0, 40));
  }
});
