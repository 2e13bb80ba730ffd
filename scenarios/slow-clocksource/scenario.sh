# The kernel's clock cannot be given up for a slow one on every machine, so only what it says of it is replaced; the
# system calls are real. In the twin there are a hundredth of them.
setup() {
    precedence
    local says=/sys/devices/system/clocksource/clocksource0/current_clocksource
    echo hpet >"$STAGE/clocksource"
    mount --bind "$STAGE/clocksource" "$says"
}
stall() { observe "$PROGRAMS/look" 6000000; }
healthy() { observe "$PROGRAMS/look" 60000; }
