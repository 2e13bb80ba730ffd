/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which names are asked for, of which name server: questions over UDP, as their beginning was sent. What they hold is the
 * observed program's choice.
 *
 * Where the kernel announces what is sent on sockets, a question is read from the sender's memory (traffic.h calls
 * send_question); else from every packet that goes to a device, which costs a busy machine more.
 */
#ifndef HOLDUP_NAMES_H
#define HOLDUP_NAMES_H

#include "waits.h"

#define DNS_PORT 53
#define SOCK_DGRAM 2
#define UDP_HEADER 8
#define ETHERTYPE_IPV6 0x86dd
#define __NR_read 0
#define __NR_readv 19
#define __NR_recvfrom 45
#define __NR_recvmsg 47
/* Of struct user_msghdr, bytes: the same in every 64-bit process. struct mmsghdr begins with one. */
#define MSGHDR_NAME 0
#define MSGHDR_IOV 16
#define SOCKADDR_IN_ADDRESS 4
#define SOCKADDR_IN6_ADDRESS 8

struct user_iovec { u64 base; u64 len; };

/* Where the bytes are that were just sent or received, and how many of them lie there in one piece. Of several messages, the
 * first's. */
static __always_inline u64 buffer_of(const struct holdup_call *call, u32 *len)
{
	struct user_iovec first = {};
	u64 at = call->args[1];

	switch (call->number) {
	case __NR_read:
	case __NR_write:
	case __NR_recvfrom:
	case __NR_sendto:
		return at;
	case __NR_sendmsg:
	case __NR_recvmsg:
	case __NR_sendmmsg:
		if (bpf_probe_read_user(&at, sizeof(at), (void *)(at + MSGHDR_IOV)))
			return 0;
		break;
	case __NR_readv:
	case __NR_writev:
		break;
	default:
		return 0;
	}
	if (bpf_probe_read_user(&first, sizeof(first), (void *)at))
		return 0;
	if (first.len < *len)
		*len = first.len;
	return first.base;
}

static __always_inline struct holdup_question *new_question(u64 inode, u16 family)
{
	struct holdup_question *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		count_loss(HOLDUP_LOST_OBJECTS);
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->head.type = HOLDUP_NAME_ASKED;
	r->at = bpf_ktime_get_ns();
	r->inode = inode;
	r->port = DNS_PORT;
	r->family = family;
	return r;
}

/* Whether a socket is of no use but to ask a name server. */
static __always_inline bool asks_names(const struct sock *sk)
{
	return sk->sk_type == SOCK_DGRAM && BPF_CORE_READ(sk, __sk_common.skc_dport) == bpf_htons(DNS_PORT);
}

/* Where to a datagram goes that is sent on a socket without a peer: as in struct sockaddr_in and sockaddr_in6. */
struct destination { u16 family; __be16 port; u8 rest[24]; };

static __always_inline bool named_destination(const struct holdup_call *call, struct destination *to)
{
	u64 named = 0;

	/* The fifth argument of a 64-bit process. */
	if (call->number == __NR_sendto)
		named = fifth_argument(regs_of(current_task()));
	else if (call->number != __NR_sendmsg && call->number != __NR_sendmmsg)
		return false;
	else if (bpf_probe_read_user(&named, sizeof(named), (void *)(call->args[1] + MSGHDR_NAME)))
		return false;
	return !bpf_probe_read_user(to, sizeof(*to), (void *)named);
}

/* The task that runs here has just sent `bytes` on a UDP socket. */
static __always_inline void send_question(struct sock *sk, u32 bytes)
{
	struct destination to = {};
	struct task_struct *task = current_task();
	struct holdup_call call = {};
	struct holdup_question *r;
	u64 buffer, inode;
	bool connected = BPF_CORE_READ(sk, __sk_common.skc_dport) != 0;

	if (connected && BPF_CORE_READ(sk, __sk_common.skc_dport) != bpf_htons(DNS_PORT))
		return;
	if (!thread_of(task))
		return;
	read_call(&call, task);
	if (!connected && (!named_destination(&call, &to) || to.port != bpf_htons(DNS_PORT)))
		return;
	buffer = buffer_of(&call, &bytes);
	inode = BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
	if (!buffer || !inode)
		return;
	r = new_question(inode, connected ? BPF_CORE_READ(sk, __sk_common.skc_family) : to.family);
	if (!r)
		return;
	if (!connected)
		__builtin_memcpy(r->server, (u8 *)&to + (to.family == AF_INET6 ? SOCKADDR_IN6_ADDRESS : SOCKADDR_IN_ADDRESS), 16);
	else if (r->family == AF_INET6)
		BPF_CORE_READ_INTO(&r->server, sk, __sk_common.skc_v6_daddr);
	else
		BPF_CORE_READ_INTO((u32 *)r->server, sk, __sk_common.skc_daddr);
	if (bytes > HOLDUP_QUESTION)
		bytes = HOLDUP_QUESTION;
	barrier_var(bytes);
	if (bytes >= 1 && bytes <= HOLDUP_QUESTION && !bpf_probe_read_user(r->message, bytes, (void *)buffer))
		r->len = bytes;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* A question to a name server, as it goes to the device. It may wait there for the neighbour's address, so the task
 * that runs need not be the one that asks: the socket's inode says whose it is. */
SEC("tp_btf/net_dev_queue")
int BPF_PROG(on_packet, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	u16 ports[2] = {};

	if (!sk || sk->sk_protocol != IPPROTO_UDP || frozen)
		return 0;
	u8 *head = skb->head, *transport = head + skb->transport_header, *network = head + skb->network_header;
	if (bpf_probe_read_kernel(ports, sizeof(ports), transport) || ports[1] != bpf_htons(DNS_PORT))
		return 0;
	if (!(served_here() & SERVES_SOFT) && !thread_of(current_task()))
		return 0;
	u64 inode = BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
	u32 linear = skb->len - skb->data_len;
	u32 before = transport + UDP_HEADER - (u8 *)skb->data;
	if (!inode || before >= linear)
		return 0;
	u32 len = linear - before;
	if (len > HOLDUP_QUESTION)
		len = HOLDUP_QUESTION;
	bool six = skb->protocol == bpf_htons(ETHERTYPE_IPV6);
	struct holdup_question *r = new_question(inode, six ? AF_INET6 : AF_INET);
	if (!r)
		return 0;
	if (six)
		bpf_probe_read_kernel(r->server, 16, network + 24);
	else
		bpf_probe_read_kernel(r->server, 4, network + 16);
	if (len >= 1 && !bpf_probe_read_kernel(r->message, len, transport + UDP_HEADER))
		r->len = len;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
