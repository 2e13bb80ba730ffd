//! The ids of the process that is asked, and becoming that user.
//!
//! Whatever holdup makes for a process is made with the ids of that process and without a single capability: then the kernel allows exactly
//! what the process's own user could have done, whatever is mounted where. The ids are those that the kernel shows us, so that root of a
//! user namespace is the user who made it.
//!
//! In: `/proc/PID/status`. Out: [`Ids`]; [`Ids::assume`] makes them the ids of this process, for good.

use holdup_detached::Capabilities;
use holdup_proc::Root;
use holdup_proc::root::text_if_there;
use nix::errno::Errno;
use nix::unistd::{Gid, Uid, getgroups, getresgid, getresuid, setgroups, setresgid, setresuid};

/// Real, effective, saved, and that for files.
const KINDS: usize = 4;

/// User, group and supplementary groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ids {
    user: u32,
    group: u32,
    groups: Vec<u32>,
}

/// Why there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoIds {
    /// The process is gone.
    Gone,
    /// They differ: a program that has changed some of them acts for more than one user.
    Mixed,
}

impl Ids {
    /// Those of a process.
    pub(super) fn read(root: &Root, pid: u32) -> Result<Ids, NoIds> {
        let text = text_if_there(&root.proc.join(pid.to_string()).join("status")).ok_or(NoIds::Gone)?;
        Ids::parse(&text)
    }

    fn parse(text: &str) -> Result<Ids, NoIds> {
        Ok(Ids {
            user: same(&numbers(text, "Uid:")?)?,
            group: same(&numbers(text, "Gid:")?)?,
            groups: numbers(text, "Groups:")?,
        })
    }

    /// Makes them the ids of this process, gives up all capabilities, and keeps programs from getting any. Other users' debuggers can't look
    /// into this process: it has the memory of its parent.
    ///
    /// The process must have one thread.
    pub(super) fn assume(&self) -> Result<(), String> {
        self.set().map_err(|error| error.to_string())?;
        Capabilities::NONE.bound();
        Capabilities::NONE
            .keep_only()
            .map_err(|error| error.to_string())?;
        // SAFETY: settings of this process only; both take integers.
        let set = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
        };
        match set {
            true => Ok(()),
            false => Err(Errno::last().to_string()),
        }
    }

    /// Sets only what differs: who has the ids already needs no right to change them.
    fn set(&self) -> nix::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        if getgroups()? != groups {
            setgroups(&groups)?;
        }
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        let has = getresgid()?;
        if [has.real, has.effective, has.saved] != [group; 3] {
            setresgid(group, group, group)?;
        }
        let has = getresuid()?;
        if [has.real, has.effective, has.saved] != [user; 3] {
            setresuid(user, user, user)?;
        }
        Ok(())
    }
}

fn numbers(text: &str, key: &str) -> Result<Vec<u32>, NoIds> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let numbers = line.ok_or(NoIds::Gone)?.split_whitespace().map(str::parse);
    numbers.collect::<Result<_, _>>().map_err(|_| NoIds::Gone)
}

fn same(ids: &[u32]) -> Result<u32, NoIds> {
    match ids {
        [first, others @ ..] if ids.len() == KINDS && others.iter().all(|other| other == first) => Ok(*first),
        _ => Err(NoIds::Mixed),
    }
}

#[cfg(test)]
mod tests {
    use super::{Ids, NoIds};

    #[test]
    fn ids_that_differ_are_nobodys() {
        let status =
            |user: &str, group: &str| format!("Name:\tx\nUid:\t{user}\nGid:\t{group}\nGroups:\t4 24 \n");
        let plain = "7\t7\t7\t7";
        assert_eq!(
            Ids::parse(&status(plain, "8\t8\t8\t8")),
            Ok(Ids {
                user: 7,
                group: 8,
                groups: vec![4, 24]
            })
        );
        for mixed in ["7\t0\t0\t0", "0\t7\t7\t7", "7\t7\t0\t7", "7\t7\t7\t0", "7"] {
            assert_eq!(Ids::parse(&status(mixed, plain)), Err(NoIds::Mixed), "{mixed}");
            assert_eq!(Ids::parse(&status(plain, mixed)), Err(NoIds::Mixed), "{mixed}");
        }
        assert_eq!(Ids::parse(""), Err(NoIds::Gone));
    }
}
