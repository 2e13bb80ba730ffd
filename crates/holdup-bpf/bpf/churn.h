/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is made anew and soon gone again: who makes threads, processes and connections (a user stack now and then), how
 * many questions a connection carries before it is closed and by whom, and what its first record in each direction is,
 * where that is the beginning of a TLS handshake in the clear.
 *
 * Only of connections that are made under observation. A question goes the way of the client: from whoever asked for the
 * connection.
 */
#ifndef HOLDUP_CHURN_H
#define HOLDUP_CHURN_H

#include "requests.h"
#include "names.h"

#define TCP_SYN_RECV 3
#define TCP_CLOSE_WAIT 8
#define TLS_HANDSHAKE 0x16      /* type of a record; its next byte is 3 in every version */
#define TLS_MAJOR 3
#define TLS_RECORD_HEAD 5
#define TLS_ALERT 0x15
#define TLS_DATA 0x17
#define TLS_SEALED_ALERT 19     /* bytes of an alert (2) as TLS 1.3 hides it, with its type (1) and a tag (16), */
#define TLS_PADDED_ALERT 35     /* and as Java's does, which adds 16 zeros */
#define TLS_CHANGE_CIPHER 6     /* bytes of a record that changes the cipher: some clients of TLS 1.3 send it by itself */
#define MAKER_EVERY 50000000    /* ns: 20 stacks a second and kind cost some 0.1 % of a CPU to unwind */

u64 maker_due[HOLDUP_MADE_KINDS] = {}; /* when the next stack of each kind may be taken */

/* Called as the maker itself. */
static __always_inline void send_maker(const struct thread *t, struct task_struct *task, u32 what, u64 connection)
{
	u64 now = bpf_ktime_get_ns();
	struct holdup_memory *m;

	/* Two CPUs may both take one; that does no harm. */
	if (t->role != HOLDUP_ROLE_SUBJECT || now < maker_due[what])
		return;
	maker_due[what] = now + MAKER_EVERY;
	struct holdup_regs regs;
	copy_regs(&regs, regs_of(task));
	m = bpf_ringbuf_reserve(&records, sizeof(*m), 0);
	if (!m) {
		count_loss(HOLDUP_LOST_STACKS);
		return;
	}
	__builtin_memset(m, 0, __builtin_offsetof(struct holdup_memory, stack));
	m->head.type = HOLDUP_MADE_BY;
	m->head.thread = t->id;
	m->at = now;
	m->seq = what;
	m->weight = connection;
	m->pid = OF(task, tgid);
	m->tid = OF(task, pid);
	m->regs = regs;
	copy_stack(m, -1, 0);
	bpf_ringbuf_submit(m, BPF_RB_NO_WAKEUP);
}

