/* A stage of a pipeline, 70 blocks: pipeline-stage make|take. Who makes sleeps for 11 ms a block, who takes computes for 4 ms. */
#include "work.h"

enum { BLOCKS = 70, SIZE = 65536 };

int main(int argc, char **argv)
{
    static char block[SIZE];
    int makes = argc > 1 && strcmp(argv[1], "make") == 0;
    for (int i = 0; i < BLOCKS; i++) {
        if (makes) {
            rest(without() ? 0 : 11000);
            compute(500);
        }
        for (size_t done = 0; done < SIZE;) {
            ssize_t part = makes ? write(1, block + done, SIZE - done) : read(0, block + done, SIZE - done);
            must(part > 0, "the pipe");
            done += part;
        }
        if (!makes)
            compute(4000);
    }
    return 0;
}
