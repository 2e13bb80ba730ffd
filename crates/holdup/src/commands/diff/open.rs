//! From the files that a user named to what can be compared of them.
//!
//! In: paths. Out: [`Source`]s. Reports of holdup are known by their schema, collapsed stacks in plain files are added up as
//! they are read, everything else goes to the readers of artefacts. Nothing is followed out of a folder, nothing is opened
//! that could block, and what is read as a whole is bounded: a file may have been made to do harm.

use crate::saved;
use anyhow::{Context, bail};
use holdup_comparison::comparison::artefacts;
use holdup_comparison::comparison::frames::Frames;
use holdup_comparison::comparison::source::{BUILD, Source};
use holdup_model::finding::Verdicts;
use holdup_readers::{HEAD, Readers, recognise, stacks};
use holdup_report::{Subject, build};
use std::fs::{File, OpenOptions};
use std::io::{Chain, Cursor, Error, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Files of a folder, and folders within one another.
const FILES: usize = 10_000;
const DEPTH: u32 = 8;

/// The words by which a report is known.
const SCHEMA: &[u8] = b"\"schema\"";
const REPORTS: &str = "holdup.report/";

/// What a recording begins with: it is a Parquet file.
const RECORDING: &[u8] = b"PAR1";

/// Outputs of commands that a shell puts in place of files.
const STREAMS: [&str; 2] = ["/dev/fd/", "/proc/self/fd/"];

/// What is wanted of the files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Only stacks through such a function.
    pub(super) under: Option<&'a str>,
    /// The stacks themselves too, for a picture.
    pub(super) stacks: bool,
}

/// A file with its beginning put back.
type Whole = Chain<Cursor<Vec<u8>>, File>;

/// All sides, read side by side: profiles are large.
///
/// # Errors
/// Why one of them can't be read.
pub(super) fn all(sides: &[&[PathBuf]; 3], wanted: Wanted<'_>) -> anyhow::Result<[Vec<Source>; 3]> {
    std::thread::scope(|scope| {
        let mut sides = sides.iter();
        let readers = [false, false, true].map(|apart| {
            let files = sides.next().copied().unwrap_or_default();
            scope.spawn(move || side(files, wanted, apart))
        });
        let [before, after, noise] = readers.map(|reader| {
            reader
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        Ok([before?, after?, noise?])
    })
}

/// One side. Segments of a recorder's folder are one run, unless they are to be reported `apart`, as runs of their own.
fn side(files: &[PathBuf], wanted: Wanted<'_>, apart: bool) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for file in files {
        let kind = std::fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
        if kind.is_dir() {
            let mut within = Vec::new();
            list(file, DEPTH, &mut within)?;
            let mut segments: Option<Source> = None;
            for one in &within {
                // What is no artefact lies in folders, too; a recording that can't be read is missed.
                let read = match read(one, Named::InFolder, wanted) {
                    Err(error) if recorded(one) => return Err(error),
                    read => read.unwrap_or_default(),
                };
                for source in read {
                    match &mut segments {
                        _ if apart || !source.goes_on() => sources.push(source),
                        Some(whole) => whole.append(source),
                        None => segments = Some(source),
                    }
                }
            }
            sources.extend(segments);
        } else {
            let stream = STREAMS.iter().any(|prefix| file.starts_with(prefix));
            if !kind.is_file() && !stream {
                bail!(
                    "cannot read {}: it is neither a file nor a directory",
                    file.display()
                );
            }
            let named = if stream { Named::Stream } else { Named::File };
            sources.extend(
                read(file, named, wanted).with_context(|| format!("cannot read {}", file.display()))?,
            );
        }
    }
    Ok(sources)
}

/// The files below a folder, in the order of their names; links are not followed.
fn list(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if files.len() >= FILES {
            bail!("{} has more than {FILES} files", folder.display());
        }
        if kind.is_dir() && depth > 0 {
            list(&entry.path(), depth - 1, files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Who named a file, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// The person, as a stream of a command.
    Stream,
    /// The person.
    File,
    /// It was found in a folder: whoever may write there may have put something else in its place since.
    InFolder,
}

/// Opens a file, and nothing else that took its place: neither a link in a folder, nor a FIFO that would block.
fn open(path: &Path, named: Named) -> std::io::Result<File> {
    let link = match named {
        Named::Stream => return File::open(path),
        Named::File => 0,
        Named::InFolder => libc::O_NOFOLLOW,
    };
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | link)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::other("it is no longer a file")),
    }
}

