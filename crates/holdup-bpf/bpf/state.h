/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the programs remember: one state a thread of the run, and the settings and counters of user space. */
#ifndef HOLDUP_STATE_H
#define HOLDUP_STATE_H

#include "kernels.h"
#include <bpf/bpf_endian.h>

/* A wait that had a record: what those are held against that come after it. */
struct reported_wait {
	u64 at;              /* instant of its end; 0: none was reported */
	u64 longest;         /* the longest of its like, ns */
	u64 repeats;         /* the thread's count of waits without a record then */
	u64 argument;        /* first of the call */
	u64 ready;           /* of an epoll: what was ready */
	s32 number;
	u32 object;
	u32 state;
	u32 waker;           /* thread's number, or process outside */
	u8 waker_kind;       /* enum holdup_waker */
	u8 zero[7];
};

/* A thread of the run. `since` is the instant of its last transition; the clock holds all before it, so that
 * born + cpu + queued + blocked = since, always. */
struct thread {
	/* What every wait and every turn on a CPU reads or writes comes first, in few cache lines: where a CPU was idle, as it mostly is when
	 * a sleeper is woken, each line is fetched anew, and that is most of what a program takes. */
	u32 id;
	u32 seq;
	u32 phase;
	u32 state;
	u64 since;
	u64 kernel_due;      /* blocked ns since the last kernel stack */
	u64 user_due;        /* blocked ns since the last user stack */
	u64 queued_due;      /* queued ns since the last ran-instead record */
	u64 errand;          /* weight of the stack that it is to copy when it runs again; 0: none */
	u64 before;          /* how long the wait that it was in as it was adopted had lasted then, ns */
	struct holdup_clock clock;
	u64 blockings;
	struct holdup_call call;
	u32 object;
	u8 iowait;
	u8 holder_kind;
	u8 memory_taken;     /* memory was already copied when it left the CPU (kernels without task work) */
	u8 role;             /* enum holdup_role */
	struct reported_wait reported; /* the last wait that had a record (repeats.h) */
	u64 scheduler_lag;   /* our clock less the scheduler's, as of its last switch-in; 0: not known */
	u64 run_delay;       /* the scheduler's count of its queueing as it last blocked, ns */
	u64 tcp;             /* the TCP socket that it waits on, and its state as the wait began (network.h); 0: none */
	u64 reading;         /* inode of the page that it last put into the cache or found being written, since it last blocked in a call */
	u64 contended;       /* kernel lock that it is about to sleep for; 0: none */
	u64 throttled_queue; /* run queue on which its group's quota was spent when it left the CPU; 0: it was not */
	u64 serves_since;    /* instant since which it has a request to answer; 0: it has none */
	u32 errand_from;     /* first of the waits whose memory is still to be copied; 0: none is under way */
	u32 requests;        /* requests that it has read, less those that it has answered */
	u32 serves;          /* as it last left the CPU it had one to answer */
	u32 unanswered;      /* then: a socket on which it had asked, and got no answer; 0: none */
	u32 completed;       /* what the first io_uring request was about that completed since it left the CPU */
	u32 completes;       /* whether its errand is left until a request completes */
	/* What some need. */
	u64 born;
	u32 holder[HOLDUP_HOLDER_WORDS];
	u64 lost_ns;
	u64 lost_count;
	u32 cpu_seq;
	u32 skip;            /* switch-outs until memory is copied again (kernels without task work) */
	/* The last object but a socket, whose identity changes with its peer: a thread mostly waits on the same. */
	u64 last_file;
	u64 last_inode;
	u64 last_number;
	u32 last_object;
	u32 zero_serves;
	struct { s32 fd; s16 events; s16 revents; } asked[HOLDUP_ASKED]; /* the beginning of a poll's set */
	u64 select_reads;    /* what a select asked for, first 64 descriptors: the call overwrites its sets */
	u64 select_writes;
	u64 contended_in;    /* where it had entered the kernel then */
	u32 contended_flags;
	u32 contended_space; /* process whose address space that lock guards */
	u32 contended_object;
	u32 zero_three;
	u32 tcp_unsent;
	u32 tcp_unacked;
	u32 tcp_window;
	u32 tcp_retransmitted;
	u32 tcp_una;
	u32 tcp_began;       /* in the kernel's ticks */
	u32 tcp_limited;
	u32 tcp_zero;
	u8 tcp_no_delay;
	u8 tcp_throttled;
	u8 given_up;         /* it is watched no more, and its entry could not be deleted then: it is as good as none */
	u8 zero_more[5];
	u64 interrupts[HOLDUP_INTERRUPTS]; /* ns of the clock's `interrupt`, by kind */
	u64 throttled_before; /* that queue's throttled time then, ns */
	u64 asked_on[HOLDUP_QUESTIONS]; /* sockets on which it has asked others since, and got no answer; 0: none */
	u64 unix_read;       /* the Unix socket on which it has read last, and not answered; 0: none */
	u64 unix_inode;      /* and that one's inode */
	u32 unix_weight;     /* how many requests it stands for */
	u32 zero_unix;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

#define MOST_THREADS 16384 /* alive at once, where they are kept in a table: 9 MB, taken when it is made */

/* Where tracing programs have no task storage: by the task's address, which may be used again once the task is
 * gone. So the entry goes as the task dies, and, should that not be seen, at the birth of the next one there. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_THREADS);
	__type(key, u64);
	__type(value, struct thread);
} thread_table SEC(".maps");

const volatile struct thread blank_thread = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024 * 1024); /* user space sets its own at load */
} records SEC(".maps");

