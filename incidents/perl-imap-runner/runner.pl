#!/usr/bin/perl
# Mail sync runner: takes the busy lock, then syncs the accounts in turn.
use strict;
use warnings;
use Fcntl qw(O_CREAT O_EXCL O_WRONLY);
use Time::HiRes qw(sleep time);

my $run = $ENV{RUN} or die "RUN not set";
my $lock_file = "$run/imapsync_busy.lock";

my @accounts = map { { user => "user$_", host => "mail" . ($_ % 3) . ".example", folders => 4 + $_ % 5 } } 1 .. 9;

sub note {
    my ($text) = @_;
    open my $fh, '>>', "$run/runner.log" or die $!;
    printf {$fh} "%.2f [%d] %s\n", time, $$, $text;
    close $fh;
}

sub try_lock {
    sysopen(my $fh, $lock_file, O_CREAT | O_EXCL | O_WRONLY) or return 0;
    print {$fh} "$$\n";
    close $fh;
    return 1;
}

sub take_busy_lock {
    my $tries = 0;
    until (try_lock()) {
        note("another run is busy") if $tries++ == 0;
        sleep 0.5;
    }
    return $tries;
}

sub drop_busy_lock {
    unlink $lock_file;
}

sub sync_folder {
    my ($account, $folder) = @_;
    my $sum = 0;
    $sum += ($_ * length $account->{user}) % 31 for 1 .. 2000;
    return $sum + $folder;
}

sub sync_account {
    my ($account) = @_;
    my $seen = 0;
    $seen += sync_folder($account, $_) for 1 .. $account->{folders};
    note("$account->{user}\@$account->{host}: $seen messages seen");
    sleep 0.2;
}

sub sync_all {
    take_busy_lock();
    sync_account($_) for @accounts;
    drop_busy_lock();
}

note("runner up");
while (1) {
    sync_all();
    sleep 2;
}
