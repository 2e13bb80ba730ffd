//! The runs: A B B A, each in a room of its own, observed like any other run.
//!
//! In: a [`Laboratory`]. Out: one [`Done`] a run. Outside the clock: the room, `--prepare`, `sync`, files brought
//! into memory, `--cleanup`. Without the sync a run would pay for what the one before it did not wait for.

use super::complaint;
use super::directory::{Files, copy_up};
use super::resolve;
use super::table;
use super::without::{Means, Way};
use crate::commands::doctor;
use crate::commands::run::without_evidence;
use crate::experiment::checks::{Directory, fits};
use crate::output::say;
use crate::verdict;
use anyhow::{Context, anyhow, bail};
use holdup_collect::{self as collect, Collected, Cut};
use holdup_evidence::Ns;
use holdup_evidence::units::share as percent;
use holdup_report::Subject as Observed;
use holdup_subject::filter::{Answer, program};
use holdup_subject::mounts::Mount;
use holdup_subject::room::Room;
use holdup_subject::signals::{Control, Signals};
use holdup_subject::subject::{Command, Ended, Here, NotStarted, Setting, Standing, Subject};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::time::Duration;

/// Which way a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As it is.
    AsIs,
    /// Without the wait.
    Without,
}

impl Kind {
    /// For sentences and names of files.
    pub(crate) fn words(self, way: &Way) -> String {
        match self {
            Kind::AsIs => "unchanged".to_owned(),
            Kind::Without => format!("without {}", way.name),
        }
    }
}

/// In which order the arms of this pair run, counted from 0.
pub(crate) fn order(pair: u32) -> [Kind; 2] {
    match pair % 2 {
        0 => [Kind::AsIs, Kind::Without],
        _ => [Kind::Without, Kind::AsIs],
    }
}

/// Commands of the person's, for a shell, outside the clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hooks {
    /// Before each run.
    pub(crate) prepare: Option<OsString>,
    /// Once, before the first.
    pub(crate) warmup: Option<OsString>,
    /// After each run.
    pub(crate) cleanup: Option<OsString>,
}

/// Everything that runs have in common.
pub(crate) struct Laboratory<'a> {
    pub(crate) way: &'a Way,
    pub(crate) command: Command,
    pub(crate) hooks: Hooks,
    pub(crate) directory: Option<Directory>,
    pub(crate) how: collect::How,
    /// How long a run may take.
    pub(crate) limit: Duration,
    /// CMD's, if it can be given again and again.
    pub(crate) stdin: Option<File>,
    pub(crate) nothing: File,
    pub(crate) standing: Standing,
    pub(crate) here: Here,
    pub(crate) signals: &'a mut Signals,
    /// Files below the directory that runs as it is have written to, by path below it.
    pub(crate) written: Vec<PathBuf>,
    /// Names that the first run asked for, in files that answer for them.
    pub(crate) names: Names,
    /// Why runs are sampled, where they can't be traced.
    pub(crate) untraced: Option<String>,
}

/// Files that answer for names, in the place of those with these names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    files: Vec<(&'static str, Vec<u8>)>,
    /// The names.
    pub(crate) known: Vec<String>,
}

/// A run.
pub(crate) struct Done {
    pub(crate) observed: Observed,
    pub(crate) collected: Collected,
    pub(crate) ended: Ended,
    /// CMD's last words on stderr.
    pub(crate) words: String,
}

/// CMD was ended; the sentence that says so.
#[derive(Debug)]
pub(crate) struct TookTooLong(String);

impl std::fmt::Display for TookTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TookTooLong {}

