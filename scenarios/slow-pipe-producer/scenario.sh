# The twin's producer does not sleep.
setup() { :; }
stall() { observe bash "$scenario/pipeline.sh" 1; }
healthy() { observe bash "$scenario/pipeline.sh" 0; }
