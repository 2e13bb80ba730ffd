# The twin's call is answered.
setup() {
    local manner=silent
    if [ "$1" = healthy ]; then manner=answers; fi
    mount -t tmpfs none /run
    mkdir /run/dbus
    helper python3 "$scenario/bus.py" "$manner"
}
stall() {
    observe "${timed[@]}" dbus-send --bus=unix:path=/run/dbus/system_bus_socket --print-reply --reply-timeout=1200 \
        --dest=org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager.CreateSession
}
healthy() { stall; }
