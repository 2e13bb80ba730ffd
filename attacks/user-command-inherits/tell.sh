# Writes what this process has to FILE: tell.sh FILE.
{
    env
    ls -l /proc/self/fd
    cat /proc/self/status
} >"$1.$$" 2>&1
mv "$1.$$" "$1"
