//! A server's memory as version 10.11 lays it out, made up, and the same with other distances.

use super::{Lock, Session, Symbols, Waits, sessions};
use crate::damage;
use crate::memory::{Memory, Written};
use std::collections::HashSet;

const SYMBOLS: Symbols = Symbols {
    sessions: 0x10_0000,
    session: 0x11_0000,
    ticket: 0x11_1000,
    id: 0x12_0000,
    context: 0x12_0040,
    engine: 0x12_0080,
    command: 0x12_00c0,
    connection: 0x12_0100,
    stages: 0x13_0000,
};

/// Microseconds since 1970.
const NOW: u64 = 1_700_000_000_000_000;

/// Distances that differ by version.
#[derive(Debug, Clone, Copy)]
struct Version {
    id: u32,
    context: u32,
    engine: u32,
    command: u32,
    connection: u32,
    thread: u64,
    /// In a transaction: the lock that it waits for, and the session.
    pair: u64,
    back: u64,
    /// In a lock of a row: its index.
    index: u64,
}

const VERSIONS: [Version; 2] = [
    Version {
        id: 0x3f18,
        context: 0x160,
        engine: 0x2880,
        command: 0x27d8,
        connection: 0x2c0,
        thread: 0x2800,
        pair: 0x80,
        back: 0x8d0,
        index: 0x18,
    },
    Version {
        id: 0x1200,
        context: 0x208,
        engine: 0x1400,
        command: 0x1108,
        connection: 0x300,
        thread: 0x1110,
        pair: 0x118,
        back: 0x620,
        index: 0x28,
    },
];

struct Server {
    written: Written,
    version: Version,
    sessions: u64,
    tickets: u64,
}

fn session(number: u64) -> u64 {
    0x100_0000 + 0x8000 * number
}

fn transaction(number: u64) -> u64 {
    0x200_0000 + 0x1000 * number
}

impl Server {
    fn new(version: Version) -> Server {
        let mut written = Written::default();
        let code = |start: &[u8], distance: u32| [start, &distance.to_le_bytes(), &[0xc3]].concat();
        written.put(SYMBOLS.id, &code(&[0x48, 0x8b, 0x87], version.id));
        written.put(SYMBOLS.context, &code(&[0x48, 0x8d, 0x87], version.context));
        written.put(SYMBOLS.command, &code(&[0x8b, 0x87], version.command));
        written.put(SYMBOLS.connection, &code(&[0x48, 0x8b, 0x97], version.connection));
        let shifted = [0x8b, 0x46, 0x04, 0x48, 0xc1, 0xe0, 0x06, 0x48, 0x8b, 0x84, 0x38];
        written.put(SYMBOLS.engine, &code(&shifted, version.engine));
        let stages = [
            "Waiting for backup lock",
            "Waiting for schema metadata lock",
            "Waiting for table metadata lock",
        ];
        for (number, stage) in (0..).zip(stages) {
            let text = SYMBOLS.stages + 0x800 + 0x40 * number;
            written.put(text, stage.as_bytes());
            written.word(SYMBOLS.stages + 24 * number + 8, text);
        }
        written.word(SYMBOLS.sessions, SYMBOLS.sessions + 8);
        Server {
            written,
            version,
            sessions: 0,
            tickets: 0,
        }
    }

    /// Another session; its thread has the number 1000 and its own.
    fn session(&mut self, idle: bool) -> u64 {
        let number = self.sessions;
        self.sessions += 1;
        let (at, version) = (session(number), self.version);
        self.written.word(at, SYMBOLS.session + 16);
        self.written.word(at + 16, SYMBOLS.sessions + 8);
        match number {
            0 => self.written.word(SYMBOLS.sessions, at),
            _ => self.written.word(session(number - 1) + 16, at),
        }
        self.written.word(at + u64::from(version.id), number + 4);
        let command: u32 = if idle { 0 } else { 3 };
        self.written
            .put(at + u64::from(version.command), &command.to_le_bytes());
        let tid = 1000 + number as u32;
        self.written.put(at + version.thread, &tid.to_le_bytes());
        let connection = 0x300_0000 + 0x100 * number;
        self.written.word(at + u64::from(version.connection), connection);
        self.written.put(connection, &(20 + number as u32).to_le_bytes());
        // Pages of a session are there as a whole.
        for page in 0..8 {
            self.written.put(at + 0x1000 * page + 0xff8, &[0; 8]);
        }
        number
    }

