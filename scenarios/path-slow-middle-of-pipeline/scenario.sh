# The twin's middle does not dawdle. The middle counts itself what it asked to sleep: what it then queued for a CPU is
# not that.
setup() {
    cat >"$STAGE/middle.pl" <<'PERL'
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);
my ($delay, $began, $slept) = ($ARGV[0], clock_gettime(CLOCK_MONOTONIC), 0);
$| = 1;
while (defined(my $line = <STDIN>)) {
    my $rest = $. % 2 ? $delay * 1.5 : $delay / 2;
    sleep($rest) if $rest > 0;
    $slept += $rest;
    print $line;
}
open(my $truth, '>>', $ENV{HOLDUP_TRUTH});
printf $truth "{\"waited_ns\": %d, \"elapsed_ns\": %d, \"holder_pid\": %d}\n", $slept * 1e9, (clock_gettime(CLOCK_MONOTONIC) - $began) * 1e9, $$;
PERL
}
# shellcheck disable=SC2016 # the observed shell expands them
pipeline='seq 60 | perl "$0/middle.pl" "$1" | sort -rn >"$0/sorted"'
stall() { observe bash -c "$pipeline" "$STAGE" 0.015; }
healthy() { observe bash -c "$pipeline" "$STAGE" 0; }
