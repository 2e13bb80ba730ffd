/* A lock of the C library that someone holds for a second while another asks for it.
 *
 * held threads KIND same|other: a thread `keeper` takes a lock and keeps it for a second from when the main thread is
 * about to ask for the same lock or for an other one.
 * held keep KIND FILE GATE: makes a lock in FILE, takes it, says "ready" on descriptor 3, and keeps it for a second from
 * when a line has come through the FIFO GATE.
 * held ask KIND FILE: asks for the lock in FILE, made by the one above.
 * KIND is mutex, priority (inheritance), robust, or rwlock, of which the keeper is a writer and the other a reader.
 *
 * The truth is what the asking thread waited, of the sum of the threads' lives. */
#define _GNU_SOURCE
#include "truth.h"
#include <pthread.h>
#include <sys/mman.h>

struct lock {
    int rwlock;
    pthread_mutex_t mutex;
    pthread_rwlock_t readers;
};

/* The lock that threads use, and the one that nobody has. */
static struct lock ledger_lock[2];
static int asked[2], taken[2];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void make_lock(struct lock *lock, const char *kind, int shared)
{
    pthread_mutexattr_t mutex;
    pthread_rwlockattr_t readers;
    int scope = shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;
    lock->rwlock = strcmp(kind, "rwlock") == 0;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, scope);
    if (strcmp(kind, "priority") == 0)
        pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);
    if (strcmp(kind, "robust") == 0)
        pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock->mutex, &mutex);
    pthread_rwlockattr_init(&readers);
    pthread_rwlockattr_setpshared(&readers, scope);
    pthread_rwlock_init(&lock->readers, &readers);
}

static struct lock *lock_in(const char *file)
{
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *memory;
    if (fd < 0 || ftruncate(fd, sizeof(struct lock)) != 0)
        die(file);
    memory = mmap(NULL, sizeof(struct lock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        die("mmap");
    close(fd);
    return memory;
}

static void take(struct lock *lock)
{
    if (lock->rwlock ? pthread_rwlock_wrlock(&lock->readers) : pthread_mutex_lock(&lock->mutex))
        die("take the lock");
}

static void let_go(struct lock *lock)
{
    if (lock->rwlock)
        pthread_rwlock_unlock(&lock->readers);
    else
        pthread_mutex_unlock(&lock->mutex);
}

/* Returns the nanoseconds that it took. */
__attribute__((noinline)) static uint64_t ask(struct lock *lock)
{
    uint64_t began = truth_now(), waited;
    if (lock->rwlock ? pthread_rwlock_rdlock(&lock->readers) : pthread_mutex_lock(&lock->mutex))
        die("ask for the lock");
    waited = truth_now() - began;
    let_go(lock);
    return waited;
}

__attribute__((noinline)) static void keep_for_a_second(void)
{
    struct timespec second = {1, 0};
    nanosleep(&second, NULL);
}

static void *keep(void *lived)
{
    uint64_t born = truth_now();
    char byte = 0;
    take(&ledger_lock[0]);
    if (write(taken[1], &byte, 1) != 1 || read(asked[0], &byte, 1) != 1)
        die("pipe");
    keep_for_a_second();
    let_go(&ledger_lock[0]);
    *(uint64_t *)lived = truth_now() - born;
    return NULL;
}

static void threads(const char *kind, int other)
{
    uint64_t born = truth_now(), lived = 0, waited;
    pthread_t keeper;
    char byte = 0;
    make_lock(&ledger_lock[0], kind, 0);
    make_lock(&ledger_lock[1], kind, 0);
    if (pipe(asked) != 0 || pipe(taken) != 0)
        die("pipe");
    pthread_create(&keeper, NULL, keep, &lived);
    pthread_setname_np(keeper, "keeper");
    if (read(taken[0], &byte, 1) != 1 || write(asked[1], &byte, 1) != 1)
        die("pipe");
    waited = ask(&ledger_lock[other]);
    pthread_join(keeper, NULL);
    truth_write(getenv("HOLDUP_TRUTH"), waited, lived + truth_now() - born, truth_queued());
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[1] : "";
    if (argc == 4 && strcmp(how, "threads") == 0) {
        threads(argv[2], strcmp(argv[3], "other") == 0);
    } else if (argc == 5 && strcmp(how, "keep") == 0) {
        struct lock *lock = lock_in(argv[3]);
        char line[32];
        int gate;
        make_lock(lock, argv[2], 1);
        take(lock);
        if (write(3, "ready\n", 6) != 6 || close(3) != 0)
            die("say ready");
        gate = open(argv[4], O_RDONLY | O_CLOEXEC);
        if (gate < 0 || read(gate, line, sizeof line) <= 0)
            die(argv[4]);
        keep_for_a_second();
        let_go(lock);
    } else if (argc == 4 && strcmp(how, "ask") == 0) {
        uint64_t born = truth_now(), waited = ask(lock_in(argv[3]));
        truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - born, truth_queued());
    } else {
        fprintf(stderr, "usage: held threads KIND same|other | keep KIND FILE GATE | ask KIND FILE\n");
        return 2;
    }
    return 0;
}
