//! `holdup read`: the same verdict from artefacts that people already have.
//!
//! In: files, or stdin. Out: the report; 1 when nothing was understood. Nothing is observed, and no clock is read but to
//! date the report.

use crate::cli::{Color, ReadArgs};
use crate::gate::{self, Gate};
use crate::output::{Outputs, Place, print, say};
use crate::progress::Progress;
use crate::verdict::artefacts;
use anyhow::{Context, bail};
use holdup_artefacts::attribute;
use holdup_collect::privileges::{self, Part};
use holdup_diagnosis::rules::Run;
use holdup_model::report::SubjectKind;
use holdup_readers::{Account, FORMATS, Family, Readers, Reading, TEXT};
use holdup_views::units::bytes;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

/// Nothing was understood.
pub(crate) const NOTHING_UNDERSTOOD: u8 = 1;

/// Problems that the sentence names where nothing was understood; more are counted.
const PROBLEMS: usize = 3;

/// Reads, judges, prints.
///
/// # Errors
/// When the report can't be written.
pub(crate) fn run(args: &ReadArgs, color: Color) -> anyhow::Result<u8> {
    if args.collect_script {
        print(holdup_readers::COLLECT_SCRIPT.as_bytes())?;
        return Ok(0);
    }
    let gate = Gate::open(&args.gate)?;
    let outputs = Outputs::open(&args.report, Place::Stdout, color)?;
    privileges::keep(Part::Read)?;
    let progress = Rc::new(RefCell::new(Reader::begin(args)));
    let watch = Rc::clone(&progress);
    let mut readers = Readers::watched(move |bytes| watch.borrow_mut().read(bytes));
    let mut unread = 0;
    for file in &args.files {
        let done = if file == Path::new("-") {
            let mut stdin = WithProgress {
                progress: Rc::clone(&progress),
            };
            readers.read("stdin", &mut stdin);
            Ok(())
        } else {
            read(&mut readers, file)
        };
        if let Err(error) = done {
            progress.borrow_mut().line.clear();
            say(&format!("{error:#}"));
            unread += 1;
        }
    }
    let reading = readers.finish();
    progress.borrow_mut().line.clear();
    // What says nothing of a trouble may still say what kind of machine it is.
    let evidence = reading.accounts.iter().any(|account| account.evidence > 0);
    if reading.observed.is_empty() && !evidence && !is_text(&reading) {
        if unread < args.files.len() {
            say(&nothing(&reading));
        }
        return Ok(gate::status_without_report(gate.as_ref(), NOTHING_UNDERSTOOD));
    }
    let attributed = attribute(&reading.observed);
    let judged = Run::of_artefacts(&attributed, &reading.facts, &reading.observed);
    let names = args.files.iter().map(|file| file.to_string_lossy().into_owned());
    let report = artefacts::report(SubjectKind::Read, names.collect(), &reading, &judged);
    Ok(outputs.write_judged(report, gate.as_ref()))
}

/// Whether there is a text with anything in it: that none of its lines states anything is an answer too.
fn is_text(reading: &Reading) -> bool {
    let mut sources = reading.observed.sources.iter().zip(&reading.accounts);
    sources.any(|(source, account)| match source.format.as_str() {
        "" => false,
        TEXT => account.not_understood > 0,
        _ => account.lines > 0,
    })
}

/// How far the reading is.
#[derive(Debug)]
struct Reader {
    line: Progress,
    /// Bytes that were read.
    done: u64,
    /// Bytes of all files; `None` where folders or a stream are among them.
    whole: Option<u64>,
}

impl Reader {
    fn begin(args: &ReadArgs) -> Reader {
        let lengths = args.files.iter().map(|file| {
            let metadata = std::fs::metadata(file).ok()?;
            metadata.is_file().then_some(metadata.len())
        });
        Reader {
            line: Progress::begin(args.report.quiet),
            done: 0,
            whole: lengths.sum(),
        }
    }

    fn read(&mut self, length: u64) {
        self.done = self.done.saturating_add(length);
        let (done, whole) = (self.done, self.whole);
        self.line.tell(|| read_so_far(done, whole));
    }
}

/// `read 42 % of 264 MiB`.
fn read_so_far(done: u64, whole: Option<u64>) -> String {
    match whole.filter(|whole| *whole > 0) {
        Some(whole) => {
            let percent = u128::from(done.min(whole)) * 100 / u128::from(whole);
            format!("read {percent} % of {}", bytes(whole))
        }
        None => format!("read {}", bytes(done)),
    }
}

/// stdin; the progress line hears what is read of it.
struct WithProgress {
    progress: Rc<RefCell<Reader>>,
}

impl Read for WithProgress {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = std::io::stdin().lock().read(buffer)?;
        self.progress.borrow_mut().read(read as u64);
        Ok(read)
    }
}

/// Reads one of the files that a user named.
///
/// # Errors
/// Why it can't be read.
pub(crate) fn read(readers: &mut Readers, file: &Path) -> anyhow::Result<()> {
    if file == Path::new("-") {
        readers.read("stdin", &mut std::io::stdin().lock());
        return Ok(());
    }
    // A FIFO is only to be opened once.
    let recording = || {
        let head = holdup_recording::peek(file);
        matches!(head, Ok(_) | Err(holdup_recording::Error::Newer { .. }))
    };
    if file.is_file() && recording() {
        bail!("{} is a recording; `holdup show` reads it", file.display());
    }
    readers
        .read_path(file)
        .with_context(|| format!("cannot read {}", file.display()))
}

/// What was tried and what is wrong with it, in a sentence.
pub(crate) fn nothing(reading: &Reading) -> String {
    let families: BTreeSet<Family> = FORMATS.iter().map(|format| format.family).collect();
    let families: Vec<&str> = families.into_iter().map(Family::name).collect();
    let formats = format!("{} ({} formats)", families.join(", "), FORMATS.len());
    let sum = |of: fn(&Account) -> u64| reading.accounts.iter().map(of).sum::<u64>();
    let files = sum(|account| account.files.as_ref().map_or(0, |files| files.not_recognised));
    let mut sentence = match (sum(|account| account.lines), files) {
        (0, 0) if sum(|account| account.bytes) == 0 => "nothing to read: the input is empty".to_owned(),
        (0, 0) => "nothing recognised".to_owned(),
        (0, 1) => format!("1 file not recognised; known formats: {formats}"),
        (0, files) => format!("{files} files not recognised; known formats: {formats}"),
        (1, _) => format!("1 line not recognised; known formats: {formats}"),
        (lines, _) => format!("{lines} lines not recognised; known formats: {formats}"),
    };
    let sources = reading.observed.sources.iter().zip(&reading.accounts);
    let mut problems = sources.flat_map(|(source, account)| {
        let problems = account.problems.iter();
        problems.map(|problem| format!("; {}: {problem}", source.name))
    });
    sentence.extend(problems.by_ref().take(PROBLEMS));
    match problems.count() {
        0 => {}
        more => sentence.push_str(&format!("; and {more} more")),
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::read_so_far;

    #[test]
    fn how_far_it_is_is_told_where_the_whole_is_known() {
        assert_eq!(
            read_so_far(117_000_000, Some(277_000_000)),
            "read 42 % of 264 MiB"
        );
        assert_eq!(read_so_far(300, Some(277)), "read 100 % of 277 bytes");
        assert_eq!(read_so_far(1_500_000, None), "read 1.4 MiB");
        assert_eq!(read_so_far(1, Some(0)), "read 1 byte");
    }
}
