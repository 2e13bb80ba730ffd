//! What the terminal at the other end of stdout or stderr can show.
//!
//! In: the descriptor, `--color` and the environment. Out: the view's `Style`. Reading the environment and the
//! terminal is apart from deciding, which is tested.

use crate::cli::Color;
use std::os::fd::{AsFd, AsRawFd};

/// Columns when there is no terminal to ask.
const DEFAULT_COLUMNS: usize = 80;

/// What was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// Columns.
    pub(crate) width: usize,
    /// Whether to colour.
    pub(crate) colour: bool,
    /// Whether the locale's encoding is UTF-8.
    pub(crate) unicode: bool,
}

/// Looks at what is behind a descriptor.
pub(crate) fn look(stream: &impl AsFd, choice: Color) -> Look {
    let columns = columns(stream);
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    Look {
        width: columns.filter(|columns| *columns > 0).unwrap_or(DEFAULT_COLUMNS),
        colour: colour(choice, columns.is_some(), variable),
        unicode: unicode(variable),
    }
}

/// The terminal's width, 0 where it doesn't know; `None` when it is none.
fn columns(stream: &impl AsFd) -> Option<usize> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the call fills in a struct of the type that it wants.
    let result = unsafe { libc::ioctl(stream.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (result == 0).then_some(usize::from(size.ws_col))
}

fn colour(choice: Color, terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    match choice {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
            let able = variable("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
            terminal && able && !unwanted
        }
    }
}

/// The first of the three that is set decides, as in setlocale(3).
fn unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| variable(name).filter(|value| !value.is_empty()))
        .unwrap_or_default()
        .to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::{colour, unicode};
    use crate::cli::Color;

    fn set(variables: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |wanted| {
            variables
                .iter()
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn colour_wants_a_terminal_that_can_and_a_person_who_will() {
        let xterm = || set(&[("TERM", "xterm")]);
        assert!(colour(Color::Auto, true, xterm()));
        assert!(!colour(Color::Auto, false, xterm()));
        assert!(colour(Color::Always, false, set(&[])));
        assert!(!colour(Color::Never, true, xterm()));
        assert!(!colour(Color::Auto, true, set(&[("TERM", "dumb")])));
        assert!(!colour(Color::Auto, true, set(&[])));
        assert!(!colour(
            Color::Auto,
            true,
            set(&[("TERM", "xterm"), ("NO_COLOR", "1")])
        ));
        assert!(colour(
            Color::Auto,
            true,
            set(&[("TERM", "xterm"), ("NO_COLOR", "")])
        ));
    }

    #[test]
    fn the_first_locale_variable_decides() {
        assert!(unicode(set(&[("LANG", "de_DE.UTF-8")])));
        assert!(unicode(set(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")])));
        assert!(!unicode(set(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")])));
        assert!(unicode(set(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")])));
        assert!(!unicode(set(&[])));
    }
}
