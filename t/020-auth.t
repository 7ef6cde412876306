# Who calls: keys, scopes, projects, accounts.

use lib 't/lib';
use ToolgateTest;

our $KEYS = <<'JSON';
{"agents":[{"name":"a","model":"m"}],
 "api_keys":[
  {"name":"run","sha256":"833492ed0b9965844ad7b528eab7e543db0f6e10a57ee5d1c8d3929b0805e64c","scopes":["run"]},
  {"name":"admin","sha256":"44be115c3b0158dc072537f0bc5282186b50f9f7ac0fcf68d824a427b4196abf","scopes":["admin","tools","approve"]},
  {"name":"bound","sha256":"a513b41d11d0517a84c655e28c8cc07a8f41b2056f3f8059ef3ec05fd0e12fae","scopes":["run"],"account_id":"acme"}]}
JSON
our $CHAT = '{"model":"a","messages":[{"role":"user","content":"x"}]';

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: no key
--- request
GET /v1/models
--- more_headers
X-None: 1
--- error_code: 401
--- response_headers
Content-Type: application/json
WWW-Authenticate: Bearer realm="toolgate"
--- response_headers_like
x-request-id: ^[0-9a-f]{32}$
--- response_body_like: ^\{"error":\{"message":"No API key was sent.*","type":"authentication_error","code":"missing_api_key","param":null\}\}$



=== TEST 2: other schemes, an empty key
--- request eval
["GET /v1/models", "GET /v1/models", "GET /v1/models"]
--- more_headers eval
["Authorization: Basic a2V5OmtleQ==", "Authorization: Bearer", "Authorization: Bearer  "]
--- error_code eval
[401, 401, 401]
--- response_body_like eval
['"code":"missing_api_key"', '"code":"missing_api_key"', '"code":"missing_api_key"']



=== TEST 3: a wrong key, a key with something behind it, a long one
--- request eval
["GET /v1/models", "GET /v1/models", "GET /v1/models"]
--- more_headers eval
["Authorization: Bearer key-for-tests-0123456780", "Authorization: Bearer key-for-tests-0123456789x",
 "Authorization: Bearer " . ('x' x 600)]
--- error_code eval
[401, 401, 401]
--- response_body_like eval
['"code":"invalid_api_key"', '"code":"invalid_api_key"', '"code":"invalid_api_key"']



=== TEST 4: the scheme in any case, blanks before the key
--- request
GET /v1/models
--- more_headers
Authorization: bearer   key-for-tests-0123456789
--- response_body_like: "id":"a"



=== TEST 5: a key with the scope run only
--- catalog eval: $::KEYS
--- request eval
["GET /v1/models", "GET /v1/tool_signing_secret", "GET /v1/agents"]
--- more_headers
Authorization: Bearer key-run-only-0123456789
--- error_code eval
[200, 403, 403]
--- response_body_like eval
['"object":"list"', '"type":"permission_error","code":"insufficient_scope"', '"code":"insufficient_scope"']



=== TEST 6: admin implies nothing else
--- catalog eval: $::KEYS
--- request eval
["GET /v1/models", "GET /v1/tool_signing_secret", "GET /v1/agents"]
--- more_headers
Authorization: Bearer key-admin-only-0123456
--- error_code eval
[403, 200, 200]
--- response_body_like eval
['"code":"insufficient_scope"', '"secret":"whsec_', '"object":"list"']



=== TEST 7: a key of an account
--- catalog eval: $::KEYS
--- request eval
["POST /v1/chat/completions\n$::CHAT}", "POST /v1/chat/completions\n$::CHAT,\"account_id\":\"acme\"}",
 "POST /v1/chat/completions\n$::CHAT,\"account_id\":\"other\"}"]
--- more_headers
Authorization: Bearer key-bound-0123456789ab
--- error_code eval
[200, 200, 403]
--- response_body_like eval
['"content":"hello"', '"content":"hello"', '"type":"permission_error","code":"account_mismatch","param":"account_id"']



=== TEST 8: the account by header, both, different, not allowed
--- catalog eval: $::KEYS
--- request eval
["POST /v1/chat/completions\n$::CHAT}", "POST /v1/chat/completions\n$::CHAT,\"account_id\":\"other\"}",
 "POST /v1/chat/completions\n$::CHAT}", "POST /v1/chat/completions\n$::CHAT,\"account_id\":\"acme\"}"]
--- more_headers eval
["Authorization: Bearer key-bound-0123456789ab\nX-Account-Id: other", "Authorization: Bearer key-run-only-0123456789\nX-Account-Id: acme",
 "Authorization: Bearer key-run-only-0123456789\nX-Account-Id: a b", "Authorization: Bearer key-run-only-0123456789\nX-Account-Id: acme"]
--- error_code eval
[403, 400, 400, 200]
--- response_body_like eval
['"code":"account_mismatch"', '"code":"invalid_value","param":"account_id"', '"code":"invalid_value","param":"account_id"', '"content":"hello"']



=== TEST 9: accounts that are no label
--- request eval
["POST /v1/chat/completions\n$::CHAT,\"account_id\":5}", "POST /v1/chat/completions\n$::CHAT,\"account_id\":\"\"}",
 "POST /v1/chat/completions\n$::CHAT,\"account_id\":\"" . ('x' x 65) . "\"}",
 "POST /v1/chat/completions\n$::CHAT,\"account_id\":\"" . ('x' x 64) . "\"}", "POST /v1/chat/completions\n$::CHAT,\"account_id\":null}"]
--- error_code eval
[400, 400, 400, 200, 200]
--- response_body_like eval
['"code":"invalid_value"', '"code":"invalid_value"', '"code":"invalid_value"', '"content":"hello"', '"content":"hello"']



=== TEST 10: agents of another project are unknown, not forbidden
--- catalog
{"project":"shop","agents":[{"name":"theirs","model":"m"}],
 "api_keys":[{"name":"k","sha256":"fd06bdb024db0cd12323487b1502798c694599b447535789c5898827484ce36a","scopes":["run"]}]}
--- request eval
["GET /v1/models/theirs", "GET /v1/models/theirs"]
--- more_headers eval
["Authorization: Bearer key-for-tests-0123456789", "Authorization: Bearer key-other-project-01234"]
--- error_code eval
[404, 200]
--- response_body_like eval
['"type":"not_found_error","code":"model_not_found"', '"id":"theirs"']
