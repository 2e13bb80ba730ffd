/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the network says about a wait: the state of its TCP connection as it began and as it ended, connections
 * that were asked for and what became of them. Looked at for sockets only, and
 * reported of waits that were long. What peers and names are is the observed programs' and their peers' choice.
 */
#ifndef HOLDUP_NETWORK_H
#define HOLDUP_NETWORK_H

#include "interrupts.h"

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_CLOSE 7
#define TCP_CLOSE_WAIT 8
#define TCP_NAGLE_OFF 1
#define TSQ_THROTTLED 1       /* bit of sk_tsq_flags: the device's queue has as much of it as it may have */
#define PACED_BY_QUEUE 2      /* sk_pacing_status: SK_PACING_FQ */
#define LIMITED_BY_WINDOW 2   /* chrono_type: TCP_CHRONO_RWND_LIMITED */
#define EADDRNOTAVAIL 99
#define TCP_MIN_REPORTED_NS 1000000 /* ns: of shorter waits the connection's state is not reported */

/* Connections under way: who asked for them, and when. */
struct asked_connection { u64 began; u32 thread; u32 zero; };
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64); /* the socket's address */
	__type(value, struct asked_connection);
} connecting SEC(".maps");

/* The TCP socket behind a file; 0: it is none. */
__noinline u64 tcp_behind(u64 file_address)
{
	struct file *file = (void *)file_address;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	if (!inode || (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	if (!sk || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	return family == AF_INET || family == AF_INET6 ? (u64)sk : 0;
}

/* How long the receiver's window was all that kept it from sending, as the kernel counts it, in its ticks. */
static __always_inline u32 limited_by_window(struct tcp_sock *tp, u32 now)
{
	u32 ticks = BPF_CORE_READ(tp, chrono_stat[LIMITED_BY_WINDOW - 1]);
	if (BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type) == LIMITED_BY_WINDOW)
		ticks += now - BPF_CORE_READ(tp, chrono_start);
	return ticks;
}

/* As the wait begins: what is still to be sent, and whether it may be. */
static __always_inline void note_tcp(struct thread *t, struct sock *sk)
{
	struct tcp_sock *tp = (void *)sk;
	u32 una = BPF_CORE_READ(tp, snd_una), next = BPF_CORE_READ(tp, snd_nxt);

	t->tcp = (u64)sk;
	t->tcp_unsent = BPF_CORE_READ(tp, write_seq) - next;
	t->tcp_unacked = next - una;
	t->tcp_window = BPF_CORE_READ(tp, snd_wnd);
	t->tcp_retransmitted = BPF_CORE_READ(tp, total_retrans);
	t->tcp_no_delay = (BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle) & TCP_NAGLE_OFF) != 0;
	/* What the queue itself paces stands there because it is not yet time to send it. */
	t->tcp_throttled = (BPF_CORE_READ(sk, sk_tsq_flags) & TSQ_THROTTLED) && BPF_CORE_READ(sk, sk_pacing_status) != PACED_BY_QUEUE;
	t->tcp_una = una;
	t->tcp_began = bpf_jiffies64();
	t->tcp_limited = limited_by_window(tp, t->tcp_began);
}

/* The socket lives as long as the call that waits on it. */
static __always_inline void send_tcp(const struct thread *t, u32 seq)
{
	struct sock *sk = (void *)t->tcp;
	struct tcp_sock *tp = (void *)sk;
	struct inet_connection_sock *icsk = (void *)sk;
	struct holdup_tcp *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		count_loss(HOLDUP_LOST_STACKS);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->head.type = HOLDUP_TCP;
	r->head.thread = t->id;
	r->seq = seq;
	r->began_unsent = t->tcp_unsent;
	r->began_unacked = t->tcp_unacked;
	r->began_window = t->tcp_window;
	r->no_delay = t->tcp_no_delay;
	r->throttled = t->tcp_throttled;
	u32 now = bpf_jiffies64();
	r->lasted = now - t->tcp_began;
	r->limited = limited_by_window(tp, now) - t->tcp_limited;
	r->acked = BPF_CORE_READ(tp, snd_una) - t->tcp_una;
	r->round_trip = BPF_CORE_READ(tp, srtt_us) >> 3;
	r->segment = BPF_CORE_READ(tp, mss_cache);
	r->unacked = BPF_CORE_READ(tp, snd_nxt) - BPF_CORE_READ(tp, snd_una);
	r->window = BPF_CORE_READ(tp, snd_wnd);
	r->retransmitted = BPF_CORE_READ(tp, total_retrans) - t->tcp_retransmitted;
	r->unanswered = BPF_CORE_READ(icsk, icsk_retransmits);
	r->probes = BPF_CORE_READ(icsk, icsk_probes_out);
	r->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	struct net_device *device = BPF_CORE_READ(sk, sk_dst_cache, dev);
	if (device)
		bpf_probe_read_kernel_str(r->device, sizeof(r->device), device->name);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* Connections as they are asked for, made, refused or given up. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_connection, const struct sock *sk, int before, int after)
{
	u64 key = (u64)sk;

	if (frozen)
		return 0;
	if (after == TCP_SYN_SENT) {
		struct thread *t = thread_of(current_task());
		if (!t)
			return 0;
		struct asked_connection asked = { .began = bpf_ktime_get_ns(), .thread = t->id };
		bpf_map_update_elem(&connecting, &key, &asked, BPF_ANY);
		return 0;
	}
	if (before != TCP_SYN_SENT)
		return 0;
	struct asked_connection *asked = bpf_map_lookup_elem(&connecting, &key);
	if (!asked)
		return 0;
	struct holdup_connection *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (r) {
		__builtin_memset(r, 0, sizeof(*r));
		r->head.type = HOLDUP_CONNECTION;
		r->head.thread = asked->thread;
		r->began = asked->began;
		r->at = bpf_ktime_get_ns();
		r->family = sk->__sk_common.skc_family;
		r->port = bpf_ntohs(sk->__sk_common.skc_dport);
		r->made = after == TCP_ESTABLISHED;
		r->error = sk->sk_err;
		/* The kernel looks for a local port after it has noted that a connection is asked for. Where it finds none the socket
		 * has no error of its own; one that the program gives up has had a port, which stays written in it. */
		if (!r->made && !r->error && !BPF_CORE_READ((const struct inet_sock *)sk, inet_sport))
			r->error = EADDRNOTAVAIL;
		if (r->family == AF_INET6) {
			BPF_CORE_READ_INTO(&r->peer, sk, __sk_common.skc_v6_daddr);
		} else {
			u32 peer = sk->__sk_common.skc_daddr;
			__builtin_memcpy(r->peer, &peer, 4);
		}
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	} else {
		count_loss(HOLDUP_LOST_OBJECTS);
	}
	bpf_map_delete_elem(&connecting, &key);
	return 0;
}

#endif
