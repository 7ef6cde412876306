# Catalog files: a fault is reported with its code, the file and the line of the value
# that is wrong. The table of all rules is in t/module/catalog.test.mjs; here are those
# that an operator meets first.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: broken JSON
--- catalog
{
  "agents": [
    { "name": "a",, }
  ]
}
--- must_die
--- error_log eval
qr/\[emerg\].*toolgate: broken JSON: .* in .*catalog\.json:3/



=== TEST 2: an unknown key at the top
--- catalog
{
  "agents": [],
  "tolls": []
}
--- must_die
--- error_log eval
qr/toolgate: unknown_field: .* at "\/tolls" in .*catalog\.json:3/



=== TEST 3: an unknown field of an agent
--- catalog
{
  "agents": [
    {
      "name": "a",
      "model": "m",
      "instruction": "x"
    }
  ]
}
--- must_die
--- error_log eval
qr/unknown_field: .* at "\/agents\/0\/instruction" in .*catalog\.json:6/



=== TEST 4: an agent whose model is not configured
--- catalog
{
  "agents": [
    { "name": "a",
      "model": "gpt-nowhere" }
  ]
}
--- must_die
--- error_log eval
qr/model_not_found: .* at "\/agents\/0\/model" in .*catalog\.json:4/



=== TEST 5: an agent with the name of a model
--- catalog
{ "agents": [ { "name": "m", "model": "m" } ] }
--- must_die
--- error_log eval
qr/name_conflict: .* in .*catalog\.json:1/



=== TEST 6: two tools of one name
--- catalog
{
  "tools": [
    { "name": "one", "config": { "method": "GET", "url": "https://api.example.com/1" } },
    { "name": "one", "config": { "method": "GET", "url": "https://api.example.com/2" } }
  ]
}
--- must_die
--- error_log eval
qr/tool_name_conflict: .* at "\/tools\/1\/name" in .*catalog\.json:4/



=== TEST 7: a bad schema
--- catalog
{
  "tools": [
    { "name": "one",
      "config": { "method": "GET", "url": "https://api.example.com/1",
        "parameters": {
          "type": "object",
          "properties": { "n": { "type": "numbr" } } } } }
  ]
}
--- must_die
--- error_log eval
qr/invalid_schema: .* at "\/tools\/0\/config\/parameters\/properties\/n\/?[a-z]*" in .*catalog\.json:7/



=== TEST 8: an address that may not be reached
--- catalog
{
  "tools": [
    { "name": "one", "config": {
        "method": "GET",
        "url": "https://10.0.0.1/x" } }
  ]
}
--- must_die
--- error_log eval
qr/address_not_allowed: .* at "\/tools\/0\/config\/url" in .*catalog\.json:5/



=== TEST 9: rules that are too long
--- catalog eval
'{ "tools": [ { "name": "one", "config": { "method": "GET", "url": "https://api.example.com/1" } } ],
  "agents": [ { "name": "a", "model": "m", "tools": {
    "http": [ { "tool": "one", "rules": "' . ('x' x 4001) . '" } ] } } ] }'
--- must_die
--- error_log eval
qr/rules_too_long: .* in .*catalog\.json:3/



=== TEST 10: rules at the limit, counted in code points
--- catalog eval
'{ "tools": [ { "name": "one", "config": { "method": "GET", "url": "https://api.example.com/1" } } ],
  "agents": [ { "name": "a", "model": "m", "tools": {
    "http": [ { "tool": "one", "rules": "' . ("\xd8\xb7" x 4000) . '" } ] } } ] }'
--- request
GET /v1/models/a
--- response_body eval
'{"id":"a","object":"model","created":0,"owned_by":"toolgate"}'



=== TEST 11: HTTP tools without a master key
--- plain
--- config
location = /x { return 204; }
--- user_files
>>> catalog.json
{ "tools": [ { "name": "one", "config": { "method": "GET", "url": "https://api.example.com/1" } } ] }
--- http_config
toolgate_catalog $TEST_NGINX_SERVER_ROOT/html/catalog.json;
--- must_die
--- error_log eval
qr/no_signing_secret: HTTP tools need "toolgate_master_key".* in .*catalog\.json:1/



=== TEST 12: a secret whose file is missing
--- catalog
{
  "secrets": [ { "name": "TOKEN",
    "value_file": "/nonexistent/token", "allowed_hosts": ["api.example.com"] } ]
}
--- must_die
--- error_log eval
qr/invalid_value: the file cannot be read at "\/secrets\/0\/value_file" in .*catalog\.json:3/



=== TEST 13: an API key that is no digest
--- catalog
{
  "api_keys": [
    { "name": "k", "sha256": "1234", "scopes": ["run"] }
  ]
}
--- must_die
--- error_log eval
qr/invalid_value: "sha256" is 64 hex digits .* in .*catalog\.json:3/



=== TEST 14: the error of the second of two files names that file
--- plain
--- config
location = /x { return 204; }
--- user_files
>>> 1.json
{ "api_keys": [] }
>>> 2.json
{
  "nonsense": 1
}
--- http_config
toolgate_catalog $TEST_NGINX_SERVER_ROOT/html/*.json;
--- must_die
--- error_log eval
qr/unknown_field: .* in .*\/2\.json:2/



=== TEST 15: a tool over plain http without an allow list
--- catalog
{
  "tools": [
    { "name": "one", "config": { "method": "GET",
        "url": "http://api.example.com/x" } }
  ]
}
--- must_die
--- error_log eval
qr/url_not_https: .* at "\/tools\/0\/config\/url" in .*catalog\.json:4/
