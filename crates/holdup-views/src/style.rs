//! How text is set: what the terminal can show and how much of it the person asked for.

/// What the writer at the other end can show. The caller finds it out; nothing here looks at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns to fill, before [`Style::columns`] has limited it.
    pub width: usize,
    /// Whether to colour.
    pub colour: bool,
    /// Whether the locale's encoding is UTF-8; else only ASCII is written.
    pub unicode: bool,
    /// `-v`: stacks, all waits, every thread, what was ruled out.
    pub verbose: bool,
    /// `-q`: the verdict's first lines and nothing else. Wins over `verbose`.
    pub quiet: bool,
}

/// Columns: lines longer than this are hard to read, however wide the terminal is.
const WIDEST: usize = 120;

/// Columns: the numbers of an entry and a few words beside them need this much. A terminal that is narrower
/// wraps the lines itself.
const NARROWEST: usize = 40;

impl Style {
    /// The columns that lines are kept within.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.width.clamp(NARROWEST, WIDEST)
    }
}

impl Default for Style {
    /// What suits a file or a pipe: 80 columns, no colour.
    fn default() -> Style {
        Style {
            width: 80,
            colour: false,
            unicode: true,
            verbose: false,
            quiet: false,
        }
    }
}
