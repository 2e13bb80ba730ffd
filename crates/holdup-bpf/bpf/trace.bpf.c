// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Every thread of a run from birth to end: on a CPU, queued for one, or blocked, without a gap and without any
 * hook on system calls. One record a wait, sent at its waking; what a wait was for is read from the saved
 * registers as the thread leaves the CPU. See ARCHITECTURE.md, "follow one wait".
 */
#include "waits.h"
#include "repeats.h"
#include "pages.h"
#include "queueing.h"
#include "samples.h"
#include "adopt.h"
#include "requests.h"
#include "earlier.h"
#include "churn.h"
#include "traffic.h"
#include "functions.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define UNSEEN_LEAST 100000 /* ns: shorter waits without a waking are the two clocks' difference, not waits */
#define ASKED_LEAST 1000000 /* ns: what shorter polls asked for is not sent */

static __always_inline void end_thread(struct thread *t, struct task_struct *task, u32 open, const struct holdup_regs *regs)
{
	struct holdup_end *e = bpf_ringbuf_reserve(&records, sizeof(*e), 0);
	if (!e) {
		count_loss(HOLDUP_LOST_THREAD_RECORDS);
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->head.type = HOLDUP_END;
	e->head.thread = t->id;
	e->at = t->since;
	e->born = t->born;
	name_task(&e->task, task);
	e->clock = t->clock;
	e->blockings = t->blockings;
	e->lost_ns = t->lost_ns;
	e->lost_count = t->lost_count;
	e->runtime = task->se.sum_exec_runtime;
	e->run_delay = bpf_core_field_exists(task->sched_info) ? task->sched_info.run_delay : 0;
	e->voluntary = task->nvcsw;
	e->involuntary = task->nivcsw;
	__builtin_memcpy(e->interrupts, t->interrupts, sizeof(e->interrupts));
	e->exit_code = task->exit_code;
	e->open = open;
	if (regs)
		e->regs = *regs;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* It is on a CPU that it was not seen to get, and its waking was not seen either, nor known by the scheduler's notes.
 * How the stretch until it arrived splits into waiting and queueing is not known; it is counted as a wait that has no
 * record. */
static __always_inline void count_unseen(struct thread *t, u64 last_arrival, u64 now)
{
	u64 arrived = last_arrival + t->scheduler_lag, length;

	if (t->phase != HOLDUP_BLOCKED)
		return;
	if (!last_arrival || !t->scheduler_lag || arrived > now)
		arrived = now;
	length = turn(t, HOLDUP_RUNNING, arrived);
	t->lost_ns += length;
	t->lost_count++;
	t->seq++;
	count_loss(HOLDUP_LOST_SWITCHES);
	__sync_fetch_and_add(&unseen_switch_ns, length);
}

/* Whoever calls has a CPU, whether it was seen to get it or not. Before another is given its clock, its books have to say so:
 * as it leaves they are put right by when it arrived, and a clock that was reported as queueing or waiting until now would then have
 * gone back. */
static __always_inline void has_cpu(struct thread *t, struct task_struct *task, u64 now)
{
	u64 last_arrival = task->sched_info.last_arrival;

	count_unseen(t, last_arrival, now);
	arrive_unseen(t, last_arrival, now);
}

static __always_inline void leave_cpu(struct thread *t, struct task_struct *task, bool preempt, u32 state, u64 now)
{
	has_cpu(t, task, now);
	if (t->phase == HOLDUP_RUNNING && task->sched_info.last_arrival)
		t->scheduler_lag = t->since - task->sched_info.last_arrival;
	if (!preempt && (state & TASK_DEAD)) {
		turn(t, HOLDUP_NEW, now);
		end_thread(t, task, 0, 0);
		u32 key = t->id;
		if (have_task_work)
			bpf_map_delete_elem(&errands, &key);
		forget_thread(task);
		return;
	}
	/* A preempted thread is runnable whatever its state says, and so is one that has been woken since. */
	if (preempt || !state || (state & TASK_WAKING)) {
		turn(t, HOLDUP_QUEUED, now);
		note_throttled(t, task);
		return;
	}
	turn(t, HOLDUP_BLOCKED, now);
	t->run_delay = task->sched_info.run_delay;
	t->state = state;
	t->blockings++;
	t->iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	t->before = 0;
	describe_wait(t, task, false, false);
	leave_requests(t, now);
	t->serves = serves_now(t);
	t->unanswered = t->serves ? unanswered_of(t) : 0;
	if (!t->serves)
		t->serves_since = 0;
	t->memory_taken = 0;
	if (!have_task_work && t->skip) {
		t->skip--;
	} else if (!have_task_work && allowed(&user_allowance)) {
		/* Chosen without a look at how long it will last: the first waits of a thread all, later one in
		 * 16 on average. */
		u64 args[3] = { t->call.args[0], t->call.args[1], t->call.args[2] };
		t->skip = t->blockings < 64 ? 0 : bpf_get_prandom_u32() & 31;
		struct holdup_regs regs;
		copy_regs(&regs, regs_of(task));
		send_memory(t, task, &regs, t->seq + 1, t->seq + 1, 0, t->call.number, args, 0, false);
		t->memory_taken = 1;
	}
}

/* A wait is over: at its waking, or, where that was `seen` by no program, as far as the scheduler tells afterwards;
 * who ended it is then not known. `stands`: it has not run since, so that its stack and what it waited on are those of the
 * wait. */
static __always_inline void end_wait(struct thread *t, struct task_struct *task, u64 at, bool seen, bool stands)
{
	struct holdup_wait *w;

	u64 length = turn(t, HOLDUP_QUEUED, at);
	/* Counted here and not as it leaves: a thread may leave as if to sleep and be runnable all along. */
	t->seq++;
	t->kernel_due += length;
	bool stack = stands && kernel_budget && t->kernel_due >= kernel_budget && allowed(&kernel_allowance);
	if (stack) {
		t->kernel_due %= kernel_budget;
		send_kernel_stack(t, task, t->seq);
	}
	t->user_due += length;
	if (stands && have_task_work && user_budget && t->user_due >= user_budget && !(task->flags & PF_IO_WORKER) &&
	    allowed(&user_allowance)) {
		t->errand = t->user_due - t->user_due % user_budget;
		t->user_due %= user_budget;
	}
	if (!seen) {
		count_loss(HOLDUP_LOST_WAKINGS);
		__sync_fetch_and_add(&unseen_ns, length);
	}
	/* Objects are described before the record that refers to them is begun. */
	struct file *ready_file = stands && is_epoll(t->call.number) ? ready_of_epoll(task, (u32)t->call.args[0]) : 0;
	u32 here = seen ? served_here() : SERVES_UNKNOWN;
	bool peer = seen && woken_by_peer(t, task, ready_file, here);
	if (thin && seen) {
		if (!stack && is_repeated(t, task, length, ready_file, here, peer, at)) {
			t->seq--;
			return;
		}
	}
	u32 ready = ready_file ? object_of_file((u64)ready_file) : 0;
	u32 socket = seen ? ready_socket_of(t, here) : 0;
	if (length >= ASKED_LEAST && is_poll(t->call.number))
		send_asked(t, task, t->seq);
	else if (seen && length >= ASKED_LEAST && is_epoll(t->call.number) && !ready)
		send_interest((u64)file_of(task, (u32)t->call.args[0]), t->id, t->seq);
	if (length >= TCP_MIN_REPORTED_NS && t->tcp)
		send_tcp(t, t->seq);
	w = bpf_ringbuf_reserve(&records, sizeof(*w), 0);
	if (!w) {
		count_loss(HOLDUP_LOST_WAITS);
		t->lost_ns += length;
		t->lost_count++;
		t->reported.at = 0; /* nothing can be like what was not reported */
		return;
	}
	fill_wait(w, t, t->since);
	w->start = t->since - length - t->before;
	w->clock = t->clock;
	w->memory_follows = t->errand != 0 || t->errand_from != 0;
	w->ready = ready;
	w->socket = socket;
	if (seen)
		describe_waker(w, task, here, peer, t->since);
	t->completes = t->call.number == __NR_io_uring_enter &&
		       (w->waker_kind == HOLDUP_WAKER_SOFTIRQ || w->waker_kind == HOLDUP_WAKER_HARDIRQ);
	bpf_ringbuf_submit(w, BPF_RB_NO_WAKEUP);
}

static __always_inline void enter_cpu(struct thread *t, struct task_struct *task, struct task_struct *before, u64 now, bool errands)
{
	u64 queued;

	/* Switched in without a waking: it was runnable all along, and that stretch was queueing. */
	if (t->phase == HOLDUP_BLOCKED)
		t->phase = HOLDUP_QUEUED;
	queued = turn(t, HOLDUP_RUNNING, now);
	u64 throttled = t->clock.throttled;
	end_throttled(t, task, queued);
	throttled = t->clock.throttled - throttled;
	/* Not at the waking: the kernel hands errands over by an interrupt to itself, and a thread that is woken for
	 * another CPU could be back in user mode before that arrives. */
	if (errands && t->errand && !t->completes) {
		send_errand(t, task, t->errand);
		t->errand = 0;
	}
	t->queued_due += queued - throttled; /* nobody ran instead while it might not run at all */
	send_ran_instead(t, task, before, now);
}

/* There are machines whose kernel does not show every waking to programs, nor every switch; the scheduler's own notes then
 * say when a thread was woken. Of one that gets a CPU: since when it was queued, where that is later than the instant at
 * which it left. Of one that leaves a CPU which it was not seen to get: when it got it, less what it had queued before. 0:
 * not known, or, mostly, there was no waking. */
static __always_inline u64 unseen_waking(const struct thread *t, struct task_struct *task, bool leaves, u64 now)
{
	u64 at;

	if (!t->scheduler_lag)
		return 0;
	at = leaves ? task->sched_info.last_arrival - (task->sched_info.run_delay - t->run_delay) : task->sched_info.last_queued;
	if (!at)
		return 0;
	at += t->scheduler_lag;
	return at > t->since + UNSEEN_LEAST && at <= now ? at : 0;
}

/* The verifier looks at a function that is not static by itself and once, and not again for each way that leads to it: more than a
 * third of the CPU time that a start took went into the combinations of these two with what comes before them. Kernels that have task work know arguments
 * that are tasks; others get all in one piece. */
__noinline int end_unseen_wait(struct thread *t, struct task_struct *task __arg_trusted, u64 at, bool stands)
{
	if (!t || !task)
		return 0;
	end_wait(t, task, at, false, stands);
	return 0;
}

__noinline int leave_cpu_apart(struct thread *t, struct task_struct *task __arg_trusted, bool preempt, u32 state, u64 now)
{
	if (!t || !task)
		return 0;
	leave_cpu(t, task, preempt, state, now);
	return 0;
}

static __always_inline int on_any_switch(u64 *ctx, bool errands)
{
	bool preempt = ctx[0];
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct thread *out, *in;
	u64 now;

	if (frozen)
		return 0;
	out = thread_of(prev);
	in = thread_of(next);
	u64 leaves = out != 0;
	barrier_var(leaves); /* or the compiler would combine the two pointers into one test, which the verifier refuses */
	if (!leaves && !in)
		return 0;
	now = bpf_ktime_get_ns();
	switch_interrupts(out, in);
	struct thread *late = 0;
	struct task_struct *late_task = prev;
	u64 woken = 0;
	if (in && in->phase == HOLDUP_BLOCKED) {
		late = in;
		late_task = next;
		woken = unseen_waking(in, next, false, now);
	} else if (out && out->phase == HOLDUP_BLOCKED) {
		late = out;
		woken = unseen_waking(out, prev, true, now);
	}
	if (late && woken && errands)
		end_unseen_wait(late, late_task, woken, late == in);
	else if (late && woken)
		end_wait(late, late_task, woken, false, late == in);
	if (in)
		enter_cpu(in, next, prev, now, errands);
	u32 state = have_switch_state ? (u32)ctx[3] : state_of(prev);
	if (out && errands)
		leave_cpu_apart(out, prev, preempt, state, now);
	else if (out)
		leave_cpu(out, prev, preempt, state, now);
	count_cost(now);
	return 0;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	return on_any_switch(ctx, true);
}

/* For kernels without task work: older ones refuse a program in which a callback so much as lies. */
SEC("tp_btf/sched_switch")
int on_switch_without_errands(u64 *ctx)
{
	return on_any_switch(ctx, false);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct thread *t;
	u64 now;

	if (frozen)
		return 0;
	t = thread_of(task);
	if (!t || t->phase != HOLDUP_BLOCKED)
		return 0;
	now = bpf_ktime_get_ns();
	end_wait(t, task, now, true, true);
	count_cost(now);
	return 0;
}

static __always_inline void begin_thread(struct thread *creator, struct task_struct *task, u64 now)
{
	struct holdup_start *s;
	struct thread *t;

	if (now < creator->since)
		now = creator->since;
	t = new_thread(task, now);
	if (!t) {
		count_loss(HOLDUP_LOST_THREADS);
		return;
	}
	t->id = next_number();
	if (!t->id) {
		count_loss(HOLDUP_LOST_THREADS);
		forget_thread(task);
		return;
	}
	t->role = creator->role;
	t->phase = HOLDUP_QUEUED;
	s = bpf_ringbuf_reserve(&records, sizeof(*s), 0);
	if (!s) {
		count_loss(HOLDUP_LOST_THREAD_RECORDS);
		return;
	}
	__builtin_memset(s, 0, sizeof(*s));
	s->head.type = HOLDUP_START;
	s->head.thread = t->id;
	s->at = now;
	s->role = t->role;
	name_task(&s->task, task);
	s->parent = creator->id;
	s->has_parent = 1;
	charge_running(creator);
	clock_at(&s->parent_clock, creator, now);
	name_inside(s, task);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct thread *creator;

	if (frozen)
		return 0;
	creator = thread_of(parent);
	if (creator) {
		u64 now = bpf_ktime_get_ns();
		has_cpu(creator, parent, now);
		begin_thread(creator, child, now);
		if (child->tgid == parent->tgid)
			send_maker(creator, parent, HOLDUP_MADE_THREAD, 0);
		else
			send_maker(creator, parent, HOLDUP_MADE_PROCESS, 0);
	} else if (!HAVE_TASK_STORAGE) {
		forget_thread(child);
	}
	return 0;
}

/* io_uring's workers are threads of the process that they serve, and no fork announces them. */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_new_worker, struct task_struct *task)
{
	struct task_struct *current = current_task();
	struct thread *creator;

	if (frozen || !(task->flags & PF_IO_WORKER) || OF(current, tgid) != task->tgid || thread_of(task))
		return 0;
	creator = thread_of(current);
	if (creator && creator->phase == HOLDUP_RUNNING)
		begin_thread(creator, task, bpf_ktime_get_ns());
	return 0;
}

/* CMD's first thread is distinguished by its waking, when user space gives it the word to exec. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_first_waking, struct task_struct *task)
{
	struct thread *t;
	struct holdup_start *s;

	if (root_seen || task->pid != root_pid || frozen)
		return 0;
	t = new_thread(task, bpf_ktime_get_ns());
	if (!t) {
		count_loss(HOLDUP_LOST_THREADS);
		return 0;
	}
	root_seen = 1; /* its number is 0 */
	t->phase = HOLDUP_QUEUED;
	s = bpf_ringbuf_reserve(&records, sizeof(*s), 0);
	if (!s) {
		count_loss(HOLDUP_LOST_THREAD_RECORDS);
		return 0;
	}
	__builtin_memset(s, 0, sizeof(*s));
	s->head.type = HOLDUP_START;
	s->head.thread = t->id;
	s->at = t->born;
	name_task(&s->task, task);
	name_inside(s, task);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct thread *t;
	struct holdup_exec *e;

	if (frozen)
		return 0;
	t = thread_of(task);
	if (!t)
		return 0;
	e = bpf_ringbuf_reserve(&records, sizeof(*e), 0);
	if (!e) {
		count_loss(HOLDUP_LOST_THREAD_RECORDS);
		return 0;
	}
	e->head.type = HOLDUP_EXEC;
	e->head.thread = t->id;
	e->at = bpf_ktime_get_ns();
	name_task(&e->task, task);
	e->program[0] = 0;
	bpf_probe_read_kernel_str(e->program, sizeof(e->program), bprm->filename);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	struct thread *t;
	struct holdup_renamed *r;

	if (frozen)
		return 0;
	t = thread_of(task);
	if (!t)
		return 0;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		count_loss(HOLDUP_LOST_THREAD_RECORDS);
		return 0;
	}
	r->head.type = HOLDUP_RENAMED;
	r->head.thread = t->id;
	__builtin_memset(r->comm, 0, sizeof(r->comm));
	bpf_probe_read_kernel_str(r->comm, sizeof(r->comm), comm);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_data_ready, const struct sock *sk)
{
	u32 zero = 0;
	u64 *last = bpf_map_lookup_elem(&ready_socket, &zero);
	if (last)
		*last = (u64)sk;
	return 0;
}

