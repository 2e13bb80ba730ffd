# What a program of the predictions and its helpers run before: all other work on the machine, so that it delays neither run. A share of
# the CPUs is not enough for that on a busy machine, where who is woken still waits for its turn.
first() { chrt --rr --pid 1 $$; }
