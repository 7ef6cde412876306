# What a request must be: JSON, its type, its fields. Nothing of these reaches a model.

use lib 't/lib';
use ToolgateTest;

our $PATH = 'POST /v1/chat/completions';
our $M = '"messages":[{"role":"user","content":"x"}]';

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: bodies that are no JSON
--- request eval
[map { "$::PATH\n$_" } '{', '', 'hello', "{'a':1}", '{"a":1,}', '{"a":1} x', '{"a":1}{}', '[1,2', '{"a":01}', '{"a":+1}', '{"a":"' . "\x01" . '"}']
--- error_code eval
[(400) x 11]
--- response_body_like eval
[('"type":"invalid_request_error","code":"invalid_json","param":null') x 11]



=== TEST 2: duplicate keys, also nested and written differently
--- request eval
[map { "$::PATH\n$_" } '{"model":"a","model":"a"}', "{\"model\":\"a\",\"x\":{\"k\":1,\"k\":2},$::M}", "{\"model\":\"a\",\"mod\\u0065l\":\"a\",$::M}",
 "{\"model\":\"a\",\"messages\":[{\"role\":\"user\",\"role\":\"user\"}]}"]
--- error_code eval
[(400) x 4]
--- response_body_like eval
[('not valid JSON: .*"code":"invalid_json"') x 4]



=== TEST 3: invalid UTF-8, lone surrogates, NUL
--- request eval
[map { "$::PATH\n{\"model\":\"a\",\"x\":\"$_\",$::M}" } "\xff", "\xc0\x80", "\xed\xa0\x80", '\ud800', '\ud800\ud800', '\udc00', '\u0000']
--- error_code eval
[(400) x 7]
--- response_body_like eval
[('"code":"invalid_json"') x 7]



=== TEST 4: depth 128 and 129
--- request eval
["$::PATH\n{\"model\":\"a\",$::M,\"x\":" . ('[' x 127) . (']' x 127) . '}', "$::PATH\n{\"model\":\"a\",$::M,\"x\":" . ('[' x 128) . (']' x 128) . '}']
--- error_code eval
[200, 400]
--- response_body_like eval
['"content":"hello"', '"code":"invalid_json"']



=== TEST 5: JSON that is no object
--- request eval
[map { "$::PATH\n$_" } '[]', '"x"', '5', 'null', 'true']
--- error_code eval
[(400) x 5]
--- response_body_like eval
[('"code":"invalid_type","param":null') x 5]



=== TEST 6: the model
--- request eval
[map { "$::PATH\n$_" } "{$::M}", "{\"model\":null,$::M}", "{\"model\":5,$::M}", "{\"model\":\"none\",$::M}", "{\"model\":\"\",$::M}"]
--- error_code eval
[400, 400, 400, 404, 404]
--- response_body_like eval
['"code":"missing_parameter","param":"model"', '"code":"missing_parameter","param":"model"', '"code":"invalid_type","param":"model"',
 '"type":"not_found_error","code":"model_not_found","param":"model"', '"code":"model_not_found"']



=== TEST 7: the messages
--- request eval
[map { "$::PATH\n{\"model\":\"a\"$_}" } '', ',"messages":null', ',"messages":{}', ',"messages":"x"', ',"messages":[]', ',"messages":[5]', ',"messages":[{"role":"user"},null]']
--- error_code eval
[(400) x 7]
--- response_body_like eval
['"code":"missing_parameter","param":"messages"', '"code":"missing_parameter","param":"messages"', '"code":"invalid_type","param":"messages"',
 '"code":"invalid_type","param":"messages"', '"code":"invalid_value","param":"messages"', '"code":"invalid_type","param":"messages\[0\]"',
 '"code":"invalid_type","param":"messages\[1\]"']



=== TEST 8: the role
--- request eval
[map { "$::PATH\n{\"model\":\"a\",\"messages\":[{\"role\":\"user\"},$_]}" } '{}', '{"content":"x"}', '{"role":null}', '{"role":5}', '{"role":"robot"}', '{"role":"User"}', '{"role":""}']
--- error_code eval
[(400) x 7]
--- response_body_like eval
['"code":"missing_parameter","param":"messages\[1\]\.role"', '"code":"missing_parameter","param":"messages\[1\]\.role"', '"code":"(missing_parameter|invalid_type)","param":"messages\[1\]\.role"',
 '"code":"invalid_type","param":"messages\[1\]\.role"', '"code":"invalid_value","param":"messages\[1\]\.role"', '"code":"invalid_value"', '"code":"invalid_value"']



