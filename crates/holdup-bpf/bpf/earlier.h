/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What was asked before anybody looked: connections of the subject that have been read from, or written to, and where the
 * other has not followed.
 *
 * User space puts processes into `wanted` and runs look_at_file once over all open files. TCP only: the kernel notes when
 * it last sent and last received there. Who reads is not noted; user space finds that out, or leaves it.
 */
#ifndef HOLDUP_EARLIER_H
#define HOLDUP_EARLIER_H

#include "adopt.h"
#include "requests.h"

SEC("iter/task_file")
int look_at_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct kept_socket *kept;
	struct holdup_earlier *e;
	u32 pid, *role;
	u64 key, now;

	if (!task || !file || frozen)
		return 0;
	pid = task->tgid;
	role = bpf_map_lookup_elem(&wanted, &pid);
	if (!role || *role != HOLDUP_ROLE_SUBJECT)
		return 0;
	struct sock *sk = (struct sock *)tcp_behind((u64)BPF_CORE_READ(ctx, file));
	struct tcp_sock *tp = (void *)sk;
	struct inet_connection_sock *icsk = (void *)sk;
	if (!sk)
		return 0;
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT)
		return 0;
	u32 received = BPF_CORE_READ(tp, data_segs_in), sent = BPF_CORE_READ(tp, data_segs_out);
	u32 last_received = BPF_CORE_READ(icsk, icsk_ack.lrcvtime), last_sent = BPF_CORE_READ(tp, lsndtime);
	bool unread = BPF_CORE_READ(tp, rcv_nxt) != BPF_CORE_READ(tp, copied_seq);
	u32 port = BPF_CORE_READ(sk, __sk_common.skc_num);
	bool accepted = bpf_map_lookup_elem(&served_ports, &port) != 0;
	s32 later = last_received - last_sent;
	if (accepted ? !received || unread || (sent && later <= 0) : !sent || unread || (received && later >= 0))
		return 0;
	now = bpf_ktime_get_ns();
	key = (u64)sk;
	if (accepted) {
		/* The helper gives what this program may keep something with. */
		if (HAVE_TASK_STORAGE) {
			struct socket *socket = bpf_sock_from_file(file);
			if (!socket || !socket->sk)
				return 0;
			kept = socket_entry(socket->sk);
		} else {
			kept = socket_entry(sk);
		}
		/* Already seen, or open in another process, too. */
		if (!kept || kept->request.began)
			return 0;
		kept->request.began = now;
		kept->request.weight = 1;
	}
	e = bpf_ringbuf_reserve(&records, sizeof(*e), 0);
	if (!e) {
		count_loss(HOLDUP_LOST_REQUESTS);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->head.type = HOLDUP_EARLIER;
	e->at = now;
	e->connection = key;
	e->inode = BPF_CORE_READ(file, f_inode, i_ino);
	e->pid = pid;
	e->accepted = accepted;
	e->first = accepted ? !sent : !received;
	e->ago = (u32)bpf_jiffies64() - (accepted ? last_received : last_sent);
	e->gap = later < 0 ? -later : later;
	e->received = received;
	e->sent = sent;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
