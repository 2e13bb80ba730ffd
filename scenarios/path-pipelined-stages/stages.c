/* Two stages: one makes a piece in MAKE ms and sends it through a pipe, the other takes USE ms for each.
 *
 * The first stage sleeps, the second waits for a signal that does not come, so that the two are told apart by their
 * cause. The truth is the time of the slower stage, as it asked for it (what it then queued for a CPU is not its work); the
 * faster one's is hidden behind it. */
#include "truth.h"
#include <pthread.h>
#include <signal.h>

enum { PIECES = 60 };

static int ends[2];
static long make_ms, use_ms;
static uint64_t made, used, producer_queued;

/* Longer and shorter in turn: what always takes as long looks like polling. */
__attribute__((noinline)) static void make_piece(int piece)
{
    struct timespec delay = {0, (piece % 2 ? make_ms * 3 / 2 : make_ms / 2) * 1000000};
    nanosleep(&delay, NULL);
    made += (uint64_t)delay.tv_nsec;
    if (write(ends[1], "x", 1) != 1)
        perror("pipe");
}

static void *produce(void *nothing)
{
    int piece;
    for (piece = 0; piece < PIECES; piece++)
        make_piece(piece);
    close(ends[1]);
    producer_queued = truth_queued();
    return nothing;
}

__attribute__((noinline)) static void use_piece(const sigset_t *none)
{
    struct timespec delay = {0, use_ms * 1000000};
    sigtimedwait(none, NULL, &delay);
    used += (uint64_t)delay.tv_nsec;
}

__attribute__((noinline)) static int next_piece(void)
{
    char piece;
    return read(ends[0], &piece, 1) == 1;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now();
    pthread_t producer;
    sigset_t none;
    make_ms = argc > 1 ? atol(argv[1]) : 12;
    use_ms = argc > 2 ? atol(argv[2]) : 8;
    sigemptyset(&none);
    sigaddset(&none, SIGUSR2);
    sigprocmask(SIG_BLOCK, &none, NULL);
    if (pipe(ends))
        return 1;
    pthread_create(&producer, NULL, produce, NULL);
    while (next_piece())
        use_piece(&none);
    pthread_join(producer, NULL);
    truth_write(getenv("HOLDUP_TRUTH"), make_ms > use_ms ? made : used, truth_now() - started,
                truth_queued() + producer_queued);
    return 0;
}
