package Test::Nginx::Socket;

# A small stand-in for the real Test::Nginx::Socket, used where that cannot be
# installed: the part of its data-block language that t/*.t uses, written anew, with
# core Perl only. Each block writes a configuration, starts one nginx, sends requests,
# checks the answers and the log of this block, and ends that nginx.
# t/000-harness.t runs under both, so that the two cannot drift apart.

use strict;
use warnings;
use Exporter 'import';
use Cwd 'abs_path';
use File::Path qw(make_path remove_tree);
use Test::More ();
use Time::HiRes qw(sleep time);
use Test::Nginx::Socket::Client qw(exchange parse_response);
use Test::Nginx::Socket::Parser qw(parse_blocks);

our @EXPORT = qw(
    plan run_tests blocks repeat_each no_shuffle no_long_string log_level
    master_on workers worker_connections env_to_nginx use_hup server_root html_dir
    server_port add_block_preprocessor add_response_body_check add_cleanup_handler
    no_root_location ok is like unlike diag
);

use constant START_SECONDS => 10;
use constant STOP_SECONDS  => 10;

my $log_level   = $ENV{TEST_NGINX_LOG_LEVEL} || 'debug';
my $workers     = 1;
my $master      = 'off';
my $connections = 1024;
my $repeat_each = 1;
my $root_location = 1;
my (@env, @preprocessors, @body_checks, @cleanups);
my %random_port;
my $port = $ENV{TEST_NGINX_PORT} || 1984;
my $root = $ENV{TEST_NGINX_SERVROOT} || 't/servroot';

if ($ENV{TEST_NGINX_RANDOMIZE}) {
    $port = _free_port();
    $root .= "_$port";
}

sub ok     { local $Test::Builder::Level = $Test::Builder::Level + 1; goto &Test::More::ok }
sub is     { goto &Test::More::is }
sub like   { goto &Test::More::like }
sub unlike { goto &Test::More::unlike }
sub diag   { goto &Test::More::diag }

sub plan { return Test::More::plan(@_) }

sub repeat_each { $repeat_each = shift if @_; return $repeat_each }
sub no_shuffle         { return }
sub no_long_string     { return }
sub no_root_location   { $root_location = 0; return }
sub log_level          { $log_level = shift; return }
sub master_on          { $master = 'on'; return }
sub workers            { $workers = shift; return }
sub worker_connections { $connections = shift; return }
sub env_to_nginx       { push @env, @_; return }
sub use_hup            { Test::More::BAIL_OUT('use_hup: only with the real Test::Nginx') }
sub server_port        { return $port }

sub server_root {
    make_path($root) if !-d $root;
    return abs_path($root);
}

sub html_dir { return server_root() . '/html' }

sub add_block_preprocessor  { push @preprocessors, shift; return }
sub add_response_body_check { push @body_checks,   shift; return }
sub add_cleanup_handler     { push @cleanups,      shift; return }

my @blocks;
my $parsed;

sub blocks {
    if (!$parsed) {
        $parsed = 1;
        no warnings 'once';
        local $/;
        @blocks = parse_blocks(scalar readline *main::DATA);
    }
    return wantarray ? @blocks : scalar @blocks;
}

sub run_tests {
    my @all = blocks();
    my @only = grep { defined $_->{sections}{ONLY} } @all;

    for my $block (@only ? @only : @all) {
        if (defined $block->{sections}{SKIP}) {
            Test::More::diag("SKIP: $block->{name}");
            next;
        }
        _run_block($block) for 1 .. $repeat_each;
        last if defined $block->{sections}{LAST};
    }
    $_->() for @cleanups;
    remove_tree($root) if -d $root && !$ENV{TEST_NGINX_NO_CLEAN}
        && Test::More->builder->is_passing;
    return;
}

sub _free_port {
    require IO::Socket::INET;
    my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', LocalPort => 0)
        or die "no free port: $!\n";
    return $s->sockport;
}

sub _expand {
    my ($text) = @_;
    return '' if !defined $text;

    $text =~ s{\$TEST_NGINX_RAND_PORT_(\d+)}{$random_port{$1} ||= _free_port()}ge;
    $text =~ s{\$TEST_NGINX_(?:SERVER|CLIENT)_PORT\b}{$port}g;
    $text =~ s{\$TEST_NGINX_SERVER_ROOT\b}{server_root()}ge;
    $text =~ s{\$(TEST_NGINX_[A-Z0-9_]+)}{
        defined $ENV{$1} ? $ENV{$1} : die "no value for \$$1\n" }ge;
    return $text;
}

