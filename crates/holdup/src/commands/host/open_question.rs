//! Whether a question to a name server is open on a socket: a thread stands in `poll` for this socket alone, and has set a time limit.
//!
//! In: a process and a socket of it. Out: yes or no. A resolver waits like that for its answer (`res_send` of glibc and of musl); whoever keeps
//! a socket open for questions to come waits without a limit, or for other descriptors too. May block, as all looks at another process's calls
//! may: it is for a child that can be left behind.

use super::looked_up::waiting_threads;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_proc::{Root, memory, tasks};

/// The size of `struct pollfd`, bytes.
const POLLFD_BYTES: usize = 8;

pub(super) fn is_open(root: &Root, pid: u32, inode: u64) -> bool {
    let mut threads = waiting_threads(root, pid).into_iter();
    threads.any(|tid| polls_alone(root, pid, tid, inode).unwrap_or(false))
}

fn polls_alone(root: &Root, pid: u32, tid: u32, inode: u64) -> Option<bool> {
    let call = tasks::call(root, tid)?;
    let known = system_calls::numbered(call.number)?;
    let [set, count, limit, ..] = call.args;
    // `ppoll` has a pointer to its limit, and none is no limit; `poll` has milliseconds, and less than none is no limit.
    let limited = match known.name() {
        "ppoll" => limit != 0,
        _ => known.is(Kind::Polls) && (limit as u32).cast_signed() > 0,
    };
    if !limited || count != 1 {
        return Some(false);
    }
    let bytes = memory::read(tid, set, POLLFD_BYTES)?;
    let descriptor = i32::from_ne_bytes(bytes.first_chunk::<4>().copied()?);
    let link = root
        .proc
        .join(pid.to_string())
        .join("fd")
        .join(descriptor.to_string());
    let link = std::fs::read_link(link).ok()?;
    Some(link.to_str() == Some(&format!("socket:[{inode}]")))
}

#[cfg(test)]
mod tests {
    use super::is_open;
    use holdup_knowledge::system_calls;
    use holdup_proc::Root;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::net::UdpSocket;
    use std::os::fd::{AsFd, AsRawFd};
    use std::sync::mpsc;

    /// Whether a question is open on the socket that a thread of this process polls like this, once the thread sleeps.
    fn open(limit: PollTimeout, others: usize) -> bool {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let end = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(end.local_addr().unwrap()).unwrap();
        let fd = socket.as_raw_fd();
        let (tell, heard) = mpsc::channel();
        let polled = socket.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw()).unwrap();
            let mut set = vec![PollFd::new(polled.as_fd(), PollFlags::POLLIN)];
            set.extend((0..others).map(|_| PollFd::new(polled.as_fd(), PollFlags::POLLIN)));
            poll(&mut set, limit).unwrap();
        });
        let tid = heard.recv().unwrap().cast_unsigned();
        // The clone has a number of its own, and the same socket.
        let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        let inode: u64 = link.to_str().unwrap()["socket:[".len()..]
            .trim_end_matches(']')
            .parse()
            .unwrap();
        let root = Root::system();
        let poll_number = system_calls::named("poll").unwrap().number();
        let polls = || holdup_proc::tasks::call(&root, tid).is_some_and(|call| call.number == poll_number);
        while !polls() {
            std::thread::yield_now();
        }
        let found = is_open(&root, std::process::id(), inode);
        end.send_to(b"end", socket.local_addr().unwrap()).unwrap();
        thread.join().unwrap();
        found
    }

    #[test]
    fn a_resolver_that_waits_is_known_by_its_poll() {
        assert!(open(PollTimeout::from(60_000_u16), 0));
        assert!(!open(PollTimeout::NONE, 0), "it waits for whatever comes");
        assert!(
            !open(PollTimeout::from(60_000_u16), 1),
            "it waits for others, too"
        );
        assert!(!is_open(&Root::system(), std::process::id(), u64::MAX));
    }
}
