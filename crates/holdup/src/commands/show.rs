//! `holdup show`: the verdict for what was recorded.
//!
//! In: a recording, or a directory of them, and which part is asked for. Out: the report that the rules make of that part, as
//! they would have then.

mod ahead;
mod page;
mod part;
mod usual;
mod words;

use crate::cli::{Color, ShowArgs};
use crate::gate::{self, Gate};
use crate::output::{Outputs, Place, say};
use crate::usage::Usage;
use crate::verdict;
use anyhow::bail;
use holdup_collect::privileges::{self, Part};
use holdup_evidence::Ns;
use holdup_model::report::SubjectKind;
use holdup_recording::unlike::{self, MIN_SEGMENTS, Outlier, Rates};
use holdup_recording::{
    Error, Folder, Head, Merging, Segment, folder, only_process, peek, read_one, read_sums,
};
use holdup_times::Window;
use jiff::tz::TimeZone;
use part::Causes;
use std::path::{Path, PathBuf};

/// Nothing was recorded then, or of that.
const NOTHING: u8 = 1;

/// Reads, judges, prints.
///
/// # Errors
/// When the recording can't be read, or the report can't be written.
pub(crate) fn run(args: &ShowArgs, color: Color) -> anyhow::Result<u8> {
    let zone = TimeZone::system();
    let causes = args.cause.as_deref().map(Causes::named).transpose()?;
    let gate = Gate::open(&args.gate)?;
    let outputs = Outputs::open(&args.report, Place::Stdout, color)?;
    privileges::keep(Part::Read)?;
    if let Some(report) = page::report(&args.path)? {
        return Ok(outputs.write_judged(report, gate.as_ref()));
    }
    let Folder {
        segments: files,
        mut problems,
    } = files(args)?;
    let newest = files.iter().map(|(_, head)| head.ended_unix()).max();
    let window = Window::asked(args.at.as_deref(), args.last, newest.unwrap_or_default(), &zone)
        .map_err(Usage::Wrong)?;
    let inside: Vec<(PathBuf, Head)> = files
        .iter()
        .filter(|(_, head)| window.holds(head.started_unix, head.ended_unix()))
        .cloned()
        .collect();
    if inside.is_empty() {
        say(&words::nothing_then(&window, &files, &zone));
        return Ok(gate::status_without_report(gate.as_ref(), NOTHING));
    }
    let (looks, inside): (Vec<_>, Vec<_>) = inside
        .into_iter()
        .partition(|(_, head)| head.kind == SubjectKind::Host);
    // A look is reported of alone, and of several the last one; among waits of threads it is none of them.
    let (inside, aside) = match looks.split_last() {
        Some((last, earlier)) if inside.is_empty() => (vec![last.clone()], words::earlier(earlier)),
        Some((last, earlier)) => (inside, Some(words::beside(last, earlier))),
        None => (inside, None),
    };
    let found = match args.worst {
        true => worst(&inside, args, &mut problems),
        false => None,
    };
    let rows: Vec<(PathBuf, Head)> = match found.as_ref().and_then(|(found, _)| found.first()) {
        Some(outlier) => vec![inside[outlier.number].clone()],
        None => inside.clone(),
    };
    let Some((segment, first)) = together(&rows, args, &mut problems)? else {
        let is_look = rows.iter().any(|(_, head)| head.kind == SubjectKind::Host);
        say(&words::nothing_of(args, is_look));
        return Ok(gate::status_without_report(gate.as_ref(), NOTHING));
    };
    let mut report = verdict::of_segment(&segment, words::of_machine(args, &segment.head));
    if args.request && !part::only_requests(&mut report) {
        say("this recording has no requests: `holdup attach` records requests over accepted connections");
        return Ok(gate::status_without_report(gate.as_ref(), NOTHING));
    }
    if let Some(causes) = causes {
        part::only_causes(&mut report, &causes);
    }
    let too_few = (args.worst && found.is_none()).then(|| words::too_few(inside.len()));
    let found = found.map(|(found, compared)| words::unlike(&found, compared, &inside));
    report.recording = Some(words::recording(&segment, &first, args, &problems, found, &zone));
    if let Some(recording) = &mut report.recording {
        recording.lines.extend(usual::lines(args, &segment));
        recording.lines.extend(aside);
        recording.lines.extend(too_few);
    }
    Ok(outputs.write_judged(report, gate.as_ref()))
}

