"""Acceptance suite of one plugin: a line for every case on stdout."""
import sys
import time


def main(name, cases):
    sys.stderr.write("suite %s starting\n" % name)
    sys.stderr.flush()
    for i in range(cases):
        print("%s case %04d input=sample-%04d.pcap fields=src,dst,proto,ts ok" % (name, i, i), flush=True)
        if i % 200 == 0:
            time.sleep(0.02)
    sys.stderr.write("suite %s finished\n" % name)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
