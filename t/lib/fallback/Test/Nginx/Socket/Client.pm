package Test::Nginx::Socket::Client;

# One connection: sends pieces of bytes, reads until the peer closes or the time is
# over, takes answers apart.

use strict;
use warnings;
use Exporter 'import';
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(exchange parse_response);

sub exchange {
    my (%o) = @_;
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $o{port},
        Timeout => $o{timeout}) or die "connect: $!\n";
    my $first = 1;
    my $bytes = '';
    my $until = time + $o{timeout};
    my $select = IO::Select->new($sock);

    local $SIG{PIPE} = 'IGNORE';
    $sock->autoflush(1);
    for my $piece (@{ $o{pieces} }) {
        sleep $o{delay} if !$first && $o{delay};
        $first = 0;
        my $at = 0;
        while ($at < length $piece) {
            # nginx may answer and close before it has read everything
            my $n = syswrite $sock, $piece, length($piece) - $at, $at;
            last if !$n;
            $at += $n;
        }
    }
    if ($o{abort}) {
        sleep 0.1;
        close $sock;
        return '';
    }
    while ((my $left = $until - time) > 0) {
        last if !$select->can_read($left);
        my $n = sysread $sock, my $part, 65536;
        last if !$n;
        $bytes .= $part;
        # a connection that is kept open is over when its answer is whole
        if ($bytes =~ /^Connection: keep-alive/mi) {
            my ($response, $rest) = parse_response($bytes, 1);
            last if $response && $rest eq '' && @{ $o{pieces} } == 1
                && $o{pieces}[0] !~ /^Connection: close/mi;
        }
    }
    close $sock;
    return $bytes;
}

# (response, rest of the bytes); strict = undef unless it is whole
sub parse_response {
    my ($bytes, $strict) = @_;
    my ($head, $rest) = split /\r\n\r\n/, $bytes, 2;

    return if !defined $rest;
    my ($line, @lines) = split /\r\n/, $head;
    my ($status) = $line =~ m{^HTTP/\d\.\d (\d{3})} or return;
    if ($status eq '100') {
        return parse_response($rest, $strict);
    }
    my %headers;
    for (@lines) {
        next if !/^([^:]+):\s*(.*)$/;
        my $name = lc $1;
        $headers{$name} = exists $headers{$name} ? "$headers{$name}, $2" : $2;
    }
    my $r = { status => $status, headers => \%headers };

    if (($headers{'transfer-encoding'} // '') =~ /chunked/i) {
        my $body = '';
        while ($rest =~ s/^([0-9a-fA-F]+)[^\r\n]*\r\n//) {
            my $size = hex $1;
            if ($size == 0) {
                $rest =~ s/^(?:[^\r\n]+\r\n)*\r\n//;
                $r->{body} = $body;
                return ($r, $rest);
            }
            return if $strict && length $rest < $size + 2;
            $body .= substr $rest, 0, $size;
            $rest = length $rest > $size + 2 ? substr $rest, $size + 2 : '';
        }
        return if $strict;
        $r->{body} = $body;
        return ($r, '');
    }
    if (defined(my $size = $headers{'content-length'})) {
        return if $strict && length $rest < $size;
        $r->{body} = substr $rest, 0, $size;
        return ($r, length $rest > $size ? substr($rest, $size) : '');
    }
    return if $strict;
    $r->{body} = $rest;
    return ($r, '');
}

1;
