# `prices.pl URL` prints what is there.
use strict;
use warnings;
use HTTP::Tiny;

sub fetch_prices {
    my ($url) = @_;
    my $answer = HTTP::Tiny->new->get($url);
    die "the answer is $answer->{status}\n" unless $answer->{success};
    return $answer->{content};
}

print fetch_prices($ARGV[0]);