impl Laboratory<'_> {
    /// Runs what comes once before the first.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) fn warm_up(&mut self) -> anyhow::Result<()> {
        let room = Room::make(&[])?;
        let warmup = self.hooks.warmup.clone();
        self.hook(&room, "--warmup", warmup.as_ref())
    }

    /// Makes one run.
    ///
    /// # Errors
    /// When it can't be made or observed, takes too long, or the person wants no more.
    pub(crate) fn run(&mut self, kind: Kind) -> anyhow::Result<Done> {
        let room = Room::make(&self.mounts(kind))?;
        let prepare = self.hooks.prepare.clone();
        self.hook(&room, "--prepare", prepare.as_ref())?;
        if self.way.settles {
            self.hook(&room, "writing back dirty pages with", Some(&"sync".into()))?;
        }
        let mut before = None;
        let held = self
            .directory
            .as_ref()
            .and_then(|directory| directory.held.clone());
        if let Some(held) = &held {
            match kind {
                Kind::Without => copy_up(&room, &self.written),
                Kind::AsIs => before = Some(Files::of(held.as_fd())?),
            }
        }
        let (stderr, complaint) = complaint::listen()?;
        let done = self.observe(&room, kind, stderr.as_raw_fd());
        drop(stderr);
        if let (Some(before), Some(directory), Some(held)) = (before, &self.directory, &held) {
            let (written, bytes) = before.written_since(&Files::of(held.as_fd())?);
            fits(directory, bytes).map_err(|why| anyhow!(why))?;
            self.written = written;
        }
        let done = done?;
        let cleanup = self.hooks.cleanup.clone();
        self.hook(&room, "--cleanup", cleanup.as_ref())?;
        drop(room);
        Ok(Done {
            words: complaint.words(),
            ..done
        })
    }

    /// Prepares what runs without need to know of the first run as it is; why that can't be had, if it can't.
    ///
    /// # Errors
    /// When the person wants no more, or this machine's own files can't be read.
    pub(crate) fn learn(&mut self, first: &Done) -> anyhow::Result<Option<String>> {
        if !matches!(self.way.means, Means::Names) {
            return Ok(None);
        }
        let asked = table::asked(&first.collected.attributed);
        let mut interrupted = false;
        let answers = resolve::ask(asked.keys().map(String::as_str), self.limit, || {
            interrupted = self.signals.interrupted() == Control::EndObservation;
            !interrupted
        });
        if interrupted {
            bail!("interrupted; no process of CMD is left");
        }
        let resolver = first.collected.facts.resolver.as_ref();
        let search = resolver.map_or(&[][..], |resolver| &resolver.search);
        let (lost, ns) = table::unanswered(&asked, &answers, search);
        let share = ns as f64 / (asked.values().sum::<Ns>() as f64).max(1.0);
        if share > MOST_UNANSWERED {
            let lost: Vec<&str> = lost.into_iter().take(LISTED).collect();
            return Ok(Some(format!(
                "{} of the time in name lookups was for names without an address, which /etc/hosts cannot answer: {}",
                percent(share),
                lost.join(", ")
            )));
        }
        let hosts = fs::read(HOSTS).with_context(|| format!("cannot read {HOSTS}"))?;
        let Some(hosts) = table::hosts(&hosts, &answers, search) else {
            return Ok(Some(
                "none of the names that it looks up has an address".to_owned(),
            ));
        };
        let mut files = vec![(HOSTS, hosts)];
        // Where there is none, files come first as it is.
        if let Ok(sources) = fs::read_to_string(NSSWITCH)
            && let Some(sources) = table::files_first(&sources)
        {
            files.push((NSSWITCH, sources.into_bytes()));
        }
        let known = answers
            .into_iter()
            .filter(|(_, answer)| *answer != table::Answer::Nothing);
        self.names = Names {
            files,
            known: known.map(|(name, _)| name).collect(),
        };
        Ok(None)
    }

    fn mounts(&self, kind: Kind) -> Vec<Mount> {
        match kind {
            Kind::AsIs => vec![],
            Kind::Without => instead(self.way, self.directory.as_ref(), &self.names),
        }
    }

    fn observe(&mut self, room: &Room, kind: Kind, stderr: i32) -> anyhow::Result<Done> {
        let answer = match kind {
            Kind::AsIs => Answer::Done,
            Kind::Without => Answer::AtOnce,
        };
        let filter = match self.way.means {
            Means::Calls(calls) => program(calls, answer),
            Means::Bind { .. } | Means::Memory | Means::Names => vec![],
        };
        if let Some(stdin) = &mut self.stdin {
            stdin
                .seek(SeekFrom::Start(0))
                .context("cannot give CMD its stdin again")?;
        }
        let stdin = self.stdin.as_ref().unwrap_or(&self.nothing).as_raw_fd();
        let setting = self.setting(room, [stdin, self.nothing.as_raw_fd(), stderr], &filter)?;
        let mut subject = Subject::prepare_in(&self.command, Some(&setting))?;
        let observed = self.collect(room, &mut subject);
        let ended = match &observed {
            Ok(Ok(_)) => Some(subject.wait()?),
            _ => {
                end(&mut subject);
                None
            }
        };
        let observed = observed.map_err(|error| without_evidence(error, "the command"))?;
        match (observed, ended) {
            (Ok(collected), Some(ended)) => Ok(Done {
                observed: verdict::subject_of_run(&self.command, &subject, &collected),
                collected,
                ended,
                words: String::new(),
            }),
            (Err(Cut::TimedOut), _) => bail!(TookTooLong(format!(
                "CMD did not end within {} s ({}) and was killed; to give it more time, use --timeout",
                self.limit.as_secs(),
                kind.words(self.way)
            ))),
            (Err(Cut::Interrupted) | Ok(_), _) => {
                bail!("interrupted; CMD was killed, and no process of it is left")
            }
        }
    }

    /// Traces the run; where that is not to be had, this one and all after it are sampled.
    fn collect(&mut self, room: &Room, subject: &mut Subject) -> anyhow::Result<Result<Collected, Cut>> {
        if self.untraced.is_none() {
            match collect::run_for(subject, self.signals, self.how, self.limit) {
                Err(error) if subject.is_held_back() && !error.is::<NotStarted>() => {
                    let why = doctor::lacking().unwrap_or_else(|| format!("{error:#}"));
                    say(&format!(
                        "/proc is sampled, because CMD cannot be traced here: {why}; the remaining wait is an estimate, and \
                         nothing is predicted; `holdup doctor` shows what to change"
                    ));
                    self.untraced = Some(why);
                }
                collected => return collected,
            }
        }
        let why = self.untraced.as_deref().unwrap_or_default();
        collect::sample_for(subject, self.signals, room.keeper(), self.limit, why)
    }

    fn setting<'f>(
        &self,
        room: &Room,
        stdio: [i32; 3],
        filter: &'f [libc::sock_filter],
    ) -> anyhow::Result<Setting<'f>> {
        Ok(Setting {
            namespaces: room.namespaces().collect(),
            directory: self.here.in_room(room)?,
            stdio,
            filter,
            standing: self.standing,
        })
    }

    /// Runs a command of the person's in the room.
    fn hook(&mut self, room: &Room, option: &str, words: Option<&OsString>) -> anyhow::Result<()> {
        let Some(words) = words else { return Ok(()) };
        let command = Command {
            argv: vec!["sh".into(), "-c".into(), words.clone()],
            user: None,
        };
        let nothing = self.nothing.as_raw_fd();
        let setting = self.setting(room, [nothing, nothing, libc::STDERR_FILENO], &[])?;
        let mut subject = Subject::prepare_in(&command, Some(&setting))?;
        subject.go();
        match collect::wait_for(&mut subject, self.signals, self.limit) {
            Ok(Ok(ended)) if ended.status() == 0 => Ok(()),
            Ok(Ok(ended)) => bail!("{option} {words:?} ended with status {}", ended.status()),
            other => {
                end(&mut subject);
                match other? {
                    Err(Cut::TimedOut) => {
                        bail!("{option} {words:?} did not end within {} s", self.limit.as_secs())
                    }
                    _ => bail!("interrupted; no process of CMD is left"),
                }
            }
        }
    }
}

