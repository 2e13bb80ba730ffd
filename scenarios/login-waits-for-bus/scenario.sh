# Somebody logs in by ssh. The PAM stack of sshd has pam_systemd, which calls systemd-logind over the system bus: a bus of one's
# own, with a service of that name that never answers. The twin's answers, and the session waits for its user.
setup() {
    local manner=silent
    if [ "$1" = healthy ]; then manner=answers; fi
    mount -t tmpfs none /run
    # pam_systemd looks here whether there is a logind at all.
    mkdir -p /run/dbus /run/sshd /run/systemd/seats
    bus
    helper python3 "$scenario/service.py" "$manner" "$STAGE/asked"
    server
    mkfifo "$STAGE/typed"
    ssh -F none -i "$STAGE/key" -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile="$STAGE/known" -o LogLevel=ERROR \
        root@127.0.0.1 'echo in; cat' <"$STAGE/typed" >"$STAGE/session" &
    helpers+=("$!")
    exec {typed}>"$STAGE/typed"
    if [ "$1" = healthy ]; then
        until grep -q in "$STAGE/session"; do sleep 0.05; done
    else
        until [ -e "$STAGE/asked" ]; do sleep 0.05; done
    fi
    # sshd's own processes, without what the user runs.
    logins=$({ descendants "$sshd"; echo; } | tr , '\n' | while read -r pid; do if grep -q sshd "/proc/$pid/comm"; then echo "$pid"; fi; done | paste -sd ,)
}
bus() {
    cat >"$STAGE/bus.conf" <<END
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/> <allow own="*"/> <allow send_destination="*"/> <allow receive_sender="*"/>
  </policy>
</busconfig>
END
    dbus-daemon --config-file="$STAGE/bus.conf" --nofork --nopidfile >"$STAGE/bus.log" 2>&1 &
    bus_daemon=$!
    helpers+=("$bus_daemon")
    until [ -S /run/dbus/system_bus_socket ]; do sleep 0.02; done
}
server() {
    ssh-keygen -q -t ed25519 -N '' -f "$STAGE/key"
    ssh-keygen -q -t ed25519 -N '' -f "$STAGE/host"
    # This mount namespace alone has this stack.
    printf '%s\n' 'auth required pam_permit.so' 'account required pam_permit.so' 'session required pam_unix.so' \
        'session optional pam_systemd.so' >"$STAGE/stack"
    mount --bind "$STAGE/stack" /etc/pam.d/sshd
    cat >"$STAGE/sshd.conf" <<END
ListenAddress 127.0.0.1:2222
HostKey $STAGE/host
AuthorizedKeysFile $STAGE/key.pub
PermitRootLogin yes
StrictModes no
UsePAM yes
PidFile none
END
    /usr/sbin/sshd -D -e -f "$STAGE/sshd.conf" 2>"$STAGE/sshd.log" &
    sshd=$!
    helpers+=("$sshd")
    until grep -q listening "$STAGE/sshd.log"; do sleep 0.02; done
}
# A process and all below it, with commas between.
descendants() {
    local child
    printf '%s' "$1"
    for child in $(pgrep --parent "$1"); do printf ',%s' "$(descendants "$child")"; done
}
stall() {
    attach --pid "$logins" --only --duration 1
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $bus_daemon"
}
healthy() {
    attach --pid "$logins" --only --duration 1
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
