/* Uses the CPU for so many milliseconds: work MS. */
#include "work.h"

int main(int argc, char **argv)
{
    compute(1000L * atoi(argc > 1 ? argv[1] : "0"));
    return 0;
}
