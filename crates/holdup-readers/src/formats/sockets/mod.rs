//! Lists of sockets: `ss` and `netstat`.
//!
//! In: their rows. Out: one [`SocketTable`] for each list: how many sockets there are of which state, by what they have in
//! common; the listeners with a queue; the connections that are in trouble by their own figures.

pub(super) mod interfaces;
pub(super) mod netstat;
pub(super) mod ss;
pub(super) mod states;
mod tally;
#[cfg(test)]
mod tests;

use holdup_evidence::observed::TcpState;

/// A row of a list, whoever printed it.
#[derive(Debug, Clone, Copy)]
struct Row<'a> {
    state: TcpState,
    /// Bytes to be read; of a listener, clients to be accepted.
    received: u64,
    /// Bytes to be sent or confirmed; of a listener of `ss`, clients that may wait.
    to_send: u64,
    local: &'a [u8],
    peer: &'a [u8],
    process: Option<&'a [u8]>,
}

/// A state by the name that `ss` or `netstat` prints.
fn state(word: &[u8]) -> Option<TcpState> {
    Some(match word {
        b"ESTAB" | b"ESTABLISHED" | b"VERBUNDEN" | b"ESTABELECIDA" | b"ESTABLECIDO" => TcpState::Established,
        b"SYN-SENT" | b"SYN_SENT" => TcpState::SynSent,
        b"SYN-RECV" | b"SYN_RECV" | b"NEW_SYN_RECV" | b"NEW-SYN-RECV" => TcpState::SynReceived,
        b"FIN-WAIT-1" | b"FIN_WAIT1" => TcpState::FinWait1,
        b"FIN-WAIT-2" | b"FIN_WAIT2" => TcpState::FinWait2,
        b"TIME-WAIT" | b"TIME_WAIT" => TcpState::TimeWait,
        b"CLOSE-WAIT" | b"CLOSE_WAIT" => TcpState::CloseWait,
        b"LAST-ACK" | b"LAST_ACK" => TcpState::LastAck,
        b"LISTEN" => TcpState::Listen,
        b"CLOSING" => TcpState::Closing,
        b"CLOSED" | b"CLOSE" | b"UNCONN" => TcpState::Closed,
        _ => return None,
    })
}

/// Whether a word is an address with a port (`[fe80::1]%eth0:22`, `*:*`, `10.0.0.1:https`).
fn is_address(word: &[u8]) -> bool {
    let Some(at) = word.iter().rposition(|byte| *byte == b':') else {
        return false;
    };
    let (host, port) = (word.get(..at), word.get(at + 1..));
    let port = port.is_some_and(|port| {
        !port.is_empty()
            && port
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'-' | b'_' | b'.'))
    });
    port && host.is_some_and(|host| !host.is_empty())
}
