# Another site in the same nginx, from the distribution's own kind of configuration: it
# is as it was, and toolgate needs six lines beside it.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: files, headers, 404 of the other site
--- config
location /site/ { alias $TEST_NGINX_SERVER_ROOT/html/; index index.html; try_files $uri $uri/ =404; }
location /gz/ { alias $TEST_NGINX_SERVER_ROOT/html/; gzip on; gzip_min_length 1; gzip_types text/plain application/json; }
--- user_files
>>> index.html
the other site
--- request eval
["GET /site/index.html", "GET /site/", "GET /site/none", "GET /gz/index.html"]
--- error_code eval
[200, 200, 404, 200]
--- response_body_like eval
['^the other site$', '^the other site$', '404 Not Found', '^the other site$']
--- response_headers eval
[("!x-request-id\n!x-toolgate-run") x 4]



=== TEST 2: subrequests of others: SSI and auth_request
--- config
location = /page { ssi on; ssi_types *; default_type text/html; alias $TEST_NGINX_SERVER_ROOT/html/page.html; }
location = /part { return 200 "part"; }
location = /guarded { auth_request /who; root html; }
location = /who { internal; return 403; }
--- user_files
>>> page.html
a <!--# include virtual="/part" --> b
--- request eval
["GET /page", "GET /guarded"]
--- error_code eval
[200, 403]
--- response_body_like eval
['^a part b$', '403 Forbidden']



=== TEST 3: a proxy with and without buffering
--- config
location = /up { proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/origin; }
location = /up2 { proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/origin; proxy_buffering off; }
location = /origin { return 200 "origin $request_method\n"; }
--- request eval
["GET /up", "GET /up2", "POST /up\nbody"]
--- response_body eval
["origin GET\n", "origin GET\n", "origin POST\n"]



=== TEST 4: client_max_body_size of the other site holds
--- config
location = /up { client_max_body_size 10; proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/origin; }
location = /origin { return 200 "origin\n"; }
--- request eval
["POST /up\n1234567890", "POST /up\n12345678901"]
--- error_code eval
[200, 413]
--- response_body_like eval
["origin", "413 Request Entity Too Large"]
