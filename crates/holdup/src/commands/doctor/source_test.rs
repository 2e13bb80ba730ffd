//! `holdup doctor --test-randomness`: the block tests of FIPS 140-2 on any source.
//!
//! In: a path and a number of blocks. Out: what was rejected, by which test, beside what perfect randomness has; 1 where the
//! two are incompatible, or nothing came. A device may block for ever, in opening it or in reading, whatever it is told: so
//! a child process reads, and is left behind when the time is over.

use super::table::wrap;
use crate::output;
use holdup_detached::{Answer, Bytes, Capabilities, Confinement, Detached, Failed};
use holdup_diagnosis::randomness::blocks::{BLOCK, Judgement, REJECTED, Tally, Tester, judge};
use holdup_evidence::units::duration;
use holdup_views::text::printable;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The source is not what it should be.
const WRONG: u8 = 1;

/// How long the source may take for all blocks: a hardware source of some KB a second gives a few dozen.
const LIMIT: Duration = Duration::from_secs(30);

/// Blocks that are asked for ahead of the tests.
const AHEAD: u64 = 32;

/// What the reader may keep: files of anybody may be read, as by root without it.
const READER: Confinement = Confinement {
    name: c"holdup-source",
    capabilities: Capabilities::DAC_READ_SEARCH,
    cpu_time: None,
    memory_bytes: 64 << 20,
    files: 16,
};

/// What comes from the source.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
enum Piece {
    Block(Bytes),
    /// It ended, or can't be read, in these words.
    Ended(String),
}

/// Reads, tests, prints.
///
/// # Errors
/// When stdout can't be written to.
pub(super) fn run(path: &Path, blocks: u64) -> anyhow::Result<u8> {
    let started = Instant::now();
    let until = started + LIMIT;
    let mut reader = start(path, until)?;
    let mut asked = 1;
    let next = |until| {
        while asked < blocks && reader.owed() < AHEAD as usize {
            reader.ask(&(), &[], until)?;
            asked += 1;
        }
        Ok(reader.answer(until)?.value)
    };
    let (tally, why) = test(next, blocks, until);
    reader.abandon(&path.to_string_lossy());
    let text = text(path, &tally, why.as_deref(), started.elapsed());
    output::print(text.as_bytes())?;
    Ok(match judge(&tally) {
        Judgement::Compatible { .. } => 0,
        Judgement::TooMany { .. } | Judgement::TooFew { .. } | Judgement::CannotTell => WRONG,
    })
}

