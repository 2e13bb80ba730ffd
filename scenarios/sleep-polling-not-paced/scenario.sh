# Both sleep until an instant, as Python does: 50 ms from now, or from the last.
setup() { :; }
stall() { observe "$PROGRAMS/beat" apart; }
healthy() { observe "$PROGRAMS/beat" paced; }
