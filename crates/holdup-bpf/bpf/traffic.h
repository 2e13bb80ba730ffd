/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the subject sends and receives on sockets, whichever call does it: one program each way, because each costs a busy
 * server about as much to enter as what it does. The requests of requests.h, the conversations of churn.h and the questions of
 * names.h are reported here.
 */
#ifndef HOLDUP_TRAFFIC_H
#define HOLDUP_TRAFFIC_H

#include "churn.h"
#include "datagrams.h"
#include "names.h"

static __always_inline int note_traffic(struct sock *sk, int bytes, bool received)
{
	struct kept_socket *kept;
	struct thread *t;
	u64 now;

	if (bytes <= 0)
		return 0;
	u32 adopted = *(volatile u32 *)&adoptions;
	t = serving_thread();
	if (!t) {
		if (!thread_of(current_task()))
			is_not_ours(adopted);
		return 0;
	}
	kept = socket_entry(sk);
	if (!kept) {
		count_loss(HOLDUP_LOST_REQUESTS);
		return 0;
	}
	now = bpf_ktime_get_ns();
	if (kept->conversation.began)
		note_conversation(t, number_of(kept, sk), &kept->conversation, received ? -(s64)bytes : bytes, now);
	if (received)
		request_received(t, sk, kept, now);
	else
		request_sent(t, sk, kept, now);
	if (!received && sk->sk_protocol == IPPROTO_UDP)
		note_datagram(number_of(kept, sk), bytes, now);
	count_cost(now);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_received, struct sock *sk, int ret, int flags)
{
	return !may_be_ours() || (flags & MSG_PEEK) ? 0 : note_traffic(sk, ret, true);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_sent, struct sock *sk, int ret, int flags)
{
	if (!may_be_ours())
		return 0;
	if (ret > 0 && !frozen && sk->sk_protocol == IPPROTO_UDP)
		send_question(sk, ret);
	return note_traffic(sk, ret, false);
}

#endif