/* Settings, fixed at load. */
const volatile u64 cpu_period = 1000000;       /* ns between CPU samples */
const volatile u8 have_task_work = 0;
const volatile u8 have_interrupts = 0;
/* For each system call number: 1 + which argument is a descriptor; 0 none. */
const volatile u8 fd_argument[512] = {};
/* The same for a path. */
const volatile u8 path_argument[512] = {};
const volatile union holdup_wire wire_types = {};

/* Changed while running. */
u64 user_budget = 1000000;                     /* one user stack a ns blocked; user space raises it under load */
u64 kernel_budget = 1000000;                   /* the same for kernel stacks */
s32 user_allowance = 1000;                     /* stacks until user space allows more, so that a burst cannot */
s32 kernel_allowance = 1000;                   /* fill the ring; what is due then stays due */
u32 root_pid = 0;                              /* CMD's first process, once it stands ready */
u32 frozen = 0;                                /* observation is over */
u64 frozen_at = 0;
u32 root_seen = 0;                             /* CMD's first thread is watched */
u64 losses[HOLDUP_LOSS_CLASSES] = {};
u64 unseen_ns = 0;                             /* of waits whose waking was not shown */
u64 unseen_switch_ns = 0;                      /* and of what is not known because a switch was not shown */
u8 thin = 0;                                   /* waits like the one before need no record (repeats.h) */
u32 request_mask = 0;                          /* one request in so many and one is reported; a power of two less one */
u64 untold_requests = 0;                       /* answered, and not reported */
u64 untold_longest = 0;                        /* how long the longest of these took, ns */

/* Own run time: every 64th run is timed and stands for 64. */
struct cost { u64 runs; u64 ns; };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cost);
} costs SEC(".maps");

#define COST_SAMPLE 64

static __always_inline void count_cost(u64 began)
{
	u32 zero = 0;
	struct cost *cost = bpf_map_lookup_elem(&costs, &zero);
	if (cost && (cost->runs++ & (COST_SAMPLE - 1)) == 0)
		cost->ns += (bpf_ktime_get_ns() - began) * COST_SAMPLE;
}

static __always_inline bool allowed(s32 *allowance)
{
	/* Two CPUs may both take the last one; that does no harm. */
	if (*allowance <= 0)
		return false;
	__sync_fetch_and_add(allowance, -1);
	return true;
}

static __always_inline void count_loss(u32 class)
{
	if (class < HOLDUP_LOSS_CLASSES)
		__sync_fetch_and_add(&losses[class], 1);
}

/* No program keeps anything of it. So it is with most tasks of a machine, and a look at the task is a third of what the helper takes, which
 * looks there first as well. Not by the task as it is: for each pointer that is read through one that the verifier trusts it goes through all of the
 * kernel's types by name, which took a third of a start. Where that can't be avoided the helper does it all. */
static __always_inline bool keeps_nothing(struct task_struct *task)
{
	struct task_struct___storage *seen;

	if (!bpf_ksym_exists(bpf_rdonly_cast))
		return false;
	seen = bpf_rdonly_cast(task, TYPE_ID(struct task_struct));
	return !seen->bpf_storage;
}

/* Whatever is kept of a task, also while its adoption is under way. */
static __always_inline struct thread *entry_of_task(struct task_struct *task)
{
	if (HAVE_TASK_STORAGE)
		return keeps_nothing(task) ? 0 : bpf_task_storage_get(&threads, task, 0, 0);
	u64 key = (u64)task;
	return bpf_map_lookup_elem(&thread_table, &key);
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	struct thread *t = entry_of_task(task);
	return t && t->phase != HOLDUP_NEW ? t : 0;
}

