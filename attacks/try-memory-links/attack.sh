# What holdup makes below DIR is swapped for links to root's file as fast as a program can.
attack() {
    chmod 0711 "$ROOTS"
    guard
    as_user mkdir "$MINE/e"
    as_user mkdir -m 4777 "$MINE/e/b"
    hostile "$PROGRAMS/flip_links" "$MINE/e" b "$ROOTS/secret"
    local round
    for round in {1..12}; do
        start "try$round" try --without disk --memory "$MINE/e/b" -y --runs 4 -- true
        # It makes eight runs, and the limit is for an observation of one.
        finish "try$round" $((TIME_LIMIT * 4))
        if ! picture "$ROOTS" | cmp -s - "$STAGE/picture"; then break; fi
    done
    unchanged
}
