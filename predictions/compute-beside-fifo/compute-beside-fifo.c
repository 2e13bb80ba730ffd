/* Takes 16 bytes from a FIFO, and beside that a thread computes for 400 ms: compute-beside-fifo FIFO. Without: for no time. */
#include "work.h"
#include <pthread.h>

static void *hog(void *nothing)
{
    compute(without() ? 0 : 400000);
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int fifo = open(argc > 1 ? argv[1] : "", O_RDONLY);
    pthread_create(&thread, NULL, hog, NULL);
    for (int i = 0; i < 16; i++) {
        char byte;
        must(read(fifo, &byte, 1) == 1, "read the FIFO");
    }
    pthread_join(thread, NULL);
    return 0;
}
