//! One segment after the other, each observed and written by a process of its own.
//!
//! The problem: an observation holds what it has seen in the kernel and in memory, and a recorder has to run for months; and
//! between one that ends and one that begins nobody would look. The choice: the recorder itself holds nothing. It forks a child
//! for each segment a moment before it is due; when that one says that it is watching, the one before is told to end, writes what
//! it saw and is gone. So segments overlap by some milliseconds and have no gap; one that fails, or is killed for memory, costs
//! its own minute and is spoken of; and a recorder that is killed leaves its child to write what it has.

use super::detail::Detail;
use super::folder::Folder;
use super::losses;
use super::observer::{HIDDEN, Observer, Outcome};
use super::textfile;
use super::uploader::Uploader;
use crate::cli::RecordArgs;
use crate::commands::host::standing;
use crate::output::say;
use crate::progress::Progress;
use crate::recorded::{self, Scope};
use crate::verdict;
use anyhow::Context;
use holdup_bpf::Loaded;
use holdup_collect as collect;
use holdup_collect::budget::Ceiling;
use holdup_collect::privileges::Part;
use holdup_collect::selection::Selection;
use holdup_evidence::{NotMeasured, Ns};
use holdup_proc::{Root, clocks};
use holdup_report::Subject as Observed;
use holdup_subject::signals::{Control, Signals};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{ForkResult, Pid, fork, pipe2};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

/// How long before a segment is due its process begins: loading and looking at a machine's processes takes half a second to a
/// second.
const LEAD: Duration = Duration::from_millis(1_500);

/// How long a process may take to begin before it is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Single pieces of time that are kept in memory, some 160 bytes each and twice as many in between: several times what a segment
/// keeps, which then takes those that are not waits for work first.
const PIECES: usize = 4 * holdup_recording::MAX_PIECES;

/// After a failure, before the next try.
const REST: Duration = Duration::from_secs(5);

/// The rounds.
pub(crate) struct Rounds<'a> {
    args: &'a RecordArgs,
    selection: &'a Selection,
    folder: &'a Folder,
    signals: Signals,
    /// Who brings segments to a store, where that is asked for.
    uploader: Option<Uploader>,
    detail: Detail,
    /// Programs that are loaded: those of the segment that is observed, and those of the next, in turns.
    loaded: [Option<Kept>; 2],
    /// Which of them the next segment takes.
    turn: usize,
    /// Whether a failure to begin was said already: a unit that is down is reported once, and not each minute.
    failing: bool,
    /// Whether it was said that the kernel does not show everything: that is of the machine and does not change.
    said_hidden: bool,
    /// Whether it was told to end.
    ending: bool,
    /// Observers that were late and killed.
    late: Vec<Observer>,
}

/// Programs that are loaded, and whether a process that observes has had them.
struct Kept {
    loaded: Loaded,
    used: bool,
}

