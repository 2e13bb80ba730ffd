//! `--user NAME`: under sudo holdup is root, and CMD should not be.
//!
//! In: a name or number. Out: [`User`], looked up before the fork, because look-ups are not async-signal-safe.

use anyhow::{Context, bail};
use nix::unistd::{Uid, getgrouplist};
use std::ffi::{CString, OsString};

/// Whom CMD is to run as.
#[derive(Debug, Clone)]
pub(crate) struct User {
    /// Login name.
    pub(crate) name: String,
    home: OsString,
    uid: libc::uid_t,
    gid: libc::gid_t,
    groups: Vec<libc::gid_t>,
}

impl User {
    /// Looks a user up by name, or by number where no user has that name.
    ///
    /// # Errors
    /// When there is no such user or the user database can't be read.
    pub(crate) fn look_up(name: &str) -> anyhow::Result<User> {
        let mut found = nix::unistd::User::from_name(name).context("cannot read the user database")?;
        if found.is_none()
            && let Ok(number) = name.parse()
        {
            found = nix::unistd::User::from_uid(Uid::from_raw(number))
                .context("cannot read the user database")?;
        }
        let Some(user) = found else {
            bail!("there is no user {name:?}; --user wants a name that `getent passwd` lists");
        };
        let login = CString::new(user.name.clone()).context("a user name contains a NUL byte")?;
        let groups = getgrouplist(&login, user.gid).context("cannot read the group database")?;
        Ok(User {
            name: user.name,
            home: user.dir.into_os_string(),
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(nix::unistd::Gid::as_raw).collect(),
        })
    }

    /// The variables that name the user.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("HOME".into(), self.home.clone()),
            ("USER".into(), self.name.clone().into()),
            ("LOGNAME".into(), self.name.clone().into()),
        ]
    }

    /// Becomes that user for good: groups first, while that is still allowed. Async-signal-safe: the plain
    /// system calls, because the C library's wrappers would look for other threads.
    pub(super) fn assume(&self) -> bool {
        // SAFETY: the calls take integers and an array whose length is given.
        unsafe {
            libc::geteuid() == self.uid && self.uid != 0
                || (libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr()) == 0
                    && libc::syscall(libc::SYS_setresgid, self.gid, self.gid, self.gid) == 0
                    && libc::syscall(libc::SYS_setresuid, self.uid, self.uid, self.uid) == 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::User;

    #[test]
    fn by_name_and_by_number() {
        let root = User::look_up("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(User::look_up("0").unwrap().name, "root");
    }

    #[test]
    fn an_unknown_user_is_one_sentence() {
        let error = User::look_up("no such\x1buser").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no user \"no such\\u{1b}user\"; --user wants a name that `getent passwd` lists"
        );
    }
}
