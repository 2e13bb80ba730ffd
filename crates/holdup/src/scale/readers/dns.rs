//! A name server, asked for the address of a name: one question, one answer, over UDP.
//!
//! An answer counts by its number and nothing else; whether the name is there does not matter. A question without an answer is asked
//! again after a second, as resolvers do, five times at most.

use super::{Reader, Refused, errno};
use nix::errno::Errno;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Before a question is asked again.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is asked.
const TRIES: u32 = 5;

/// Bytes of an answer that are kept: its head tells enough.
const ANSWER: usize = 512;

/// A socket that asks.
pub(super) struct Dns {
    socket: UdpSocket,
    question: Vec<u8>,
    number: u16,
}

impl Dns {
    /// Asks this server for this name.
    pub(super) fn open(server: SocketAddr, name: &str) -> Result<Dns, Refused> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let open = || -> std::io::Result<UdpSocket> {
            let socket = UdpSocket::bind(any)?;
            socket.connect(server)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(socket)
        };
        let socket = open().map_err(|error| Refused::Open(errno(&error)))?;
        let question = question(name).ok_or(Refused::Open(Errno::EINVAL))?;
        Ok(Dns {
            socket,
            question,
            number: 0,
        })
    }
}

/// A question for an IPv4 address (RFC 1035, 4.1), its number still 0; `None` if that is no name.
pub(in crate::scale) fn question(name: &str) -> Option<Vec<u8>> {
    // Number, "please follow it up", one question and nothing else.
    let mut all = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len())
            .ok()
            .filter(|length| (1..=63).contains(length))?;
        all.push(length);
        all.extend(label.bytes());
    }
    // The root, an address, of the internet.
    all.extend([0, 0, 1, 0, 1]);
    (all.len() <= 12 + 255 + 4).then_some(all)
}

impl Reader for Dns {
    fn once(&mut self) -> Result<(), Errno> {
        self.number = self.number.wrapping_add(1);
        let number = self.number.to_be_bytes();
        self.question[..2].copy_from_slice(&number);
        let mut answer = [0; ANSWER];
        for _ in 0..TRIES {
            self.socket.send(&self.question).map_err(|error| errno(&error))?;
            loop {
                match self.socket.recv(&mut answer) {
                    Ok(length) if length >= 12 && answer[..2] == number => return Ok(()),
                    // An answer to a question that was asked twice.
                    Ok(_) => {}
                    Err(error) if matches!(errno(&error), Errno::EAGAIN | Errno::EINTR) => break,
                    Err(error) => return Err(errno(&error)),
                }
            }
        }
        Err(Errno::ETIMEDOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::question;

    #[test]
    fn a_question_is_as_the_rfc_has_it() {
        let asked = question("a.example.").unwrap();
        assert_eq!(asked[2..12], [1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&asked[12..], b"\x01a\x07example\x00\x00\x01\x00\x01");
        for wrong in ["", ".", "a..b", &"a".repeat(64), &"abcdefg.".repeat(40)] {
            assert_eq!(question(wrong), None, "{wrong}");
        }
    }
}
