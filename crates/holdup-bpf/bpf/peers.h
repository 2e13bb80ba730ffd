/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Who sends to a local socket. What one program sends to another on the same machine arrives in a soft interrupt,
 * which the kernel serves at once, on top of the sender. So the task under a soft interrupt is the waker if, and
 * only if, it is in a system call on the other end of the connection that the woken thread waits on; else it is a
 * bystander.
 */
#ifndef HOLDUP_PEERS_H
#define HOLDUP_PEERS_H

#include "interrupts.h"
#include "objects.h"

#define __NR_write 1
#define __NR_writev 20
#define __NR_sendto 44
#define __NR_sendmsg 46
#define __NR_sendmmsg 307
#define TCP_FIN_WAIT1 4
#define TCP_CLOSE 7
#define TCP_LAST_ACK 9

struct ends { u32 address; u16 port; u32 peer_address; u16 peer_port; u16 family; };

/* A connection that is being closed on this CPU, and by whom: its descriptor is gone by then. */
struct closing { u64 task; struct ends ends; };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct closing);
} closings SEC(".maps");

static __always_inline void ends_of(struct ends *e, const struct sock *sk)
{
	e->address = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	e->port = BPF_CORE_READ(sk, __sk_common.skc_num);
	e->peer_address = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	e->peer_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	e->family = BPF_CORE_READ(sk, __sk_common.skc_family);
}

/* Whether what `from` sends arrives at `to`. A listener, and a datagram socket that is not connected, name no peer;
 * then the other must. */
static __always_inline bool reaches(const struct ends *from, const struct ends *to)
{
	bool internet = (from->family == AF_INET || from->family == AF_INET6) && (to->family == AF_INET || to->family == AF_INET6);
	if (!internet || !from->port || (!from->peer_port && !to->peer_port))
		return false;
	/* A connection whose other end has just closed has given its own port back already. */
	if (from->peer_port && to->port && from->peer_port != to->port)
		return false;
	if (!to->port && !to->peer_port)
		return false;
	if (to->peer_port && to->peer_port != from->port)
		return false;
	/* Between the families an address may be mapped: the ports decide. */
	if (from->family != AF_INET || to->family != AF_INET)
		return true;
	if (from->peer_address && to->address && from->peer_address != to->address)
		return false;
	return !to->peer_address || !from->address || to->peer_address == from->address;
}

static __always_inline struct sock *sock_of_file(struct file *file)
{
	struct inode *inode;
	struct socket *socket;

	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	if (!inode || (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFSOCK || BPF_CORE_READ(inode, i_sb, s_magic) != SOCKFS_MAGIC)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

static __always_inline bool is_send(s32 number)
{
	return number == __NR_write || number == __NR_writev || number == __NR_sendto || number == __NR_sendmsg ||
	       number == __NR_sendmmsg;
}

/* Whether the task that runs here, under a soft interrupt, is in a call on the other end of the socket behind
 * `file`: it sends, or makes room by receiving, or connects, or closes. */
__noinline int current_moves(u64 file_address)
{
	u32 zero = 0;
	struct task_struct *current = current_task();
	struct closing *closing = bpf_map_lookup_elem(&closings, &zero);
	struct sock *awaited = sock_of_file((void *)file_address), *own;
	struct ends from = {}, to = {};
	struct holdup_call call;

	if (!awaited || (OF(current, flags) & PF_KTHREAD))
		return 0;
	ends_of(&to, awaited);
	if (closing && closing->task == (u64)current && reaches(&closing->ends, &to))
		return 1;
	read_call(&call, current);
	if (!first_is_descriptor(call.number))
		return 0;
	own = sock_of_file(file_of(current, (u32)call.args[0]));
	if (!own || own == awaited)
		return 0;
	ends_of(&from, own);
	/* A socket without a peer moves data towards somebody only by sending. */
	if (!from.peer_port && !is_send(call.number))
		return 0;
	return reaches(&from, &to);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_socket_state, const struct sock *sk, int before, int after)
{
	u32 zero = 0;
	struct closing *closing;

	if (frozen || !(after == TCP_FIN_WAIT1 || after == TCP_LAST_ACK || after == TCP_CLOSE))
		return 0;
	closing = bpf_map_lookup_elem(&closings, &zero);
	if (!closing || served_here())
		return 0;
	ends_of(&closing->ends, sk);
	closing->task = bpf_get_current_task();
	return 0;
}

#endif
