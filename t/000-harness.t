# The harness itself, without toolgate: what the other files here rely on. scripts/test
# runs this file under the real Test::Nginx and under the fallback of t/lib. It begins with
# blocks that must fail, and sees that they do.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');

{
    local $ENV{TEST_NGINX_SERVROOT} = server_root() . '_inner';
    my $said = qx($^X -It/lib t/lib/must-fail.pl 2>/dev/null);
    for my $name (qw(status body header-absent error-log no-error-log must-die)) {
        ok($said =~ /^not ok \d+ - (?:\S+ )?$name:/m, "a block with a wrong $name fails");
    }
    system 'rm', '-rf', $ENV{TEST_NGINX_SERVROOT};
}

run_tests();

__DATA__

=== TEST 1: a plain answer, its code, headers and body
--- plain
--- config
location = /hello {
    add_header X-One 1;
    return 200 "hello\n";
}
--- request
GET /hello
--- response_headers
X-One: 1
!X-Two
--- response_body
hello



=== TEST 2: several requests, each with its own expectations
--- plain
--- config
location = /a { return 200 "a\n"; }
location = /b { return 404 "b\n"; }
--- request eval
["GET /a", "GET /b"]
--- error_code eval
[200, 404]
--- response_body eval
["a\n", "b\n"]



=== TEST 3: a body goes out with its length, headers are added
--- plain
--- config
location = /echo {
    return 200 "$request_method $http_content_length $http_x_mark\n";
}
--- request
POST /echo
12345
--- more_headers
X-Mark: here
--- response_body_like: ^POST 5 here$
--- response_body_unlike: there



=== TEST 4: two requests in one connection
--- plain
--- config
location = /n { return 200 "$connection_requests\n"; }
--- pipelined_requests eval
["GET /n", "GET /n"]
--- response_body eval
["1\n", "2\n"]



=== TEST 5: a raw request in two pieces
--- plain
--- config
location = /raw { return 200 "whole\n"; }
--- raw_request eval
["GET /raw HTTP/1.1\r\nHost: x\r\nConnec", "tion: close\r\n\r\n"]
--- raw_request_middle_delay: 0.1
--- response_body
whole



=== TEST 6: the log of this block
--- plain
--- config
location = /gone { root html; }
--- request
GET /gone
--- error_code: 404
--- response_body_like: 404 Not Found
--- error_log
No such file or directory
--- no_error_log
[alert]
[crit]
--- grep_error_log eval: qr/open\(\) "[^"]*gone"/
--- grep_error_log_out eval
qr/gone/



=== TEST 7: a configuration that must not start
--- plain
--- config
    no_such_directive on;
--- must_die
--- error_log
unknown directive "no_such_directive"
--- no_error_log
[alert]



=== TEST 8: files of the block, a port of its own, one upstream connection
--- plain
--- user_files
>>> greeting.txt
salam
--- config
location = /greeting.txt { root html; }
location = /up { proxy_pass http://127.0.0.1:$TEST_NGINX_RAND_PORT_1; }
--- tcp_listen: $TEST_NGINX_RAND_PORT_1
--- tcp_reply eval
"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nup\n"
--- request eval
["GET /greeting.txt", "GET /up"]
--- response_body eval
["salam\n", "up\n"]
