# Work with two sleeps in between: script.sh WORK SECONDS SECONDS
"$1" 200
sleep "$2"
"$1" 150
sleep "$3"
"$1" 50
