/* Takes 45 bytes from a FIFO, one at a time, and computes for 5 ms with each: takes-bytes FIFO. */
#include "work.h"

int main(int argc, char **argv)
{
    int fifo = open(argc > 1 ? argv[1] : "", O_RDONLY);
    for (int i = 0; i < 45; i++) {
        char byte;
        must(read(fifo, &byte, 1) == 1, "read the FIFO");
        compute(5000);
    }
    return 0;
}
