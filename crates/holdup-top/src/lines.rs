//! The screen as lines of words, before they are cells.
//!
//! In: the state. Out: lines that fit into its size, each piece with its [`Tone`]. The list of who waits is between a head (the first
//! sentence, what to do, the machine) and the keys; with few lines the head gives way first.

mod details;
mod help;
mod list;

use crate::moments::Content;
use crate::state::{State, View};
use holdup_model::finding::Severity;
use holdup_views::text::{shorten, split, width};
pub(crate) use list::{height, room_for_rows, row_at};

/// Screens with fewer lines than this have no more of a head than the first sentence.
const LINES_FOR_A_HEAD: u16 = 16;

/// How a piece looks, where the terminal has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As anything.
    Plain,
    /// The answer.
    Bold,
    /// Beside it.
    Dim,
    /// Trouble that stops the work.
    Critical,
    /// Trouble.
    Warning,
    /// Where one is.
    Chosen,
}

/// A line: pieces, one behind the other.
pub(crate) type Line = Vec<(String, Tone)>;

/// All lines of the screen.
pub(crate) fn screen(state: &State) -> Vec<Line> {
    let (_, lines) = state.size;
    let mut all = head(state);
    let body = match &state.view {
        View::List => list::lines(state),
        View::Details { from, .. } => details::lines(state).into_iter().skip(*from).collect(),
        View::Help { from } => help::lines(columns(state)).into_iter().skip(*from).collect(),
    };
    let room = usize::from(lines).saturating_sub(all.len() + 1);
    all.extend(body.into_iter().take(room));
    let full = usize::from(lines).saturating_sub(1);
    all.truncate(full);
    all.resize_with(full, Line::new);
    if lines > 0 {
        all.push(foot(state));
    }
    all
}

/// The last line from which details or help may be shown.
pub(crate) fn last_line(state: &State) -> usize {
    let lines = match &state.view {
        View::List => 0,
        View::Details { .. } => details::lines(state).len(),
        View::Help { .. } => help::lines(columns(state)).len(),
    };
    let room = usize::from(state.size.1).saturating_sub(head(state).len() + 1);
    lines.saturating_sub(room)
}

/// Columns of the screen.
fn columns(state: &State) -> usize {
    usize::from(state.size.0)
}

/// Above the list.
fn head(state: &State) -> Vec<Line> {
    let mut lines = vec![title(state)];
    if state.view != View::List {
        return lines;
    }
    let columns = columns(state);
    let Some(look) = state.moments.look() else {
        let words = match state.moments.current().map(|moment| &moment.content) {
            Some(Content::Unreadable(why)) => format!("This recording cannot be read: {why}"),
            Some(_) => "Reading the recording.".to_owned(),
            None if state.moments.is_replay() => "There is no recording here.".to_owned(),
            None => "The first look is under way.".to_owned(),
        };
        lines.extend(
            wrapped(&words, columns, 0)
                .into_iter()
                .map(|line| vec![(line, Tone::Bold)]),
        );
        return lines;
    };
    let tone = match look.severity {
        Some(Severity::Critical) => Tone::Critical,
        Some(Severity::Warning) => Tone::Warning,
        Some(Severity::Note) | None => Tone::Bold,
    };
    let size = look
        .size
        .as_ref()
        .map(|size| format!(" ({size})"))
        .unwrap_or_default();
    let tall = state.size.1 >= LINES_FOR_A_HEAD;
    let sentence = wrapped(&format!("{}{size}", look.sentence), columns, 0);
    let kept = if tall { 2 } else { 1 };
    lines.extend(
        kept_of(sentence, kept, columns)
            .into_iter()
            .map(|line| vec![(line, tone)]),
    );
    if !tall {
        return lines;
    }
    if let Some((words, command)) = &look.remedy {
        let command = command
            .as_ref()
            .map(|command| format!("  $ {command}"))
            .unwrap_or_default();
        let remedy = wrapped(&format!("to do: {words}{command}"), columns, 2);
        let remedy = kept_of(remedy, 2, columns);
        lines.extend(remedy.into_iter().map(|line| vec![(line, Tone::Plain)]));
    }
    if !look.figures.is_empty() {
        lines.push(dim(&format!("machine: {}", look.figures.join(", ")), columns));
    }
    let mut idle = format!(
        "idle: {} of {} threads wait for work{}",
        look.idle_threads,
        look.threads,
        if state.idle { ", listed" } else { "" }
    );
    if !look.running.is_empty() {
        idle.push_str(&format!("; on CPUs: {}", look.running.join(", ")));
    }
    lines.push(dim(&idle, columns));
    lines
}

