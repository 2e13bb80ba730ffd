//! Whether what was recorded was as usual at its hour.
//!
//! In: a merged segment, and what its folder knows of other days. Out: lines of the report's head; none where too little is known.

use crate::cli::ShowArgs;
use holdup_recording::Segment;
use holdup_recording::usual::{self, Above, Basis, Loads, When};

/// Programs that are named.
const MAX_LINES: usize = 3;

/// The longest time that is held against an hour, nanoseconds; and the shortest: a restart takes a minute or two.
const MAX_LENGTH_NS: u64 = 2 * 3_600 * 1_000_000_000;
const MIN_LENGTH_NS: u64 = 4 * 60 * 1_000_000_000;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// What is said.
pub(super) fn lines(args: &ShowArgs, segment: &Segment) -> Vec<String> {
    let head = &segment.head;
    let alone = args.process.is_none() && args.path.is_dir() && segment.look.is_none();
    if !alone || !(MIN_LENGTH_NS..=MAX_LENGTH_NS).contains(&head.length) {
        return Vec::new();
    }
    let Some(usual) = usual::read(&args.path) else {
        return Vec::new();
    };
    let middle = head.started_unix + i64::try_from(head.length / 2).unwrap_or(0);
    let judged = usual.judge(When::of(middle, head.zone.offset), &Loads::of(segment));
    if judged.above.is_empty() {
        let known = judged.as_usual > 0 && judged.days > 0;
        return match known {
            true => vec![format!("as usual at this hour ({})", days(judged.days))],
            false => Vec::new(),
        };
    }
    let mut lines: Vec<String> = judged.above.iter().take(MAX_LINES).map(line).collect();
    if let Some(more) = judged.above.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
        lines.push(format!("{more} more above the usual"));
    }
    lines
}

/// `1.2 threads of backup at a time in disk.sync: 40 times the usual at this hour (7 days known)`.
fn line(one: &Above) -> String {
    let basis = match one.basis {
        Basis::Hour(known) => ("the usual at this hour", days(known)),
        Basis::AllHours(known) => ("the most at any hour so far", days(known)),
    };
    let times = match one.usual {
        0 => format!("{} is almost none", basis.0),
        _ => format!("{:.0} times {}", one.times, basis.0),
    };
    format!(
        "{:.1} threads of {} at a time in {}: {times} ({})",
        one.rate as f64 / SECOND,
        one.program,
        one.cause,
        basis.1
    )
}

fn days(known: usize) -> String {
    match known {
        1 => "1 day known".to_owned(),
        several => format!("{several} days known"),
    }
}