impl<'a> Rounds<'a> {
    /// Nothing is observed yet.
    ///
    /// # Errors
    /// When signals can't be watched.
    pub(crate) fn new(
        args: &'a RecordArgs,
        selection: &'a Selection,
        folder: &'a Folder,
        uploader: Option<Uploader>,
    ) -> anyhow::Result<Rounds<'a>> {
        Ok(Rounds {
            args,
            selection,
            folder,
            signals: Signals::watch()?,
            uploader,
            detail: Detail::on(&args.on),
            loaded: [None, None],
            turn: 0,
            failing: false,
            said_hidden: false,
            ending: false,
            late: Vec::new(),
        })
    }

    /// Until somebody asks it to end.
    ///
    /// # Errors
    /// When not even the first segment can be begun.
    pub(crate) fn go(&mut self) -> anyhow::Result<()> {
        let mut now = self.begin(None)?;
        if now.is_none() {
            anyhow::bail!("nothing can be recorded here: see the message above");
        }
        self.tend_uploader();
        // Whoever waits for this line makes happen what is to be recorded.
        say(&format!(
            "recording {} to {}, a segment every {}; holdup show to look back",
            self.selection.said(),
            self.args.directory().display(),
            holdup_times::lengths::said(self.args.every)
        ));
        loop {
            let due = now
                .as_ref()
                .map_or(Instant::now() + REST, |observer| observer.due);
            self.rest_until(due.checked_sub(LEAD).unwrap_or(due), now.as_ref());
            if self.ending {
                break;
            }
            let next = self.begin(now.as_ref())?;
            now = match (now, next) {
                // A segment that is too long is better than none.
                (Some(before), None) if !before.has_ended() => Some(Observer {
                    due: Instant::now() + LEAD + REST,
                    ..before
                }),
                (before, next) => {
                    if let Some(before) = before {
                        self.end(&before);
                    }
                    next
                }
            };
            self.late.retain(|late| !late.is_reaped());
            self.folder.sweep();
            self.tend_uploader();
            if self.ending {
                break;
            }
        }
        if let Some(last) = now {
            self.end(&last);
        }
        if let Some(uploader) = &mut self.uploader {
            uploader.end();
            self.folder.sweep();
        }
        Ok(())
    }

    fn tend_uploader(&mut self) {
        if let Some(uploader) = &mut self.uploader {
            uploader.tend();
        }
    }

    /// Sleeps until an instant, a signal, or the end of who observes.
    fn rest_until(&mut self, until: Instant, observer: Option<&Observer>) {
        while let Some(left) = until
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
        {
            let slice = left.min(Duration::from_secs(1)).as_millis();
            self.signals
                .sleep(PollTimeout::from(u16::try_from(slice).expect("at most a second")));
            self.detail.now();
            if self.is_told_to_end() {
                return;
            }
            let ended = observer.is_some_and(Observer::has_ended);
            if ended {
                break;
            }
        }
    }

    /// Whether it was told to end, now or before.
    fn is_told_to_end(&mut self) -> bool {
        self.ending |= self.signals.interrupted() == Control::EndObservation;
        self.ending
    }

    /// How segments are observed.
    fn tracing(&self) -> holdup_bpf::Options {
        holdup_bpf::Options {
            buffer: self.args.buffer,
            pace: holdup_bpf::Pace::Record,
        }
    }

    /// Has the kernel take the programs for the next segment, if it has not yet.
    fn load(&mut self) -> anyhow::Result<()> {
        collect::allowed_to_trace()?;
        if self.loaded[self.turn].is_none() {
            let loaded = Loaded::load(self.tracing())?;
            self.loaded[self.turn] = Some(Kept { loaded, used: false });
        }
        Ok(())
    }

    /// Forks one, and waits until it watches. `None`: it could not, and has said why.
    fn begin(&mut self, before: Option<&Observer>) -> anyhow::Result<Option<Observer>> {
        if let Err(error) = self.load() {
            self.complain(&error);
            self.failing = true;
            return Ok(None);
        }
        let (ready, tell) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).context("cannot make a pipe")?;
        let now = SystemTime::now();
        // What begins a moment before a border is for the segment behind it; a quarter of a segment is worth one.
        let due = next_border(now + LEAD + self.args.every / 4, self.args.every);
        let due = Instant::now() + due.duration_since(now).unwrap_or(self.args.every);
        // SAFETY: this process has one thread only, so its copy may do whatever a program does.
        match unsafe { fork() }.context("cannot start a process for the next segment")? {
            ForkResult::Child => {
                drop(ready);
                let status = self.observe(tell, before.map(|before| before.pid));
                std::process::exit(status);
            }
            ForkResult::Parent { child } => {
                drop(tell);
                let began = clocks::monotonic();
                let observer = Observer {
                    pid: child,
                    began,
                    due,
                };
                if self.watches(&ready) {
                    self.failing = false;
                    if let Some(kept) = &mut self.loaded[self.turn] {
                        kept.used = true;
                    }
                    self.turn = (self.turn + 1) % self.loaded.len();
                    return Ok(Some(observer));
                }
                // Whatever was wrong with them is not to be so for good.
                self.loaded[self.turn] = None;
                observer.kill();
                self.late.push(observer);
                self.failing = true;
                Ok(None)
            }
        }
    }

    /// Waits for the word of one that has begun.
    fn watches(&mut self, ready: &OwnedFd) -> bool {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.is_told_to_end() {
            let mut descriptors = [
                PollFd::new(ready.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.signals.fd(), PollFlags::POLLIN),
            ];
            let left = until.saturating_duration_since(Instant::now()).as_millis();
            let came = poll(
                &mut descriptors,
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX),
            );
            let is_there = descriptors[0].revents().is_some_and(|events| !events.is_empty());
            if came.is_ok() && is_there {
                return nix::unistd::read(ready, &mut [0]) == Ok(1);
            }
        }
        false
    }

    /// Tells one to end, and waits until what it saw is written, or until it is late. A segment that it did not write is written
    /// by another process, with the reason in the place of what was seen.
    fn end(&mut self, observer: &Observer) {
        let until = clocks::monotonic();
        let outcome = observer.end(&mut self.signals, &mut self.ending);
        if let Some(why) = losses::lost(outcome) {
            self.write_in_its_place(observer, until, why);
        }
        match outcome {
            Outcome::Late => {
                self.late.push(*observer);
                say(
                    "the process that observed a segment did not end in time and was killed; its segment says so, and the next one \
                     is under way",
                );
            }
            Outcome::Written | Outcome::Failed => {}
            Outcome::Hidden if self.said_hidden => {}
            Outcome::Hidden => {
                self.said_hidden = true;
                say(losses::HIDDEN);
            }
            Outcome::Killed(signal) => say(&format!(
                "a segment is lost: the process that observed it was ended by {signal}; the next one is under way"
            )),
        }
    }

    /// Writes a segment that says why there is nothing in it.
    fn write_in_its_place(&mut self, observer: &Observer, until: Ns, why: NotMeasured) {
        // SAFETY: this process has one thread only, so its copy may do whatever a program does.
        let writer = match unsafe { fork() } {
            Ok(ForkResult::Child) => {
                let collected = collect::nothing(observer.began, until, why);
                let subject = verdict::subject_of_attach(vec![self.selection.said().to_owned()], &collected);
                let status = self.save(subject, collected, Vec::new(), true);
                std::process::exit(status);
            }
            Ok(ForkResult::Parent { child }) => Observer {
                pid: child,
                ..*observer
            },
            Err(error) => {
                say(&format!("a segment is lost: {error}"));
                return;
            }
        };
        if writer.wait(&mut self.signals, &mut self.ending) == Outcome::Late {
            self.late.push(writer);
        }
    }

    /// Writes a segment, of which nothing may be left; the status of the process that does so.
    fn save(&self, subject: Observed, collected: collect::Collected, detail: Vec<String>, lost: bool) -> i32 {
        let scope = Scope {
            unit: self.args.unit.first().cloned(),
            cgroup: self.args.cgroup.first().map(|path| path.display().to_string()),
        };
        let keep = recorded::Keep {
            redacted: self.args.redact,
            all: self.detail.is_asked(),
            lost,
        };
        let hidden = losses::hidden(&collected.attributed.coverage.lost);
        let place = |began| self.folder.place(began);
        match recorded::save(subject, collected, scope, detail, keep, place) {
            Ok(()) if hidden => HIDDEN,
            Ok(()) => 0,
            Err(error) => {
                say(&format!("a segment is lost: {error}"));
                1
            }
        }
    }

    /// Says once why a segment can't begin.
    fn complain(&self, error: &anyhow::Error) {
        if !self.failing {
            say(&format!("{error:#}; trying again until it works"));
        }
    }

    /// In the process of a segment: observes until it is told to end, and writes.
    fn observe(&mut self, tell: OwnedFd, before: Option<Pid>) -> i32 {
        // What its parent's end leaves behind writes what it has.
        // SAFETY: sets a property of this process alone.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
        let mut others = vec![nix::unistd::getppid().as_raw().unsigned_abs()];
        others.extend(before.map(|pid| pid.as_raw().unsigned_abs()));
        others.extend(self.uploader.as_ref().and_then(Uploader::pid));
        let selection = self.selection.without(&others);
        let mut tell = Some(File::from(tell));
        let mut notice = |notice: collect::Notice<'_>| {
            if let collect::Notice::Began = notice
                && let Some(mut tell) = tell.take()
            {
                // Nobody who reads it: the recorder has ended, and so will this one.
                tell.write_all(b"!").ok();
            }
        };
        let how = collect::How {
            tracing: self.tracing(),
            keep: Some(Part::Trace),
            jvm_attach: collect::Ask::Never,
            follow: true,
            logs: false,
            predict: None,
            // A segment has no duration that it could end before: what would pass the budget is left out of it, and no part of its time.
            budget: self.args.budget.budget.map(Ceiling::set),
        };
        let mut silent = Progress::begin(true);
        let loaded = match self.loaded[self.turn].take().map(Kept::fresh).transpose() {
            Ok(loaded) => loaded,
            Err(error) => {
                self.complain(&anyhow::Error::from(error));
                return 1;
            }
        };
        self.detail.begin();
        let detail = &mut self.detail;
        let mut in_detail = || detail.now();
        let kept = collect::Kept {
            loaded,
            in_detail: self
                .args
                .on
                .first()
                .map(|_| &mut in_detail as &mut dyn FnMut() -> bool),
            // Where detail is asked for it is known at the end only whether it is kept.
            pieces: self.args.on.is_empty().then_some(PIECES),
            pulse: None,
            events: None,
        };
        // Its folder is often another user's: it is opened while this process may still write there.
        let figures = self
            .args
            .prometheus
            .as_deref()
            .map(|path| textfile::fresh(path).map(|file| (file, path)));
        let signals = &mut self.signals;
        let observed = collect::attach(&selection, None, signals, how, kept, &mut silent, &mut notice);
        let mut collected = match observed {
            Ok(collected) => collected,
            Err(error) => {
                self.complain(&error);
                return 1;
            }
        };
        if self.args.unit.is_empty() && self.args.cgroup.is_empty() {
            let (root, own) = (Root::system(), std::process::id());
            collected.facts.answers_awaited = standing::answers(&root, own);
            collected.facts.frozen_volumes = standing::frozen(&root, own, &collected.attributed.waits);
        }
        let lost = &collected.attributed.coverage.lost;
        if let Some(behind) = losses::behind(lost) {
            say(&behind);
        }
        let subject = verdict::subject_of_attach(vec![self.selection.said().to_owned()], &collected);
        let written = figures.map(|figures| {
            let (file, path) = figures?;
            textfile::write(file, path, &verdict::of(subject.clone(), &collected))
        });
        if let Some(Err(error)) = written {
            say(&format!("{error:#}"));
        }
        let status = self.save(subject, collected, self.detail.held(), false);
        if status != 1 && self.detail.is_asked() {
            Detail::thin(self.folder);
        }
        status
    }
}

impl Kept {
    /// The programs, as if nobody had had them before.
    fn fresh(mut self) -> Result<Loaded, holdup_bpf::TraceError> {
        if self.used {
            self.loaded.blank()?;
        }
        Ok(self.loaded)
    }
}

/// The next instant at which a segment ends: whole multiples of its length since midnight UTC, so that segments of many hosts are
/// of the same minutes.
fn next_border(now: SystemTime, every: Duration) -> SystemTime {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let every = every.as_nanos().max(1);
    let rest = every - since.as_nanos() % every;
    now + Duration::from_nanos(Ns::try_from(rest).unwrap_or(Ns::MAX))
}

#[cfg(test)]
mod tests {
    use super::next_border;
    use std::time::{Duration, SystemTime};

    #[test]
    fn segments_end_at_the_same_instants_on_all_hosts() {
        let at = |seconds: f64| SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds);
        assert_eq!(next_border(at(61.5), Duration::from_secs(60)), at(120.0));
        assert_eq!(next_border(at(120.0), Duration::from_secs(60)), at(180.0));
        assert_eq!(next_border(at(0.25), Duration::from_millis(500)), at(0.5));
    }
}