sub _write_file {
    my ($name, $text) = @_;
    open my $fh, '>', $name or die "$name: $!\n";
    print {$fh} $text;
    close $fh or die "$name: $!\n";
    return;
}

sub _read_file {
    my ($name) = @_;
    open my $fh, '<', $name or return '';
    local $/;
    my $text = readline $fh;
    return defined $text ? $text : '';
}

sub _write_root {
    my ($block) = @_;
    my $s   = $block->{sections};
    my $dir = server_root();
    my $env = join '', map { "env $_;\n" } @env;
    my $load = join '', map { "load_module $_;\n" }
        split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || '';
    my $level = defined $s->{log_level} ? $s->{log_level} : $log_level;
    my $config = _expand($s->{config});
    my $default = $root_location && $config !~ m{location\s+/\s*\{}
        ? "location / { root $dir/html; index index.html index.htm; }" : '';

    remove_tree("$dir/$_") for qw(conf logs html client_body_temp proxy_temp);
    make_path("$dir/$_") for qw(conf logs html);
    _write_file("$dir/html/index.html", "<html><body>It works!</body></html>\n");
    if (defined $s->{user_files}) {
        my @files = split /^>>> (\S+)[^\n]*\n/m, _expand($s->{user_files});
        shift @files;
        while (my ($name, $text) = splice @files, 0, 2) {
            my ($folder) = "$dir/html/$name" =~ m{^(.*)/};
            make_path($folder);
            _write_file("$dir/html/$name", $text);
        }
    }
    my $main = _expand($s->{main_config});
    my $http = _expand($s->{http_config});
    my $post = _expand($s->{post_main_config});
    _write_file("$dir/conf/nginx.conf", <<"CONF");
worker_processes $workers;
daemon on;
master_process $master;
error_log $dir/logs/error.log $level;
pid $dir/logs/nginx.pid;
$env$load$main
http {
    access_log $dir/logs/access.log;
    default_type text/plain;
    keepalive_timeout 68;
$http
    server {
        listen 127.0.0.1:$port;
        server_name localhost;
        client_max_body_size 30M;
        client_body_timeout 10s;
$config
        $default
    }
}
events { accept_mutex off; worker_connections $connections; }
$post
CONF
    return;
}

# returns undef, or what nginx said when it did not start
sub _start {
    my $dir = server_root();
    my $binary = $ENV{TEST_NGINX_BINARY} || 'nginx';
    my @valgrind = $ENV{TEST_NGINX_USE_VALGRIND} ? ('valgrind', '-q') : ();

    my $cmd = join ' ', map { "'$_'" } @valgrind, $binary, '-p', "$dir/", '-c',
        "$dir/conf/nginx.conf", '-e', "$dir/logs/error.log";
    my $said = qx($cmd 2>&1 </dev/null);
    return $said || 'nginx did not start' if $? != 0;

    my $until = time + START_SECONDS;
    while (time < $until) {
        return undef if -s "$dir/logs/nginx.pid";
        sleep 0.02;
    }
    return 'no pid file';
}

sub _stop {
    my $dir = server_root();
    my $pid = _read_file("$dir/logs/nginx.pid");

    return if $pid !~ /^(\d+)/;
    $pid = $1;
    kill 'QUIT', $pid;
    my $until = time + STOP_SECONDS;
    while (time < $until) {
        return if !kill 0, $pid;
        my $stat = _read_file("/proc/$pid/stat");
        return if $stat eq '' || $stat =~ /\) Z/;
        sleep 0.02;
    }
    kill 'KILL', $pid;
    Test::More::fail("nginx ended on QUIT within @{[STOP_SECONDS]} seconds");
    return;
}

