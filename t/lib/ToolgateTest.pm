package ToolgateTest;

# What t/*.t has in common: the harness (the real Test::Nginx when it is installed,
# else t/lib/fallback; TOOLGATE_HARNESS=real|own says which), and a toolgate in front of
# a model that each block writes as a location.
#
# Sections of a block beside the harness's own:
#   --- catalog         JSON of one catalog file (an agent "a" with the model "m" when
#                       not given; "none" = no file)
#   --- model           body of the location that the model "m" leads to
#   --- toolgate        more directives for http{}
#   --- api             directives inside of the location with toolgate_api
#   --- plain           nothing is added to the block's configuration
# A block without request_headers of its own sends the key. Every block fails on an
# [alert], [crit] or [emerg] line, unless it has a no_error_log of its own.

use strict;
use warnings;
use Cwd 'abs_path';
use File::Basename 'dirname';

our $KEY = 'key-for-tests-0123456789';
our $HARNESS;

BEGIN {
    my $want = $ENV{TOOLGATE_HARNESS} || 'any';
    my $own = dirname(abs_path(__FILE__)) . '/fallback';

    if ($want ne 'own' && eval { require Test::Nginx::Socket; 1 }) {
        $HARNESS = 'real';
    }
    else {
        die "the real Test::Nginx is not installed: $@" if $want eq 'real';
        unshift @INC, $own;
        require Test::Nginx::Socket;
        $HARNESS = 'own';
    }
}

my $CATALOG = <<'JSON';
{"agents":[{"name":"a","model":"m","instructions":"Be brief.","tools":{"allow_anonymous_actions":true}}]}
JSON

# a whole streamed turn
my $MODEL = <<'CONF';
default_type text/event-stream;
return 200 'data: {"id":"u1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"},"finish_reason":null}]}\n\ndata: {"id":"u1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
CONF

sub import {
    my ($class) = @_;

    eval "package main; Test::Nginx::Socket->import; 1" or die $@;
    main::no_long_string();
    main::no_shuffle();
    main::log_level($ENV{TEST_NGINX_LOG_LEVEL} || 'info');
    main::add_block_preprocessor(\&prepare);
    return;
}

sub prepare {
    my ($block) = @_;

    if (!defined $block->no_error_log) {
        $block->set_value('no_error_log', [qr/\[alert\]/, qr/\[crit\]/]);
    }
    return if defined $block->plain;

    my $catalog = defined $block->catalog ? $block->catalog : $CATALOG;
    my $files = ">>> admin.key\n$KEY\n>>> master.key\n" . ('0123456789abcdef' x 4) . "\n";
    my $http = "toolgate_zone tg 1m;\n"
        . "toolgate_admin_key \$TEST_NGINX_SERVER_ROOT/html/admin.key;\n"
        . "toolgate_master_key \$TEST_NGINX_SERVER_ROOT/html/master.key;\n"
        . "toolgate_model m location=/_model/m model=vendor-m;\n";
    if ($catalog !~ /^none\s*$/) {
        $files .= ">>> catalog.json\n$catalog\n";
        $http .= "toolgate_catalog \$TEST_NGINX_SERVER_ROOT/html/catalog.json;\n";
    }
    $http .= defined $block->toolgate ? $block->toolgate : '';
    $files .= $block->user_files if defined $block->user_files;

    my $model = defined $block->model ? $block->model : $MODEL;
    my $api = defined $block->api ? $block->api : '';
    my $config = "location /v1/ { toolgate_api; $api }\n"
        . "location = /_model/m { internal; $model }\n";

    $block->set_value('user_files', $files);
    $block->set_value('http_config', $http . ($block->http_config // ''));
    $block->set_value('config', $config . ($block->config // ''));
    if (!defined $block->more_headers) {
        $block->set_value('more_headers',
            "Authorization: Bearer $KEY\nContent-Type: application/json");
    }
    return;
}

1;
