# What "nginx -t" takes and what it refuses, with the place of the fault.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: the smallest configuration that works
--- request
POST /v1/chat/completions
{"model":"a","messages":[{"role":"user","content":"hi"}]}
--- response_body_like: "content":"hello"



=== TEST 2: a key file that is not there
--- plain
--- http_config
toolgate_admin_key /nonexistent/admin.key;
--- config
--- must_die
--- error_log
/nonexistent/admin.key" failed
nginx.conf:



=== TEST 3: a key that is too short
--- plain
--- user_files
>>> short.key
abc
--- http_config
toolgate_admin_key $TEST_NGINX_SERVER_ROOT/html/short.key;
--- config
--- must_die
--- error_log
has a key of less than 16 characters



=== TEST 4: broken JSON in a catalog, with file and line
--- catalog
{"agents":[
  {"name":"a",}
]}
--- must_die
--- error_log eval
[qr/toolgate: broken JSON: .* in \S*catalog\.json:2/]



=== TEST 5: an unknown key in a catalog, with its path
--- catalog
{"agents":[{"name":"a","model":"m","instructionz":"x"}]}
--- must_die
--- error_log eval
[qr/unknown_field.*\/agents\/0.* in \S*catalog\.json:1/]



=== TEST 6: an agent of a model that nobody configured
--- catalog
{"agents":[{"name":"a","model":"nobody","instructions":"x"}]}
--- must_die
--- error_log eval
[qr/model_not_found.* in \S*catalog\.json:1/]



=== TEST 7: two agents of one name
--- catalog
{"agents":[{"name":"a","model":"m","instructions":"x"},
           {"name":"a","model":"m","instructions":"y"}]}
--- must_die
--- error_log eval
[qr/name_conflict.* in \S*catalog\.json:2/]



=== TEST 8: an HTTP tool with plain http and no allow entry
--- catalog
{"tools":[{"name":"t","description":"d","config":{"method":"GET","url":"http://api.example.com/x"}}]}
--- must_die
--- error_log eval
[qr/url_not_https.* in \S*catalog\.json:1/]



=== TEST 9: an HTTP tool whose parameters are no schema
--- catalog
{"tools":[{"name":"t","description":"d","config":{"method":"GET","url":"https://api.example.com/x",
  "parameters":{"type":"strange"}}}]}
--- must_die
--- error_log eval
[qr/invalid_schema.* in \S*catalog\.json:\d/]



=== TEST 10: a bad CIDR
--- toolgate
toolgate_netguard_allow 10.0.0.0/99;
--- must_die
--- error_log
toolgate_netguard_allow



=== TEST 11: an unknown parameter of toolgate_model
--- toolgate
toolgate_model n location=/_model/m colour=blue;
--- must_die
--- error_log
"toolgate_model" has an unknown parameter "colour=blue"



=== TEST 12: a helper that is no unix socket
--- toolgate
toolgate_helper 127.0.0.1:99;
--- must_die
--- error_log
must be "unix:" and a path



=== TEST 13: a Redis time-out out of range, and a password in the URL
--- toolgate
toolgate_redis redis://user:word@127.0.0.1:6379;
--- must_die
--- error_log
use password_file=



=== TEST 14: a directive twice
--- toolgate
toolgate_zone other 1m;
--- must_die
--- error_log
"toolgate_zone" directive is duplicate



=== TEST 15: rules of a grant at the limit
--- catalog eval
my $rules = "x" x 4000;
qq({"tools":[{"name":"t","description":"d","config":{"method":"GET","url":"https://api.example.com/x",)
. qq("parameters":{"type":"object","properties":{},"additionalProperties":false}}}],)
. qq("agents":[{"name":"a","model":"m","instructions":"x","tools":{"http":[{"tool":"t","rules":"$rules"}]}}]})
--- request
GET /v1/models/a
--- response_body_like: "id":"a"



=== TEST 16: rules of a grant one past it
--- catalog eval
my $rules = "x" x 4001;
qq({"tools":[{"name":"t","description":"d","config":{"method":"GET","url":"https://api.example.com/x",)
. qq("parameters":{"type":"object","properties":{},"additionalProperties":false}}}],)
. qq("agents":[{"name":"a","model":"m","instructions":"x","tools":{"http":[{"tool":"t","rules":"$rules"}]}}]})
--- must_die
--- error_log eval
[qr/rules_too_long.*\/agents\/0\/tools\/http\/0.* in \S*catalog\.json:1/]