sub _run_block {
    my ($block) = @_;
    my $name = $block->{name};
    my $s    = $block->{sections};

    $_->($block) for @preprocessors;
    $s = $block->{sections};
    _write_root($block);
    if (defined $s->{init}) {
        eval $s->{init};
        die "init of $name: $@" if $@;
    }

    my $said = _start();
    if (defined $s->{must_die}) {
        Test::More::ok(defined $said, "$name - must die");
        _stop() if !defined $said;
        my $log = (defined $said ? $said : '') . _read_file(server_root() . '/logs/error.log');
        _check_log($name, $s, $log);
        return;
    }
    if (defined $said) {
        Test::More::fail("$name - nginx did not start");
        Test::More::diag($said, _read_file(server_root() . '/logs/error.log'));
        return;
    }

    my $listener = _tcp_listen($s);
    my $ok = eval { _requests($block); 1 };
    my $error = $@;
    Test::More::fail("$name - $error") if !$ok;
    _tcp_done($name, $s, $listener) if $listener;
    sleep $s->{wait} if defined $s->{wait};

    my $log_file = server_root() . '/logs/error.log';
    # nginx writes its last lines after the answer has left
    sleep 0.02;
    _check_log($name, $s, _read_file($log_file));
    if (defined $s->{access_log}) {
        my $access = _read_file(server_root() . '/logs/access.log');
        _check_patterns("$name - access_log", $s->{access_log}, $access, 1);
    }
    _stop();
    if (defined $s->{shutdown_error_log}) {
        _check_patterns("$name - shutdown_error_log", $s->{shutdown_error_log},
            _read_file($log_file), 1);
    }
    return;
}

sub _list { my ($v) = @_; return ref $v eq 'ARRAY' ? @$v : ($v) }

sub _nth {
    my ($v, $n) = @_;
    return $v if ref $v ne 'ARRAY';
    return $v->[$n];
}

# [wire bytes or list of pieces, …], one for each connection
sub _wire_requests {
    my ($block) = @_;
    my $s = $block->{sections};

    return ([ _list($s->{raw_request}) ]) if defined $s->{raw_request};

    my $pipelined = defined $s->{pipelined_requests};
    my @texts = _list($pipelined ? $s->{pipelined_requests} : $s->{request});
    die "no request\n" if !defined $texts[0];
    my @wires;
    for my $n (0 .. $#texts) {
        my $headers = _nth($s->{more_headers}, $n);
        # the newline that ends a section's text is not part of a body
        my ($line, $body) = split /\n/, $texts[$n] =~ s/\n\z//r, 2;
        my ($method, $uri, $version) = $line =~ m{^(\S+)\s+(\S+)(?:\s+(HTTP/\S+))?$}
            or die "not a request line: $line\n";
        my $head = join "\r\n", grep { length } split /\r?\n/,
            defined $headers ? _expand($headers) : '';
        my $close = $pipelined && $n < $#texts ? 'keep-alive' : 'close';
        my $wire = "$method $uri " . ($version || 'HTTP/1.1') . "\r\n";
        $wire .= "Host: localhost\r\n"        if $head !~ /^Host:/mi;
        $wire .= "Connection: $close\r\n"     if $head !~ /^Connection:/mi;
        $wire .= "$head\r\n"                  if length $head;
        $wire .= 'Content-Length: ' . length($body) . "\r\n"
            if defined $body && length $body && $head !~ /^(?:Content-Length|Transfer-Encoding):/mi;
        push @wires, "$wire\r\n" . (defined $body ? $body : '');
    }
    return $pipelined ? ([ join '', @wires ]) : map { [$_] } @wires;
}

sub _requests {
    my ($block) = @_;
    my $s    = $block->{sections};
    my $n    = 0;
    my $pipelined = defined $s->{pipelined_requests}
        ? scalar _list($s->{pipelined_requests}) : 1;

    for my $pieces (_wire_requests($block)) {
        my $bytes = exchange(
            port => $port, pieces => $pieces,
            delay => $s->{raw_request_middle_delay} || 0,
            timeout => $s->{timeout} || 5, abort => defined $s->{abort},
        );
        next if defined $s->{abort} || defined $s->{ignore_response};
        for (1 .. $pipelined) {
            my ($response, $rest) = parse_response($bytes);
            die "no answer to request $n\n" if !$response;
            _check_response($block, $response, $n++);
            $bytes = $rest;
        }
    }
    return;
}