static __always_inline void send_conversation(u64 key, const struct sock *sk, const struct conversation *c, u32 step, u64 now)
{
	struct holdup_conversation *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		count_loss(HOLDUP_LOST_CONNECTIONS);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->head.type = HOLDUP_CONVERSATION;
	r->head.thread = c->thread;
	r->connection = key;
	r->began = c->began;
	r->made = c->made;
	r->at = now;
	r->second_began = c->second_began;
	r->second_answered = c->second_answered;
	r->third_began = c->third_began;
	r->turns = c->turns;
	r->second = c->second;
	r->step = step;
	r->accepted = c->accepted;
	r->closer = c->closer;
	r->port = c->port;
	r->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	/* Of an accepted one its own end: that is what is served. */
	if (c->accepted) {
		if (r->family == AF_INET6)
			BPF_CORE_READ_INTO(&r->end, sk, __sk_common.skc_v6_rcv_saddr);
		else
			BPF_CORE_READ_INTO((u32 *)r->end, sk, __sk_common.skc_rcv_saddr);
	} else {
		if (r->family == AF_INET6)
			BPF_CORE_READ_INTO(&r->end, sk, __sk_common.skc_v6_daddr);
		else
			BPF_CORE_READ_INTO((u32 *)r->end, sk, __sk_common.skc_daddr);
	}
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_conversation, struct sock *sk, int before, int after)
{
	struct kept_socket *kept;
	struct conversation *c;
	u64 key = (u64)sk, now;

	if (frozen || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	if (after == TCP_SYN_SENT) {
		struct task_struct *task = current_task();
		struct thread *t = thread_of(task);
		if (!t || t->role != HOLDUP_ROLE_SUBJECT)
			return 0;
		kept = socket_entry(sk);
		if (!kept) {
			count_loss(HOLDUP_LOST_CONNECTIONS);
			return 0;
		}
		struct conversation fresh = { .began = bpf_ktime_get_ns(), .thread = t->id };
		fresh.port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
		kept->conversation = fresh;
		send_maker(t, task, HOLDUP_MADE_CONNECTION, key);
		return 0;
	}
	if (after == TCP_ESTABLISHED && before == TCP_SYN_RECV) {
		u32 port = BPF_CORE_READ(sk, __sk_common.skc_num);
		if (!bpf_map_lookup_elem(&served_ports, &port))
			return 0;
		kept = socket_entry(sk);
		if (!kept) {
			count_loss(HOLDUP_LOST_CONNECTIONS);
			return 0;
		}
		now = bpf_ktime_get_ns();
		struct conversation fresh = { .began = now, .made = now, .accepted = 1, .port = port };
		kept->conversation = fresh;
		return 0;
	}
	kept = known_socket(sk);
	if (!kept || !kept->conversation.began)
		return 0;
	c = &kept->conversation;
	if (after == TCP_ESTABLISHED) {
		now = bpf_ktime_get_ns();
		c->made = now;
		c->reported = 1;
		send_conversation(key, sk, c, HOLDUP_CONVERSATION_MADE, now);
		return 0;
	}
	if (before == TCP_ESTABLISHED)
		c->closer = after == TCP_CLOSE_WAIT ? HOLDUP_CLOSED_BY_PEER : HOLDUP_CLOSED_HERE;
	/* While its peer alone has closed, what came before that may not have been read. */
	if (after != TCP_LAST_ACK && after != TCP_CLOSE)
		return 0;
	if (c->reported)
		send_conversation(key, sk, c, HOLDUP_CONVERSATION_CLOSED, bpf_ktime_get_ns());
	c->began = 0;
	return 0;
}

/* The next piece of the first record of one direction. A record may be read in pieces: its head, then the rest. */
static __always_inline void send_hello(struct sock *sk, struct conversation *c, struct hello *h, const struct thread *t,
				       struct task_struct *task, u32 len, u32 answer, u64 now)
{
	u32 whole = len, before = h->copied;
	u64 key = (u64)sk;
	struct holdup_hello *r;

	if (before >= HOLDUP_HELLO_MOST)
		return;
	struct holdup_call call = {};
	read_call(&call, task);
	u64 buffer = buffer_of(&call, &len);
	if (!before) {
		u8 head[TLS_RECORD_HEAD];
		if (!buffer || len < sizeof(head) || bpf_probe_read_user(head, sizeof(head), (void *)buffer) ||
		    head[0] != TLS_HANDSHAKE || head[1] != TLS_MAJOR) {
			c->opaque = 1;
			return;
		}
		u32 wanted = TLS_RECORD_HEAD + ((u32)head[3] << 8 | head[4]);
		/* Up to TLS 1.2 it may be the next message that tells: its type is enough. */
		if (answer)
			wanted += TLS_RECORD_HEAD + 1;
		h->wanted = wanted > HOLDUP_HELLO_MOST ? HOLDUP_HELLO_MOST : wanted;
	}
	if (!buffer) {
		h->whole = 1;
		return;
	}
	u32 room = HOLDUP_HELLO_MOST - before;
	if (len > room)
		len = room;
	/* Described, if it is new, before the record that refers to it is begun. */
	u32 object = object_of_file((u64)BPF_CORE_READ(sk, sk_socket, file));
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		count_loss(HOLDUP_LOST_CONNECTIONS);
		h->whole = 1;
		return;
	}
	r->head.type = HOLDUP_HELLO;
	r->head.thread = t->id;
	r->connection = key;
	r->at = now;
	r->answer = answer;
	r->offset = before;
	r->object = object;
	r->len = len;
	barrier_var(len);
	if (bpf_probe_read_user(r->bytes, len & HOLDUP_HELLO_MOST, (void *)buffer))
		r->len = 0;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	h->copied = before + len;
	h->whole = h->copied >= h->wanted || len < whole;
}

