/* What a workload knows of its own time, for the scenario table to compare holdup with.
 *
 * In: HOLDUP_TRUTH, the file to append to. Out: one line of JSON a process,
 * {"waited_ns": …, "elapsed_ns": …, "queued_ns": …}. Lines add up: waited and queued are summed, the elapsed
 * time is the longest one. All times are CLOCK_MONOTONIC; queued is what the kernel counts as ready and not
 * running (schedstat), which says how busy the machine was. */
#ifndef TRUTH_H
#define TRUTH_H

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t truth_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t truth_now(void)
{
    return truth_clock(CLOCK_MONOTONIC);
}

/* Nanoseconds that the calling thread has been ready and not running; 0 where the kernel does not say. */
static inline uint64_t truth_queued(void)
{
    char text[128] = "";
    unsigned long long cpu = 0, queued = 0;
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) <= 0 || sscanf(text, "%llu %llu", &cpu, &queued) != 2)
        queued = 0;
    close(fd);
    return queued;
}

/* How long this process's threads that live have been ready and not running, nanoseconds. */
static inline uint64_t truth_queued_by_all(void)
{
    uint64_t sum = 0;
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return truth_queued();
    while ((entry = readdir(tasks)) != NULL) {
        char path[64];
        unsigned long long cpu = 0, queued = 0;
        FILE *file;
        if (entry->d_name[0] == '.' || snprintf(path, sizeof path, "/proc/self/task/%.16s/schedstat", entry->d_name) < 0)
            continue;
        file = fopen(path, "re");
        if (file == NULL)
            continue;
        if (fscanf(file, "%llu %llu", &cpu, &queued) == 2)
            sum += queued;
        fclose(file);
    }
    closedir(tasks);
    return sum;
}

static inline void truth_write(const char *path, uint64_t waited, uint64_t elapsed, uint64_t queued)
{
    char line[160];
    int length, fd;
    if (path == NULL)
        return;
    length = snprintf(line, sizeof line, "{\"waited_ns\": %llu, \"elapsed_ns\": %llu, \"queued_ns\": %llu}\n",
                      (unsigned long long)waited, (unsigned long long)elapsed, (unsigned long long)queued);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, (size_t)length) != length)
        perror(path);
    if (fd >= 0)
        close(fd);
}

#endif
