//! Sockets other than Unix ones.

use super::{Line, Meaning::Is, Rank::Object};
use holdup_evidence::Cause::{KernelWork, NetAccept, NetConnect, NetReceive, NetSend};

pub(super) const TABLE: &[Line] = &[
    ("__inet_stream_connect", Is(Object, NetConnect)),
    ("inet_stream_connect", Is(Object, NetConnect)),
    ("inet_wait_for_connect", Is(Object, NetConnect)),
    ("vsock_connect", Is(Object, NetConnect)),
    ("vsock_stream_connect", Is(Object, NetConnect)),
    ("inet_accept", Is(Object, NetAccept)),
    ("inet_csk_accept", Is(Object, NetAccept)),
    ("inet_csk_wait_for_connect", Is(Object, NetAccept)),
    ("vsock_accept", Is(Object, NetAccept)),
    ("__skb_recv_udp", Is(Object, NetReceive)),
    ("packet_recvmsg", Is(Object, NetReceive)),
    ("ping_recvmsg", Is(Object, NetReceive)),
    ("raw_recvmsg", Is(Object, NetReceive)),
    ("rawv6_recvmsg", Is(Object, NetReceive)),
    ("sctp_recvmsg", Is(Object, NetReceive)),
    ("sk_wait_data", Is(Object, NetReceive)),
    ("tcp_recvmsg*", Is(Object, NetReceive)),
    ("tcp_splice_read", Is(Object, NetReceive)),
    ("tls_sw_recvmsg", Is(Object, NetReceive)),
    ("udp_recvmsg", Is(Object, NetReceive)),
    ("udpv6_recvmsg", Is(Object, NetReceive)),
    ("vsock_connectible_recvmsg", Is(Object, NetReceive)),
    ("vsock_stream_recvmsg", Is(Object, NetReceive)),
    ("__tcp_close", Is(Object, NetSend)),
    ("sk_stream_wait_*", Is(Object, NetSend)),
    ("tcp_sendmsg*", Is(Object, NetSend)),
    ("udp_sendmsg", Is(Object, NetSend)),
    ("udpv6_sendmsg", Is(Object, NetSend)),
    ("vsock_connectible_sendmsg", Is(Object, NetSend)),
    ("netlink_*", Is(Object, KernelWork)),
];
