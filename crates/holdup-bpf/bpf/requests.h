/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Requests: from the first thing read on an accepted connection since the last answer, to the first thing written there.
 * What is read before a connection is closed, and not answered, is none.
 *
 * Blind to protocols. The kernel announces what was sent and received on sockets, whichever call did it, so no system call
 * is hooked (traffic.h).
 */
#ifndef HOLDUP_REQUESTS_H
#define HOLDUP_REQUESTS_H

#include "sockets.h"
#include "names.h"

#define SOCK_STREAM 1
#define RCV_SHUTDOWN 1
#define __NR_accept 43
#define __NR_accept4 288

/* Sockets on which a thread that had a request to answer has asked somebody else: a backend, a database, a name server.
 * `one_way`: its requests were answered all the same, so nothing was to come back: a log's socket. `connecting`: nothing could
 * be asked yet, the connection is being made; the object is looked up when the thread waits, in the state it is in by then. */
struct question {
	u64 inode;
	u32 thread, object;
	u8 one_way, connecting, in_flight, zero[5];
	u64 asked; /* of what is counted there since: when the last of it passed; 0: nothing is */
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOST_CONNECTIONS);
	__type(key, u64); /* the socket */
	__type(value, struct question);
} questions SEC(".maps");

/* What was asked of one server for requests, by where it is; Unix sockets are one. */
struct upstream_key { u16 family, port; u32 zero; u8 address[16]; };
struct upstream {
	u64 ns;        /* on the way: from each question to the last of its answer that has come */
	u32 asked;     /* questions */
	u32 in_flight; /* sockets with a question and nothing of its answer */
	u32 most;      /* of them at once */
	u32 pid;       /* who asked last */
	u64 since;     /* when the first was asked */
	u64 begins;    /* when those in flight were asked, added up: what they have taken so far is reported at the end */
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 256);
	__type(key, struct upstream_key);
	__type(value, struct upstream);
} upstreams SEC(".maps");

/* By thread: requests that it has read and another has answered. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u32);
} answered_by_others SEC(".maps");
u32 some_asked = 0; /* of `upstreams` */
u32 some_answered_by_others = 0; /* most programs' threads answer what they read: no look into the table then */

/* Of a thread that serves: a socket on which it has asked and not been answered. */
static __always_inline u32 unanswered_of(struct thread *t)
{
	for (int i = 0; i < HOLDUP_QUESTIONS; i++) {
		struct question *open = t->asked_on[i] ? bpf_map_lookup_elem(&questions, &t->asked_on[i]) : 0;
		struct sock *sk = (void *)t->asked_on[i];

		if (!open || open->thread != t->id)
			continue;
		if (!open->object && inode_of_sock(sk) == open->inode)
			open->object = object_of_file((u64)BPF_CORE_READ(sk, sk_socket, file));
		if (open->object)
			return open->object;
	}
	return 0;
}

/* Whether it has read a request that nobody has answered. */
static __always_inline bool serves_now(const struct thread *t)
{
	u32 key = t->id, *others;

	if (!t->requests || !some_answered_by_others)
		return t->requests;
	others = bpf_map_lookup_elem(&answered_by_others, &key);
	return t->requests > (others ? *others : 0);
}

/* It has read one more. */
static __always_inline void has_one_more(struct thread *t, u64 now)
{
	u32 key = t->id;

	if (!serves_now(t)) {
		/* Nothing is open: what the counts were off by ends here. */
		t->requests = 0;
		if (some_answered_by_others)
			bpf_map_delete_elem(&answered_by_others, &key);
	}
	t->requests++;
	if (!t->serves_since)
		t->serves_since = now;
}

