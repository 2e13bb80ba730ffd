//! How far it is: one line on stderr that goes away, for whoever sits before a terminal and waits for more than a second.
//!
//! In: words, now and then. Out: a line that takes the place of the one before. Nothing is written where stderr is no terminal that
//! can take back a line, to a job in the background, or with `-q`.

use crate::cli::Color;
use crate::terminal;
use holdup_collect::line::Line;
use holdup_views::text::{printable, shorten};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// What is over within this needs no line.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two lines: a person reads no faster.
const PACE: Duration = Duration::from_millis(250);

/// To the begin of the line, and nothing left of it.
const BACK: &str = "\r\x1b[K";

/// The line.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Where it may be written: columns, and whether they take more than ASCII.
    place: Option<(usize, bool)>,
    next: Instant,
    shown: bool,
}

impl Progress {
    /// Of something that begins now.
    pub(crate) fn begin(quiet: bool) -> Progress {
        let stderr = std::io::stderr();
        let able = !quiet && stderr.is_terminal() && takes_back() && in_front();
        let place = able.then(|| {
            let look = terminal::look(&stderr, Color::Never);
            (look.width, look.unicode)
        });
        Progress {
            place,
            next: Instant::now() + PATIENCE,
            shown: false,
        }
    }

    /// Says how far it is, if it is time to; the words are asked for only then.
    pub(crate) fn tell(&mut self, words: impl FnOnce() -> String) {
        let Some((columns, unicode)) = self.place else {
            return;
        };
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + PACE;
        self.shown = true;
        // In the last column a terminal may begin a new line, which could not be taken back.
        let words = shorten(&printable(&words(), unicode), columns.saturating_sub(2), unicode);
        write(&format!("{BACK} {words}"));
    }

    /// Takes the line away; another may follow.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            write(BACK);
        }
    }
}

impl Line for Progress {
    fn tell(&mut self, words: &dyn Fn() -> String) {
        Progress::tell(self, words);
    }

    fn clear(&mut self) {
        Progress::clear(self);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn write(text: &str) {
    // Nobody to read it is no error.
    let mut stderr = std::io::stderr();
    stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush())
        .ok();
}

/// Whether the terminal knows how to clear a line.
fn takes_back() -> bool {
    std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// Whether the terminal is ours at the moment: what a job in the background writes is in the way of what is typed.
fn in_front() -> bool {
    let group = nix::unistd::tcgetpgrp(std::io::stderr());
    // A terminal that does not control us has no foreground.
    group.map_or(true, |group| group == nix::unistd::getpgrp())
}
