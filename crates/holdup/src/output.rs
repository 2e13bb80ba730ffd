//! Where the report goes, and holdup's own sentences.
//!
//! In: a report. Out: text on stderr or stdout, and the report in other formats in files or on stdout. Files are made before
//! CMD runs, so that a wrong path fails at once, and get their names when they are complete; what goes wrong later never changes CMD's
//! exit status.

use crate::cli::{Color, Format, ReportArgs};
use crate::commands::start;
use crate::errors;
use crate::gate::{self, Gate};
use crate::terminal;
use crate::usage::{BAD_USAGE, Usage};
use anyhow::{Context, bail};
use holdup_collect::EventsFile;
use holdup_files::{Destination, Last, NewFile};
use holdup_model::report::{GateOutcome, Report};
use holdup_subject::subject::{NotStarted, OWN_FAILURE};
use holdup_views::Style;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where the report for the person goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nobody else writes there.
    Stdout,
    /// Stdout is CMD's.
    Stderr,
}

/// Where a report goes.
#[derive(Debug)]
pub(crate) struct Outputs {
    format: Format,
    place: Place,
    silent: bool,
    style: Style,
    files: Vec<(holdup_views::Format, Sink)>,
    /// Whether secrets are left out.
    mask: bool,
}

/// Where a report in a format of its own goes.
#[derive(Debug)]
enum Sink {
    Stdout,
    File(Destination, PathBuf),
}

/// What reads as empty, and what takes what is written: `/dev/null`, or pipes without another end, where a root folder has no devices.
fn nothing() -> std::io::Result<(OwnedFd, OwnedFd)> {
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        return Ok((null.try_clone()?.into(), null.into()));
    }
    let (read, _) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    let (_, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    Ok((read, write))
}

/// Opens where the copy of the events goes.
///
/// # Errors
/// When it can't be written.
pub(crate) fn events(path: Option<&Path>) -> anyhow::Result<Option<EventsFile>> {
    let open =
        |path: &Path| EventsFile::open(path).with_context(|| format!("cannot write the events to {path:?}"));
    path.map(open).transpose()
}

impl Outputs {
    /// Opens what has to be opened.
    ///
    /// # Errors
    /// When a file can't be written to, or the format makes no sense where it would go.
    pub(crate) fn open(asked: &ReportArgs, place: Place, color: Color) -> anyhow::Result<Outputs> {
        let look = match place {
            Place::Stdout => terminal::look(&std::io::stdout(), color),
            Place::Stderr => terminal::look(&std::io::stderr(), color),
        };
        if let Some(wrong) = wrong(asked, place, std::io::stdout().is_terminal()) {
            bail!(Usage::Wrong(wrong));
        }
        let mut files = Vec::new();
        for (path, format) in asked.named() {
            files.push((format, Sink::open(path)?));
        }
        for export in &asked.export {
            files.push((export.format, Sink::open(&export.file)?));
        }
        Ok(Outputs {
            format: asked.format,
            style: Style {
                width: look.width,
                colour: look.colour,
                unicode: look.unicode,
                verbose: asked.verbose,
                quiet: asked.quiet,
            },
            // Two reports on one stream are none.
            silent: asked.on_stdout() > 0 && place == Place::Stdout,
            place,
            files,
            mask: !asked.no_mask,
        })
    }

    /// Lets go of stdin, and of stdout unless the report goes there: CMD has its own copies, and with holdup's
    /// open the other end of a pipe would not see that CMD closed it.
    ///
    /// # Errors
    /// When the system refuses a descriptor.
    pub(crate) fn leave_stdio_to_cmd(&self) -> anyhow::Result<()> {
        let (read, write) = nothing().context("cannot release stdin and stdout")?;
        nix::unistd::dup2_stdin(&read).context("cannot release stdin")?;
        if !self.files.iter().any(|(_, sink)| matches!(sink, Sink::Stdout)) {
            nix::unistd::dup2_stdout(&write).context("cannot release stdout")?;
        }
        Ok(())
    }

    /// Writes what is known so far, in a few lines, where a person sits at a terminal and the report will go there too.
    pub(crate) fn first_word(&self, so_far: &Report) {
        let at_terminal = std::io::stdout().is_terminal();
        let healthy = so_far.findings.is_empty();
        if !at_terminal || self.silent || self.format != Format::Terminal || healthy {
            return;
        }
        let style = Style {
            quiet: true,
            verbose: false,
            ..self.style
        };
        let mut text = b"\n so far\n".to_vec();
        let so_far = self.shown(so_far);
        holdup_views::terminal::write(&so_far, &style, &mut text).expect("memory can be written to");
        text.extend(b"\n still watching; Ctrl-C ends it\n\n");
        write_all(&mut std::io::stdout(), &text).unwrap_or_default();
    }