/* None where the table is full, and also where the kernel was interrupted on this CPU while it was at another entry, of this
 * observation or another's: then it makes and deletes none until it has gone on there. */
static __always_inline struct thread *remember_thread(struct task_struct *task)
{
	if (HAVE_TASK_STORAGE)
		return bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 key = (u64)task;
	if (bpf_map_update_elem(&thread_table, &key, (const void *)&blank_thread, BPF_ANY))
		return 0;
	return bpf_map_lookup_elem(&thread_table, &key);
}

static __always_inline void forget_thread(struct task_struct *task)
{
	if (HAVE_TASK_STORAGE) {
		bpf_task_storage_delete(&threads, task);
		return;
	}
	u64 key = (u64)task;
	bpf_map_delete_elem(&thread_table, &key);
}

#define PF_KTHREAD 0x00200000

static __always_inline void name_task(struct holdup_task *out, struct task_struct *task)
{
	out->pid = OF(task, tgid);
	out->tid = OF(task, pid);
	out->kernel = (OF(task, flags) & PF_KTHREAD) != 0;
	out->zero = 0;
	bpf_probe_read_kernel(out->comm, HOLDUP_COMM, task->comm);
}

/* What a thread calls itself, where it is in a pid namespace of its own: so locks in its memory name their owner. */
static __always_inline void name_inside(struct holdup_start *s, struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = pid ? BPF_CORE_READ(pid, level) : 0;
	struct upid *inside;

	if (!level)
		return;
	inside = (void *)pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
	s->tid_inside = BPF_CORE_READ(inside, nr);
	s->namespace = BPF_CORE_READ(inside, ns, ns.inum);
}

/* Whether the first argument of a system call is a descriptor. The bound is repeated after a barrier, because the
 * compiler checks another copy of the number than it indexes with, and older verifiers don't see that they are one. */
static __always_inline bool first_is_descriptor(s32 number)
{
	u64 index = (u32)number;
	if (index >= 512)
		return false;
	barrier_var(index);
	return fd_argument[index & 511] == 1;
}

/* The part of the stretch until `now` with a request to answer. */
static __always_inline void add_served(struct holdup_clock *clock, const struct thread *t, u64 now)
{
	u64 from = t->serves_since;

	if (!from)
		return;
	if (from < t->since)
		from = t->since;
	if (now <= from)
		return;
	if (t->phase == HOLDUP_RUNNING)
		clock->served_cpu += now - from;
	else if (t->phase == HOLDUP_QUEUED)
		clock->served_queued += now - from;
}

/* The clock as of `now`, the running stretch included. */
static __always_inline void clock_at(struct holdup_clock *out, const struct thread *t, u64 now)
{
	u64 stretch = now > t->since ? now - t->since : 0;
	*out = t->clock;
	add_served(out, t, now);
	if (t->phase == HOLDUP_RUNNING)
		out->cpu += stretch;
	else if (t->phase == HOLDUP_QUEUED)
		out->queued += stretch;
	else if (t->phase == HOLDUP_BLOCKED)
		out->blocked += stretch;
}

/* Closes the stretch since the last transition and begins another. Time never runs backwards: two CPUs'
 * readings of the clock may differ by some nanoseconds, and then the stretch is 0 and `since` stays. */
static __always_inline u64 turn(struct thread *t, u32 phase, u64 now)
{
	u64 stretch = now > t->since ? now - t->since : 0;
	add_served(&t->clock, t, now);
	if (t->phase == HOLDUP_RUNNING)
		t->clock.cpu += stretch;
	else if (t->phase == HOLDUP_BLOCKED)
		t->clock.blocked += stretch;
	else
		t->clock.queued += stretch;
	t->since += stretch;
	t->phase = phase;
	return stretch;
}

/* It is on a CPU and was not seen to get it: kernels were met that run no program at all for moments. The scheduler's
 * own note says since when it is there. */
static __always_inline void arrive_unseen(struct thread *t, u64 last_arrival, u64 now)
{
	u64 arrived = last_arrival + t->scheduler_lag;
	if (t->phase == HOLDUP_QUEUED && last_arrival && t->scheduler_lag && arrived > t->since && arrived < now)
		turn(t, HOLDUP_RUNNING, arrived);
}

#endif
