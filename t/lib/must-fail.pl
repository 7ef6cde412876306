# Run by t/000-harness.t: every block here has one wrong expectation, and its name
# says which. A harness that lets one pass is of no use.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');
run_tests();

__DATA__

=== status: is 404, not 200
--- plain
--- config
location = /x { return 404; }
--- request
GET /x



=== body: is another one
--- plain
--- config
location = /x { return 200 "a\n"; }
--- request
GET /x
--- response_body
b



=== header-absent: is there
--- plain
--- config
location = /x { add_header X-One 1; return 200 "a\n"; }
--- request
GET /x
--- response_headers
!X-One



=== error-log: has no such line
--- plain
--- config
location = /x { return 200 "a\n"; }
--- request
GET /x
--- error_log
this is never logged



=== no-error-log: has that line
--- plain
--- config
location = /gone { root html; }
--- request
GET /gone
--- error_code: 404
--- no_error_log
No such file or directory



=== must-die: starts all the same
--- plain
--- config
location = /x { return 200 "a\n"; }
--- must_die
