//! System V message queues: who receives from one.
//!
//! In: a process that waits for room in one. Out: who received from it last, as the kernel notes it: the process that has emptied it until now.

use crate::names;
use crate::root::Root;
use std::fs::read_link;
use std::mem::MaybeUninit;
use std::path::Path;

/// The process that received last from a queue, in holdup's pid namespace. `None` where nobody has, or where it has ended or is the sender
/// itself; also where the sender is in another IPC namespace, or the queue may not be read.
#[must_use]
pub fn last_receiver(root: &Root, sender: u32, queue: u64) -> Option<u32> {
    let namespace = |process: &Path| read_link(process.join("ns/ipc")).ok();
    let own = namespace(&root.proc.join("self"))?;
    if namespace(&root.proc.join(sender.to_string()))? != own {
        return None;
    }
    let queue = i32::try_from(queue).ok()?;
    let mut state = MaybeUninit::<libc::msqid_ds>::zeroed();
    // SAFETY: IPC_STAT writes a whole `msqid_ds` there, and nothing where it fails.
    if unsafe { libc::msgctl(queue, libc::IPC_STAT, state.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: it was zeroed, which is a value of it, and then written.
    let receiver = u32::try_from(unsafe { state.assume_init() }.msg_lrpid).ok()?;
    let another = receiver != 0 && receiver != sender && names::comm(root, receiver).is_some();
    another.then_some(receiver)
}

#[cfg(test)]
mod tests {
    use super::last_receiver;
    use crate::root::Root;
    use std::process::Command;

    #[test]
    fn the_last_receiver_is_told_while_it_lives_and_is_another_process() {
        let own = std::process::id();
        // SAFETY: makes a queue that is nobody else's.
        let queue = unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) };
        let id = u64::try_from(queue).unwrap();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let told = |sender| last_receiver(&Root::system(), sender, id);
        let at_first = told(other.id());
        let mut message = [1_i64, 0];
        // SAFETY: one word of text behind the type.
        let sent = unsafe { libc::msgsnd(queue, message.as_ptr().cast(), 8, 0) };
        // SAFETY: the same, to write to.
        let received = unsafe { libc::msgrcv(queue, message.as_mut_ptr().cast(), 8, 0, 0) };
        let (another, itself) = (told(other.id()), told(own));
        other.kill().unwrap();
        other.wait().unwrap();
        // SAFETY: the queue is this test's own.
        unsafe { libc::msgctl(queue, libc::IPC_RMID, std::ptr::null_mut()) };
        assert_eq!((sent, received), (0, 8));
        assert_eq!(at_first, None, "nobody has received");
        assert_eq!(another, Some(own));
        assert_eq!(itself, None, "it waits for itself");
        assert_eq!(told(own), None, "there is none");
    }
}
