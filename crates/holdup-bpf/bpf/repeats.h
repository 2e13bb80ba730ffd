/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Waits that are like the one before, of a recorder that runs for good: most threads of a server wait in the same call, for the same
 * thing, ended by the same one, thousands of times. The first has a record; of those that follow the thread's clock adds up number and
 * time. One has a record all the same if it is longer than those reported (so the longest is exact), every REPEATS_MOST and
 * every second, if it takes a stack, and wherever a single wait may matter: with a request to answer, for a lock whose owner is
 * known, and for a millisecond and more unless it is a timer that ends it.
 */
#ifndef HOLDUP_REPEATS_H
#define HOLDUP_REPEATS_H

#include "waits.h"

#define REPEATS_MOST 64
#define REPEATS_FOR 1000000000     /* ns after which one is reported again */
#define REPEATED_MIN_REPORTED_NS 1000000 /* ns: a wait of this length is reported, */
#define REPEATED_TIMER 100000000   /* and one that only a timer ended from this length on */
#define __NR_nanosleep 35
#define __NR_clock_nanosleep 230

/* Who wakes, as describe_waker has it, in two numbers. */
static __always_inline void who_wakes(struct reported_wait *w, struct task_struct *woken, u32 here, bool peer)
{
	struct task_struct *current = current_task();
	struct thread *waker;

	w->waker = 0;
	if (here & SERVES_UNKNOWN) {
		w->waker_kind = HOLDUP_WAKER_UNKNOWN;
	} else if ((here & SERVES_HARD) || (!here && OF(current, pid) == 0)) {
		w->waker_kind = HOLDUP_WAKER_HARDIRQ;
	} else if (here && !peer) {
		w->waker_kind = HOLDUP_WAKER_SOFTIRQ;
	} else {
		waker = current == woken ? 0 : thread_of(current);
		w->waker_kind = waker ? HOLDUP_WAKER_THREAD : HOLDUP_WAKER_OUTSIDE;
		w->waker = waker ? waker->id : OF(current, tgid);
	}
}

/* Whether the wait that ends needs no record; else it is what those after it are held against. */
static __always_inline bool is_repeated(struct thread *t, struct task_struct *task, u64 length, struct file *ready, u32 here, bool peer,
					u64 now)
{
	struct reported_wait w, *reported = &t->reported;
	s32 number = t->call.number;
	bool same;

	who_wakes(&w, task, here, peer);
	same = reported->at && reported->number == number && reported->argument == t->call.args[0] && reported->object == t->object &&
	       reported->ready == (u64)ready && reported->state == t->state && reported->waker == w.waker && reported->waker_kind == w.waker_kind;
	bool timer = w.waker_kind == HOLDUP_WAKER_HARDIRQ && !ready &&
		     (number == __NR_nanosleep || number == __NR_clock_nanosleep || is_epoll(number) || is_poll(number));
	if (same && length <= reported->longest && length < (timer ? REPEATED_TIMER : REPEATED_MIN_REPORTED_NS) && !t->serves && !t->errand &&
	    !t->before && (t->holder_kind == HOLDUP_HOLDER_NONE || t->holder_kind == HOLDUP_HOLDER_FUTEX) &&
	    now - reported->at < REPEATS_FOR && t->clock.repeats - reported->repeats < REPEATS_MOST) {
		t->clock.repeats++;
		t->clock.repeated += length;
		return true;
	}
	reported->at = now;
	reported->longest = same && reported->longest > length ? reported->longest : length;
	reported->repeats = t->clock.repeats;
	reported->argument = t->call.args[0];
	reported->ready = (u64)ready;
	reported->number = number;
	reported->object = t->object;
	reported->state = t->state;
	reported->waker = w.waker;
	reported->waker_kind = w.waker_kind;
	return false;
}

#endif
