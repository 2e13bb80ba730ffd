# Thaws MOUNT a second after the gate has opened: GATE MOUNT.
echo ready >&3
exec 3>&-
read -r _ <"$1"
sleep 1
exec fsfreeze --unfreeze "$2"
