/* Computes for 5 ms and writes a block through, 60 times: fsync-loop FOLDER. */
#include "work.h"

int main(int argc, char **argv)
{
    int file = block_in(argc > 1 ? argv[1] : ".");
    for (int i = 0; i < 60; i++) {
        compute(5000);
        write_through(file, i);
    }
    return 0;
}
