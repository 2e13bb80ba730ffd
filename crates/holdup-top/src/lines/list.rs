//! Who waits, for what, for how long, and behind whom.
//!
//! In: the state. Out: a line for each row, and below it the chain to the root, where there is one. Narrow screens have who and what in two
//! lines.

use super::{Line, Tone, columns, cut, head};
use crate::state::State;
use holdup_evidence::units::duration;
use holdup_views::text::{shorten, width};
use holdup_views::{LookRow, LookStep};

/// From so many columns on, who and what are side by side.
const COLUMNS_FOR_ONE_LINE: u16 = 64;

/// Columns of the mark, and of the time.
const MARK: usize = 2;
const TIME: usize = 9;

/// Blanks between columns.
const GAP: usize = 2;

/// Part of the rest that who may take, percent.
const WHO_PERCENT: usize = 38;

/// The head of the columns, and all rows that have room.
pub(super) fn lines(state: &State) -> Vec<Line> {
    let rows = state.rows();
    let Some(look) = state.moments.look() else {
        return Vec::new();
    };
    if rows.is_empty() {
        let hidden = look.rows.len();
        let words = match (hidden, state.filter.is_empty()) {
            (0, _) => "Nobody waits.".to_owned(),
            (_, false) => format!("No row matches the filter {}. Escape clears it.", state.filter),
            (_, true) => "Nobody waits but for work: i lists idle threads.".to_owned(),
        };
        return vec![Line::new(), vec![(cut(&words, columns(state)), Tone::Plain)]];
    }
    let chosen = state.chosen_at(&rows);
    let mut lines = vec![titles(state)];
    let mut room = room_for_rows(state);
    for (at, row) in rows.iter().enumerate().skip(state.top) {
        let of_row = lines_of(row, state.size.0, at == chosen);
        if of_row.len() > room && at > state.top {
            break;
        }
        room = room.saturating_sub(of_row.len());
        lines.extend(of_row);
    }
    lines
}

/// Lines that rows have, below the titles and above the keys.
pub(crate) fn room_for_rows(state: &State) -> usize {
    usize::from(state.size.1).saturating_sub(head(state).len() + 2)
}

/// Lines that these rows take.
pub(crate) fn height(rows: &[&LookRow], columns: u16) -> usize {
    rows.iter().map(|row| lines_of(row, columns, false).len()).sum()
}

/// Which row is at a line of the screen.
pub(crate) fn row_at(state: &State, line: usize) -> Option<usize> {
    let mut left = line.checked_sub(head(state).len() + 1)?;
    for (at, row) in state.rows().iter().enumerate().skip(state.top) {
        let height = lines_of(row, state.size.0, false).len();
        if left < height {
            return Some(at);
        }
        left -= height;
    }
    None
}

fn titles(state: &State) -> Line {
    let rows = state.rows().len();
    let first = if rows == 0 { 0 } else { state.top + 1 };
    let columns = columns(state);
    let (who, _) = widths(columns);
    let words = match state.size.0 >= COLUMNS_FOR_ONE_LINE {
        true => format!(
            "{:MARK$}{:>TIME$}{:GAP$}{:who$}{:GAP$}waits for",
            "", "so far", "", "who", ""
        ),
        false => format!("{:MARK$}{:>TIME$}{:GAP$}who waits for what", "", "so far", ""),
    };
    let place = format!("{first}/{rows}");
    let words = cut(&words, columns.saturating_sub(width(&place) + GAP));
    let gap = columns.saturating_sub(width(&words) + width(&place));
    vec![
        (words, Tone::Dim),
        (" ".repeat(gap), Tone::Plain),
        (cut(&place, columns), Tone::Dim),
    ]
}

/// Columns of who, and of what.
fn widths(columns: usize) -> (usize, usize) {
    let rest = columns.saturating_sub(MARK + TIME + GAP);
    let who = rest * WHO_PERCENT / 100;
    (who, rest.saturating_sub(who + GAP))
}

