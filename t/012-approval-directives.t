# Directives of approvals and client tools: what "nginx -t" refuses, and that it says where.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: toolgate_approval_mode with a word that is none
--- plain
--- config
location = /x { return 204; }
toolgate_approval_mode loose;
--- must_die
--- error_log eval
qr/\[emerg\].*invalid value "loose" in .*nginx\.conf:\d+/



=== TEST 2: times to wait for approvals and tool outputs: none, too long, no time
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_approval_ttl 0;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_approval_ttl" and "toolgate_tool_outputs_ttl" must be from 1ms to 1d/



=== TEST 3: toolgate_tool_outputs_ttl that is too long
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_tool_outputs_ttl 25h;
--- must_die
--- error_log eval
qr/\[emerg\].*"toolgate_approval_ttl" and "toolgate_tool_outputs_ttl" must be from 1ms to 1d/



=== TEST 4: toolgate_approval_ttl that is no time
--- plain
--- config
location = /x { return 204; }
--- http_config
toolgate_approval_ttl soon;
--- must_die
--- error_log eval
qr/"toolgate_approval_ttl" directive invalid value in .*nginx\.conf:\d+/



=== TEST 5: both at their bounds, and every word of a mode
--- plain
--- config
toolgate_approval_mode full;
location = /x { toolgate_approval_mode strict; return 204; }
location = /y { toolgate_approval_mode risk; return 204; }
location = /z { toolgate_approval_mode ask; return 204; }
--- http_config
toolgate_approval_mode off;
toolgate_approval_ttl 1d;
toolgate_tool_outputs_ttl 1ms;
--- request
GET /x
--- error_code: 204