    /// The report as all views and files have it: without what is secret.
    fn shown<'a>(&self, report: &'a Report) -> Cow<'a, Report> {
        if !self.mask {
            return Cow::Borrowed(report);
        }
        let mut report = report.clone();
        report.subject.command = holdup_secrets::mask_words(&report.subject.command);
        holdup_secrets::mask_value(&mut report);
        Cow::Owned(report)
    }

    /// Judges the report by the conditions, if there are some, writes it, and returns the exit status that they come to: else 0.
    pub(crate) fn write_judged(self, mut report: Report, gate: Option<&Gate>) -> u8 {
        report.gate = gate.map(|gate| gate.judge(&report));
        let status = gate::status(&report);
        self.write(&report);
        status
    }

    /// Writes the report everywhere it should go. Nobody to read it is no error.
    pub(crate) fn write(self, report: &Report) {
        let report = &*self.shown(report);
        if !self.mask {
            say("secrets are not masked in this report (--no-mask)");
        }
        let mut text = Vec::new();
        let written = match self.format.of_file() {
            None => holdup_views::terminal::write(report, &self.style, &mut text),
            Some(format) => format.write(report, &mut text),
        };
        written.expect("memory can be written to");
        match self.place {
            _ if self.silent => {}
            Place::Stdout => write_all(&mut std::io::stdout(), &text).unwrap_or_default(),
            Place::Stderr => write_all(&mut std::io::stderr(), &text).unwrap_or_default(),
        }
        for (format, sink) in self.files {
            if let Err(error) = sink.write(format, report) {
                say(&format!("{error:#}"));
            }
        }
        if let Some(gate) = report
            .gate
            .as_ref()
            .filter(|gate| !self.style.quiet || gate.outcome != GateOutcome::Passed)
        {
            say(&gate::sentence(gate));
        }
    }
}

impl ReportArgs {
    /// Files that have an option of their own.
    fn named(&self) -> impl Iterator<Item = (&Path, holdup_views::Format)> {
        let json = self
            .json
            .as_deref()
            .map(|path| (path, holdup_views::Format::Json));
        let html = self
            .html
            .as_deref()
            .map(|path| (path, holdup_views::Format::Html));
        json.into_iter().chain(html)
    }

    /// How many of them are stdout.
    fn on_stdout(&self) -> usize {
        self.named().filter(|(path, _)| *path == Path::new("-")).count()
    }
}

/// What is wrong with formats and where they would go, in a sentence that says what would be right.
fn wrong(asked: &ReportArgs, place: Place, at_terminal: bool) -> Option<String> {
    if asked.on_stdout() > 1 {
        return Some("--json - and --html - both write to stdout; use a file for one of them".to_owned());
    }
    let format = asked.format.of_file()?;
    let name = format.name();
    match place {
        Place::Stdout if asked.on_stdout() > 0 => Some(format!(
            "{} - and --format {name} both write to stdout; remove one of them",
            if asked.json.as_deref() == Some(Path::new("-")) {
                "--json"
            } else {
                "--html"
            }
        )),
        Place::Stdout if format.is_binary() && at_terminal => Some(format!(
            "{name} is binary, and stdout is a terminal; write it to a file: --export {name}=FILE"
        )),
        Place::Stderr if format.is_binary() => Some(format!(
            "{name} is binary, and the report of run goes to stderr; write it to a file: --export {name}=FILE"
        )),
        Place::Stdout | Place::Stderr => None,
    }
}

impl Sink {
    /// What the file holds stays until there is a report to replace it.
    fn open(path: &Path) -> anyhow::Result<Sink> {
        if path == Path::new("-") {
            return Ok(Sink::Stdout);
        }
        let destination = Destination::open(path).with_context(|| cannot_write(path))?;
        Ok(Sink::File(destination, path.to_owned()))
    }

