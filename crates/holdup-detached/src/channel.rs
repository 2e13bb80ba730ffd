//! Messages between holdup and a child of its own: a length, descriptors, bytes.
//!
//! In: bytes and descriptors. Out: the same at the other end, whole messages only. Neither side trusts what it reads: lengths
//! and numbers of descriptors are bounded. With a deadline nothing blocks beyond it, in either direction.

use crate::Failed;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg,
    socketpair,
};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Instant;

/// The most descriptors of one message. A file of a program is known by two: its place, and a copy.
pub const DESCRIPTORS_MAX: usize = 8;

/// The longest message, bytes: a stack of 64 KB, thousands of names. What is larger goes through a memfd.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Bytes before each message: its length, and how many descriptors come with it, four bytes each.
const HEADER_BYTES: usize = 8;

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;

/// A message: bytes, and descriptors.
pub(crate) type Message = (Vec<u8>, Vec<OwnedFd>);

/// One end.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    /// What has come of messages that are not whole.
    received: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Channel {
    pub(crate) fn pair() -> io::Result<(Channel, Channel)> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (one, other) = socketpair(AddressFamily::Unix, SockType::Stream, None, flags)?;
        Ok((Channel::of(one), Channel::of(other)))
    }

    pub(crate) fn of(socket: OwnedFd) -> Channel {
        Channel {
            socket,
            received: Vec::new(),
            descriptors: VecDeque::new(),
        }
    }

    pub(crate) fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// Sends a message; without a deadline that waits for as long as it takes.
    pub(crate) fn send(
        &mut self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
        until: Option<Instant>,
    ) -> Result<(), Failed> {
        if bytes.len() > MESSAGE_BYTES_MAX || descriptors.len() > DESCRIPTORS_MAX {
            return Err(Failed::Gone);
        }
        let mut message = Vec::with_capacity(HEADER_BYTES + bytes.len());
        message.extend_from_slice(&u32::try_from(bytes.len()).expect("bounded above").to_le_bytes());
        message.extend_from_slice(
            &u32::try_from(descriptors.len())
                .expect("bounded above")
                .to_le_bytes(),
        );
        message.extend_from_slice(bytes);
        let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        // The descriptors go with the first byte.
        let rights = [ControlMessage::ScmRights(&numbers)];
        let mut control: &[ControlMessage<'_>] = if numbers.is_empty() { &[] } else { &rights };
        let mut left = &message[..];
        while !left.is_empty() {
            let sent = sendmsg::<()>(
                self.socket.as_raw_fd(),
                &[IoSlice::new(left)],
                control,
                MsgFlags::MSG_NOSIGNAL,
                None,
            );
            match sent {
                Ok(sent) => {
                    left = &left[sent..];
                    control = &[];
                }
                Err(Errno::EAGAIN) => self.wait(PollFlags::POLLOUT, until)?,
                Err(Errno::EINTR) => {}
                Err(_) => return Err(Failed::Gone),
            }
        }
        Ok(())
    }

    /// The next message; without a deadline that waits for as long as it takes.
    pub(crate) fn receive(&mut self, until: Option<Instant>) -> Result<Message, Failed> {
        loop {
            if let Some(message) = self.whole()? {
                return Ok(message);
            }
            if !self.read()? {
                self.wait(PollFlags::POLLIN, until)?;
            }
        }
    }

    /// Takes a message out of what has come, if it is whole.
    fn whole(&mut self) -> Result<Option<Message>, Failed> {
        let Some((header, rest)) = self.received.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [a, b, c, d, e, f, g, h] = *header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let count = u32::from_le_bytes([e, f, g, h]) as usize;
        if length > MESSAGE_BYTES_MAX || count > DESCRIPTORS_MAX {
            return Err(Failed::Gone);
        }
        if rest.len() < length {
            return Ok(None);
        }
        // They came with the first byte.
        if self.descriptors.len() < count {
            return Err(Failed::Gone);
        }
        let descriptors = self.descriptors.drain(..count).collect();
        let bytes = rest[..length].to_vec();
        self.received.drain(..HEADER_BYTES + length);
        Ok(Some((bytes, descriptors)))
    }

    /// Reads what there is; whether there was anything.
    fn read(&mut self) -> Result<bool, Failed> {
        let mut bytes = [0; READ_BYTES];
        let mut control = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let (count, numbers) =
            match recvmsg::<()>(self.socket.as_raw_fd(), &mut slices, Some(&mut control), flags) {
                Err(Errno::EAGAIN) => return Ok(false),
                Err(Errno::EINTR) => return Ok(true),
                Err(_) => return Err(Failed::Gone),
                Ok(received) => {
                    let mut numbers = Vec::new();
                    for message in received.cmsgs().map_err(|_| Failed::Gone)? {
                        if let ControlMessageOwned::ScmRights(some) = message {
                            numbers.extend(some);
                        }
                    }
                    (received.bytes, numbers)
                }
            };
        for number in numbers {
            // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
            self.descriptors
                .push_back(unsafe { OwnedFd::from_raw_fd(number) });
        }
        if count == 0 || self.descriptors.len() > 2 * DESCRIPTORS_MAX {
            return Err(Failed::Gone);
        }
        self.received.extend_from_slice(&bytes[..count]);
        Ok(true)
    }

    fn wait(&self, for_what: PollFlags, until: Option<Instant>) -> Result<(), Failed> {
        let timeout = match until {
            None => PollTimeout::NONE,
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Failed::Late);
                }
                // Rounded up, so that it does not spin through the last millisecond.
                PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
            }
        };
        match poll(&mut [PollFd::new(self.socket.as_fd(), for_what)], timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(_) => Err(Failed::Gone),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
