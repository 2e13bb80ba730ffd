//! Rows of `ps aux` that lost their head.
//!
//! In: a row. Out: the columns that it has, where its shape leaves no doubt.

use super::columns::Columns;
use crate::numbers::{decimal, whole, words};

/// Bytes of a share (`100.0`), a state (`Ssl+`) and a start date (`Nov22`) of a row without a head.
const SHARE_BYTES: usize = 6;
const STATE_BYTES: usize = 6;
const DAY_BYTES: usize = 6;

impl Columns {
    /// The columns of `ps aux`, of a row that lost its head, where its shape leaves no doubt.
    pub(super) fn of_row(line: &[u8]) -> Option<Columns> {
        let mut fields = words(line);
        let user = fields.next()?;
        // Nearly every line of another text ends the look here.
        whole(fields.next()?)?;
        let share =
            |word: &[u8]| word.len() <= SHARE_BYTES && word.contains(&b'.') && decimal(word).is_some();
        let shares = share(fields.next()?) && share(fields.next()?);
        let sizes = whole(fields.next()?).is_some() && whole(fields.next()?).is_some();
        let terminal = fields.next()?;
        let state = fields.next()?;
        let (start, time, name) = (fields.next()?, fields.next()?, fields.next());
        let named = user.first().is_some_and(u8::is_ascii_alphanumeric);
        let of_terminal = terminal == b"?"
            || terminal == b"-"
            || terminal.starts_with(b"pts/")
            || terminal.starts_with(b"tty");
        let state = state.len() <= STATE_BYTES && crate::tasks::state(state).is_some();
        let clock = |word: &[u8]| {
            word.contains(&b':')
                && word
                    .iter()
                    .all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'-'))
        };
        let day = start.len() <= DAY_BYTES && start.iter().all(u8::is_ascii_alphanumeric);
        let fits = named
            && shares
            && sizes
            && of_terminal
            && state
            && (clock(start) || day)
            && clock(time)
            && name.is_some();
        let mut columns =
            Columns::of_head(b"USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND").filter(|_| fits)?;
        columns.picked = true;
        Some(columns)
    }
}
