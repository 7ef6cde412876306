# Directives: what "nginx -t" refuses, and that it says where.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: toolgate_zone with a size that is too small
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_zone tg 4k;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_zone" has a wrong or too small size "4k" in .*nginx\.conf:\d+/



=== TEST 2: toolgate_zone twice
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_zone one 1m;
toolgate_zone two 1m;
--- must_die
--- error_log eval
qr/"toolgate_zone" directive is duplicate in .*nginx\.conf:\d+/



=== TEST 3: an admin key file that is missing
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_admin_key /nonexistent/admin.key;
--- must_die
--- error_log eval
qr/\[emerg\].*open\(\) "\/nonexistent\/admin\.key" failed \(2: No such file or directory\) in .*nginx\.conf:\d+/



=== TEST 4: an admin key that is too short
--- plain
--- config
location = /x { return 204; }
--- user_files
>>> short.key
abc
--- http_config
toolgate_admin_key $TEST_NGINX_SERVER_ROOT/html/short.key;
--- must_die
--- error_log eval
qr/"toolgate_admin_key" directive has a key of less than 16 characters in .*nginx\.conf:\d+/



=== TEST 5: an empty key file
--- plain
--- config
location = /x { return 204; }
--- user_files eval
">>> blank.key\n  \n"
--- http_config
toolgate_admin_key $TEST_NGINX_SERVER_ROOT/html/blank.key;
--- must_die
--- error_log eval
qr/blank\.key" (does not begin with a key|is empty) in .*nginx\.conf:\d+/



=== TEST 6: a master key that is no key
--- plain
--- config
location = /x { return 204; }
--- user_files
>>> master.key
0123456789abcdef
--- http_config
toolgate_master_key $TEST_NGINX_SERVER_ROOT/html/master.key;
--- must_die
--- error_log eval
qr/"toolgate_master_key" directive needs a file with 32 bytes as 64 hex digits or as base64 in .*nginx\.conf:\d+/



=== TEST 7: a wrong cidr
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_netguard_allow 10.0.0.0/33;
--- must_die
--- error_log eval
qr/"toolgate_netguard_allow" has a wrong cidr "10\.0\.0\.0\/33" in .*nginx\.conf:\d+/



=== TEST 8: a wrong port
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_netguard_allow 10.0.0.0/8 443 70000;
--- must_die
--- error_log eval
qr/"toolgate_netguard_allow" has a wrong port "70000", or too many in .*nginx\.conf:\d+/



=== TEST 9: a model without a location
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_model m model=x;
--- must_die
--- error_log eval
qr/"toolgate_model" directive needs location=\/uri, an internal location in .*nginx\.conf:\d+/



=== TEST 10: a model with an unknown parameter
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_model m location=/_m weight=5;
--- must_die
--- error_log eval
qr/"toolgate_model" has an unknown parameter "weight=5" in .*nginx\.conf:\d+/



=== TEST 11: a helper that is no unix socket
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_helper 127.0.0.1:99;
--- must_die
--- error_log eval
qr/"toolgate_helper" directive must be "unix:" and a path in .*nginx\.conf:\d+/



=== TEST 12: a hosts file that is missing
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_hosts /nonexistent/hosts;
--- must_die
--- error_log eval
qr/"\/nonexistent\/hosts" failed .*in .*nginx\.conf:\d+/



=== TEST 13: an authority file that is missing
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_ca /nonexistent/ca.pem;
--- must_die
--- error_log eval
qr/"\/nonexistent\/ca\.pem" failed .*in .*nginx\.conf:\d+/



=== TEST 14: a catalog that is missing
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_catalog /nonexistent/catalog.json;
--- must_die
--- error_log eval
qr/\[emerg\].*"\/nonexistent\/catalog\.json" failed \(2: No such file or directory\)/



=== TEST 15: a catalog pattern that matches nothing is an empty catalog
--- catalog: none
--- toolgate
toolgate_catalog /nonexistent/*.json;
--- request
GET /v1/models
--- response_body_like: "data":\[\{"id":"m"



=== TEST 16: bounds of zero
--- plain
--- config
location /v1/ { toolgate_api; toolgate_max_body 0; }
--- must_die
--- error_log
must be greater than zero



=== TEST 17: toolgate_api twice in a location
--- plain
--- config
location /v1/ { toolgate_api; toolgate_api; }
--- must_die
--- error_log eval
qr/"toolgate_api" directive is duplicate in .*nginx\.conf:\d+/



=== TEST 18: toolgate_api outside of a location
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_api;
--- must_die
--- error_log eval
qr/"toolgate_api" directive is not allowed here in .*nginx\.conf:\d+/



=== TEST 19: a wrong Redis address
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_redis http://127.0.0.1/;
--- must_die
--- error_log eval
qr/\[emerg\].*invalid Redis .* in .*nginx\.conf:\d+/



=== TEST 20: a directive without its value
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_admin_key;
--- must_die
--- error_log eval
qr/invalid number of arguments in "toolgate_admin_key" directive in .*nginx\.conf:\d+/



=== TEST 21: loaded and without a single directive nothing changes
--- plain
--- config
location = /hello { return 200 "hello\n"; }
--- request
GET /hello
--- response_headers
!x-request-id
!x-toolgate-run
--- response_body
hello



=== TEST 22: toolgate_retention of no time
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_retention 0;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_retention" must be from 1s to 3650d/



=== TEST 23: toolgate_retention of more than is kept
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_retention 3651d;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_retention" must be from 1s to 3650d/



=== TEST 24: toolgate_retention that is no time
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_retention 30x;
--- must_die
--- error_log eval
qr/"toolgate_retention" directive invalid value in .*nginx\.conf:\d+/



=== TEST 25: toolgate_retention at its upper bound
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_retention 3650d;
--- request
GET /x
--- error_code: 204



=== TEST 26: toolgate_max_history that is too small
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_max_history 4095;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_max_history" must be from 4k to 16m/



=== TEST 27: toolgate_max_history that is too large
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_max_history 16385k;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_max_history" must be from 4k to 16m/



=== TEST 28: toolgate_segment_idle of no time
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_segment_idle 0;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_segment_idle" must be from 1s to 365d/



=== TEST 29: toolgate_segment_idle of more than a year
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_segment_idle 366d;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_segment_idle" must be from 1s to 365d/



=== TEST 30: toolgate_max_history and toolgate_segment_idle at their bounds
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_max_history 4k;
toolgate_segment_idle 365d;
--- request
GET /x
--- error_code: 204



=== TEST 31: toolgate_run_host on a port that others reach
--- plain
--- config
location = /x { toolgate_run_host; }
--- http_config
toolgate_redis 127.0.0.1:6379;
--- must_die
--- error_log eval
qr/\[emerg\].*the server with "toolgate_run_host" must listen on a unix socket only/



=== TEST 32: toolgate_run_host without a store
--- plain
--- config
location = /x { return 204; }
--- http_config
server { listen unix:/tmp/toolgate-t-010.sock; location = / { toolgate_run_host; } }
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_run_host" needs "toolgate_redis"/



=== TEST 33: toolgate_run_host twice
--- plain
--- config
location = /x { toolgate_run_host; }
location = /y { toolgate_run_host; }
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_run_host" directive is duplicate in .*nginx\.conf:\d+/