    /// A transaction of a session, begun 25 seconds ago; `behind`: the one that it waits for, for a row of shop/account.
    fn transaction(&mut self, number: u64, behind: Option<u64>) {
        let (at, version) = (transaction(number), self.version);
        self.written
            .word(session(number) + u64::from(version.engine) + 64 * 8, at);
        self.written.word(at + version.back, session(number));
        self.written.word(at + version.back - 16, NOW - 25_000_000);
        // Its place in the list of all of them: the next and the one before.
        self.written.word(at, transaction(number + 1));
        self.written.word(at + 8, transaction(number.wrapping_sub(1) & 7));
        let Some(behind) = behind else { return };
        let lock = at + 0x100;
        let (index, table, name) = (0x400_0000, 0x400_0400, 0x400_0800);
        self.written.word(at + version.pair, lock);
        self.written.word(at + version.pair + 8, transaction(behind));
        self.written.word(lock, at);
        // An earlier lock of the same transaction, of another table.
        let earlier = at + 0x400;
        self.written.word(lock + 8, earlier);
        self.written.word(earlier, at);
        self.written.word(earlier + version.index, 0x400_0c00);
        self.written.word(0x400_0c00, 0x400_0d00);
        self.written.word(0x400_0d00, 0x400_0e00);
        self.written.put(0x400_0e00, b"shop/other");
        self.written.word(lock + version.index, index);
        self.written.put(0x400_0900, b"PRIMARY");
        self.written.word(index + 0x20, 0x400_0900);
        self.written.word(index + 0x28, table);
        self.written.word(table + 0x30, name);
        self.written.put(name, b"shop/account");
    }

    /// A claim of a session on a lock.
    fn ticket(&mut self, number: u64, lock: u64, strength: u32, given: bool) {
        let context = session(number) + u64::from(self.version.context);
        let at = 0x500_0000 + 0x100 * self.tickets;
        self.tickets += 1;
        self.written.word(at, SYMBOLS.ticket + 16);
        self.written.put(at + 0x30, &strength.to_le_bytes());
        self.written.word(at + 0x38, context);
        self.written.word(at + 0x40, lock);
        let place = if given { context + 0x80 } else { context + 0x108 };
        if given {
            self.written.word(at + 0x20, place);
        }
        self.written.word(place, at);
    }

    fn key(&mut self, lock: u64, kind: u8, database: &str, name: &str) {
        let text = [&[kind], database.as_bytes(), b"\0", name.as_bytes(), b"\0"].concat();
        self.written.put(lock, &(text.len() as u16).to_le_bytes());
        self.written.put(lock + 2, &(database.len() as u16).to_le_bytes());
        self.written.put(lock + 8, &text);
    }

    fn found(&self) -> Vec<Session> {
        let tids: HashSet<u32> = (990..1100).collect();
        sessions(&mut Memory::new(self.written.clone()), &SYMBOLS, &tids, NOW)
    }
}

fn waits(found: &[Session], number: u64) -> Option<&Waits> {
    found
        .iter()
        .find(|one| one.id == number + 4)
        .unwrap()
        .waits
        .as_ref()
}

const ITEM: u64 = 0x600_0000;

