//! Writes a directory of recorded minutes: `cargo run -p holdup-recording --example story -- DIR MINUTES SERVERS`.
//!
//! For measurements of `holdup show`, and for the samples: `… DIR 1 1` writes the one that is kept of each version.
#![allow(clippy::unwrap_used, reason = "a chore stops at what it does not expect")]

mod minutes;

use std::path::PathBuf;

fn main() {
    let mut words = std::env::args().skip(1);
    let folder = PathBuf::from(words.next().unwrap());
    let mut number = || words.next().unwrap().parse::<u32>().unwrap();
    let (minutes, servers) = (number(), number());
    for minute in 0..minutes {
        let segment = minutes::minute(minute, servers);
        holdup_recording::save(&segment, &folder.join(format!("{minute:04}.parquet"))).unwrap();
    }
}
