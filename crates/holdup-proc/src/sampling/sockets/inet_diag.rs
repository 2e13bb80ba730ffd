//! The kernel's words for questions and answers about single TCP sockets (linux/inet_diag.h).

use super::diag::HEADER;
use std::net::{IpAddr, SocketAddr};

/// Attributes of an answer: `struct tcp_info`, and the memory that the socket has.
pub(in crate::sampling) const INFO: u16 = 2;
pub(in crate::sampling) const MEMORY: u16 = 7;

/// Where an answer has the state, which timer runs and for how many more milliseconds, bytes that were received and not read, the queue of
/// what is not acknowledged, the inode: in `struct inet_diag_msg`.
pub(in crate::sampling) const STATE: usize = HEADER + 1;
pub(in crate::sampling) const TIMER: usize = HEADER + 2;
pub(in crate::sampling) const EXPIRES: usize = HEADER + 52;
pub(in crate::sampling) const UNREAD: usize = HEADER + 56;
pub(in crate::sampling) const WRITE_QUEUE: usize = HEADER + 60;
pub(in crate::sampling) const INODE: usize = HEADER + 68;

/// Where its attributes begin, behind that.
pub(in crate::sampling) const ATTRIBUTES: usize = HEADER + 72;

/// `struct inet_diag_req_v2`: the TCP socket with these ends, whatever its device, with these attributes.
pub(in crate::sampling) fn request(local: SocketAddr, peer: SocketAddr, attributes: &[u16]) -> Vec<u8> {
    const TCP: u8 = 6;
    const ANY: u32 = u32::MAX;
    // A bit for each attribute, from the first on.
    let wanted = attributes.iter().fold(0, |wanted, one| wanted | 1 << (one - 1));
    let family = if local.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let mut bytes = vec![family as u8, TCP, wanted, 0];
    bytes.extend(ANY.to_ne_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(peer.port().to_be_bytes());
    for address in [local.ip(), peer.ip()] {
        match address {
            IpAddr::V4(address) => {
                bytes.extend(address.octets());
                bytes.extend([0; 12]);
            }
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
    }
    // Whatever device, whatever cookie.
    for word in [0, ANY, ANY] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{INFO, MEMORY, request};

    #[test]
    fn a_request_is_as_long_as_the_kernel_s_and_has_a_bit_for_each_attribute() {
        let ends = |one: &str, other: &str| (one.parse().unwrap(), other.parse().unwrap());
        for (local, peer) in [ends("[::1]:1", "[::1]:2"), ends("127.0.0.1:1", "127.0.0.1:2")] {
            let bytes = request(local, peer, &[INFO, MEMORY]);
            assert_eq!((bytes.len(), bytes[2]), (56, 0b100_0010));
        }
    }
}
