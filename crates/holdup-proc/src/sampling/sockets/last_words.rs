//! Who had the last word on a TCP connection, and when, as the kernel notes it of each socket and tells anybody about those of his own
//! network namespace (`sock_diag`).
//!
//! In: a connection's two ends and its inode. Out: a [`LastWord`].

use super::diag::{self, BY_FAMILY, Diag};
use super::inet_diag::{ATTRIBUTES, INFO, INODE, STATE, UNREAD, request};
use holdup_evidence::Ns;
use std::net::SocketAddr;

/// What was said last on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastWord {
    /// Nothing that matters: nothing was said, or something is still to be read.
    Nobody,
    /// This end said something, and has heard nothing since.
    Own(Said),
    /// The other end did.
    Others(Said),
}

/// When something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// How long ago.
    pub ago: Ns,
    /// How long after the other's last word; `None`: there was none.
    pub after: Option<Ns>,
}

/// Asks.
#[derive(Debug)]
pub struct Asker(Diag);

impl Asker {
    /// `None` where there is nobody to ask.
    #[must_use]
    pub fn open() -> Option<Asker> {
        Diag::open(libc::NETLINK_SOCK_DIAG).map(Asker)
    }

    /// Of one connection; `None` where the kernel knows none of these ends and this inode that is open.
    #[must_use]
    pub fn ask(&self, local: SocketAddr, peer: SocketAddr, inode: u64) -> Option<LastWord> {
        last_word(&self.0.ask(BY_FAMILY, &request(local, peer, &[INFO]))?, inode)
    }
}

fn last_word(answer: &[u8], inode: u64) -> Option<LastWord> {
    /// `ESTABLISHED`, and what is left of it when the other end will say no more.
    const OPEN: [u8; 2] = [1, 8];
    const MILLISECOND: Ns = 1_000_000;
    let of_it = diag::kind(answer)? == BY_FAMILY && u64::from(diag::word(answer, INODE)?) == inode;
    if !of_it || !OPEN.contains(answer.get(STATE)?) {
        return None;
    }
    let info = diag::attribute(answer, ATTRIBUTES, INFO)?;
    // Fields of `struct tcp_info`: how long ago, in milliseconds, and how many segments with something in them.
    let (sent_ago, received_ago) = (diag::word(info, 44)?, diag::word(info, 52)?);
    let (received, sent) = (diag::word(info, 152)?, diag::word(info, 156)?);
    let unread = diag::word(answer, UNREAD)? != 0;
    let said = |ago: u32, others: Option<u32>| Said {
        ago: Ns::from(ago) * MILLISECOND,
        after: others.map(|others| Ns::from(others.saturating_sub(ago)) * MILLISECOND),
    };
    Some(match (sent > 0, received > 0) {
        _ if unread => LastWord::Nobody,
        (false, false) => LastWord::Nobody,
        (true, false) => LastWord::Own(said(sent_ago, None)),
        (false, true) => LastWord::Others(said(received_ago, None)),
        (true, true) if sent_ago < received_ago => LastWord::Own(said(sent_ago, Some(received_ago))),
        (true, true) if received_ago < sent_ago => LastWord::Others(said(received_ago, Some(sent_ago))),
        // Within one tick nobody knows.
        (true, true) => LastWord::Nobody,
    })
}

#[cfg(test)]
mod tests {
    use super::{Asker, LastWord, last_word};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn asked(asker: &Asker, socket: &TcpStream) -> Option<LastWord> {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let text = link.to_string_lossy().into_owned();
        let inode = text.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        asker.ask(socket.local_addr().unwrap(), socket.peer_addr().unwrap(), inode)
    }

    #[test]
    fn who_spoke_last_is_told_once_it_was_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let asker = Asker::open().expect("the kernel answers about sockets");
        assert_eq!(asked(&asker, &server), Some(LastWord::Nobody));
        client.write_all(b"?").unwrap();
        while server.peek(&mut [0]).unwrap() == 0 {}
        assert_eq!(asked(&asker, &server), Some(LastWord::Nobody), "not read yet");
        server.read_exact(&mut [0]).unwrap();
        let first = |word: Option<LastWord>| match word {
            Some(LastWord::Own(said)) => (true, said.after),
            Some(LastWord::Others(said)) => (false, said.after),
            other => panic!("{other:?}"),
        };
        assert_eq!(first(asked(&asker, &server)), (false, None));
        assert_eq!(first(asked(&asker, &client)), (true, None));
    }

    #[test]
    fn an_answer_that_is_cut_off_says_nothing() {
        assert_eq!(last_word(&[], 7), None);
        assert_eq!(last_word(&[0xff; 90], u64::from(u32::MAX)), None);
    }
}