/// The segments that there are, oldest first, and what is wrong with others.
fn files(args: &ShowArgs) -> anyhow::Result<Folder> {
    let path = &args.path;
    if !path.is_dir() {
        return Ok(Folder {
            segments: vec![(path.clone(), peek(path)?)],
            problems: vec![],
        });
    }
    let mut found = folder(path)?;
    if found.segments.is_empty() {
        // The one that is wrong says more than that there is none.
        let empty = || Error::Empty { path: path.clone() };
        bail!(found.problems.pop().unwrap_or_else(empty));
    }
    Ok(found)
}

/// One segment, or what was asked for of it; its time line only where it is reported of alone.
fn segment(path: &Path, args: &ShowArgs, alone: bool) -> Result<Option<Segment>, Error> {
    let mut segment = match alone {
        true => read_one(path)?,
        false => read_sums(path)?,
    };
    if segment.look.is_some() && args.process.is_some() {
        return Ok(None);
    }
    Ok(match &args.process {
        Some(process) if !only_process(&mut segment, process) => None,
        _ => Some(segment),
    })
}

/// All of them as one, and the head of the first. A file that is damaged is reported of and left out, unless it is the only one.
fn together(
    files: &[(PathBuf, Head)],
    args: &ShowArgs,
    problems: &mut Vec<Error>,
) -> anyhow::Result<Option<(Segment, Head)>> {
    let mut merging: Option<(Merging, Head)> = None;
    let alone = files.len() == 1;
    let mut found = Vec::new();
    ahead::in_turn(
        files.len(),
        |number| segment(&files[number].0, args, alone),
        |number, read| match (read, &mut merging) {
            (Ok(Some(segment)), Some((merging, _))) => merging.push(segment),
            (Ok(Some(segment)), None) => merging = Some((Merging::new(segment), files[number].1.clone())),
            (Ok(None), _) => {}
            (Err(error), _) => found.push(error),
        },
    );
    if alone && let Some(error) = found.pop() {
        bail!(error);
    }
    problems.extend(found);
    Ok(merging.map(|(merging, first)| (merging.finish(), first)))
}

/// Which of these segments are unlike the others, and how many were compared; `None` where there are too few to tell.
fn worst(
    files: &[(PathBuf, Head)],
    args: &ShowArgs,
    problems: &mut Vec<Error>,
) -> Option<(Vec<Outlier>, usize)> {
    let whole = whole(files);
    if whole.len() < MIN_SEGMENTS {
        return None;
    }
    let mut rates = Vec::with_capacity(whole.len());
    let mut numbers = Vec::with_capacity(whole.len());
    let read = |at: usize| {
        let segment = segment(&files[whole[at]].0, args, false)?;
        // What was asked for may have done nothing then.
        Ok(segment.as_ref().map(Rates::of).unwrap_or_default())
    };
    ahead::in_turn(whole.len(), read, |at, read| match read {
        Ok(rate) => {
            rates.push(rate);
            numbers.push(whole[at]);
        }
        Err(error) => problems.push(error),
    });
    let outliers = unlike::outliers(&rates).into_iter();
    let outliers = outliers.map(|outlier| Outlier {
        number: numbers[outlier.number],
        ..outlier
    });
    Some((outliers.collect(), rates.len()))
}

/// Which of them can be compared: not those in which nothing was observed, and not those that are much shorter than most, as the first and the
/// last of a recorder are. In a few seconds a rate is what happened to go on.
fn whole(files: &[(PathBuf, Head)]) -> Vec<usize> {
    let there = || files.iter().enumerate().filter(|(_, (_, head))| !head.is_lost());
    let mut lengths: Vec<Ns> = there().map(|(_, (_, head))| head.length).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    there()
        .filter(|(_, (_, head))| head.length >= usual - usual / 4)
        .map(|(number, _)| number)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::whole;
    use holdup_model::report::{Backend, SubjectKind};
    use holdup_recording::Head;
    use std::path::PathBuf;

    #[test]
    fn segments_that_are_short_or_lost_are_not_compared() {
        let of = |seconds: u64| {
            let kind = (SubjectKind::Attach, Backend::Bpf);
            Head::new(kind, (0, 0), seconds * 1_000_000_000)
        };
        let mut lost = of(60);
        lost.lose();
        let heads = [of(9), of(60), lost, of(61), of(46), of(60), of(31)];
        let files: Vec<(PathBuf, Head)> = heads.into_iter().map(|head| (PathBuf::new(), head)).collect();
        assert_eq!(whole(&files), [1, 3, 4, 5]);
        assert!(whole(&[]).is_empty());
    }
}
