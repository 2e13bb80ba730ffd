//! Limits that were used up.

use super::Dice;
use holdup_evidence::facts::{
    DescriptorLimit, FileWriter, FullFileSystem, NoDescriptorLeft, OwnLog, TaskLimit, TaskUser, TasksOf,
};
use holdup_evidence::observed::{
    FilledVolume, FrozenVolume, Killed, Occupied, Owed, SeenClient, SeenWait, Short, Silence, VolumeUser,
};

impl Dice {
    /// Some limits on processes and threads.
    pub(super) fn task_limits(&mut self) -> Vec<TaskLimit> {
        self.list(1, |dice| TaskLimit {
            of: TasksOf::User(dice.text()),
            limit: 12,
            used: 12,
            refused: dice.some(|_| 3),
            binds: dice.list(2, |dice| dice.below(1 << 22) as u32),
            programs: dice.list(1, |dice| TaskUser {
                name: dice.text(),
                pid: 7,
                tasks: 9,
            }),
        })
    }

    /// A process without a descriptor left.
    pub(super) fn no_descriptor_left(&mut self) -> Vec<NoDescriptorLeft> {
        self.list(1, |dice| NoDescriptorLeft {
            limit: DescriptorLimit {
                pid: dice.below(1 << 22) as u32,
                open: 32,
                soft: 32,
                hard: 64,
            },
            sockets: 30,
            pipes: 1,
        })
    }

    /// A file system without room.
    pub(super) fn full_file_systems(&mut self) -> Vec<FullFileSystem> {
        self.list(1, |dice| FullFileSystem {
            mount: dice.text(),
            source: dice.text(),
            size: 9,
            left: 1,
            inodes: false,
            writers: dice.list(1, |dice| FileWriter {
                pid: 7,
                process: dice.text(),
                file: dice.text(),
            }),
        })
    }

    /// A file system that is frozen, and who uses it.
    pub(super) fn frozen_volumes(&mut self) -> Vec<FrozenVolume> {
        self.list(1, |dice| FrozenVolume {
            mount: dice.text(),
            waiters: vec![7, 8],
            served_behind: vec![3],
            users: dice.list(1, |dice| VolumeUser {
                process: SeenClient {
                    pid: 9,
                    name: dice.text(),
                },
                runs: None,
                named: true,
                waits: false,
                lived: 5,
            }),
        })
    }

    /// A wait for an answer, with what is known of the one who owes it.
    pub(super) fn answers_awaited(&mut self) -> Vec<SeenWait> {
        self.list(1, |dice| SeenWait {
            name: dice.text(),
            ns: 7,
            short: Short::Answer(Owed {
                inferred: true,
                silence: Some(Silence {
                    connections: 3,
                    of: 4,
                    programs: vec![(dice.text(), 3)],
                    segments: 90,
                    lived: 8,
                }),
                says: vec![OwnLog::default()],
                filled: Some(FilledVolume {
                    mount: dice.text(),
                    by: Some(SeenClient::default()),
                    ..FilledVolume::default()
                }),
                occupied: Some(Box::new(Occupied {
                    silent: dice.some(|_| 5),
                    threads: 1,
                    ..Occupied::default()
                })),
                killed: Some(Box::new(Killed {
                    memory: dice.some(Dice::text),
                    signal: 9,
                    ..Killed::default()
                })),
                ..Owed::default()
            }),
            ..SeenWait::default()
        })
    }
}
