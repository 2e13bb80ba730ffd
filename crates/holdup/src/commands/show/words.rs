//! What is said of a recording itself, in the reader's zone.

use crate::cli::ShowArgs;
use holdup_model::report::{Recording, RecordingBreak, SubjectKind, Unlike, UnlikeCause, UnlikeSegment};
use holdup_recording::unlike::{MIN_SEGMENTS, Outlier, Unusual};
use holdup_recording::{Break, Error, Head, Segment};
use holdup_times::Window;
use holdup_views::units::{counted, duration};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::PathBuf;

/// Unlike segments that are listed.
const LISTED: usize = 10;

/// Causes that are named of each.
const CAUSES: usize = 3;

/// Breaks that are reported singly; more are counted.
const BREAKS: usize = 5;

fn timestamp(unix_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default()
}

fn rfc3339(unix_ns: i64) -> String {
    timestamp(unix_ns).to_string()
}

/// `2026-11-22 13:05:00`.
fn date(unix_ns: i64, zone: &TimeZone) -> String {
    let at = timestamp(unix_ns).to_zoned(zone.clone());
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `13:05:00`, or with the date where it is another day.
fn time(unix_ns: i64, beside: i64, zone: &TimeZone) -> String {
    let of = |at: i64| timestamp(at).to_zoned(zone.clone());
    match of(unix_ns).date() == of(beside).date() {
        true => of(unix_ns).strftime("%H:%M:%S").to_string(),
        false => date(unix_ns, zone),
    }
}

/// What to say where nothing was recorded at that time: when something was.
pub(super) fn nothing_then(window: &Window, files: &[(PathBuf, Head)], zone: &TimeZone) -> String {
    let from = files.iter().map(|(_, head)| head.started_unix).min();
    let to = files.iter().map(|(_, head)| head.ended_unix()).max();
    let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
    let asked = match window.from == window.to {
        true => format!("at {}", date(window.to, zone)),
        false => format!(
            "from {} to {}",
            date(window.from, zone),
            time(window.to, window.from, zone)
        ),
    };
    format!(
        "nothing was recorded {asked}, but {} from {} to {}",
        counted(files.len() as u64, "segment", "segments"),
        date(from, zone),
        time(to, from, zone)
    )
}

/// What to say where what was asked for was not there.
pub(super) fn nothing_of(args: &ShowArgs, is_look: bool) -> String {
    match &args.process {
        Some(process) if is_look => format!(
            "process {process:?} cannot be shown alone: a snapshot of the whole machine was recorded then; \
             remove --process"
        ),
        Some(process) => format!("no process {process:?} was recorded then"),
        None => "nothing was recorded then".to_owned(),
    }
}

/// What is said where several looks at a machine were recorded then, of which the last one is reported.
pub(super) fn earlier(looks: &[(PathBuf, Head)]) -> Option<String> {
    let (path, _) = looks.last()?;
    Some(format!(
        "{} before it {} not shown: `holdup show {}` shows the previous one",
        counted(
            looks.len() as u64,
            "snapshot of this machine",
            "snapshots of this machine"
        ),
        if looks.len() == 1 { "is" } else { "are" },
        path.display()
    ))
}

/// What is said where looks at a machine lie among recordings of what threads waited for.
pub(super) fn beside((path, _): &(PathBuf, Head), earlier: &[(PathBuf, Head)]) -> String {
    format!(
        "{} not included: `holdup show {}` shows the last one",
        match earlier.len() as u64 + 1 {
            1 => "a snapshot of the whole machine is".to_owned(),
            several => format!("{several} snapshots of the whole machine are"),
        },
        path.display()
    )
}

/// Where too few segments can be compared.
pub(super) fn too_few(all: usize) -> String {
    let all = counted(u64::try_from(all).unwrap_or(u64::MAX), "segment", "segments");
    format!(
        "--worst compares whole segments, and needs at least {MIN_SEGMENTS}: of {all} too few are whole, so this report covers all of them"
    )
}

/// The unlike segments for the report.
pub(super) fn unlike(found: &[Outlier], compared: usize, files: &[(PathBuf, Head)]) -> Unlike {
    let cause = |one: &Unusual| UnlikeCause {
        cause: one.cause,
        ns_per_s: one.rate,
        usual_ns_per_s: one.usual,
        score: one.score,
    };
    let segment = |outlier: &Outlier| {
        let (path, head) = &files[outlier.number];
        UnlikeSegment {
            from: rfc3339(head.started_unix),
            to: rfc3339(head.ended_unix()),
            file: path.display().to_string(),
            distance: outlier.distance,
            causes: outlier.causes.iter().map(cause).collect(),
        }
    };
    Unlike {
        compared: u32::try_from(compared).unwrap_or(u32::MAX),
        segments: found.iter().map(segment).collect(),
    }
}

/// Whether it is of all that ran where it was recorded: of a recorder's directory, where nobody named a process.
pub(super) fn of_machine(args: &ShowArgs, head: &Head) -> bool {
    head.kind == SubjectKind::Attach && args.process.is_none() && args.path.is_dir()
}

/// What the report says of the recording.
pub(super) fn recording(
    segment: &Segment,
    first: &Head,
    args: &ShowArgs,
    problems: &[Error],
    unlike: Option<Unlike>,
    zone: &TimeZone,
) -> Recording {
    let head = &segment.head;
    let (from, to) = (head.started_unix, head.ended_unix());
    let mut only: Vec<String> = Vec::new();
    only.extend(args.process.iter().map(|process| format!("process {process}")));
    only.extend(args.cause.iter().map(|cause| format!("cause {cause}")));
    only.extend(args.request.then(|| "requests".to_owned()));
    let host = head.host.as_ref().map(|host| format!(" on {host}"));
    let mut lines = vec![format!(
        "recorded {} to {} (UTC{}){}{}",
        date(from, zone),
        time(to, from, zone),
        zone.to_offset(timestamp(from)),
        host.unwrap_or_default(),
        match head.segments {
            1 => String::new(),
            several => format!(", {several} segments"),
        }
    )];
    lines.extend((!only.is_empty()).then(|| format!("filtered: only {}", only.join(", "))));
    lines.extend(
        (!head.detail.is_empty())
            .then(|| format!("in full detail, because {} was true", listed(&head.detail))),
    );
    lines.extend(head.breaks.iter().take(BREAKS).map(|one| said(one, from, zone)));
    if let Some(more @ 1..) = head.breaks.len().checked_sub(BREAKS) {
        lines.push(format!("{more} more breaks; the JSON report lists them"));
    }
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.extend(problems.iter().take(BREAKS).map(|one| format!("skipped: {one}")));
    if let Some(more @ 1..) = problems.len().checked_sub(BREAKS) {
        lines.push(format!("{more} more files were skipped"));
    }
    lines.extend(unlike.iter().flat_map(|unlike| of_unlike(unlike, from, zone)));
    Recording {
        from: rfc3339(from),
        to: rfc3339(to),
        segments: head.segments,
        machine: of_machine(args, head),
        host: head.host.clone(),
        kernel: head.kernel.clone(),
        boot_id: head.boot_id.clone(),
        zone: first.zone.name.clone(),
        zone_offset_s: first.zone.offset,
        recorded_by: head.holdup.clone(),
        redacted: head.redacted,
        only,
        breaks: head.breaks.iter().map(recording_break).collect(),
        approximate: head.approximate.clone(),
        problems,
        unlike,
        lines,
    }
}

/// Conditions that held, each once; of many the first.
fn listed(detail: &[String]) -> String {
    let mut several: Vec<&str> = detail.iter().map(String::as_str).collect();
    several.dedup();
    match several.len().checked_sub(CAUSES) {
        Some(more @ 1..) => format!("{} and {more} more", several[..CAUSES].join(", ")),
        _ => several.join(", "),
    }
}

fn of_unlike(unlike: &Unlike, beside: i64, zone: &TimeZone) -> Vec<String> {
    let compared = counted(u64::from(unlike.compared), "segment", "segments");
    let Some(first) = unlike.segments.first() else {
        return vec![format!(
            "none of {compared} differs from the others, so this report covers all of them"
        )];
    };
    let at = |text: &str| {
        let instant: Timestamp = text.parse().unwrap_or_default();
        time(
            i64::try_from(instant.as_nanosecond()).unwrap_or_default(),
            beside,
            zone,
        )
    };
    let mut lines = vec![format!(
        "{} of {compared} {} from the others; this report covers the one at {}",
        unlike.segments.len(),
        if unlike.segments.len() == 1 {
            "differs"
        } else {
            "differ"
        },
        at(&first.from)
    )];
    for segment in unlike.segments.iter().take(LISTED) {
        let causes: Vec<String> = segment.causes.iter().take(CAUSES).map(unusual).collect();
        lines.push(format!("{}  {}", at(&segment.from), causes.join("; ")));
    }
    if let Some(more @ 1..) = unlike.segments.len().checked_sub(LISTED) {
        lines.push(format!("{more} more; the JSON report lists them"));
    }
    lines
}

/// `disk.sync 700 ms per second, usually 2 ms`.
fn unusual(one: &UnlikeCause) -> String {
    format!(
        "{} {} per second, usually {}",
        one.cause.id(),
        duration(one.ns_per_s),
        duration(one.usual_ns_per_s)
    )
}

/// A break in words.
fn said(one: &Break, beside: i64, zone: &TimeZone) -> String {
    let time = |at: i64| time(at, beside, zone);
    let length = |from: i64, to: i64| duration(to.saturating_sub(from).unsigned_abs());
    let host = |host: &Option<String>| host.clone().unwrap_or_else(|| "an unnamed host".to_owned());
    match one {
        Break::Boot { at } => format!("the machine rebooted before {}", time(*at)),
        Break::Host { at, from, to } => {
            format!("from {} on {}, before {}", time(*at), host(to), host(from))
        }
        Break::Clock { at, by } => {
            let way = if *by > 0 { "forward" } else { "back" };
            format!(
                "the clock was set {way} by {} before {}",
                duration(by.unsigned_abs()),
                time(*at)
            )
        }
        Break::Suspended { at, ns } => {
            format!(
                "the machine was suspended for {} before {}",
                duration(*ns),
                time(*at)
            )
        }
        Break::Gap { from, to } => format!(
            "nothing was recorded for {} from {}",
            length(*from, *to),
            time(*from)
        ),
        Break::Lost { from, to } => format!(
            "the segment of {} from {} is lost: its observer was ended before it could write",
            length(*from, *to),
            time(*from)
        ),
        Break::Overlap { from, to } => format!(
            "two segments overlap for {} from {}; this time counts twice",
            length(*from, *to),
            time(*from)
        ),
    }
}

/// The same for a program.
fn recording_break(one: &Break) -> RecordingBreak {
    let (kind, at, ns) = match one {
        Break::Boot { at } => ("boot", at, None),
        Break::Host { at, .. } => ("host", at, None),
        Break::Clock { at, by } => ("clock", at, Some(*by)),
        Break::Suspended { at, ns } => ("suspended", at, i64::try_from(*ns).ok()),
        Break::Gap { from, to } => ("gap", from, Some(to.saturating_sub(*from))),
        Break::Overlap { from, to } => ("overlap", from, Some(to.saturating_sub(*from))),
        Break::Lost { from, to } => ("lost", from, Some(to.saturating_sub(*from))),
    };
    RecordingBreak {
        kind: kind.to_owned(),
        at: rfc3339(*at),
        ns,
    }
}