static __always_inline void send_request(struct thread *t, u64 sk, struct open_request *open, u32 step, u64 now)
{
	struct holdup_request *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		count_loss(HOLDUP_LOST_REQUESTS);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->head.type = HOLDUP_REQUEST;
	r->head.thread = t->id;
	r->at = now;
	r->connection = sk;
	r->step = step;
	r->weight = open->weight;
	clock_at(&r->clock, t, now);
	if (step == HOLDUP_REQUEST_READ) {
		struct holdup_call call = {};
		struct sock *at = (void *)sk;
		if (BPF_CORE_READ(at, __sk_common.skc_family) != AF_UNIX)
			r->port = BPF_CORE_READ(at, __sk_common.skc_num);
		read_call(&call, current_task());
		/* Only these have the buffer as an argument; a request line is at its beginning, where it is in the clear. */
		if (call.number == __NR_read || call.number == __NR_recvfrom)
			bpf_probe_read_user(r->begins, sizeof(r->begins), (void *)call.args[1]);
	}
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* The same as a function that is verified once. For programs that only kernels are given that tell of traffic (6.3): before 5.12 no such
 * function may have a pointer. */
__noinline int send_request_apart(struct thread *t, u64 sk, struct open_request *open, u32 step, u64 now)
{
	if (t && open)
		send_request(t, sk, open, step, now);
	return 0;
}

/* The server at the other end; null: too many are known. */
static __always_inline struct upstream *upstream_of(struct sock *sk, bool make)
{
	struct upstream_key key = {};
	struct upstream *known, fresh = {};

	key.family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (key.family == AF_INET || key.family == AF_INET6)
		key.port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (key.family == AF_INET)
		BPF_CORE_READ_INTO((u32 *)key.address, sk, __sk_common.skc_daddr);
	else if (key.family == AF_INET6)
		BPF_CORE_READ_INTO(&key.address, sk, __sk_common.skc_v6_daddr);
	known = bpf_map_lookup_elem(&upstreams, &key);
	if (known || !make)
		return known;
	bpf_map_update_elem(&upstreams, &key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&upstreams, &key);
}

/* A question goes out there. More of the same is one question. */
static __always_inline void flight_begins(struct sock *sk, struct question *asked, u64 now)
{
	struct upstream *to = asked->in_flight ? 0 : upstream_of(sk, true);
	u32 in_flight;

	if (!to)
		return;
	__sync_fetch_and_add(&to->asked, 1);
	__sync_fetch_and_add(&to->in_flight, 1);
	in_flight = to->in_flight;
	/* Of two CPUs that both have a most the smaller may stay for a moment. */
	if (in_flight > to->most)
		to->most = in_flight;
	if (!to->since)
		to->since = now;
	__sync_fetch_and_add(&to->begins, now);
	to->pid = bpf_get_current_pid_tgid() >> 32;
	asked->in_flight = 1;
	asked->asked = now;
	some_asked = 1;
}

/* Something of the answer came, or, where `given_up`, none is to come: then what was asked is no question. */
static __always_inline void flight_ends(struct sock *sk, u64 now, bool given_up)
{
	u64 key = (u64)sk;
	struct question *known = some_asked ? bpf_map_lookup_elem(&questions, &key) : 0;
	struct upstream *to = known && known->asked ? upstream_of(sk, false) : 0;

	if (!to)
		return;
	if (known->in_flight) {
		__sync_fetch_and_add(&to->in_flight, (u32)-1);
		__sync_fetch_and_add(&to->begins, -known->asked);
	}
	if (!given_up && now > known->asked)
		__sync_fetch_and_add(&to->ns, now - known->asked);
	known->in_flight = 0;
	known->asked = given_up ? 0 : now;
}

/* Nobody asks it for anything any more. */
static __always_inline void forget_questions(struct thread *t)
{
	for (int i = 0; i < HOLDUP_QUESTIONS; i++) {
		struct question *open = t->asked_on[i] ? bpf_map_lookup_elem(&questions, &t->asked_on[i]) : 0;
		if (open && open->connecting)
			bpf_map_delete_elem(&questions, &t->asked_on[i]);
		else if (open) {
			if (open->in_flight)
				flight_ends((struct sock *)t->asked_on[i], 0, true);
			open->one_way = 1;
		}
		t->asked_on[i] = 0;
	}
}

static __always_inline void remember_question(struct thread *t, u64 key, struct question *asked)
{
	bpf_map_update_elem(&questions, &key, asked, BPF_ANY);
	for (int i = 0; i < HOLDUP_QUESTIONS; i++) {
		if (t->asked_on[i] == key)
			return;
		if (!t->asked_on[i]) {
			t->asked_on[i] = key;
			return;
		}
	}
}

/* It makes a connection, with a request to answer. */
static __always_inline void note_connecting(struct thread *t, struct sock *sk)
{
	struct question fresh = { .inode = inode_of_sock(sk), .thread = t->id, .connecting = 1 };

	remember_question(t, (u64)sk, &fresh);
}

/* It writes to somebody who is no client of its own, with a request to answer. */
static __always_inline void note_question(struct thread *t, struct sock *sk, u64 now)
{
	u64 key = (u64)sk;
	struct question *known, fresh = {};

	/* Who listens to nothing that comes back is told something, and not asked. */
	if ((sk->sk_type != SOCK_STREAM && !asks_names(sk)) || (sk->sk_shutdown & RCV_SHUTDOWN))
		return;
	fresh.inode = inode_of_sock(sk);
	fresh.thread = t->id;
	known = bpf_map_lookup_elem(&questions, &key);
	if (known && known->inode == fresh.inode && !known->connecting) {
		if (known->one_way)
			return;
		fresh.object = known->object;
		fresh.in_flight = known->in_flight;
		fresh.asked = known->asked;
	} else {
		fresh.object = object_of_file((u64)BPF_CORE_READ(sk, sk_socket, file));
	}
	if (!asks_names(sk))
		flight_begins(sk, &fresh, now);
	remember_question(t, key, &fresh);
}

/* Something came back, or never will. */
static __always_inline void drop_question(struct thread *t, u64 key)
{
	struct question *known;

	for (int i = 0; i < HOLDUP_QUESTIONS; i++) {
		if (t->asked_on[i] == key)
			t->asked_on[i] = 0;
	}
	known = bpf_map_lookup_elem(&questions, &key);
	if (known)
		known->one_way = 0;
}

/* At high rates a fair sample is reported, chosen without a look at how long it will take; all are counted. */
static __always_inline u32 weight_of_request(void)
{
	u32 mask = request_mask;

	return mask && (bpf_get_prandom_u32() & mask) ? 0 : mask + 1;
}

static __always_inline void count_untold(const struct open_request *open, u64 now)
{
	u64 took = now > open->began ? now - open->began : 0;

	__sync_fetch_and_add(&untold_requests, 1);
	/* Two CPUs may both have a longest one; the shorter may then stay. */
	if (took > untold_longest)
		untold_longest = took;
}

/* What it does from now on is not for a request. */
static __always_inline void serves_no_more(struct thread *t, u64 now)
{
	add_served(&t->clock, t, now);
	t->serves_since = 0;
}

/* A request is over, by `t`'s doing. */
__noinline int end_request(struct thread *t, u64 sk, struct open_request *found, u32 step, u64 now)
{
	struct open_request open;
	u32 zero = 0, *others;

	if (!t || !found)
		return 0;
	open = *found;
	if (!open.began)
		return 0;
	/* Two threads that answer in the same instant both do (5.10 can't exchange words): user space takes the first, and
	 * the reader's count is put right as it next reads with nothing open. */
	found->began = 0;
	if (t->unix_read == sk)
		t->unix_read = 0;
	if (open.thread == t->id) {
		t->requests -= t->requests > 0;
		if (!t->requests)
			forget_questions(t);
		if (!serves_now(t))
			serves_no_more(t, now);
	} else {
		some_answered_by_others = 1;
		others = bpf_map_lookup_elem(&answered_by_others, &open.thread);
		if (!others) {
			bpf_map_update_elem(&answered_by_others, &open.thread, &zero, BPF_NOEXIST);
			others = bpf_map_lookup_elem(&answered_by_others, &open.thread);
		}
		if (others)
			__sync_fetch_and_add(others, 1);
	}
	if (open.weight)
		send_request_apart(t, sk, &open, step, now);
	else if (step == HOLDUP_REQUEST_ANSWERED)
		count_untold(&open, now);
	return 0;
}

/* The kernel announces no end of a Unix socket. What lies where one was that is closed has another inode, or none. */
static __always_inline bool has_closed_unix(const struct thread *t)
{
	return t->unix_read && inode_of_sock((void *)t->unix_read) != t->unix_inode;
}

/* It has read on a Unix socket. Of several that it closes each is met as the next is read, and the last as it leaves the CPU. */
static __always_inline void note_unix_read(struct thread *t, struct sock *sk, u32 weight, u64 now)
{
	if (t->requests > 1 && !some_answered_by_others && has_closed_unix(t)) {
		struct open_request closed = { .began = now, .thread = t->id, .weight = t->unix_weight };
		end_request(t, t->unix_read, &closed, HOLDUP_REQUEST_DROPPED, now);
	}
	t->unix_read = (u64)sk;
	t->unix_inode = inode_of_sock(sk);
	t->unix_weight = weight;
}

/* It waits for new connections, or has closed the only one that it has read on: what it has read and not answered is not what
 * it works on. */
static __always_inline void leave_requests(struct thread *t, u64 now)
{
	struct open_request all = { .thread = t->id };

	if (!t->requests)
		return;
	if (t->call.number != __NR_accept && t->call.number != __NR_accept4 && (t->requests > 1 || !has_closed_unix(t)))
		return;
	t->unix_read = 0;
	t->requests = 0;
	forget_questions(t);
	t->serves_since = 0;
	bpf_map_delete_elem(&answered_by_others, &all.thread);
	send_request(t, 0, &all, HOLDUP_REQUESTS_LEFT, now);
}

/* Something was read on an accepted connection: whether that begins a request. */
static __always_inline bool note_read(struct thread *t, u64 key, struct open_request *open, u64 now)
{
	if (open->began) {
		if (open->thread == t->id && open->blockings != t->blockings) {
			open->blockings = t->blockings;
			if (open->weight)
				send_request_apart(t, key, open, HOLDUP_REQUEST_READ_ON, now);
			else
				open->began = now; /* user space would say whether it begins here; this is the shorter */
		}
		return false;
	}
	open->began = now;
	open->thread = t->id;
	open->weight = weight_of_request();
	open->blockings = t->blockings;
	if (open->weight)
		send_request_apart(t, key, open, HOLDUP_REQUEST_READ, now);
	has_one_more(t, now);
	return true;
}

static __always_inline void request_received(struct thread *t, struct sock *sk, struct kept_socket *kept, u64 now)
{
	u64 key = number_of(kept, sk);

	if (is_accepted(kept, sk)) {
		if (note_read(t, key, &kept->request, now) && sk->__sk_common.skc_family == AF_UNIX)
			note_unix_read(t, sk, kept->request.weight, now);
	} else {
		flight_ends(sk, now, false);
		if (t->requests)
			drop_question(t, key);
	}
}

static __always_inline void request_sent(struct thread *t, struct sock *sk, struct kept_socket *kept, u64 now)
{
	if (kept->request.began)
		end_request(t, number_of(kept, sk), &kept->request, HOLDUP_REQUEST_ANSWERED, now);
	else if (t->requests && !is_accepted(kept, sk))
		note_question(t, sk, now);
}

/* The subject closes a connection: what was asked there and not answered takes until now. */
static __always_inline void note_end_of_questions(struct sock *sk)
{
	u64 key = (u64)sk;
	struct question *known = some_asked ? bpf_map_lookup_elem(&questions, &key) : 0;

	if (!known)
		return;
	if (known->in_flight)
		flight_ends(sk, bpf_ktime_get_ns(), false);
	known->asked = 0;
}

static __always_inline struct thread *serving_thread(void)
{
	struct thread *t = frozen ? 0 : thread_of(current_task());

	return t && t->phase == HOLDUP_RUNNING && t->role == HOLDUP_ROLE_SUBJECT ? t : 0;
}

/* A server that makes a connection for a request waits for it; one that closes a connection has no more to say there. Of a Unix
 * socket the kernel announces no end. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_request_dropped, struct sock *sk, int before, int after)
{
	struct kept_socket *kept;
	struct thread *t;
	u64 key = (u64)sk;

	if (after == TCP_SYN_SENT) {
		t = serving_thread();
		if (t && t->requests)
			note_connecting(t, sk);
		return 0;
	}
	/* It is refused or given up, wherever that is noticed; one that is made is a connection on which nothing was asked yet. */
	if (before == TCP_SYN_SENT)
		bpf_map_delete_elem(&questions, &key);
	if (!(after == TCP_FIN_WAIT1 || after == TCP_LAST_ACK || after == TCP_CLOSE))
		return 0;
	t = serving_thread();
	/* Where it ends in an interrupt, nobody of the subject closes it: the subject reads its end. */
	if (!t)
		return 0;
	note_end_of_questions(sk);
	if (!t->requests)
		return 0;
	kept = known_socket(sk);
	if (!kept)
		return 0;
	if (kept->request.began)
		end_request(t, number_of(kept, sk), &kept->request, HOLDUP_REQUEST_DROPPED, bpf_ktime_get_ns());
	else
		drop_question(t, (u64)sk);
	return 0;
}

#endif
