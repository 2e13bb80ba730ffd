#!/usr/bin/perl
# Probes of many hosts asking the status daemon.
use strict;
use warnings;
use IO::Socket::UNIX;
my $n = 0;
my @open;
while (1) {
    $n++;
    my $s = IO::Socket::UNIX->new(Peer => "$ENV{RUN}/statusd.sock", Timeout => 2);
    if ($s) {
        $s->autoflush(1);
        print {$s} $n % 2 ? "host$n ask db" . (1 + $n % 5) . "\n" : "host$n watch all\n";
        push @open, $s;
        shift @open if @open > 6;
    }
    select undef, undef, undef, $n < 80 ? 0.02 : 0.7;
}