/// The first line: what is observed, how, when, and whether it is the present.
fn title(state: &State) -> Line {
    let columns = columns(state);
    let (number, count) = state.moments.place();
    let mode = match (state.moments.is_replay(), state.moments.follows()) {
        (true, _) => format!("recording {number} of {count}"),
        (false, true) => "live".to_owned(),
        (false, false) => format!("paused, look {number} of {count}"),
    };
    let mut words = "holdup top".to_owned();
    if let Some(look) = state.moments.look() {
        words.push_str(&format!("  {}, {}", look.subject, look.how));
    }
    if let Some(moment) = state.moments.current() {
        words.push_str(&format!("  {}", moment.label));
    }
    let room = columns.saturating_sub(width(&mode) + 2);
    let words = shorten(&words, room, true);
    let gap = columns.saturating_sub(width(&words) + width(&mode));
    vec![
        (words, Tone::Bold),
        (" ".repeat(gap), Tone::Plain),
        (shorten(&mode, columns, true), Tone::Dim),
    ]
}

/// The last line: the filter as it is typed, or the keys, or what the source says.
fn foot(state: &State) -> Line {
    let columns = columns(state);
    if state.types {
        let words = format!("filter: {}_   Enter keeps it, Escape clears it", state.filter);
        return vec![(shorten(&words, columns, true), Tone::Bold)];
    }
    let keys = match &state.view {
        View::List => format!(
            "q quit  ? help  Enter details  / filter  s order: {}",
            state.order.words()
        ),
        View::Details { .. } => "q quit  Escape back  Up/Down scroll  Left/Right time".to_owned(),
        View::Help { .. } => "q quit  Escape back".to_owned(),
    };
    let filter = match state.filter.is_empty() {
        true => String::new(),
        false => format!("  [filter: {}]", state.filter),
    };
    let words = match state.status.is_empty() {
        true => format!("{keys}{filter}"),
        false => format!("{keys}{filter}  {}", state.status),
    };
    vec![(cut(&words, columns), Tone::Dim)]
}

/// One line, its end left out where it must be.
fn cut(text: &str, columns: usize) -> String {
    match width(text) <= columns {
        true => text.to_owned(),
        false if columns == 0 => String::new(),
        false => split(text, columns).0.to_owned(),
    }
}

fn dim(text: &str, columns: usize) -> Line {
    vec![(shorten(text, columns, true), Tone::Dim)]
}

/// The first lines of some; of more, the last one that is kept says that there are.
fn kept_of(mut lines: Vec<String>, kept: usize, columns: usize) -> Vec<String> {
    if lines.len() > kept {
        lines.truncate(kept);
        if let Some(last) = lines.last_mut() {
            *last = format!("{} …", cut(last, columns.saturating_sub(2)));
        }
    }
    lines
}

/// Words in lines of at most so many columns; from the second on with blanks in front. A word that is longer than a line is broken.
fn wrapped(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let columns = columns.max(1);
    let indent = if columns > indent * 4 { indent } else { 0 };
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let blank = usize::from(!line.trim().is_empty());
        if blank > 0 && width(&line) + blank + width(word) > columns {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        let mut rest = word;
        while width(&line) + width(rest) > columns {
            let (first, other) = split(rest, columns.saturating_sub(width(&line)).max(1));
            if other.is_empty() {
                break;
            }
            line.push_str(first);
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            rest = other;
        }
        line.push_str(rest);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::{kept_of, wrapped};

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrapped("one two three", 9, 2), ["one two", "  three"]);
        assert_eq!(wrapped("abcdefgh ij", 4, 0), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("", 10, 2), [""]);
        assert_eq!(wrapped("文件文件", 3, 0), ["文", "件", "文", "件"]);
        assert!(wrapped("文件", 1, 0).concat().contains('件'));
    }

    #[test]
    fn what_is_left_out_is_marked() {
        let lines = vec!["one".to_owned(), "two".to_owned(), "three".to_owned()];
        assert_eq!(kept_of(lines.clone(), 3, 10), lines);
        assert_eq!(kept_of(lines, 2, 10), ["one", "two …"]);
    }
}