/// Session 0 has an open transaction and sleeps, 1 and 2 wait for its row; 3 has locked a table against writers, 4 writes to it, 5 reads.
fn rows_and_definitions(version: Version) -> Server {
    let mut server = Server::new(version);
    for idle in [true, false, false, true, false, false] {
        server.session(idle);
    }
    server.transaction(0, None);
    server.transaction(1, Some(0));
    server.transaction(2, Some(1));
    server.key(ITEM, 2, "shop", "item");
    server.ticket(3, ITEM, 6, true);
    server.ticket(4, ITEM, 4, false);
    server.ticket(5, ITEM, 3, true);
    server
}

#[test]
fn sessions_that_wait_and_those_that_they_wait_for_are_read_in_any_version() {
    for version in VERSIONS {
        let found = rows_and_definitions(version).found();
        assert_eq!(found.len(), 6);
        let account = Lock::Row(Some("shop/account".into()));
        let row = |behind| Waits {
            lock: account.clone(),
            behind: vec![behind],
        };
        assert_eq!(waits(&found, 1), Some(&row(4)));
        assert_eq!(waits(&found, 2), Some(&row(5)), "behind another one that waits");
        let definition = Waits {
            lock: Lock::Definition {
                stage: "Waiting for table metadata lock".into(),
                database: "shop".into(),
                name: "item".into(),
            },
            behind: vec![7],
        };
        assert_eq!(waits(&found, 4), Some(&definition), "a reader is not in its way");
        let holder = &found[0];
        assert_eq!((holder.id, holder.tid, holder.idle), (4, Some(1000), true));
        assert_eq!(
            (holder.descriptor, holder.began),
            (Some(20), Some(NOW - 25_000_000))
        );
        assert!(!found[1].idle && found[3].began.is_none());
    }
}

#[test]
fn readers_stand_behind_the_one_that_waits_to_change_the_table() {
    let mut server = Server::new(VERSIONS[0]);
    for _ in 0..4 {
        server.session(false);
    }
    server.key(ITEM, 2, "shop", "item");
    server.ticket(0, ITEM, 3, true);
    server.ticket(1, ITEM, 9, false);
    server.ticket(2, ITEM, 3, false);
    server.ticket(3, ITEM, 3, false);
    let found = server.found();
    assert_eq!(waits(&found, 1).unwrap().behind, [4]);
    assert_eq!(waits(&found, 2).unwrap().behind, [5]);
    assert_eq!(waits(&found, 3).unwrap().behind, [5]);
}

#[test]
fn who_changes_data_is_behind_the_one_that_has_locked_the_server_and_not_behind_others() {
    let mut server = Server::new(VERSIONS[0]);
    for _ in 0..3 {
        server.session(false);
    }
    server.key(ITEM, 0, "", "");
    server.ticket(0, ITEM, 6, true);
    server.ticket(1, ITEM, 8, false);
    server.ticket(2, ITEM, 8, true);
    let found = server.found();
    let waits = waits(&found, 1).unwrap();
    assert_eq!(waits.behind, [4]);
    assert!(matches!(&waits.lock, Lock::Definition { name, .. } if name.is_empty()));
}

#[test]
fn where_nobody_waits_nothing_is_told() {
    let mut server = Server::new(VERSIONS[0]);
    server.session(true);
    server.session(false);
    server.transaction(0, None);
    server.transaction(1, None);
    server.key(ITEM, 2, "shop", "item");
    server.ticket(0, ITEM, 3, true);
    assert_eq!(server.found(), []);
    let none: HashSet<u32> = HashSet::new();
    assert_eq!(
        sessions(&mut Memory::new(Written::default()), &SYMBOLS, &none, NOW),
        []
    );
}

#[test]
fn damaged_memory_is_read_to_an_end() {
    let images: Vec<Written> = VERSIONS
        .iter()
        .map(|version| rows_and_definitions(*version).written)
        .collect();
    let tids: HashSet<u32> = (990..1100).collect();
    damage::read_damaged_for(1_000, &images, 400, |written, _| {
        let found = sessions(&mut Memory::new(written), &SYMBOLS, &tids, NOW);
        found.iter().filter(|one| one.waits.is_some()).count() == 3
    });
}
