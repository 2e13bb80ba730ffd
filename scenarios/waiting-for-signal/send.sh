# Sends SIGUSR1 to the process whose id comes through the gate, as many seconds later as the argument says.
echo ready >&3
exec 3>&-
read -r pid <"$STAGE/go"
sleep "$1"
kill -USR1 "$pid"
