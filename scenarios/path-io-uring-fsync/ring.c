/* Writes and syncs FILE a few times by io_uring: the kernel's worker thread does the waiting for the disk, the program
 * waits for the worker. The truth is what the program waited for completions,
 * without what its threads, the worker too, queued for a CPU. */
#include "truth.h"
#include <dirent.h>
#include <liburing.h>

enum { ROUNDS = 15 };

__attribute__((noinline)) static uint64_t await_completion(struct io_uring *ring)
{
    uint64_t asked = truth_now();
    struct io_uring_cqe *done;
    if (io_uring_wait_cqe(ring, &done) || done->res < 0)
        exit(1);
    io_uring_cqe_seen(ring, done);
    return truth_now() - asked;
}

/* What all threads of the process queued for a CPU so far. */
static uint64_t all_queued(void)
{
    uint64_t all = 0;
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && (entry = readdir(tasks))) {
        char path[300], text[128] = "";
        unsigned long long cpu = 0, queued = 0;
        FILE *file;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
        file = fopen(path, "r");
        if (file && fgets(text, sizeof text, file) && sscanf(text, "%llu %llu", &cpu, &queued) == 2)
            all += queued;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return all;
}

int main(int argc, char **argv)
{
    static char page[4096];
    uint64_t started = truth_now(), waited = 0, queued;
    struct io_uring ring;
    int fd, round;
    if (argc < 2 || io_uring_queue_init(4, &ring, 0))
        return 1;
    fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    for (round = 0; round < ROUNDS; round++) {
        struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
        if (pwrite(fd, page, sizeof page, 0) != (ssize_t)sizeof page)
            return 1;
        io_uring_prep_fsync(entry, fd, IORING_FSYNC_DATASYNC);
        io_uring_submit(&ring);
        waited += await_completion(&ring);
    }
    queued = all_queued();
    truth_write(getenv("HOLDUP_TRUTH"), waited > queued ? waited - queued : 0, truth_now() - started, queued);
    return 0;
}
