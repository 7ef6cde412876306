# A server that serves something else: with the load_module line and six lines more,
# toolgate works and the other site answers as before.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: without toolgate
--- plain
--- user_files
>>> site/index.html
the other site
--- http_config
gzip on;
server_tokens off;
server {
    listen 127.0.0.1:$TEST_NGINX_RAND_PORT_1;
    root $TEST_NGINX_SERVER_ROOT/html/site;
    location /api/ { add_header X-Site yes; return 200 '{"site":true}'; }
}
--- config
location /site/ { proxy_pass http://127.0.0.1:$TEST_NGINX_RAND_PORT_1/; }
--- request eval
["GET /site/", "GET /site/api/x", "GET /site/none"]
--- error_code eval
[200, 200, 404]
--- response_body_like eval
[qr/^the other site$/, qr/^\{"site":true\}$/, qr/404 Not Found/]



=== TEST 2: with it, and the site is the same
--- user_files
>>> site/index.html
the other site
--- http_config
gzip on;
server_tokens off;
server {
    listen 127.0.0.1:$TEST_NGINX_RAND_PORT_1;
    root $TEST_NGINX_SERVER_ROOT/html/site;
    location /api/ { add_header X-Site yes; return 200 '{"site":true}'; }
}
--- config
location /site/ { proxy_pass http://127.0.0.1:$TEST_NGINX_RAND_PORT_1/; }
--- request eval
["GET /site/", "GET /site/api/x", "GET /site/none",
 "POST /v1/chat/completions\n{\"model\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"]
--- error_code eval
[200, 200, 404, 200]
--- response_body_like eval
[qr/^the other site$/, qr/^\{"site":true\}$/, qr/404 Not Found/, qr/"content":"hello"/]