    fn write(self, format: holdup_views::Format, report: &Report) -> anyhow::Result<()> {
        let mut text = Vec::new();
        format.write(report, &mut text).expect("memory can be written to");
        match self {
            Sink::Stdout => {
                write_all(&mut std::io::stdout(), &text).context("cannot write the report to stdout")
            }
            Sink::File(Destination::Stream(mut stream), path) => {
                write_all(&mut stream, &text).with_context(|| cannot_write(&path))
            }
            Sink::File(Destination::New(mut file), path) => {
                write_all(file.file(), &text).with_context(|| cannot_write(&path))?;
                file.finish().with_context(|| cannot_write(&path))
            }
        }
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write the report to {path:?}")
}

/// Writes all of it, to a descriptor that CMD may share and have made non-blocking. A reader that is gone is no
/// error.
fn write_all<W: Write + AsFd>(out: &mut W, mut text: &[u8]) -> std::io::Result<()> {
    while !text.is_empty() {
        match out.write(text) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => text = &text[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                poll(
                    &mut [PollFd::new(out.as_fd(), PollFlags::POLLOUT)],
                    PollTimeout::NONE,
                )?;
            }
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    out.flush()
}

/// Writes a report to a file, as `--json` does.
///
/// # Errors
/// When there can be no such file.
pub(crate) fn write_file(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    let written = NewFile::open(path, Last::FollowOwn).and_then(|mut file| {
        file.file().write_all(text)?;
        file.finish()
    });
    written.with_context(|| cannot_write(path))
}

/// Writes to stdout what was asked for; a reader that has seen enough is no error.
///
/// # Errors
/// When stdout can't be written to.
pub(crate) fn print(text: &[u8]) -> anyhow::Result<()> {
    write_all(&mut std::io::stdout(), text).context("cannot write to stdout")
}

/// One sentence of holdup's own on stderr.
pub(crate) fn say(sentence: &str) {
    let printable = holdup_views::text::printable(sentence, true);
    write_all(
        &mut std::io::stderr(),
        format!("holdup: {printable}\n").as_bytes(),
    )
    .ok();
}

/// Says what went wrong and returns the exit status for it.
pub(crate) fn say_error(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Usage>() {
        Some(Usage::Asked(text)) => return print(text.as_bytes()).map_or(OWN_FAILURE, |()| 0),
        Some(Usage::Wrong(sentence)) => {
            say(sentence);
            return BAD_USAGE;
        }
        Some(Usage::NothingAsked(sentence)) => {
            say(sentence);
            start::guide();
            return BAD_USAGE;
        }
        None => match errors::Kind::of(error) {
            Some(kind) => say(&format!("{error:#}; see {}", kind.link())),
            None => say(&format!("{error:#}")),
        },
    }
    error.downcast_ref().map_or(OWN_FAILURE, NotStarted::exit_status)
}

#[cfg(test)]
mod tests {
    use super::{Place, wrong};
    use crate::cli::{Format, ReportArgs};

    fn of(format: Format, json: Option<&str>, place: Place, at_terminal: bool) -> Option<String> {
        let asked = ReportArgs {
            format,
            json: json.map(Into::into),
            ..ReportArgs::default()
        };
        wrong(&asked, place, at_terminal)
    }

    #[test]
    fn what_is_no_text_goes_to_no_terminal_and_not_among_the_words_of_cmd() {
        for format in [Format::Pprof, Format::Perfetto] {
            assert_eq!(of(format, None, Place::Stdout, false), None);
            assert!(of(format, None, Place::Stdout, true).is_some_and(|words| words.contains("--export")));
            assert!(of(format, None, Place::Stderr, false).is_some_and(|words| words.contains("--export")));
        }
        for format in [Format::Terminal, Format::Json, Format::Markdown, Format::Otlp] {
            assert_eq!(of(format, None, Place::Stdout, true), None);
            assert_eq!(of(format, None, Place::Stderr, true), None);
        }
    }

    #[test]
    fn stdout_has_one_report() {
        assert!(of(Format::Json, Some("-"), Place::Stdout, false).is_some());
        assert!(of(Format::Otlp, Some("-"), Place::Stdout, false).is_some());
        assert_eq!(of(Format::Terminal, Some("-"), Place::Stdout, false), None);
        assert_eq!(of(Format::Json, Some("-"), Place::Stderr, false), None);
        assert_eq!(of(Format::Json, Some("x"), Place::Stdout, false), None);
        let page = ReportArgs {
            json: Some("x".into()),
            html: Some("-".into()),
            ..ReportArgs::default()
        };
        assert_eq!((wrong(&page, Place::Stdout, true), page.on_stdout()), (None, 1));
        let both = ReportArgs {
            json: Some("-".into()),
            ..page
        };
        assert!(wrong(&both, Place::Stderr, false).is_some_and(|words| words.contains("--html -")));
    }
}
