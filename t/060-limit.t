# Request limits, counted in the zone: headers, exact counts, several limits, keys,
# burst, dry_run, inheritance, and what "nginx -t" refuses.

use lib 't/lib';
use ToolgateTest;

our $KEY = 'Authorization: Bearer key-for-tests-0123456789';
our $CHAT = '{"model":"a","messages":[{"role":"user","content":"x"}]';

sub chat { return "POST /v1/chat/completions\n$CHAT" . ($_[0] // '') . '}'; }
sub chats { return [map { chat() } 1 .. $_[0]]; }
sub limited {
    my ($limit, $remaining, $reset) = @_;
    return "x-ratelimit-limit-requests: $limit\nx-ratelimit-remaining-requests: $remaining\n"
        . "x-ratelimit-reset-requests: $reset";
}

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: exactly the limit, then refused, with OpenAI's headers
--- api: toolgate_limit requests=3/m key=$toolgate_project;
--- request eval: main::chats(5)
--- error_code eval
[200, 200, 200, 429, 429]
--- response_headers_like eval
my $no = "\nRetry-After: (5\\d|60)\nContent-Type: application/json\nx-toolgate-run: run_.*";
[main::limited(3, 2, '1m0s'), main::limited(3, 1, '1m0s'), main::limited(3, 0, '1m0s'),
 main::limited(3, 0, '(5\d(\.\d+)?s|1m0s)') . $no, main::limited(3, 0, '(5\d(\.\d+)?s|1m0s)') . $no]
--- response_body_like eval
my $no = '^\{"error":\{"message":"The rate limit is reached\. Wait for as long as the Retry-After header says\.","type":"rate_limit_error","code":"rate_limit_exceeded","param":null\}\}$';
['"content":"hello"', '"content":"hello"', '"content":"hello"', $no, $no]



=== TEST 2: without a limit there is no such header
--- request eval: main::chat()
--- response_headers
!x-ratelimit-limit-requests
!x-ratelimit-remaining-requests
!x-ratelimit-reset-requests
!x-toolgate-limit-mode
!Retry-After



=== TEST 3: counted here: the answer says so, once, whole or streamed, passed through or refused
--- api: toolgate_limit requests=3/h key=all;
--- request eval
[main::chat(), main::chat(',"stream":true'),
 "POST /v1/chat/completions\n{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
 main::chat(',"stream":true')]
--- error_code eval
[200, 200, 200, 429]
--- response_headers_like eval
[map { main::limited(3, $_, '(1h0m0s|59m.*)') . "\nx-toolgate-limit-mode: local" } 2, 1, 0, 0]
--- response_body_like eval
['"content":"hello"', 'data: \[DONE\]', 'data: \[DONE\]', '"code":"rate_limit_exceeded"']



=== TEST 4: a wrong request is not counted, nor one without a key, nor a list of models
--- api: toolgate_limit requests=1/m key=$toolgate_project;
--- request eval
["POST /v1/chat/completions\n{", main::chat(',"stream":1'), "POST /v1/chat/completions\n{\"model\":\"none\",\"messages\":[]}",
 "GET /v1/models", main::chat(), main::chat()]
--- error_code eval
[400, 400, 404, 200, 200, 429]
--- response_headers_like eval
['Content-Type: application/json', 'Content-Type: application/json', 'Content-Type: application/json',
 'Content-Type: application/json', main::limited(1, 0, '1m0s'), main::limited(1, 0, '.*s')]



=== TEST 5: several limits: the tightest is told, what one refuses no other counts
--- api
toolgate_limit requests=2/s key=$http_x_first;
toolgate_limit requests=3/h key=$http_x_second;
--- request eval: main::chats(6)
--- more_headers eval
my ($k, $a, $b) = ($main::KEY, 'X-First: f', 'X-Second: s');
["$k\n$a\n$b", "$k\n$a\n$b", "$k\n$b\n$a", "$k\n$b", "$k\n$b", "$k"]
--- error_code eval
[200, 200, 429, 200, 429, 200]
--- response_headers_like eval
[main::limited(2, 1, '1s'), main::limited(2, 0, '1s'), main::limited(2, 0, '(\d+ms|1s)') . "\nRetry-After: 1",
 main::limited(3, 0, '1h0m0s'), main::limited(3, 0, '(1h0m0s|59m.*s)') . "\nRetry-After: (3600|359\\d)",
 'Content-Type: application/json']



=== TEST 6: of two refusals the longer one is told
--- api
toolgate_limit requests=1/m key=$toolgate_project;
toolgate_limit requests=1/h key=$toolgate_project;
--- request eval: main::chats(2)
--- error_code eval
[200, 429]
--- response_headers_like eval
[main::limited(1, 0, '1h0m0s'), main::limited(1, 0, '(1h0m0s|59m.*s)') . "\nRetry-After: (3600|359\\d)"]



=== TEST 7: another value of the key is another count; an empty one is not limited
--- api: toolgate_limit requests=1/m key=$http_x_who;
--- request eval: main::chats(6)
--- more_headers eval
my $k = $main::KEY;
["$k\nX-Who: a", "$k\nX-Who: b", "$k\nX-Who: a", "$k\nX-Who: ", $k, $k]
--- error_code eval
[200, 200, 429, 200, 200, 200]



=== TEST 8: the account is known when limits are looked up, also the project's own one
--- api: toolgate_limit requests=1/m key=$toolgate_account;
--- request eval
[main::chat(',"account_id":"acme"'), main::chat(',"account_id":"other"'), main::chat(',"account_id":"acme"'),
 main::chat(), main::chat(), main::chat(',"account_id":null')]
--- error_code eval
[200, 200, 429, 200, 429, 429]



=== TEST 9: every variable of a run that is known by then, literals, several in one key
--- api
toolgate_limit requests=2/m "key=$toolgate_project/${toolgate_account}/$toolgate_agent/$toolgate_model $toolgate_run x";
toolgate_limit requests=2/m key=$toolgate_agent;
toolgate_limit requests=9/m key=$toolgate_model;
--- request eval
[main::chat(), main::chat(), main::chat(),
 "POST /v1/chat/completions\n{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"]
--- error_code eval
[200, 200, 429, 200]
--- response_headers_like eval
[main::limited(2, 1, '1m0s'), main::limited(2, 0, '1m0s'), main::limited(2, 0, '.*s'), main::limited(2, 1, '1m0s')]



=== TEST 10: a credential as the key is in no log
--- api: toolgate_limit requests=1/m key=$http_authorization;
--- request eval: main::chats(2)
--- error_code eval
[200, 429]
--- no_error_log
key-for-tests
[alert]



=== TEST 11: burst: as many more at once, the mean stays
--- api: toolgate_limit requests=2/m key=$toolgate_project burst=2;
--- request eval: main::chats(6)
--- error_code eval
[200, 200, 200, 200, 429, 429]
--- response_headers_like eval
[(map { main::limited(4, $_, '2m0s') } 3, 2, 1, 0), (main::limited(4, 0, '(1m5.*s|2m0s)') . "\nRetry-After: 1(1\\d|20)") x 2]



=== TEST 12: dry_run: counts, says what it would do, refuses nothing
--- api: toolgate_limit requests=2/m key=$toolgate_project dry_run;
--- request eval: main::chats(4)
--- error_code eval
[200, 200, 200, 200]
--- response_headers_like eval
[main::limited(2, 1, '1m0s'), main::limited(2, 0, '1m0s'), main::limited(2, 0, '.*s'), main::limited(2, 0, '.*s')]
--- response_headers eval
['!Retry-After', '!Retry-After', '!Retry-After', '!Retry-After']



=== TEST 13: dry_run beside a real limit: the real one is told, and refuses
--- api
toolgate_limit requests=1/m key=$toolgate_project dry_run;
toolgate_limit requests=3/m key=$toolgate_project;
--- request eval: main::chats(4)
--- error_code eval
[200, 200, 200, 429]
--- response_headers_like eval
[main::limited(3, 2, '1m0s'), main::limited(3, 1, '1m0s'), main::limited(3, 0, '1m0s'), main::limited(3, 0, '.*s')]



=== TEST 14: a level's own list replaces the outer one
--- toolgate
toolgate_limit requests=1/m key=outer;
--- config
location /inner/ {
    rewrite ^/inner(/.*)$ $1 break;
    toolgate_api;
    toolgate_limit requests=2/m key=inner;
    toolgate_limit requests=5/m key=inner;
}
location /inherits/ { rewrite ^/inherits(/.*)$ $1 break; toolgate_api; }
--- request eval
[(map { "POST /inner/v1/chat/completions\n$main::CHAT}" } 1 .. 3), main::chat(), main::chat(),
 "POST /inherits/v1/chat/completions\n$main::CHAT}"]
--- error_code eval
[200, 200, 429, 200, 429, 429]
--- response_headers_like eval
[main::limited(2, 1, '1m0s'), main::limited(2, 0, '1m0s'), main::limited(2, 0, '.*s'), main::limited(1, 0, '1m0s'),
 main::limited(1, 0, '.*s'), main::limited(1, 0, '.*s')]



=== TEST 15: projects do not share a count
--- catalog
{"project":"shop","agents":[{"name":"a","model":"m"}],
 "api_keys":[{"name":"k","sha256":"fd06bdb024db0cd12323487b1502798c694599b447535789c5898827484ce36a","scopes":["run"]}]}
--- api: toolgate_limit requests=1/m key=all;
--- request eval
[map { "POST /v1/chat/completions\n{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}" } 1 .. 4]
--- more_headers eval
["Authorization: Bearer key-other-project-01234", "Authorization: Bearer key-for-tests-0123456789",
 "Authorization: Bearer key-other-project-01234", "Authorization: Bearer key-for-tests-0123456789"]
--- error_code eval
[200, 200, 429, 429]



=== TEST 16: tokens cannot be counted
--- api: toolgate_limit tokens=1000/m key=all;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_limit" directive cannot count tokens yet: leave "tokens=" out and limit "requests=" in .*nginx\.conf:\d+/



=== TEST 17: without requests=
--- api: toolgate_limit key=all;
--- must_die
--- error_log eval
qr/"toolgate_limit" directive needs requests=number\/unit in .*nginx\.conf:\d+/



=== TEST 18: without key=
--- api: toolgate_limit requests=1/m;
--- must_die
--- error_log eval
qr/"toolgate_limit" directive needs key= and what is counted, for example key=\$toolgate_project in .*nginx\.conf:\d+/



=== TEST 19: with an empty key=
--- api: toolgate_limit requests=1/m key=;
--- must_die
--- error_log eval
qr/"toolgate_limit" directive needs key= .* in .*nginx\.conf:\d+/



=== TEST 20: a unit that there is not
--- api: toolgate_limit requests=10/w key=all;
--- must_die
--- error_log eval
qr/"toolgate_limit" has a wrong rate "requests=10\/w": it is a number from 1 to 1000000000, "\/" and s, m, h or d in .*nginx\.conf:\d+/



=== TEST 21: none at all
--- api: toolgate_limit requests=0/m key=all;
--- must_die
--- error_log eval
qr/"toolgate_limit" has a wrong rate "requests=0\/m".* in .*nginx\.conf:\d+/



=== TEST 22: no unit
--- api: toolgate_limit requests=10 key=all;
--- must_die
--- error_log eval
qr/"toolgate_limit" has a wrong rate "requests=10".* in .*nginx\.conf:\d+/



=== TEST 23: one past the greatest number
--- api: toolgate_limit requests=1000000001/h key=all;
--- must_die
--- error_log eval
qr/"toolgate_limit" has a wrong rate "requests=1000000001\/h".* in .*nginx\.conf:\d+/



=== TEST 24: the greatest number, the greatest burst
--- api
toolgate_limit requests=1000000000/h key=all;
toolgate_limit requests=1/d key=all burst=30;
toolgate_limit requests=7/h key=none burst=0;
--- request eval: main::chat()
--- response_headers_like eval: main::limited(7, 6, '1h0m0s')



=== TEST 25: a burst that is none
--- api: toolgate_limit requests=1/m key=all burst=x;
--- must_die
--- error_log eval
qr/"toolgate_limit" has a wrong number "burst=x" in .*nginx\.conf:\d+/



=== TEST 26: a burst for which a month is too short
--- api: toolgate_limit requests=1/d key=all burst=31;
--- must_die
--- error_log eval
qr/"toolgate_limit" has a burst that takes more than 31 days to come back: "burst=31" in .*nginx\.conf:\d+/



=== TEST 27: an unknown parameter
--- api: toolgate_limit requests=1/m key=all nodelay;
--- must_die
--- error_log eval
qr/"toolgate_limit" has an unknown parameter "nodelay" in .*nginx\.conf:\d+/



=== TEST 28: a parameter twice
--- api: toolgate_limit requests=1/m requests=2/h key=all;
--- must_die
--- error_log eval
qr/"toolgate_limit" has a parameter twice: "requests=2\/h" in .*nginx\.conf:\d+/



=== TEST 29: a line twice
--- api
toolgate_limit requests=1/m key=all;
toolgate_limit requests=01/m key=all dry_run;
--- must_die
--- error_log eval
qr/"toolgate_limit" directive is duplicate in .*nginx\.conf:\d+/



=== TEST 30: eight lines
--- api eval
join "\n", map { "toolgate_limit requests=1$_/m key=all;" } 1 .. 8;
--- request eval: main::chat()
--- response_headers_like eval: main::limited(11, 10, '1m0s')



=== TEST 31: nine lines
--- api eval
join "\n", map { "toolgate_limit requests=1$_/m key=all;" } 1 .. 9;
--- must_die
--- error_log eval
qr/"toolgate_limit" directive has too many lines in one place: 8 at most in .*nginx\.conf:\d+/



=== TEST 32: an unknown variable
--- api: toolgate_limit requests=1/m key=$no_such_variable;
--- must_die
--- error_log
unknown "no_such_variable" variable



=== TEST 33: without a zone to count in
--- plain
--- config
location /v1/ {
    toolgate_api;
    toolgate_limit requests=1/m key=all;
}
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_limit" needs "toolgate_zone" to count in while there is no Redis in .*nginx\.conf:\d+/



=== TEST 34: with Redis, but nowhere to count while it is away
--- plain
--- http_config
toolgate_redis 127.0.0.1:1;
--- config
location /v1/ { toolgate_api; toolgate_limit requests=1/m key=all; }
--- must_die
--- error_log eval
qr/"toolgate_limit" needs "toolgate_zone" .* in .*nginx\.conf:\d+/



=== TEST 35: with Redis and on_failure=closed there need not be a zone
--- plain
--- http_config
toolgate_redis 127.0.0.1:1 on_failure=closed;
--- config
location /v1/ { toolgate_api; toolgate_limit requests=1/m key=all; }
location = /x { return 204; }
--- request
GET /x
--- error_code: 204



=== TEST 36: not in an "if"
--- api: if ($http_x) { toolgate_limit requests=1/m key=all; }
--- must_die
--- error_log eval
qr/"toolgate_limit" directive is not allowed here in .*nginx\.conf:\d+/