/* Signals that stop, continue or end a thread. */
SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int signal, void *info, struct task_struct *task)
{
	struct thread *t;
	struct holdup_signal *s;

	if (frozen || !(signal == 9 || signal == 15 || (signal >= 18 && signal <= 22)))
		return 0;
	t = thread_of(task);
	if (!t)
		return 0;
	s = bpf_ringbuf_reserve(&records, sizeof(*s), 0);
	if (!s)
		return 0;
	s->head.type = HOLDUP_SIGNAL;
	s->head.thread = t->id;
	s->at = bpf_ktime_get_ns();
	s->signal = signal;
	s->zero = 0;
	name_task(&s->by, current_task());
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Threads that live on when observation ends. */
SEC("iter/task")
int each_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;
	struct holdup_wait *w;
	struct holdup_regs regs = {};
	u32 phase;

	if (!task || !frozen)
		return 0;
	t = thread_of(task);
	if (!t || t->phase == HOLDUP_NEW)
		return 0;
	phase = t->phase;
	u64 length = turn(t, phase, frozen_at);
	if (phase == HOLDUP_QUEUED)
		end_throttled(t, task, length);
	if (phase == HOLDUP_BLOCKED) {
		t->seq++;
		if (is_poll(t->call.number))
			send_asked(t, task, t->seq);
		else if (is_epoll(t->call.number))
			send_interest((u64)file_of(task, (u32)t->call.args[0]), t->id, t->seq);
		if (t->tcp)
			send_tcp(t, t->seq);
		copy_regs(&regs, regs_of(task));
		send_kernel_stack(t, task, t->seq);
		w = bpf_ringbuf_reserve(&records, sizeof(*w), 0);
		if (w) {
			fill_wait(w, t, t->since);
			w->start = t->since - length - t->before;
			w->clock = t->clock;
			w->waker_kind = HOLDUP_WAKER_NOT_YET;
			bpf_ringbuf_submit(w, BPF_RB_NO_WAKEUP);
		} else {
			count_loss(HOLDUP_LOST_WAITS);
			t->lost_ns += length;
			t->lost_count++;
		}
	}
	end_thread(t, task, 1 + phase, &regs);
	return 0;
}