=== TEST 9: every role that is known
--- request eval
[map { "$::PATH\n{\"model\":\"a\",\"messages\":[{\"role\":\"$_\",\"content\":\"x\"}]}" } qw(system developer user assistant tool function)]
--- error_code eval
[(200) x 6]



=== TEST 10: stream and its options
--- request eval
[map { "$::PATH\n{\"model\":\"a\",$::M,$_}" } '"stream":"yes"', '"stream":1', '"stream_options":5', '"stream":true,"stream_options":{"include_usage":1}', '"stream":null,"stream_options":null']
--- error_code eval
[400, 400, 400, 400, 200]
--- response_body_like eval
['"code":"invalid_type","param":"stream"', '"code":"invalid_type","param":"stream"', '"code":"invalid_type","param":"stream_options.include_usage"',
 '"code":"invalid_type","param":"stream_options.include_usage"', '"content":"hello"']



=== TEST 11: the type of the body
--- request eval
[("$::PATH\n{\"model\":\"a\",$::M}") x 6]
--- more_headers eval
[map { "Authorization: Bearer key-for-tests-0123456789\n$_" } 'Content-Type: text/plain', 'Content-Type: application/x-www-form-urlencoded', 'Content-Type: application/jsonx',
 'Content-Type: application/json; charset=utf-8', 'Content-Type: APPLICATION/JSON', 'X-None: 1']
--- error_code eval
[415, 415, 415, 200, 200, 200]
--- response_body_like eval
[('"type":"invalid_request_error","code":"unsupported_media_type"') x 3, ('"content":"hello"') x 3]



=== TEST 12: the limit of the body: at it, one past it
--- api: toolgate_max_body 200;
--- request eval
["$::PATH\n" . '{"model":"a","messages":[{"role":"user","content":"' . ('x' x 145) . '"}]}', "$::PATH\n" . '{"model":"a","messages":[{"role":"user","content":"' . ('x' x 146) . '"}]}']
--- error_code eval
[200, 413]
--- response_body_like eval
['"content":"hello"', '"type":"invalid_request_error","code":"request_too_large"']



=== TEST 13: nginx's own limit of bodies does not matter
--- api: client_max_body_size 10;
--- request eval
"$::PATH\n{\"model\":\"a\",$::M}"
--- response_body_like: "content":"hello"



=== TEST 14: a message says where the fault is, and repeats nothing of the body
--- request eval
"$::PATH\n{\"model\":\"a\", topsecret"
--- error_code: 400
--- response_body_like: at byte \d+
--- response_body_unlike: topsecret
--- no_error_log
topsecret
[alert]



=== TEST 15: every answer of a run has its id and that of the request
--- request eval
["$::PATH\n{\"model\":\"a\",$::M}", "$::PATH\n{\"model\":\"none\",$::M}", "$::PATH\n{\"model\":\"a\",$::M,\"stream\":true}"]
--- error_code eval
[200, 404, 200]
--- response_headers_like eval
[("x-toolgate-run: ^run_[0-9A-Za-z]{22}\$\nx-request-id: ^[0-9a-f]{32}\$") x 3]



=== TEST 16: a model that is a fixed answer
--- model
default_type application/json;
return 200 '{"choices":[{"index":0,"message":{"role":"assistant","content":"fixed"},"finish_reason":"stop"}]}';
--- request eval
["$::PATH\n{\"model\":\"a\",$::M}", "$::PATH\n{\"model\":\"m\",$::M}"]
--- response_body_like eval
['"content":"fixed"', '^\{"choices":\[\{"index":0,"message":\{"role":"assistant","content":"fixed"\},"finish_reason":"stop"\}\]\}$']



=== TEST 17: nothing is left when nginx ends
--- request eval
"$::PATH\n{\"model\":\"a\",$::M}"
--- shutdown_error_log
toolgate: watches left: 0
