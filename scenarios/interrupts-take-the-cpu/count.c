/* Works for a while, and sees by its own clock when it did not. */
#define _GNU_SOURCE
#include "gaps.h"

/* count MILLISECONDS */
int main(int argc, char **argv)
{
    uint64_t began = truth_now(), queued = truth_queued();
    if (argc != 2)
        return 2;
    uint64_t gaps = gaps_until(began + strtoull(argv[1], NULL, 10) * 1000000u);
    truth_write(getenv("HOLDUP_TRUTH"), gaps, truth_now() - began, truth_queued() - queued);
    return 0;
}
