//! Writes a directory of recorded minutes: `cargo run -p holdup-recording --example story -- DIR MINUTES SERVERS`.
//!
//! For measurements of `holdup show`, and for the samples, of which one is kept of each version: `… DIR 1 1` writes that of version
//! 1, and `… DIR 0 0 look` that of version 2.
#![allow(clippy::unwrap_used, reason = "a chore stops at what it does not expect")]

mod look;
mod minutes;

use std::path::PathBuf;

fn main() {
    let mut words = std::env::args().skip(1);
    let folder = PathBuf::from(words.next().unwrap());
    let mut number = || words.next().unwrap().parse::<u32>().unwrap();
    let (minutes, servers) = (number(), number());
    if words.next().is_some_and(|word| word == "look") {
        holdup_recording::save(&look::look(0), &folder.join("look.parquet")).unwrap();
    }
    for minute in 0..minutes {
        let segment = minutes::minute(minute, servers);
        holdup_recording::save(&segment, &folder.join(format!("{minute:04}.parquet"))).unwrap();
    }
}
