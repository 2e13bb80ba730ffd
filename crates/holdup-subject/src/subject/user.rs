//! `--user NAME`: under sudo holdup is root, and CMD should not be.
//!
//! In: a name or number. Out: [`User`], looked up before the fork, because look-ups are not async-signal-safe.

use super::apart;
use anyhow::{Context, bail};
use nix::unistd::{Uid, geteuid, getgrouplist};
use std::ffi::{CString, OsString};
use std::os::fd::RawFd;

/// Whom CMD is to run as.
#[derive(Debug, Clone)]
pub struct User {
    /// Login name.
    pub name: String,
    home: OsString,
    shell: OsString,
    environment: Environment,
    /// A descriptor that it is given besides the standard ones.
    handed_on: Option<RawFd>,
    uid: libc::uid_t,
    gid: libc::gid_t,
    groups: Vec<libc::gid_t>,
}

/// What another user gets of holdup's environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Environment {
    /// Little: see [`apart`].
    Fresh,
    /// All of it.
    Preserved,
}

impl User {
    /// Looks up whom the command line names, if it names anybody. `preserve`: who gets all of holdup's environment.
    ///
    /// # Errors
    /// As [`User::look_up`].
    pub fn asked(name: Option<&str>, preserve: bool) -> anyhow::Result<Option<User>> {
        let environment = match preserve {
            true => Environment::Preserved,
            false => Environment::Fresh,
        };
        name.map(|name| User::look_up(name, environment)).transpose()
    }

    /// Looks a user up by name, or by number where no user has that name.
    ///
    /// # Errors
    /// When there is no such user or the user database can't be read.
    fn look_up(name: &str, environment: Environment) -> anyhow::Result<User> {
        let mut found = nix::unistd::User::from_name(name).context("cannot read the user database")?;
        if found.is_none()
            && let Ok(number) = name.parse()
        {
            found = nix::unistd::User::from_uid(Uid::from_raw(number))
                .context("cannot read the user database")?;
        }
        let Some(user) = found else {
            bail!("there is no user {name:?}; --user needs a name that `getent passwd` lists");
        };
        let login = CString::new(user.name.clone()).context("a user name contains a NUL byte")?;
        let groups = getgrouplist(&login, user.gid).context("cannot read the group database")?;
        Ok(User {
            name: user.name,
            home: user.dir.into_os_string(),
            shell: user.shell.into_os_string(),
            environment,
            handed_on: None,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(nix::unistd::Gid::as_raw).collect(),
        })
    }

    /// The same user, who is given a descriptor of holdup's.
    pub fn handed(self, descriptor: RawFd) -> User {
        User {
            handed_on: Some(descriptor),
            ..self
        }
    }

    /// The descriptor that it is given besides the standard ones.
    pub(super) fn handed_on(&self) -> Option<RawFd> {
        self.handed_on
    }

    /// Whether holdup runs as somebody else.
    pub(super) fn is_other(&self) -> bool {
        geteuid().as_raw() != self.uid
    }

    /// The environment of that user's CMD.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut own: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), self.home.clone()),
            ("USER".into(), self.name.clone().into()),
            ("LOGNAME".into(), self.name.clone().into()),
        ];
        if self.is_other() && self.environment == Environment::Fresh {
            own.push(("SHELL".into(), self.shell.clone()));
            own.push(("PATH".into(), apart::PATH.into()));
            return apart::kept().chain(own).collect();
        }
        let names: Vec<OsString> = own.iter().map(|(name, _)| name.clone()).collect();
        let rest = std::env::vars_os().filter(|(name, _)| !names.contains(name));
        rest.chain(own).collect()
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
    use super::{Environment, User};

    #[test]
    fn by_name_and_by_number() {
        let root = User::look_up("root", Environment::Fresh).unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(User::look_up("0", Environment::Fresh).unwrap().name, "root");
    }

    #[test]
    fn an_unknown_user_is_one_sentence() {
        let error = User::look_up("no such\x1buser", Environment::Fresh)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "there is no user \"no such\\u{1b}user\"; --user needs a name that `getent passwd` lists"
        );
    }
}
