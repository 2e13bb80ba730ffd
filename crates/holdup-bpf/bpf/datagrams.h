/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * To whom the subject sends datagrams over UDP, and whether anything comes back from there. A server of names, a proxy or a
 * telephone exchange asks all its peers on one socket that is connected to nobody: where to is said by each send, and where
 * from by each datagram. What they hold is the observed program's and its peers' choice.
 *
 * Sends are seen by traffic.h. What arrives is looked at as the kernel announces it to the socket, which costs every packet
 * of the machine; so that program is attached once the subject has sent one, and counting begins then.
 */
#ifndef HOLDUP_DATAGRAMS_H
#define HOLDUP_DATAGRAMS_H

#include "names.h"
#include "requests.h"

#define MOST_DATAGRAM_PEERS 4096
#define HOLDUP_DATAGRAM 64 /* kept of a datagram, bytes: its header, which tells what protocol it is */
#define ETHERTYPE_IP 0x0800
/* Of a message of DNS: the byte with "this is an answer", the byte with its outcome, and two outcomes. */
#define DNS_FLAGS 2
#define DNS_OUTCOME 3
#define DNS_IS_ANSWER 0x80
#define DNS_OUTCOME_BITS 0x0f
#define DNS_SERVER_FAILED 2
#define DNS_REFUSED 5

struct datagram_peer {
	u64 silent_since;  /* when the first was sent to which nothing came back */
	u64 since;         /* when the first of all was sent */
	u32 sent, received;
	u32 unanswered;    /* sent since something came from there */
	u32 failed;        /* received, of those that would be answers of a name server: it failed or refuses */
	u32 refused;       /* sent, of the same */
	u32 pid;           /* who sent last */
	u32 len;           /* bytes of `begins` */
	u8 begins[HOLDUP_DATAGRAM]; /* of what was sent last */
	u32 size;          /* of that one, bytes */
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOST_DATAGRAM_PEERS);
	__type(key, struct upstream_key);
	__type(value, struct datagram_peer);
} datagram_peers SEC(".maps");
const volatile struct datagram_peer blank_peer = {};
u32 counts_datagrams = 0;  /* what arrives is looked at: user space says so */
u32 sends_datagrams = 0;   /* the subject has sent one */

/* The same address, whichever family the socket has. */
static __always_inline void plain_address(struct upstream_key *key)
{
	u32 *words = (u32 *)key->address;

	if (key->family != AF_INET6 || words[0] || words[1] || words[2] != bpf_htonl(0xffff))
		return;
	key->family = AF_INET;
	words[0] = words[3];
	words[2] = 0;
	words[3] = 0;
}

/* To whom it was sent. */
static __always_inline bool sent_to(const struct sock *sk, const struct holdup_call *call, struct upstream_key *key)
{
	struct destination to = {};

	key->port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (key->port) {
		key->family = BPF_CORE_READ(sk, __sk_common.skc_family);
		if (key->family == AF_INET6)
			BPF_CORE_READ_INTO(&key->address, sk, __sk_common.skc_v6_daddr);
		else
			BPF_CORE_READ_INTO((u32 *)key->address, sk, __sk_common.skc_daddr);
	} else {
		if (!named_destination(call, &to))
			return false;
		key->port = bpf_ntohs(to.port);
		key->family = to.family;
		if (to.family == AF_INET6)
			__builtin_memcpy(key->address, (u8 *)&to + SOCKADDR_IN6_ADDRESS, 16);
		else
			__builtin_memcpy(key->address, (u8 *)&to + SOCKADDR_IN_ADDRESS, 4);
	}
	plain_address(key);
	return key->port && (key->family == AF_INET || key->family == AF_INET6);
}

static __always_inline bool names_failed(const u8 *message)
{
	u8 outcome = message[DNS_OUTCOME] & DNS_OUTCOME_BITS;

	return (message[DNS_FLAGS] & DNS_IS_ANSWER) && (outcome == DNS_SERVER_FAILED || outcome == DNS_REFUSED);
}

