# A server that is not observed and answers late; without the wait: at once.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() {
    first
    case $1 in
    stall) helper "$PROGRAMS/late-server" 14000 ;;
    healthy) helper "$PROGRAMS/late-server" 0 ;;
    esac
}
stall() { observe "$PROGRAMS/asks"; }
healthy() { observe "$PROGRAMS/asks"; }
