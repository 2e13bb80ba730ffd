//! Whether a thread awaits the next word of a client of its own.
//!
//! The problem: of a server that is only followed nothing is known of where it listens, and its sessions that have nothing to do look as if they
//! waited for somebody. In: a wait, with the sockets that it was for. Out: whether all of these are connections that a client has opened: a
//! Unix socket with a path of its own, and a TCP connection from a port as the kernel hands them out to one below those.

use holdup_evidence::{Cause, Object, ObjectId, ObjectKind, SocketAddress, Wait};

/// The first port that Linux gives to whoever opens a connection, by default (`net.ipv4.ip_local_port_range`). Servers mostly listen below.
const FIRST_OPENED_PORT: u16 = 32768;

/// The state of a TCP socket that listens (`tcp(7)`); of a Unix socket the kernel has the same number.
const LISTEN: u8 = 10;

/// Whether such a wait was for the next word of clients.
pub(super) fn awaits_word<'a>(
    cause: Cause,
    wait: &Wait,
    object: impl Fn(ObjectId) -> Option<&'a Object>,
) -> bool {
    if !matches!(cause, Cause::NetReceive | Cause::IpcUnix | Cause::PollWait) {
        return false;
    }
    let polled = wait.asked.iter().flat_map(|asked| &asked.polled);
    let polled = polled.filter(|fd| !fd.own).map(|fd| fd.object);
    let single = wait.object.or(wait.ready).map(Some);
    let mut all = single.into_iter().chain(polled).peekable();
    all.peek().is_some() && all.all(|id| id.and_then(&object).is_some_and(is_clients))
}

/// Whether a client has opened a connection, and this is the other end.
fn is_clients(object: &Object) -> bool {
    let ObjectKind::Socket {
        state, local, peer, ..
    } = &object.kind
    else {
        return false;
    };
    match (local, peer) {
        _ if *state == LISTEN => false,
        (SocketAddress::Unix(own), _) => !own.is_empty(),
        (SocketAddress::Inet(own), SocketAddress::Inet(other)) => {
            (1..FIRST_OPENED_PORT).contains(&own.port()) && other.port() >= FIRST_OPENED_PORT
        }
        _ => false,
    }
}
