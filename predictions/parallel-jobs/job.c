/* A job as a build has them: it computes, waits for its license server (sleeps) and computes again. */
#include "work.h"

int main(void)
{
    compute(25000);
    rest(without() ? 0 : 300000);
    compute(15000);
    return 0;
}