sub _check_response {
    my ($block, $r, $n) = @_;
    my $s    = $block->{sections};
    my $name = "$block->{name} (req $n)";

    my $code = defined $s->{error_code} ? _nth($s->{error_code}, $n) : 200;
    Test::More::is($r->{status}, $code, "$name - status code") if defined $code && length $code;

    for my $line (split /\n/, _expand(_nth($s->{response_headers}, $n))) {
        if ($line =~ /^!\s*(\S+)/) {
            Test::More::is($r->{headers}{lc $1}, undef, "$name - header $1 absent");
        }
        elsif ($line =~ /^([^:\s]+):\s*(.*)$/) {
            Test::More::is($r->{headers}{lc $1}, $2, "$name - header $1");
        }
    }
    for my $line (split /\n/, _expand(_nth($s->{response_headers_like}, $n))) {
        next if $line !~ /^([^:\s]+):\s*(.*)$/;
        my ($header, $pattern) = ($1, $2);
        Test::More::like($r->{headers}{lc $header} // '', qr/^$pattern$/, "$name - header $header like");
    }
    my $body = _nth($s->{response_body}, $n);
    Test::More::is($r->{body}, _expand($body), "$name - body") if defined $body;
    my $like = _nth($s->{response_body_like}, $n);
    Test::More::like($r->{body}, ref $like ? $like : qr/$like/s, "$name - body like") if defined $like;
    my $unlike = _nth($s->{response_body_unlike}, $n);
    Test::More::unlike($r->{body}, ref $unlike ? $unlike : qr/$unlike/s, "$name - body unlike")
        if defined $unlike;
    $_->($block, $r->{body}, $n) for @body_checks;
    return;
}

sub _patterns {
    my ($v) = @_;
    return grep { ref || length } map { ref $_ ? $_ : split /\n/ } _list($v);
}

sub _check_patterns {
    my ($name, $patterns, $text, $wanted) = @_;

    for my $p (_patterns($patterns)) {
        my $found = ref $p ? $text =~ $p : index($text, $p) >= 0;
        Test::More::ok($wanted ? $found : !$found, "$name - \"$p\"")
            or Test::More::diag(join '', map { "$_\n" } grep { ref $p ? $_ =~ $p : index($_, $p) >= 0 }
                split /\n/, $text);
    }
    return;
}

sub _check_log {
    my ($name, $s, $log) = @_;

    _check_patterns("$name - error_log", $s->{error_log}, $log, 1) if defined $s->{error_log};
    _check_patterns("$name - no_error_log", $s->{no_error_log}, $log, 0)
        if defined $s->{no_error_log};
    if (defined $s->{grep_error_log}) {
        my $re = $s->{grep_error_log};
        $re = qr/\Q$re\E/ if !ref $re;
        my $got = join '', map { "$_\n" } $log =~ /($re)/g;
        my $out = $s->{grep_error_log_out};
        if (ref $out) { Test::More::like($got, $out, "$name - grep_error_log_out") }
        else { Test::More::is($got, defined $out ? $out : '', "$name - grep_error_log_out") }
    }
    return;
}

# one upstream for one connection, in a child of its own
sub _tcp_listen {
    my ($s) = @_;

    return undef if !defined $s->{tcp_listen};
    require IO::Socket::INET;
    my $where = _expand($s->{tcp_listen});
    my $listen = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1',
        LocalPort => $where, ReuseAddr => 1) or die "tcp_listen $where: $!\n";
    my $query_file = server_root() . '/logs/tcp_query';
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        my $c = $listen->accept;
        my $got = '';
        while ($got !~ /\r\n\r\n/ && sysread $c, my $part, 65536) { $got .= $part }
        if ($got =~ /^Content-Length:\s*(\d+)/mi) {
            my $need = index($got, "\r\n\r\n") + 4 + $1;
            while (length $got < $need && sysread $c, my $part, 65536) { $got .= $part }
        }
        _write_file($query_file, $got);
        for my $piece (_list($s->{tcp_reply})) { syswrite $c, $piece }
        require POSIX;
        POSIX::_exit(0);
    }
    return { pid => $pid, file => $query_file };
}

sub _tcp_done {
    my ($name, $s, $listener) = @_;

    kill 'TERM', $listener->{pid} if !defined $s->{tcp_query};
    waitpid $listener->{pid}, 0;
    Test::More::is(_read_file($listener->{file}), $s->{tcp_query}, "$name - tcp_query")
        if defined $s->{tcp_query};
    return;
}

1;
