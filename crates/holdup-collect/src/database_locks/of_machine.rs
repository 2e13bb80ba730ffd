//! The same of servers that are not observed: for a look at a machine, which traces nothing.
//!
//! In: servers of which it is known that somebody waits there. Out: sessions that wait, and those that they wait for, with the clients of
//! both. Mappings, files, titles and memory are read by children that can be left behind.

use super::{MAX_SERVERS, Symbols, of_mariadb, of_postgres};
use crate::behind::Readers;
use crate::moment::Moment;
use holdup_evidence::facts::{LockSession, SessionState};
use holdup_knowledge::user_code::mysql;
use holdup_knowledge::{postgres_locks, postgres_titles};
use holdup_proc::maps::{self, Mapping};
use holdup_proc::{Root, names, titles};
use holdup_symbols::{ProcessKey, UserStacks};
use std::cell::RefCell;

/// Sessions that wait, and those that they wait for, of these servers: their first processes.
#[must_use]
pub fn of_machine(servers: &[u32]) -> Vec<LockSession> {
    let root = Root::system();
    let mut moment = Moment::now();
    let mut memory = Readers::new(|| Box::new(|question| super::answer(&question)));
    let mut symbols = OfServers::new();
    let titles = RefCell::new(Readers::new(|| {
        Box::new(|pid| titles::read(&Root::system(), pid))
    }));
    let state = |pid: u32| -> Option<SessionState> {
        let title: Option<String> = titles.borrow_mut().ask(pid, pid).flatten();
        postgres_titles::state(&title?)
    };
    let mut found = Vec::new();
    for server in servers.iter().copied().take(MAX_SERVERS) {
        let Some(name) = names::comm(&root, server) else {
            continue;
        };
        if mysql::is_server(&name) {
            let at = symbols.of(server, mysql::is_server, mysql::SYMBOLS);
            found.extend(of_mariadb(&mut memory, server, at, &mut moment));
        } else if postgres_titles::is_server(&name) {
            let at = symbols.of(server, postgres_titles::is_server, postgres_locks::SYMBOLS);
            found.extend(of_postgres(&mut memory, &root, server, at, &state));
        }
    }
    super::poolers::look(&mut memory, &mut found, &mut moment);
    found
}

/// Where servers have symbols that they export.
struct OfServers {
    files: UserStacks,
    mappings: Readers<u32, Option<Vec<Lines>>>,
    count: u32,
}

/// A mapping, as a child passes it on: first address, one past the last, offset, path, device, inode.
type Lines = (u64, u64, u64, String, (u32, u32), u64);

impl OfServers {
    fn new() -> OfServers {
        OfServers {
            files: UserStacks::new().ready(),
            mappings: Readers::new(|| {
                Box::new(|pid| {
                    let lines =
                        |one: Mapping| (one.start, one.end, one.offset, one.path, one.device, one.inode);
                    let mappings = maps::executable(&Root::system(), pid)?;
                    Some(mappings.into_iter().map(lines).collect())
                })
            }),
            count: 0,
        }
    }

    fn of(&mut self, pid: u32, wanted: fn(&str) -> bool, symbols: &[&'static str]) -> Option<Symbols> {
        let mappings = self.mappings.ask_patiently(pid, pid).flatten()?;
        let key = ProcessKey(self.count);
        self.count += 1;
        for (start, end, offset, path, device, inode) in mappings {
            let mapping = holdup_symbols::Mapping {
                start,
                end,
                offset,
                path,
                device,
                inode,
            };
            self.files.map(key, pid, mapping);
        }
        Some(self.files.find(key, pid, wanted, symbols)?.addresses)
    }
}