/// Whether CMD can be kept apart here at all, and without the wait.
///
/// # Errors
/// What the kernel refuses.
pub(crate) fn can_be_kept_apart(way: &Way, directory: Option<&Directory>) -> anyhow::Result<()> {
    let names = Names {
        files: vec![(HOSTS, Vec::new())],
        ..Names::default()
    };
    Room::make(&instead(way, directory, &names)).map(drop)
}

/// What runs without the wait have in the place of what is there.
fn instead(way: &Way, directory: Option<&Directory>, names: &Names) -> Vec<Mount> {
    match (way.means, directory) {
        (Means::Bind { from, over }, _) => vec![Mount::Bind {
            from: from.into(),
            over: over.into(),
        }],
        (Means::Names, _) => {
            let texts = names.files.iter().map(|(over, text)| Mount::Text {
                text: text.clone(),
                over: over.into(),
            });
            texts.collect()
        }
        (Means::Memory, Some(directory)) => {
            let mount = directory.held.clone().map(|held| Mount::Memory {
                over: directory.path.clone(),
                held,
                most: directory.memory,
            });
            mount.into_iter().collect()
        }
        (Means::Memory, None) | (Means::Calls(_), _) => vec![],
    }
}

/// Where the C library looks for names, and what tells it where to look.
pub(crate) const HOSTS: &str = "/etc/hosts";
const NSSWITCH: &str = "/etc/nsswitch.conf";

/// Of all waiting for names: what may have been for names without an answer. As much may be left of a wait that was taken away.
const MOST_UNANSWERED: f64 = 0.10;

/// Names that a sentence lists.
pub(crate) const LISTED: usize = 4;

/// Ends a child of ours for good: the room's end waits for it.
fn end(subject: &mut Subject) {
    subject.signal(libc::SIGKILL);
    subject.wait().ok();
}

#[cfg(test)]
mod tests {
    use super::{Kind, order};

    #[test]
    fn the_arms_change_places_from_pair_to_pair() {
        use Kind::{AsIs, Without};
        let all: Vec<Kind> = (0..4).flat_map(order).collect();
        assert_eq!(all, [AsIs, Without, Without, AsIs, AsIs, Without, Without, AsIs]);
    }
}
