#!/usr/bin/perl
# Status daemon: answers queries about replicas; peers that say "watch" are told of role changes later.
use strict;
use warnings;
use IO::Socket::UNIX;
use IO::Select;
use Time::HiRes qw(sleep time);

my $run = $ENV{RUN} or die "RUN not set";
my %replica = map { ("db$_" => { lag => $_ * 3, role => $_ == 1 ? 'primary' : 'replica' }) } 1 .. 5;
my %watcher;
my $served = 0;

sub status_file {
    open my $fh, '>', "$run/statusd.state" or return;
    printf {$fh} "%.1f served=%d watchers=%d\n", time, $served, scalar keys %watcher;
    close $fh;
}

sub add_watcher {
    my ($peer, $client) = @_;
    $watcher{$peer} = $client;
    return "watching\n";
}

sub answer {
    my ($line, $client) = @_;
    my ($peer, $verb, $name) = split ' ', $line;
    return add_watcher($peer, $client) if $verb eq 'watch';
    my $r = $replica{$name} or return "unknown\n";
    return "$name $r->{role} lag=$r->{lag}\n";
}

sub role_changed {
    my ($name, $role) = @_;
    $replica{$name}{role} = $role;
    print { $watcher{$_} } "$name is now $role\n" for keys %watcher;
}

sub serve_client {
    my ($client) = @_;
    my $line = <$client>;
    print {$client} answer($line, $client) if defined $line;
    $served++;
}

sub accept_clients {
    my ($server) = @_;
    my $select = IO::Select->new($server);
    while (1) {
        for my $ready ($select->can_read(1)) {
            my $client = $server->accept;
            if (!$client) {
                sleep 0.1;
                next;
            }
            serve_client($client);
        }
        status_file() if int(time) % 2 == 0;
    }
}

$SIG{PIPE} = 'IGNORE';
my $server = IO::Socket::UNIX->new(Local => "$run/statusd.sock", Listen => 64) or die "listen: $!";
accept_clients($server);
