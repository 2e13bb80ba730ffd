//! `holdup doctor --test-randomness`: the block tests of FIPS 140-2 on any source.
//!
//! In: a path and a number of blocks. Out: what was rejected, by which test, beside what perfect randomness has; 1 where the
//! two are incompatible, or nothing came. A device may block for ever, in opening it or in reading, whatever it is told: so
//! a thread of its own reads, and is left behind when the time is over.

use super::table::wrap;
use crate::output;
use holdup_analysis::randomness::blocks::{BLOCK, Judgement, REJECTED, Tally, Tester, judge};
use holdup_analysis::rules::duration;
use holdup_views::text::printable;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The source is not what it should be.
const WRONG: u8 = 1;

/// How long the source may take for all blocks: a hardware source of some KB a second gives a few dozen.
const LIMIT: Duration = Duration::from_secs(30);

/// Blocks that wait to be tested.
const QUEUE: usize = 64;

/// What comes from the source.
enum Piece {
    Block(Box<[u8; BLOCK]>),
    /// It ended, or can't be read, in these words.
    Ended(String),
}

/// Reads, tests, prints.
///
/// # Errors
/// When stdout can't be written to.
pub(super) fn run(path: &Path, blocks: u64) -> anyhow::Result<u8> {
    let started = Instant::now();
    let (sender, receiver) = sync_channel(QUEUE);
    let from = path.to_owned();
    std::thread::spawn(move || read(&from, blocks, &sender));
    let (tally, why) = test(&receiver, blocks, started + LIMIT);
    let text = text(path, &tally, why.as_deref(), started.elapsed());
    output::print(text.as_bytes())?;
    Ok(match judge(&tally) {
        Judgement::Compatible { .. } => 0,
        Judgement::TooMany { .. } | Judgement::TooFew { .. } | Judgement::CannotTell => WRONG,
    })
}

/// Hands over block after block.
fn read(path: &PathBuf, blocks: u64, sender: &SyncSender<Piece>) {
    let ended = |words: String| sender.send(Piece::Ended(words)).unwrap_or_default();
    let opened: std::io::Result<Box<dyn Read>> = if path == Path::new("-") {
        Ok(Box::new(std::io::stdin()))
    } else {
        File::open(path).map(|file| Box::new(file) as Box<dyn Read>)
    };
    let mut source = match opened {
        Ok(source) => source,
        Err(error) => return ended(error.to_string()),
    };
    for _ in 0..blocks {
        let mut block = Box::new([0; BLOCK]);
        match source.read_exact(block.as_mut_slice()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return ended("it ended".to_owned()),
            Err(error) => return ended(error.to_string()),
        }
        // Nobody takes it: the time is over.
        if sender.send(Piece::Block(block)).is_err() {
            return;
        }
    }
}

/// Tests what comes, until all is there or the time is over; why it is not all.
fn test(receiver: &Receiver<Piece>, blocks: u64, until: Instant) -> (Tally, Option<String>) {
    let mut tester = Tester::default();
    while tester.tally.blocks < blocks {
        let left = until.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(Piece::Block(block)) => {
                tester.block(&block);
            }
            Ok(Piece::Ended(why)) => return (tester.tally, Some(why)),
            Err(RecvTimeoutError::Timeout) => {
                let why = format!("no more came in {} s", LIMIT.as_secs());
                return (tester.tally, Some(why));
            }
            Err(RecvTimeoutError::Disconnected) => return (tester.tally, None),
        }
    }
    (tester.tally, None)
}

/// What is printed.
fn text(path: &Path, tally: &Tally, why: Option<&str>, took: Duration) -> String {
    let name = printable(&path.to_string_lossy(), false);
    let read = tally.blocks * BLOCK as u64;
    let took = duration(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    let cut = why
        .map(|why| format!(", then {}", printable(why, false)))
        .unwrap_or_default();
    let mut text = String::new();
    let mut say = |words: &str| wrap(&mut text, "", words, 0);
    say(&format!(
        "{name}: {} blocks of 20,000 bits, {read} bytes read in {took}{cut}",
        tally.blocks
    ));
    let in_ten_thousand = REJECTED * 1e4;
    let usual = format!("Of perfect randomness {in_ten_thousand} blocks in 10,000 are rejected");
    say(&match judge(tally) {
        Judgement::CannotTell => {
            "Too few blocks to say anything: not even if all of them had been rejected.".to_owned()
        }
        Judgement::Compatible { expected } => format!(
            "{} rejected: nothing is wrong. {usual}, {expected:.1} of so many.",
            tally.rejected
        ),
        Judgement::TooMany { expected } => format!(
            "{} rejected: this is not random. {usual}, {expected:.1} of so many, and what is seen here not once in a million \
             times.",
            tally.rejected
        ),
        Judgement::TooFew { expected } => format!(
            "{} rejected: too few. {usual}, {expected:.1} of so many, and what is seen here not once in a million times: blocks \
             that failed were taken out before, or this is not random.",
            tally.rejected
        ),
    });
    if tally.rejected > 0 {
        let by: Vec<String> = [
            ("count of ones", tally.monobit),
            ("values of four bits (poker)", tally.poker),
            ("runs", tally.runs),
            ("a run of 26 or more", tally.long_run),
            ("a word twice", tally.continuous),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
        say(&format!("By test (a block may fail several): {}.", by.join(", ")));
    }
    say(
        "These tests (FIPS 140-2) find a source that is broken or stuck; one that can be guessed passes them.",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::{Piece, test, text};
    use holdup_analysis::randomness::blocks::{BLOCK, Tally};
    use std::path::Path;
    use std::sync::mpsc::sync_channel;
    use std::time::{Duration, Instant};

    #[test]
    fn a_source_that_gives_nothing_is_left() {
        let (sender, receiver) = sync_channel(1);
        let (tally, why) = test(&receiver, 10, Instant::now());
        assert_eq!((tally.blocks, why.as_deref()), (0, Some("no more came in 30 s")));
        drop(sender);
    }

    #[test]
    fn what_came_before_the_end_counts() {
        let (sender, receiver) = sync_channel(4);
        sender.send(Piece::Block(Box::new([0; BLOCK]))).unwrap();
        sender.send(Piece::Block(Box::new([0; BLOCK]))).unwrap();
        sender.send(Piece::Ended("it ended".to_owned())).unwrap();
        let (tally, why) = test(&receiver, 10, Instant::now() + Duration::from_secs(60));
        assert_eq!(
            (tally.blocks, tally.rejected, why.as_deref()),
            (2, 2, Some("it ended"))
        );
        let text = text(
            Path::new("/dev/x\x1b"),
            &tally,
            why.as_deref(),
            Duration::from_millis(5),
        );
        assert!(
            text.contains("this is not random") && text.contains("then it ended"),
            "{text}"
        );
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn no_block_is_no_verdict() {
        let text = text(
            Path::new("x"),
            &Tally::default(),
            Some("no such file"),
            Duration::ZERO,
        );
        assert!(
            text.contains("Too few blocks") && text.contains("no such file"),
            "{text}"
        );
    }
}
