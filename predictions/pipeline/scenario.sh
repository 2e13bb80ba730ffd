# A slow stage before a less slow one; without the wait the second is what it takes.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
# shellcheck disable=SC2016 # the observed shell expands it
setup() { first; }
stall() { observe sh -c '"$0" make | "$0" take' "$PROGRAMS/pipeline-stage"; }
healthy() { observe env WITHOUT=1 sh -c '"$0" make | "$0" take' "$PROGRAMS/pipeline-stage"; }
