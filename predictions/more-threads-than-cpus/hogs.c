/* Two threads compute for 450 ms each. */
#include "work.h"
#include <pthread.h>

static void *hog(void *nothing)
{
    compute(450000);
    return nothing;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, hog, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
