/* Programs that are unkind to whoever watches them. The first argument says how, the second how much. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const struct timespec A_WHILE = { 0, 20 * 1000 * 1000 };

static void fail(const char *what)
{
	perror(what);
	_exit(99);
}

/* Threads that are all there at once. */
static pthread_barrier_t all;

static void *wait_for_all(void *nothing)
{
	pthread_barrier_wait(&all);
	return nothing;
}

static void threads(int count)
{
	pthread_t *made = calloc(count, sizeof(*made));
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32 << 10);
	pthread_barrier_init(&all, NULL, count + 1);
	for (int i = 0; i < count; i++)
		if (pthread_create(&made[i], &small, wait_for_all, NULL))
			fail("pthread_create");
	wait_for_all(NULL);
	for (int i = 0; i < count; i++)
		pthread_join(made[i], NULL);
}

/* A table of open files, all of which a poll waits for. Where not even root may raise the limit, as many as it allows. */
static void files(int count)
{
	struct rlimit many = { count + 64, count + 64 };
	struct pollfd *polled = calloc(count, sizeof(*polled));
	int ends[2];

	if (setrlimit(RLIMIT_NOFILE, &many)) {
		if (getrlimit(RLIMIT_NOFILE, &many))
			fail("getrlimit");
		count = many.rlim_max - 64;
		many.rlim_cur = many.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &many))
			fail("setrlimit");
	}
	if (pipe(ends))
		fail("pipe");
	for (int i = 0; i < count; i++) {
		polled[i].fd = dup(ends[0]);
		polled[i].events = POLLIN;
		if (polled[i].fd < 0)
			fail("dup");
	}
	poll(polled, count, 20);
}

/* Code that is mapped again and again: this program's own file. */
static void maps(int count)
{
	int file = open("/proc/self/exe", O_RDONLY);

	for (int i = 0; i < count; i++)
		/* Alternating, so that the kernel does not make one mapping of neighbours. */
		if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
			fail("mmap");
	nanosleep(&A_WHILE, NULL);
}

/* A stack that is other than it was when its owner left the CPU: full of addresses of code, each frame its own caller. */
static char other_stack[64 << 10] __attribute__((aligned(4096)));

static _Atomic pid_t sleeper;

static void *sleep_for_ever(void *nothing)
{
	sleeper = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return nothing;
}

/* Waits until the owner of the stack sleeps in its call: before that it uses its stack. */
static void until_it_sleeps(void)
{
	char path[64], line[32] = "";

	do {
		nanosleep(&(struct timespec){ 0, 1000 * 1000 }, NULL);
		if (!sleeper)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", sleeper);
		FILE *file = fopen(path, "r");
		if (!file || !fgets(line, sizeof(line), file))
			fail(path);
		fclose(file);
	} while (strtol(line, NULL, 10) != SYS_pause);
}

static void stack(int count)
{
	pthread_attr_t own;
	pthread_t made;

	pthread_attr_init(&own);
	pthread_attr_setstack(&own, other_stack, sizeof(other_stack));
	if (pthread_create(&made, &own, sleep_for_ever, NULL))
		fail("pthread_create");
	until_it_sleeps();
	for (int round = 0; round < count; round++) {
		nanosleep(&(struct timespec){ 0, 1000 * 1000 }, NULL);
		for (size_t i = 0; i < sizeof(other_stack) / 8 - 512; i++)
			((uint64_t *)other_stack)[i] = i % 2 ? (uint64_t)stack : (uint64_t)(other_stack + 8 * (i % 64));
	}
}

/* Code that no file holds: it sleeps, so that a stack begins in it. */
static void jit(int milliseconds)
{
	/* mov eax, SYS_nanosleep; xor esi, esi; syscall; ret */
	static const unsigned char CODE[] = { 0xb8, 35, 0, 0, 0, 0x31, 0xf6, 0x0f, 0x05, 0xc3 };
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec time = { 0, milliseconds * 1000000L };
	char map[64];
	FILE *out;

	memcpy(code, CODE, sizeof(CODE));
	/* Where a JIT compiler would write its names there is whatever stands in its place. */
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
	if (getenv("SECRET")) {
		out = fopen(getenv("SECRET"), "w");
		fprintf(out, "%lx 1000 name_from_a_secret\n", (unsigned long)code);
		fclose(out);
		/* From here on it may not read that file itself. */
		if (chmod(getenv("SECRET"), 0600) || symlink(getenv("SECRET"), map) || setgid(65534) || setuid(65534))
			fail(map);
	} else if (mkfifo(map, 0600)) {
		fail(map);
	}
	((void (*)(struct timespec *))code)(&time);
	if (!getenv("SECRET"))
		unlink(map);
}

/* Code that is in no file, and a list of it that has so many megabytes of the same line. */
static void list(int megabytes)
{
	static const unsigned char CODE[] = { 0xb8, 35, 0, 0, 0, 0x31, 0xf6, 0x0f, 0x05, 0xc3 };
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec time = { 0, 20000000L };
	const char *line = getenv("LINE");
	char map[64];
	long written = 0;
	FILE *out;

	memcpy(code, CODE, sizeof(CODE));
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
	if (!(out = fopen(map, "w")))
		fail(map);
	while (written < (long)megabytes << 20)
		written += fprintf(out, "%s\n", line);
	if (fclose(out))
		fail(map);
	/* The list is looked for while its process is there. */
	for (int times = 0; times < 20; times++)
		((void (*)(struct timespec *))code)(&time);
	unlink(map);
}

int main(int count, char **words)
{
	int much = count > 2 ? atoi(words[2]) : 0;

	if (count < 2)
		return 98;
	if (!strcmp(words[1], "threads"))
		threads(much);
	else if (!strcmp(words[1], "files"))
		files(much);
	else if (!strcmp(words[1], "maps"))
		maps(much);
	else if (!strcmp(words[1], "stack"))
		stack(much);
	else if (!strcmp(words[1], "jit"))
		jit(much);
	else if (!strcmp(words[1], "list"))
		list(much);
	else
		return 97;
	return 21;
}
