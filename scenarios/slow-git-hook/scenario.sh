# The twin's hook does not sleep.
setup() {
    local seconds=1
    if [ "$1" = healthy ]; then seconds=0; fi
    export HOME=$STAGE GIT_CONFIG_NOSYSTEM=1
    git init -q "$STAGE/shop"
    git -C "$STAGE/shop" config user.name A
    git -C "$STAGE/shop" config user.email a@shop.test
    git -C "$STAGE/shop" config maintenance.auto false
    printf '#!/bin/sh\nsleep %s\n' "$seconds" >"$STAGE/shop/.git/hooks/pre-commit"
    chmod +x "$STAGE/shop/.git/hooks/pre-commit"
}
stall() { observe "${timed[@]}" git -C "$STAGE/shop" commit -q --allow-empty -m one; }
healthy() { stall; }
