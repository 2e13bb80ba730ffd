# Counts to NUMBER by expr or by itself: expr|own NUMBER.
number=0
case $1 in
expr) while [ "$number" -lt "$2" ]; do number=$(expr "$number" + 1); done ;;
*) while [ "$number" -lt "$2" ]; do number=$((number + 1)); done ;;
esac