/* Whether what follows an answer is a question: the alert that ends a TLS connection is none. Up to TLS 1.2 its type says so; of TLS 1.3
 * its length is all there is, so that it is taken for a question after all where an answer and another question come behind it. */
static __always_inline bool is_question(struct conversation *c, struct task_struct *task, u32 bytes, bool received)
{
	u8 head[TLS_RECORD_HEAD] = {}, rest = c->rest;
	struct holdup_call call = {};
	u32 len = bytes;

	c->rest = 0;
	if (c->ended || (rest && received && bytes == rest))
		return false;
	read_call(&call, task);
	u64 buffer = buffer_of(&call, &len);
	if (buffer && len >= sizeof(head))
		bpf_probe_read_user(head, sizeof(head), (void *)buffer);
	if (head[0] == TLS_ALERT && head[1] == TLS_MAJOR) {
		c->ended = received;
		return false;
	}
	if (c->perhaps_ended && c->answered_since)
		c->turns++;
	c->answered_since = 0;
	c->perhaps_ended = head[0] == TLS_DATA && head[1] == TLS_MAJOR && !head[3] &&
			   (head[4] == TLS_SEALED_ALERT || head[4] == TLS_PADDED_ALERT);
	if (c->perhaps_ended && bytes == sizeof(head))
		c->rest = head[4];
	return !c->perhaps_ended;
}

/* `carried`: how many bytes, and whether they were received. Verified once, as send_request_apart. */
__noinline int note_conversation(const struct thread *t, u64 key, struct conversation *c, s64 carried, u64 now)
{
	struct task_struct *task = current_task();
	struct sock *sk = (struct sock *)key;
	bool received = carried < 0;
	int bytes = received ? -carried : carried;

	if (!t || !c)
		return 0;
	if (!c->reported) {
		c->thread = t->id;
		c->reported = 1;
		send_conversation(key, sk, c, HOLDUP_CONVERSATION_MADE, now);
	}
	u32 answer = received != (c->accepted != 0);
	if (!answer && c->answering && !c->opaque && !is_question(c, task, bytes, received))
		return 0;
	if (answer) {
		c->answered_since = 1;
		c->answering = 1;
		if (c->turns == 2)
			c->second_answered = now;
	} else {
		u32 turns = c->turns, before = c->second;
		bool turned = !turns || c->answering;
		if (turned) {
			c->turns = ++turns;
			if (turns == 2)
				c->second_began = now;
			else if (turns == 3)
				c->third_began = now;
			c->answering = 0;
		}
		if (turns == 2)
			c->second += bytes;
		/* With what follows a change of the cipher a handshake may be over that was not with that alone. */
		if (!c->opaque && !c->accepted &&
		    ((turned && (turns == 2 || turns == 3)) || (turns == 2 && before <= TLS_CHANGE_CIPHER)))
			send_conversation(key, sk, c, HOLDUP_CONVERSATION_TURNED, now);
	}
	if (c->turns == 1 && !c->opaque) {
		if (answer && !c->answer.whole)
			send_hello(sk, c, &c->answer, t, task, bytes, 1, now);
		else if (!answer && !c->question.whole)
			send_hello(sk, c, &c->question, t, task, bytes, 0, now);
	}
	return 0;
}

#endif
