/*
 * Programs that are stuck for good, for `holdup attach`: stuck WAY, which says "ready" on descriptor 3 and then blocks.
 * Others that take part are its children, with names of their own; they end with it.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void check(bool right, const char *what)
{
	if (!right) {
		perror(what);
		exit(1);
	}
}

/* A child with this name, that does not outlive its parent; true in the child. */
static bool child(const char *name)
{
	pid_t parent = getpid(), pid = fork();

	check(pid >= 0, "fork");
	if (pid)
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	prctl(PR_SET_NAME, name);
	close(3);
	return true;
}

static void ready(void)
{
	check(write(3, "ready\n", 6) == 6, "write");
	close(3);
}

static void sleep_for_good(void)
{
	for (;;)
		sleep(1000);
}

__attribute__((noinline)) static void read_answer(int from)
{
	char byte;

	check(read(from, &byte, 1) >= 0, "read");
}

__attribute__((noinline)) static void await_answer(int from)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(from, &set);
	check(select(from + 1, &set, NULL, NULL, NULL) >= 0, "select");
}

/* Reads from a child that reads from this one. */
static void circle(void)
{
	int there[2], back[2];

	check(!pipe(there) && !pipe(back), "pipe");
	if (child("partner")) {
		close(there[1]);
		close(back[0]);
		read_answer(there[0]);
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	ready();
	read_answer(back[0]);
}

/* Selects what a child does not write. */
static void selects(void)
{
	int ends[2];

	check(!pipe(ends), "pipe");
	if (child("writer")) {
		close(ends[0]);
		sleep_for_good();
	}
	close(ends[1]);
	ready();
	await_answer(ends[0]);
}

/* Has a connection in the queue of a server that does not accept it. */
static void not_accepted(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(8080) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), connection = socket(AF_INET, SOCK_STREAM, 0);

	check(!bind(listener, (struct sockaddr *)&address, sizeof(address)) && !listen(listener, 8), "listen");
	if (child("server")) {
		close(connection);
		sleep_for_good();
	}
	close(listener);
	check(!connect(connection, (struct sockaddr *)&address, sizeof(address)), "connect");
	check(write(connection, "?", 1) == 1, "write");
	ready();
	read_answer(connection);
}

static void *takes_second_first(void *unused)
{
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&first);
	return unused;
}

/* Two threads, each with the lock that the other wants. */
__attribute__((noinline)) static void takes_first_first(void)
{
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	pthread_mutex_lock(&first);
	check(!pthread_create(&thread, NULL, takes_second_first, NULL), "pthread_create");
	pthread_setname_np(thread, "other");
	pthread_barrier_wait(&both);
	ready();
	pthread_mutex_lock(&second);
}

/* Stopped by itself, long before anybody looks. */
__attribute__((noinline)) static void stops(void)
{
	ready();
	raise(SIGSTOP);
}

/* Waits, in the 32-bit way (int 0x80), for what a child does not write: call 3 is read there, and close of 64 bits. */
__attribute__((noinline)) static void other_numbers(void)
{
	int ends[2];
	long result;

	check(!pipe(ends), "pipe");
	if (child("writer")) {
		close(ends[0]);
		sleep_for_good();
	}
	close(ends[1]);
	ready();
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(3L), "b"((long)ends[0]), "c"(0L), "d"(1L) : "memory");
}

int main(int count, char **words)
{
	static const struct { const char *name; void (*way)(void); } ways[] = {
		{ "circle", circle }, { "selects", selects }, { "not-accepted", not_accepted },
		{ "deadlock", takes_first_first }, { "stops", stops }, { "other-numbers", other_numbers },
	};

	for (size_t i = 0; count == 2 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(words[1], ways[i].name)) {
			ways[i].way();
			return 0;
		}
	fprintf(stderr, "stuck: no such way\n");
	return 2;
}
