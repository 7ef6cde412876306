# Conventions of the API that one request shows: the error body, keys, addresses,
# methods, types, sizes, ids. What needs time or a model with a will of its own is in
# t/module.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: no key
--- request
GET /v1/models
--- more_headers
X-Nothing: 1
--- error_code: 401
--- response_headers
Content-Type: application/json
--- response_headers_like
x-request-id: [0-9a-f]{32}
--- response_body_like: ^\{"error":\{"message":"[^"]+","type":"authentication_error","code":"missing_api_key","param":null\}\}\s*$



=== TEST 2: a wrong key, and one that is no Bearer
--- request eval
["GET /v1/models", "GET /v1/models"]
--- more_headers eval
["Authorization: Bearer key-for-tests-0123456780", "Authorization: Basic a2V5"]
--- error_code eval
[401, 401]
--- response_body_like eval
[qr/"code":"invalid_api_key"/, qr/"code":"missing_api_key"/]



=== TEST 3: an unknown address, an unknown model, a wrong method
--- request eval
["GET /v1/nothing", "GET /v1/models/nobody", "GET /v1/chat/completions"]
--- error_code eval
[404, 404, 405]
--- response_body_like eval
[qr/"type":"not_found_error","code":"unknown_url"/, qr/"code":"model_not_found"/,
 qr/"type":"invalid_request_error","code":"method_not_allowed"/]



=== TEST 4: the 405 says which method is right
--- request
GET /v1/chat/completions
--- error_code: 405
--- response_headers
Allow: POST



=== TEST 5: models
--- request eval
["GET /v1/models", "GET /v1/models/a"]
--- response_body_like eval
[qr/^\{"object":"list","data":\[\{"id":"a","object":"model","created":\d+,"owned_by":"toolgate"\}/,
 qr/^\{"id":"a","object":"model"/]



=== TEST 6: a body that is not JSON by its type, and by its bytes
--- request eval
["POST /v1/chat/completions\n{}", "POST /v1/chat/completions\n{\"model\":}",
 "POST /v1/chat/completions\n{\"a\":1,\"a\":2}", "POST /v1/chat/completions\n{} x",
 "POST /v1/chat/completions\n" . ("[" x 200) . ("]" x 200),
 "POST /v1/chat/completions\n{\"a\":\"\\ud800\"}", "POST /v1/chat/completions\n{\"a\":\"\\u0000\"}",
 "POST /v1/chat/completions\n{\"a\":\"\xff\"}"]
--- more_headers eval
my $auth = "Authorization: Bearer $ToolgateTest::KEY";
["$auth\nContent-Type: text/plain", ("$auth\nContent-Type: application/json") x 7]
--- error_code eval
[415, (400) x 7]
--- response_body_like eval
[qr/"code":"unsupported_media_type"/, (qr/"code":"invalid_json"/) x 7]



=== TEST 7: what is missing or of a wrong type is named
--- request eval
["POST /v1/chat/completions\n[]", "POST /v1/chat/completions\n{}",
 "POST /v1/chat/completions\n{\"model\":7}", "POST /v1/chat/completions\n{\"model\":\"a\"}",
 "POST /v1/chat/completions\n{\"model\":\"a\",\"messages\":[]}",
 "POST /v1/chat/completions\n{\"model\":\"a\",\"messages\":[{\"content\":\"x\"}]}",
 "POST /v1/chat/completions\n{\"model\":\"a\",\"messages\":[{\"role\":\"boss\",\"content\":\"x\"}]}",
 "POST /v1/chat/completions\n{\"model\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":1}",
 "POST /v1/chat/completions\n{\"model\":\"nobody\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"]
--- error_code eval
[(400) x 8, 404]
--- response_body_like eval
[qr/"code":"invalid_type"/, qr/"code":"missing_parameter","param":"model"/,
 qr/"code":"invalid_type","param":"model"/, qr/"code":"missing_parameter","param":"messages"/,
 qr/"code":"invalid_value","param":"messages"/,
 qr/"code":"missing_parameter","param":"messages\[0\]\.role"/,
 qr/"code":"invalid_value","param":"messages\[0\]\.role"/,
 qr/"code":"invalid_type","param":"stream"/, qr/"code":"model_not_found","param":"model"/]



=== TEST 8: a body at the limit is read, one past it is refused
--- api: toolgate_max_body 200;
--- request eval
my $body = sub { '{"model":"a",' . (" " x ($_[0] - 56)) . '"messages":[{"role":"user","content":"x"}]}' };
["POST /v1/chat/completions\n" . $body->(200), "POST /v1/chat/completions\n" . $body->(201)]
--- error_code eval
[200, 413]
--- response_body_like eval
[qr/"content":"hello"/, qr/"type":"invalid_request_error","code":"request_too_large"/]



=== TEST 9: account ids
--- request eval
my $m = '"model":"a","messages":[{"role":"user","content":"x"}]';
["POST /v1/chat/completions\n{$m,\"account_id\":\"acme\"}",
 "POST /v1/chat/completions\n{$m,\"account_id\":\"acme\"}",
 "POST /v1/chat/completions\n{$m,\"account_id\":\"a/b\"}"]
--- more_headers eval
my $auth = "Authorization: Bearer $ToolgateTest::KEY\nContent-Type: application/json";
["$auth\nX-Account-Id: acme", "$auth\nX-Account-Id: other", $auth]
--- error_code eval
[200, 400, 400]
--- response_body_like eval
[qr/"content":"hello"/, qr/"code":"invalid_value","param":"account_id"/,
 qr/"code":"invalid_value","param":"account_id"/]



=== TEST 10: a stream: one id, one end
--- request
POST /v1/chat/completions
{"model":"a","messages":[{"role":"user","content":"x"}],"stream":true}
--- response_headers_like
Content-Type: text/event-stream.*
x-toolgate-run: run_[0-9A-Za-z]{22}
--- response_body_like eval
qr/\Adata: \{"id":"(chatcmpl-[0-9A-Za-z]{22})".*"content":"hello".*"id":"\1".*"finish_reason":"stop".*data: \[DONE\]\n\n\z/s



=== TEST 11: an end-user token when nobody's key is known
--- request
POST /v1/chat/completions
{"model":"a","messages":[{"role":"user","content":"x"}],"end_user":{"token":"a.b.c"}}
--- error_code: 401
--- response_body_like: "type":"authentication_error","code":"invalid_end_user_token"



=== TEST 12: a key that may not do this
--- catalog eval
use Digest::SHA 'sha256_hex';
'{"agents":[{"name":"a","model":"m","instructions":"x"}],"api_keys":[{"name":"k","sha256":"'
. sha256_hex("tools-key-0123456789") . '","scopes":["tools"]}]}'
--- request
GET /v1/models
--- more_headers
Authorization: Bearer tools-key-0123456789
--- error_code: 403
--- response_body_like: "type":"permission_error","code":"insufficient_scope"



=== TEST 13: a key that is bound to one account
--- catalog eval
use Digest::SHA 'sha256_hex';
'{"agents":[{"name":"a","model":"m","instructions":"x"}],"api_keys":[{"name":"k","sha256":"'
. sha256_hex("bound-key-0123456789") . '","scopes":["run"],"account_id":"acme"}]}'
--- request eval
my $m = '"model":"a","messages":[{"role":"user","content":"x"}]';
["POST /v1/chat/completions\n{$m}", "POST /v1/chat/completions\n{$m,\"account_id\":\"acme\"}",
 "POST /v1/chat/completions\n{$m,\"account_id\":\"other\"}"]
--- more_headers
Authorization: Bearer bound-key-0123456789
Content-Type: application/json
--- error_code eval
[200, 200, 403]
--- response_body_like eval
[qr/"content":"hello"/, qr/"content":"hello"/,
 qr/"type":"permission_error","code":"account_mismatch"/]



=== TEST 14: a body that does not come
--- api: client_body_timeout 300ms;
--- raw_request eval
["POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $ToolgateTest::KEY\r\n"
 . "Content-Type: application/json\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{\"model\":"]
--- error_code: 408
--- response_body_like: "code":"request_timeout"



=== TEST 15: what is not built yet says so
--- request
POST /v1/embeddings
{}
--- error_code: 501
--- response_body_like: "type":"api_error","code":"not_implemented"
