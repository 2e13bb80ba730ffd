"""A box office: it keeps a seat in a transaction while somebody decides."""
import subprocess
import sys
import time


def keep(seat, port):
    session = subprocess.Popen(
        ["psql", "-qXAt", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    session.stdin.write(f"begin; select id from seats where id = {seat} for update;\n")
    session.stdin.flush()
    session.stdout.readline()
    print("held", flush=True)
    return session


def decide(session):
    time.sleep(600)
    session.stdin.write("commit;\n")


decide(keep(2, sys.argv[1]))
