//! Where the report goes, and holdup's own sentences.
//!
//! In: a report. Out: text on stderr, JSON in a file or on stdout. The file is opened before CMD runs, so that
//! a wrong path fails at once; what goes wrong later never changes CMD's exit status.

use crate::cli::{Color, Format};
use crate::subject::{NotStarted, OWN_FAILURE};
use crate::terminal;
use crate::usage::{BAD_USAGE, Usage};
use anyhow::{Context, bail};
use holdup_analysis::report::Report;
use holdup_views::Style;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// What the command line says of the report.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// Format of the report for the person.
    pub(crate) format: Format,
    /// Where JSON goes too.
    pub(crate) json: Option<&'a Path>,
    /// `-v`.
    pub(crate) verbose: bool,
    /// `-q`.
    pub(crate) quiet: bool,
}

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
    json: Option<Json>,
}

#[derive(Debug)]
enum Json {
    Stdout,
    File(File, PathBuf),
}

impl Outputs {
    /// Opens what has to be opened.
    ///
    /// # Errors
    /// When the file for JSON can't be written to.
    pub(crate) fn open(asked: &Asked<'_>, place: Place, color: Color) -> anyhow::Result<Outputs> {
        let look = match place {
            Place::Stdout => terminal::look(&std::io::stdout(), color),
            Place::Stderr => terminal::look(&std::io::stderr(), color),
        };
        if asked.json == Some(Path::new("-")) && place == Place::Stdout && asked.format == Format::Json {
            bail!(Usage::Wrong(
                "--json - and --format json both write to stdout; leave one out".to_owned()
            ));
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
            silent: asked.json == Some(Path::new("-")) && place == Place::Stdout,
            place,
            json: asked.json.map(Json::open).transpose()?,
        })
    }

    /// Lets go of stdin, and of stdout unless the report goes there: CMD has its own copies, and with holdup's
    /// open the other end of a pipe would not see that CMD closed it.
    ///
    /// # Errors
    /// When `/dev/null` can't be opened.
    pub(crate) fn leave_stdio_to_cmd(&self) -> anyhow::Result<()> {
        let null = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")
            .context("cannot open /dev/null")?;
        nix::unistd::dup2_stdin(&null).context("cannot let go of stdin")?;
        if !matches!(self.json, Some(Json::Stdout)) {
            nix::unistd::dup2_stdout(&null).context("cannot let go of stdout")?;
        }
        Ok(())
    }

    /// Writes the report everywhere it should go. Nobody to read it is no error.
    pub(crate) fn write(self, report: &Report) {
        let mut text = Vec::new();
        let written = match self.format {
            Format::Terminal => holdup_views::terminal::write(report, &self.style, &mut text),
            Format::Json => holdup_views::json::write(report, &mut text),
        };
        written.expect("memory can be written to");
        match self.place {
            _ if self.silent => {}
            Place::Stdout => write_all(&mut std::io::stdout(), &text).unwrap_or_default(),
            Place::Stderr => write_all(&mut std::io::stderr(), &text).unwrap_or_default(),
        }
        if let Some(json) = self.json
            && let Err(error) = json.write(report)
        {
            say(&format!("{error:#}"));
        }
    }
}

impl Json {
    /// What the file holds stays until there is a report to replace it.
    fn open(path: &Path) -> anyhow::Result<Json> {
        if path == Path::new("-") {
            return Ok(Json::Stdout);
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = file.with_context(|| format!("cannot write the report to {path:?}"))?;
        Ok(Json::File(file, path.to_owned()))
    }

    fn write(self, report: &Report) -> anyhow::Result<()> {
        let mut text = Vec::new();
        holdup_views::json::write(report, &mut text).expect("memory can be written to");
        match self {
            Json::Stdout => {
                write_all(&mut std::io::stdout(), &text).context("cannot write the report to stdout")
            }
            Json::File(mut file, path) => {
                // Only a regular file has a length to be cut.
                file.set_len(0).ok();
                write_all(&mut file, &text).with_context(|| format!("cannot write the report to {path:?}"))
            }
        }
    }
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
        None => say(&format!("{error:#}")),
    }
    error.downcast_ref().map_or(OWN_FAILURE, NotStarted::exit_status)
}
