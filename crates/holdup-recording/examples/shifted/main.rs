//! Copies segments with their times shifted: `cargo run -p holdup-recording --example shifted -- FROM TO COUNT`.
//!
//! For measurements of `holdup show` over longer than a bench can record: the segments of FROM in turn, COUNT of them, each from where
//! the one before it ends.
#![allow(clippy::unwrap_used, reason = "a chore stops at what it does not expect")]

use std::path::PathBuf;

fn main() {
    let mut words = std::env::args().skip(1);
    let (from, to) = (
        PathBuf::from(words.next().unwrap()),
        PathBuf::from(words.next().unwrap()),
    );
    let count: usize = words.next().unwrap().parse().unwrap();
    let segments = holdup_recording::read(&from).unwrap();
    let (mut monotonic, mut unix) = (segments[0].head.started, segments[0].head.started_unix);
    for (number, segment) in segments.iter().cycle().take(count).enumerate() {
        let mut segment = segment.clone();
        (segment.head.started, segment.head.started_unix) = (monotonic, unix);
        monotonic += segment.head.length;
        unix += i64::try_from(segment.head.length).unwrap();
        holdup_recording::save(&segment, &to.join(format!("holdup-{number:05}.parquet"))).unwrap();
    }
}