/// Starts a reader and asks it for the first block: with that it gets our stdin, where that is the source.
fn start(path: &Path, until: Instant) -> anyhow::Result<Detached<(), Piece>> {
    let is_stdin = path == Path::new("-");
    let path = path.to_owned();
    let begin = move || {
        let mut source: Option<Result<Box<dyn Read>, std::io::Error>> = None;
        move |(), mut given: Vec<OwnedFd>| -> Answer<Piece> {
            let source = source.get_or_insert_with(|| match given.pop() {
                Some(stdin) => Ok(Box::new(File::from(stdin))),
                None => File::open(&path).map(|file| Box::new(file) as Box<dyn Read>),
            });
            read(source).into()
        }
    };
    let mut reader = Detached::start(&READER, begin)?;
    let stdin = std::io::stdin();
    let given: &[BorrowedFd<'_>] = if is_stdin { &[stdin.as_fd()] } else { &[] };
    reader.ask(&(), given, until)?;
    Ok(reader)
}

/// The next block.
fn read(source: &mut Result<Box<dyn Read>, std::io::Error>) -> Piece {
    let source = match source {
        Ok(source) => source,
        Err(error) => return Piece::Ended(error.to_string()),
    };
    let mut block = vec![0; BLOCK];
    match source.read_exact(&mut block) {
        Ok(()) => Piece::Block(Bytes(block)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Piece::Ended("the source ended".to_owned()),
        Err(error) => Piece::Ended(error.to_string()),
    }
}

/// Tests what comes, until all is there or the time is over; why it is not all.
fn test(
    mut next: impl FnMut(Instant) -> Result<Piece, Failed>,
    blocks: u64,
    until: Instant,
) -> (Tally, Option<String>) {
    let mut tester = Tester::default();
    while tester.tally.blocks < blocks {
        match next(until) {
            Ok(Piece::Block(block)) => match block[..].try_into() {
                Ok(block) => {
                    tester.block(block);
                }
                Err(_) => return (tester.tally, None),
            },
            Ok(Piece::Ended(why)) => return (tester.tally, Some(why)),
            Err(Failed::Late) => {
                let why = format!("the source gave no more data within {} s", LIMIT.as_secs());
                return (tester.tally, Some(why));
            }
            Err(Failed::Gone) => return (tester.tally, Some("the reader process ended".to_owned())),
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
    let usual = format!("With perfect randomness, {in_ten_thousand} of 10,000 blocks are rejected");
    say(&match judge(tally) {
        Judgement::CannotTell => {
            "Too few blocks for a verdict, even if all of them had been rejected.".to_owned()
        }
        Judgement::Compatible { expected } => format!(
            "{} rejected: as expected. {usual}: {expected:.1} of these.",
            tally.rejected
        ),
        Judgement::TooMany { expected } => format!(
            "{} rejected: this is not random. {usual}: {expected:.1} of these. A random source has this result less than once \
             in a million tests.",
            tally.rejected
        ),
        Judgement::TooFew { expected } => format!(
            "{} rejected: too few. {usual}: {expected:.1} of these. A random source has this result less than once in a million \
             tests. Either failed blocks were filtered out, or this is not random.",
            tally.rejected
        ),
    });
    if tally.rejected > 0 {
        let by: Vec<String> = [
            ("count of ones", tally.monobit),
            ("values of four bits (poker)", tally.poker),
            ("runs", tally.runs),
            ("a run of 26 or more", tally.long_run),
            ("a repeated word", tally.continuous),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
        say(&format!("By test (a block may fail several): {}.", by.join(", ")));
    }
    say(
        "These tests (FIPS 140-2) detect a source that is broken or stuck. A source that can be predicted passes them.",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::{Piece, start, test, text};
    use holdup_detached::{Bytes, Failed};
    use holdup_diagnosis::randomness::blocks::{BLOCK, Tally};
    use std::path::Path;
    use std::time::{Duration, Instant};

    #[test]
    fn a_source_that_gives_nothing_is_left() {
        let (tally, why) = test(|_| Err(Failed::Late), 10, Instant::now());
        assert_eq!(
            (tally.blocks, why.as_deref()),
            (0, Some("the source gave no more data within 30 s"))
        );
    }

    #[test]
    fn a_pipe_that_nobody_opens_at_its_other_end_does_not_keep_its_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let mut reader = start(&path, Instant::now() + Duration::from_secs(60)).unwrap();
        assert_eq!(reader.answer(Instant::now()).err(), Some(Failed::Late));
        let pid = reader.pid();
        reader.abandon("a pipe");
        assert!(holdup_detached::left_behind().iter().all(|left| left.pid != pid));
    }

    #[test]
    fn a_file_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source");
        std::fs::write(&path, vec![0; BLOCK]).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let mut reader = start(&path, until).unwrap();
        assert!(matches!(reader.answer(until).unwrap().value, Piece::Block(block) if block.len() == BLOCK));
        reader.ask(&(), &[], until).unwrap();
        assert!(
            matches!(reader.answer(until).unwrap().value, Piece::Ended(why) if why == "the source ended")
        );
    }

    #[test]
    fn what_came_before_the_end_counts() {
        let mut pieces = [
            Piece::Block(Bytes(vec![0; BLOCK])),
            Piece::Block(Bytes(vec![0; BLOCK])),
            Piece::Ended("the source ended".to_owned()),
        ]
        .into_iter();
        let next = |_| pieces.next().ok_or(Failed::Gone);
        let (tally, why) = test(next, 10, Instant::now() + Duration::from_secs(60));
        assert_eq!(
            (tally.blocks, tally.rejected, why.as_deref()),
            (2, 2, Some("the source ended"))
        );
        let text = text(
            Path::new("/dev/x\x1b"),
            &tally,
            why.as_deref(),
            Duration::from_millis(5),
        );
        assert!(
            text.contains("this is not random") && text.replace('\n', " ").contains("then the source ended"),
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
