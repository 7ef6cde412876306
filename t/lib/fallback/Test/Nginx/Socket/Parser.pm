package Test::Nginx::Socket::Parser;

# The text after __DATA__: "=== name", then sections "--- name [filters]" with lines
# below or ": value" behind. Filters: eval, chomp, chop.

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(parse_blocks);

# a block answers $block->name and $block->section as Test::Base's blocks do
package Test::Nginx::Socket::Block {
    our $AUTOLOAD;

    sub name { return $_[0]{name} }

    sub set_value {
        my ($self, $section, $value) = @_;
        $self->{sections}{$section} = $value;
        return;
    }

    sub AUTOLOAD {
        my ($self) = @_;
        my $section = $AUTOLOAD =~ s/.*:://r;
        return if $section eq 'DESTROY';
        return $self->{sections}{$section};
    }
}

sub parse_blocks {
    my ($text) = @_;
    my @blocks;

    return if !defined $text;
    $text =~ s/\r\n/\n/g;
    my @parts = split /^===[ \t]*(.*)\n/m, $text;
    shift @parts;
    while (my ($name, $body) = splice @parts, 0, 2) {
        my @sections = split /^---[ \t]+(.*)(?:\n|\z)/m, $body;
        my %sections;
        shift @sections;
        while (my ($head, $value) = splice @sections, 0, 2) {
            my ($section, @filters) = $head =~ /^([^:]*)/ ? split(' ', $1) : ();
            $value = '' if !defined $value;
            if ($head =~ /^[^:]*:[ \t]*(.*?)[ \t]*$/) {
                $value = $1;
            }
            else {
                $value =~ s/\A(?:[ \t]*\n)+//;
                $value =~ s/(?<=\n)\s*\z//;
            }
            $value = _filter($name, $section, $_, $value) for @filters;
            $sections{$section} = $value;
        }
        push @blocks, bless { name => $name, sections => \%sections },
            'Test::Nginx::Socket::Block';
    }
    return @blocks;
}

sub _filter {
    my ($name, $section, $filter, $value) = @_;

    if ($filter eq 'eval') {
        my $result = eval "package main; no strict; $value";
        die "$name, $section: $@" if $@;
        return $result;
    }
    return $value =~ s/\n\z//r if $filter eq 'chomp';
    return substr $value, 0, -1 if $filter eq 'chop';
    die "$name, $section: the filter $filter is not known\n";
}

1;
