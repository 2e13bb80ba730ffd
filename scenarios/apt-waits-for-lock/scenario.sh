# The twin's other process holds another file of the folder. The package that is asked for does not exist, so that
# nothing is installed once the lock has been taken.
setup() {
    local name=lock-frontend
    if [ "$1" = healthy ]; then name=other; fi
    mkdir -p "$STAGE/dpkg"
    : >"$STAGE/dpkg/status"
    : >"$STAGE/dpkg/$name"
    helper python3 "$here/../record-lock-held/hold.py" "$STAGE/dpkg/$name" 0 "$STAGE/go"
}
stall() {
    observe "${gated[@]}" "${timed[@]}" apt-get -q -y -o Dir::State::status="$STAGE/dpkg/status" \
        -o Dir::State::Lists="$STAGE/dpkg" -o Dir::Cache="$STAGE" -o DPkg::Lock::Timeout=30 \
        -o APT::Architectures="$(dpkg --print-architecture)" \
        install no-such-package >"$STAGE/said" 2>&1
}
healthy() { stall; }
