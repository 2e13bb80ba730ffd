//! Rows of `ps aux`, `ps ax` and `ps -ef` that lost their head.
//!
//! In: a row. Out: the columns that it has, where its shape leaves no doubt.

use super::columns::Columns;
use crate::numbers::{decimal, whole, words};

/// Bytes of a share (`100.0`), a state (`Ssl+`) and a start date (`Nov22`) of a row without a head.
const SHARE_BYTES: usize = 6;
const STATE_BYTES: usize = 6;
const DAY_BYTES: usize = 6;

impl Columns {
    /// The columns of a row that lost its head, where its shape leaves no doubt: of `ps aux`, `ps ax` and `ps -ef`.
    pub(super) fn of_row(line: &[u8]) -> Option<Columns> {
        let head: &[u8] = if is_short(line) {
            b"PID TTY STAT TIME COMMAND"
        } else if is_full(line) {
            b"UID PID PPID C STIME TTY TIME CMD"
        } else {
            return Columns::of_aux(line);
        };
        let mut columns = Columns::of_head(head)?;
        columns.picked = true;
        Some(columns)
    }

    /// The columns of `ps aux`.
    fn of_aux(line: &[u8]) -> Option<Columns> {
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
        let of_terminal = is_terminal(terminal);
        let state = is_state(state);
        let clock = is_clock;
        let day = is_day(start);
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

fn is_terminal(word: &[u8]) -> bool {
    word == b"?" || word == b"-" || word.starts_with(b"pts/") || word.starts_with(b"tty")
}

fn is_state(word: &[u8]) -> bool {
    word.len() <= STATE_BYTES && crate::tasks::state(word).is_some()
}

/// `0:03`, `00:00:03`, `1-02:03:04`.
fn is_clock(word: &[u8]) -> bool {
    let of_clock = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b':' | b'-');
    word.contains(&b':') && word.iter().all(of_clock)
}

/// `Nov22`, `2026`.
fn is_day(word: &[u8]) -> bool {
    word.len() <= DAY_BYTES && word.iter().all(u8::is_ascii_alphanumeric)
}

/// A row of `ps ax`: `15622 ?        Ss     0:00 /usr/sbin/cron`.
fn is_short(line: &[u8]) -> bool {
    let mut fields = words(line);
    let mut next = |is: fn(&[u8]) -> bool| fields.next().is_some_and(is);
    next(|word| whole(word).is_some())
        && next(is_terminal)
        && next(is_state)
        && next(is_clock)
        && next(|word| !word.is_empty())
}

/// A row of `ps -ef`: `root  15622     1  0 10:00 ?        00:00:00 /usr/sbin/cron`.
fn is_full(line: &[u8]) -> bool {
    const SHARE: u64 = 100;
    let mut fields = words(line);
    let mut next = |is: fn(&[u8]) -> bool| fields.next().is_some_and(is);
    next(|word| word.first().is_some_and(u8::is_ascii_alphabetic))
        && next(|word| whole(word).is_some())
        && next(|word| whole(word).is_some())
        && next(|word| whole(word).is_some_and(|share| share < SHARE))
        && next(|word| is_clock(word) || is_day(word))
        && next(is_terminal)
        && next(is_clock)
        && next(|word| !word.is_empty())
}