/// One file.
fn read(path: &Path, named: Named, wanted: Wanted<'_>) -> anyhow::Result<Vec<Source>> {
    let name = path.to_string_lossy().into_owned();
    let mut file = open(path, named)?;
    let mut head = Vec::with_capacity(HEAD);
    Read::by_ref(&mut file).take(HEAD as u64).read_to_end(&mut head)?;
    if head.starts_with(RECORDING) {
        return of_recording(name, path, wanted.under);
    }
    let report = is_report(&head);
    let collapsed = !report && recognise(&head).is_some_and(|format| format.id == "collapsed");
    let mut whole: Whole = Cursor::new(head).chain(file);
    if report {
        return Ok(vec![of_report(name, whole)?]);
    }
    if collapsed {
        return Ok(vec![of_stacks(name, &mut whole, wanted)]);
    }
    let mut readers = Readers::new();
    readers.read(&name, &mut whole);
    let reading = readers.finish();
    Ok(artefacts::sources(
        &name,
        &reading.observed,
        &reading.facts,
        wanted.under,
    ))
}

/// Whether a file begins as a recording does.
fn recorded(path: &Path) -> bool {
    let mut head = [0; RECORDING.len()];
    let read = open(path, Named::InFolder).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == RECORDING
}

/// A recording, as the report that would have been printed then; a look at a machine, as its figures.
fn of_recording(name: String, path: &Path, under: Option<&str>) -> anyhow::Result<Vec<Source>> {
    let segment = holdup_recording::read_one(path)?;
    let head = segment.head;
    if let Some(look) = &segment.look {
        let mut sources = artefacts::sources(&name, &look.observed, &segment.facts, under);
        let host = head.host.map(|host| ("host".to_owned(), host));
        if let Some(first) = sources.first_mut() {
            first.facts.extend(host);
        }
        return Ok(sources);
    }
    let subject = Subject {
        kind: head.kind,
        backend: head.backend,
        command: head.command,
        pids: head.pids,
        started: head.started,
        exit: head.exit,
        elsewhere: head.elsewhere,
    };
    let report = build(
        subject,
        &segment.attributed,
        Verdicts::default(),
        &segment.facts,
        &head.holdup,
    );
    let mut source = Source::of_report(name, &report).context("nothing in it took any time")?;
    source.notes.extend(head.approximate);
    let listed = [
        ("host", head.host),
        ("kernel", head.kernel),
        ("unit", head.unit),
        ("cgroup", head.cgroup),
    ];
    let facts = listed
        .into_iter()
        .filter_map(|(what, is)| Some((what.to_owned(), is?)));
    source.facts.extend(facts);
    // Another build of a library is another package of it, whatever its name and version say.
    let builds = head
        .build_ids
        .into_iter()
        .map(|(file, id)| (format!("{BUILD}{file}"), id));
    source.facts.extend(builds);
    Ok(vec![source])
}

/// Whether it begins as a report of ours, of whatever version.
fn is_report(head: &[u8]) -> bool {
    let has = |words: &[u8]| head.windows(words.len()).any(|part| part == words);
    head.trim_ascii_start().starts_with(b"{") && has(SCHEMA) && has(REPORTS.as_bytes())
}

fn of_report(name: String, whole: Whole) -> anyhow::Result<Source> {
    let report = saved::report(whole)?;
    Source::of_report(name, &report).context("a report of holdup without times to compare")
}

fn of_stacks(name: String, whole: &mut Whole, wanted: Wanted<'_>) -> Source {
    let mut frames = Frames::under(wanted.under);
    if wanted.stacks {
        frames = frames.with_stacks();
    }
    let found = stacks(whole, &mut |stack, weight| frames.add(stack, weight));
    let mut source = Source::of_profile(name.clone(), &frames, found.weight);
    if found.not_understood > 0 {
        let lines = found.not_understood;
        source
            .notes
            .push(format!("{name}: {lines} lines were not recognised"));
    }
    if let Some(why) = found.failure {
        source
            .notes
            .push(format!("{name} could not be read to its end: {why}"));
    }
    source
}
