/* Answers on port 8126, one request a connection, each with a thread or process of its own, or with one of four threads that
 * are kept: answer thread|process|pool. When it is told to end it writes how much CPU time it took, that of its children
 * included (and how long its threads that live queued for a CPU), and how much of it was neither accepting nor answering: making
 * those that answer, and ending them. */
#define _GNU_SOURCE
#include "truth.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 8126, MOST = 64, WORKERS = 4, STEPS = 2000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int queue[MOST], first, queued;
/* CPU time of accepting and answering, nanoseconds. */
static _Atomic uint64_t *useful;
static volatile sig_atomic_t ending;

static uint64_t own_cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void answer(int connection)
{
    volatile unsigned sum = 0, step;
    char question;
    uint64_t began = own_cpu();
    if (recv(connection, &question, 1, 0) != 1)
        return;
    for (step = 0; step < STEPS; step++)
        sum += step;
    send(connection, "a", 1, MSG_NOSIGNAL);
    close(connection);
    *useful += own_cpu() - began;
}

static void *answer_one(void *connection)
{
    answer((int)(long)connection);
    return NULL;
}

static void *answer_all(void *nothing)
{
    for (;;) {
        int connection;
        pthread_mutex_lock(&lock);
        while (queued == 0)
            pthread_cond_wait(&more, &lock);
        connection = queue[first];
        first = (first + 1) % MOST;
        queued--;
        pthread_mutex_unlock(&lock);
        answer(connection);
    }
    return nothing;
}

static void spawn_thread(int connection)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, answer_one, (void *)(long)connection) != 0)
        exit(1);
}

static void spawn_process(int connection)
{
    pid_t child = fork();
    if (child < 0)
        exit(1);
    if (child == 0) {
        answer(connection);
        _exit(0);
    }
    close(connection);
}

static void hand_over(int connection)
{
    pthread_mutex_lock(&lock);
    queue[(first + queued++) % MOST] = connection;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
}

static void end(int signal)
{
    ending = signal;
}

static uint64_t cpu_of(int who)
{
    struct rusage used;
    getrusage(who, &used);
    return ((uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec) * 1000000000u +
           ((uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec) * 1000u;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "pool";
    void (*hand)(int) = strcmp(mode, "thread") == 0 ? spawn_thread : strcmp(mode, "process") == 0 ? spawn_process : hand_over;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct sigaction action = { .sa_handler = end };
    uint64_t all, queued_for;
    int yes = 1, number, listener = socket(AF_INET, SOCK_STREAM, 0);
    useful = mmap(NULL, sizeof(*useful), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (useful == MAP_FAILED)
        return 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 16) != 0)
        return 1;
    sigaction(SIGTERM, &action, NULL);
    if (hand == hand_over)
        for (number = 0; number < WORKERS; number++) {
            pthread_t thread;
            pthread_create(&thread, NULL, answer_all, NULL);
        }
    if (write(3, "ready\n", 6) != 6)
        return 1;
    while (!ending) {
        uint64_t began = own_cpu();
        int connection = accept(listener, NULL, NULL);
        *useful += own_cpu() - began;
        while (hand == spawn_process && waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (connection >= 0)
            hand(connection);
    }
    while (hand == spawn_process && waitpid(-1, NULL, 0) > 0)
        ;
    all = cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN);
    queued_for = truth_queued_by_all();
    truth_write(getenv("HOLDUP_TRUTH"), all > *useful ? all - *useful : 0, all + queued_for, queued_for);
    return 0;
}
