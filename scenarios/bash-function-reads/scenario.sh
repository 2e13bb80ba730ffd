# A script of Bash whose function reads orders from a pipe, one at a time. The twin's writer writes them all at once.
setup() { :; }
stall() { observe bash "$scenario/orders.sh" "$scenario/orders.py" 1; }
healthy() { observe bash "$scenario/orders.sh" "$scenario/orders.py" 0; }
