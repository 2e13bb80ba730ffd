#!/bin/bash
. "$STAGE"
export RUN
p=$(port)
"$BUILT/labelpress" "$HERE/labeltool.sh" "$p" >"$RUN/labelpress.log" 2>&1 &
asked=$!
up "$p" || exit 1
stands "$RUN/printed" 0.5 4
ready "$asked"