static __always_inline struct datagram_peer *datagram_peer_of(const struct upstream_key *key)
{
	struct datagram_peer *known = bpf_map_lookup_elem(&datagram_peers, key);

	if (known)
		return known;
	bpf_map_update_elem(&datagram_peers, key, (void *)&blank_peer, BPF_NOEXIST);
	return bpf_map_lookup_elem(&datagram_peers, key);
}

/* The subject's task that runs here has just sent one. Verified once. */
__noinline int note_datagram(u64 sk_address, u32 bytes, u64 now)
{
	struct sock *sk = (struct sock *)sk_address;
	struct upstream_key key = {};
	struct holdup_call call = {};
	struct datagram_peer *to;
	u64 buffer;

	if (!counts_datagrams) {
		sends_datagrams = 1;
		return 0;
	}
	read_call(&call, current_task());
	if (!sent_to(sk, &call, &key))
		return 0;
	to = datagram_peer_of(&key);
	if (!to)
		return 0;
	__sync_fetch_and_add(&to->sent, 1);
	/* Of two that send at once the later may stay. */
	if (!to->unanswered)
		to->silent_since = now;
	__sync_fetch_and_add(&to->unanswered, 1);
	if (!to->since)
		to->since = now;
	to->pid = bpf_get_current_pid_tgid() >> 32;
	to->size = bytes;
	buffer = buffer_of(&call, &bytes);
	to->len = 0;
	if (bytes > HOLDUP_DATAGRAM)
		bytes = HOLDUP_DATAGRAM;
	barrier_var(bytes);
	if (buffer && bytes > DNS_OUTCOME && bytes <= HOLDUP_DATAGRAM && !bpf_probe_read_user(to->begins, bytes, (void *)buffer)) {
		to->len = bytes;
		if (names_failed(to->begins))
			__sync_fetch_and_add(&to->refused, 1);
	}
	return 0;
}

/* From whom it is. */
static __always_inline bool received_from(struct sk_buff *skb, struct upstream_key *key)
{
	u8 *head = BPF_CORE_READ(skb, head);
	u8 *network = head + BPF_CORE_READ(skb, network_header), *transport = head + BPF_CORE_READ(skb, transport_header);
	bool six = BPF_CORE_READ(skb, protocol) == bpf_htons(ETHERTYPE_IPV6);
	u16 port = 0;

	if (!head || (!six && BPF_CORE_READ(skb, protocol) != bpf_htons(ETHERTYPE_IP)))
		return false;
	if (bpf_probe_read_kernel(&port, sizeof(port), transport))
		return false;
	key->port = bpf_ntohs(port);
	key->family = six ? AF_INET6 : AF_INET;
	if (six)
		return !bpf_probe_read_kernel(key->address, 16, network + 8);
	return !bpf_probe_read_kernel(key->address, 4, network + 12);
}

/* What has just come to a socket stands last in its queue. Where it was taken already, something else is read, or the socket itself:
 * no peer has that address. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_datagram, struct sock *sk)
{
	struct upstream_key key = {};
	struct datagram_peer *from;
	struct sk_buff *skb;
	u8 message[4] = {};

	if (!counts_datagrams || frozen || sk->sk_protocol != IPPROTO_UDP || !known_socket(sk))
		return 0;
	skb = BPF_CORE_READ(sk, sk_receive_queue.prev);
	if (!skb || !received_from(skb, &key))
		return 0;
	from = bpf_map_lookup_elem(&datagram_peers, &key);
	if (!from)
		return 0;
	__sync_fetch_and_add(&from->received, 1);
	from->unanswered = 0;
	if (!bpf_probe_read_kernel(message, sizeof(message),
				   BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, transport_header) + UDP_HEADER) &&
	    names_failed(message))
		__sync_fetch_and_add(&from->failed, 1);
	return 0;
}

#endif
