/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is kept of each socket on which the subject sends or receives: whether somebody was accepted there, the request
 * that is open there, and how a connection that was made under observation went so far.
 *
 * It hangs on the socket itself and goes with it: one look a send or receive, however many connections there are, and
 * a socket whose memory is used again begins with nothing. The kernel counts these bytes as the socket's own options
 * (net.core.optmem_max); where that is used up, nothing is kept of it.
 */
#ifndef HOLDUP_SOCKETS_H
#define HOLDUP_SOCKETS_H

#include "waits.h"

#define MOST_CONNECTIONS 65536

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32); /* TCP port that is listened on */
	__type(value, u32);
} served_ports SEC(".maps");
u32 served_ports_known = 1; /* goes up as user space adds to them; never 0 */
u32 observation = 1;        /* goes up with each that these programs are used for; never 0 */
u32 looks_at_sockets = 0;   /* goes up with each look at all of them */

/* What was read on it last, and is not answered. */
struct open_request {
	u64 began;     /* 0: all is answered */
	u32 thread;    /* who has read it; 0: not known, it was before anybody looked */
	u32 weight;    /* how many requests it stands for; 0: it is not reported */
	u32 blockings; /* of its reader, as it last read there */
	u32 zero;
};

/* How much of the first record of one direction was sent to user space, and how much is to be. */
struct hello { u16 copied; u16 wanted; u32 whole; };

/* A connection that was made under observation. A question goes the way of the client. */
struct conversation {
	u64 began;                  /* when it was asked for; 0: it was not made under observation, or is over */
	u64 made;
	u64 second_began;           /* the second turn, */
	u64 second_answered;        /* and when the last of its answer passed */
	u64 third_began;
	u32 thread;                 /* who asked for it; of an accepted one, who used it first */
	u32 turns;                  /* how often a question followed an answer */
	u32 second;                 /* bytes of the second turn's questions */
	u8 reported;                    /* user space knows of it */
	u8 accepted;
	u8 answering;               /* what went last was an answer */
	u8 closer;                  /* enum holdup_closer */
	u8 ended;                   /* an alert was received: what follows is the rest of it */
	u8 perhaps_ended;           /* the last question may have been one: it was none if an answer and another follow */
	u8 answered_since;
	u8 rest;                    /* bytes of it that are still to be read */
	u32 opaque;                 /* it does not begin as TLS does, or its bytes could not be read */
	u32 port;                   /* of the end that is reported: it is given back before a connection is closed */
	struct hello question, answer;
};

struct kept_socket {
	u64 address;      /* its own, as a number (number_of) */
	u64 inode;        /* of its file, where its memory may have been used again; else 0 */
	u32 known;        /* `served_ports_known` when `accepted` was found out; 0: not yet */
	u32 accepted;
	u32 observation;  /* which observation has kept this: what an earlier one has left is nothing */
	u32 looked;       /* `looks_at_sockets` when it was looked at last: it may be open in several processes */
	struct open_request request;
	struct conversation conversation;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kept_socket);
} kept_sockets SEC(".maps");

/* Where tracing programs have no storage on sockets; the least recently used gives way. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOST_CONNECTIONS);
	__type(key, u64); /* the socket's address */
	__type(value, struct kept_socket);
} socket_table SEC(".maps");

const volatile struct kept_socket blank_socket = {};

static __always_inline u64 inode_of_sock(const struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
}

/* What is kept of it; null: nothing. */
static __always_inline struct kept_socket *known_socket(struct sock *sk)
{
	struct kept_socket *kept;
	u64 key = (u64)sk;

	if (HAVE_TASK_STORAGE)
		kept = bpf_sk_storage_get(&kept_sockets, sk, 0, 0);
	else
		kept = bpf_map_lookup_elem(&socket_table, &key);
	return kept && kept->observation == observation ? kept : 0;
}

static __always_inline struct kept_socket *of_this_observation(struct kept_socket *kept)
{
	if (kept && kept->observation != observation) {
		__builtin_memset(kept, 0, sizeof(*kept));
		kept->observation = observation;
	}
	return kept;
}

/* The same; nothing yet, where nothing was. */
static __always_inline struct kept_socket *socket_entry(struct sock *sk)
{
	struct kept_socket *kept;
	u64 key = (u64)sk, inode;

	if (HAVE_TASK_STORAGE)
		return of_this_observation(bpf_sk_storage_get(&kept_sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE));
	kept = bpf_map_lookup_elem(&socket_table, &key);
	/* A connection that is being made has no file yet. */
	inode = inode_of_sock(sk);
	if (kept && (!kept->inode || !inode || kept->inode == inode)) {
		kept->inode = inode ? inode : kept->inode;
		return of_this_observation(kept);
	}
	bpf_map_update_elem(&socket_table, &key, (void *)&blank_socket, BPF_ANY);
	kept = bpf_map_lookup_elem(&socket_table, &key);
	if (kept) {
		kept->inode = inode;
		kept->observation = observation;
	}
	return kept;
}

/* A socket's address. Written and read again it is a number: the verifier lets a function of its own have no pointer to one. */
static __always_inline u64 number_of(struct kept_socket *kept, const struct sock *sk)
{
	kept->address = (u64)sk;
	return *(volatile u64 *)&kept->address;
}

/* A connection was accepted if its own end is where somebody listens: user space says which ports those are; of a Unix
 * socket, if it has a name of its own and a peer. */
static __always_inline bool find_out_accepted(const struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	if (family == AF_INET || family == AF_INET6) {
		u32 port = BPF_CORE_READ(sk, __sk_common.skc_num);
		return bpf_map_lookup_elem(&served_ports, &port) != 0;
	}
	if (family == AF_UNIX) {
		struct unix_sock *u = (void *)sk;
		return BPF_CORE_READ(u, addr) && BPF_CORE_READ(u, peer);
	}
	return false;
}

static __always_inline bool is_accepted(struct kept_socket *kept, const struct sock *sk)
{
	if (kept->known != served_ports_known) {
		kept->known = served_ports_known;
		kept->accepted = find_out_accepted(sk);
	}
	return kept->accepted;
}

/* Requests that are open and were not reported, for who reads this: thread and beginning. By the files of all tasks: there are machines
 * that do not let anybody walk over what is kept of sockets. */
struct untold_open { u64 began; u32 thread; u32 zero; };

SEC("iter/task_file")
int look_at_socket(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct untold_open open = {};
	struct kept_socket *kept;
	struct socket *socket;

	if (!HAVE_TASK_STORAGE || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket || !socket->sk)
		return 0;
	kept = known_socket(socket->sk);
	if (!kept || kept->looked == looks_at_sockets)
		return 0;
	kept->looked = looks_at_sockets;
	if (!kept->request.began || kept->request.weight)
		return 0;
	open.began = kept->request.began;
	open.thread = kept->request.thread;
	bpf_seq_write(ctx->meta->seq, &open, sizeof(open));
	return 0;
}

#endif