/// A row.
fn lines_of(row: &LookRow, columns: u16, chosen: bool) -> Vec<Line> {
    let one_line = columns >= COLUMNS_FOR_ONE_LINE;
    let columns = usize::from(columns);
    let mark = if chosen { "> " } else { "  " };
    let time = match row.open {
        true => duration(row.longest_ns),
        false => "ended".to_owned(),
    };
    let tone = |usual| if chosen { Tone::Chosen } else { usual };
    let lead = (format!("{mark}{time:>TIME$}  "), tone(Tone::Bold));
    let what = what(row);
    let indent = MARK + TIME + GAP;
    let rest = columns.saturating_sub(indent);
    let mut lines = match one_line {
        true => {
            let (who, room) = widths(columns);
            let name = shorten(&row.who, who, true);
            let gap = " ".repeat(who.saturating_sub(width(&name)) + GAP);
            vec![vec![
                lead,
                (name, tone(Tone::Plain)),
                (gap, tone(Tone::Plain)),
                (shorten(&what, room, true), tone(Tone::Plain)),
            ]]
        }
        false => vec![
            vec![lead, (shorten(&row.who, rest, true), tone(Tone::Plain))],
            vec![(
                cut(
                    &format!("    {}", shorten(&what, columns.saturating_sub(4), true)),
                    columns,
                ),
                tone(Tone::Plain),
            )],
        ],
    };
    let indent = if one_line { indent } else { 4 };
    for words in chain(&row.behind, columns.saturating_sub(indent)) {
        lines.push(vec![(cut(&format!("{:indent$}{words}", ""), columns), Tone::Dim)]);
    }
    lines
}

/// What is waited for, and how often where that says more than once.
fn what(row: &LookRow) -> String {
    match row.count {
        0 | 1 => row.what.clone(),
        many => format!("{}, {many} times, {}", row.what, duration(row.ns)),
    }
}

/// `behind a (pid 1) ← root b (pid 2), sleeping`: in one line, or the root in a line of its own.
fn chain(steps: &[LookStep], columns: usize) -> Vec<String> {
    let Some((root, between)) = steps.split_last() else {
        return Vec::new();
    };
    let doing = root
        .doing
        .map(|cause| format!(", {}", cause.phrase()))
        .unwrap_or_default();
    if between.is_empty() {
        return vec![shorten(&format!("behind {}{doing}", root.who), columns, true)];
    }
    let between: Vec<&str> = between.iter().map(|step| step.who.as_str()).collect();
    let between = format!("behind {}", between.join(" ← "));
    let root = format!("root {}{doing}", root.who);
    let whole = format!("{between} ← {root}");
    match width(&whole) <= columns {
        true => vec![whole],
        false => vec![shorten(&between, columns, true), shorten(&root, columns, true)],
    }
}

#[cfg(test)]
mod tests {
    use super::chain;
    use holdup_evidence::Cause;
    use holdup_views::LookStep;
    use holdup_views::text::width;

    #[test]
    fn the_root_has_a_line_of_its_own_where_one_is_too_short() {
        let step = |pid: u32| LookStep {
            who: format!("p{pid} (pid {pid})"),
            doing: Some(Cause::DiskSync),
            ns: 0,
        };
        let steps = [step(1), step(2), step(3)];
        let root = format!("root p3 (pid 3), {}", Cause::DiskSync.phrase());
        let whole = format!("behind p1 (pid 1) ← p2 (pid 2) ← {root}");
        assert_eq!(chain(&steps, 200), std::slice::from_ref(&whole));
        let two = ["behind p1 (pid 1) ← p2 (pid 2)".to_owned(), root];
        assert_eq!(chain(&steps, width(&whole) - 1), two);
        assert!(chain(&steps, 10).iter().all(|line| width(line) <= 10));
        let alone = format!("behind p1 (pid 1), {}", Cause::DiskSync.phrase());
        assert_eq!(chain(&steps[..1], 99), [alone]);
        assert!(chain(&[], 99).is_empty());
    }
}
