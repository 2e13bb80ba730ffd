//! The cases of a corpus, each judged and held against what was said of it before.

use crate::Args;
use crate::difference::{Kind, differences};
use anyhow::{Context, bail};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use holdup_model::report::Report;
use holdup_views::Style;
use serde_json::Value;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const EVENTS: &str = ".events.gz";
const EXPECTED: &str = ".report.json.gz";

/// A case, judged.
struct Judged {
    name: String,
    /// What is different, by kind, as lines; an error is the case's only line.
    outcome: anyhow::Result<Vec<(Kind, String)>>,
    shown: Option<String>,
}

/// Replays what was asked for and prints it; whether nothing has changed.
pub(crate) fn replay(args: &Args) -> anyhow::Result<bool> {
    let cases = cases(&args.corpus, &args.names)?;
    if cases.is_empty() {
        bail!("no {EVENTS} file in {} is meant", args.corpus.display());
    }
    let judged = judge_all(&cases, args);
    let mut changed = 0;
    for case in &judged {
        changed += usize::from(print(case, args.lines));
    }
    let kept = judged.len() - changed;
    println!("{kept} passed, {changed} failed");
    Ok(changed == 0)
}

/// The files of events, by name.
fn cases(folder: &Path, names: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let mut cases = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = name_of(&path);
        let asked = names.is_empty() || names.iter().any(|part| name.contains(part.as_str()));
        if asked && path.to_string_lossy().ends_with(EVENTS) {
            cases.push(path);
        }
    }
    cases.sort();
    Ok(cases)
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(EVENTS).unwrap_or(&name).to_owned()
}

/// Judges them on all CPUs.
fn judge_all(cases: &[PathBuf], args: &Args) -> Vec<Judged> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut judged: Vec<Judged> = std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            while let Some(path) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push(judge_one(path, args));
            }
            done
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("judging does not panic"))
            .collect()
    });
    judged.sort_by(|one, other| one.name.cmp(&other.name));
    judged
}

fn judge_one(path: &Path, args: &Args) -> Judged {
    let name = name_of(path);
    let expected = path.with_file_name(format!("{name}{EXPECTED}"));
    let mut shown = None;
    let outcome = holdup_replay::report(path).and_then(|report| {
        shown = args.show.then(|| terminal(&report));
        let mut text = Vec::new();
        holdup_views::json::write(&report, &mut text).context("render the report as JSON")?;
        let now = serde_json::from_slice(&text).context("a report is JSON")?;
        if args.bless {
            write(&expected, &now)?;
            return Ok(Vec::new());
        }
        Ok(differences(&read(&expected)?, &now))
    });
    Judged { name, outcome, shown }
}

fn terminal(report: &Report) -> String {
    let style = Style {
        width: 100,
        colour: false,
        unicode: true,
        verbose: false,
        quiet: false,
    };
    let mut text = Vec::new();
    holdup_views::terminal::write(report, &style, &mut text).expect("memory can be written to");
    String::from_utf8_lossy(&text).into_owned()
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let file = File::open(path).with_context(|| format!("open {} (`--bless` makes it)", path.display()))?;
    serde_json::from_reader(BufReader::new(GzDecoder::new(file)))
        .with_context(|| format!("read {}", path.display()))
}

fn write(path: &Path, report: &Value) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("write {}", path.display()))?;
    let mut out = GzEncoder::new(file, Compression::best());
    serde_json::to_writer(&mut out, report)?;
    out.finish()?.flush()?;
    Ok(())
}

/// Prints a case if there is anything to say; whether it has changed.
fn print(case: &Judged, most: usize) -> bool {
    if let Some(shown) = &case.shown {
        println!("== {}\n{shown}", case.name);
    }
    let lines = match &case.outcome {
        Ok(lines) if lines.is_empty() => return false,
        Ok(lines) => lines,
        Err(error) => {
            println!("{}: {error:#}", case.name);
            return true;
        }
    };
    println!("{}:", case.name);
    for kind in Kind::ALL {
        let of_kind: Vec<&String> = lines
            .iter()
            .filter_map(|(of, line)| (*of == kind).then_some(line))
            .collect();
        for line in of_kind.iter().take(most) {
            println!("  {kind}  {line}");
        }
        if of_kind.len() > most {
            println!("  {kind}  … and {} more", of_kind.len() - most);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{EVENTS, EXPECTED, replay};
    use crate::Args;
    use holdup_events::{Ending, Observed, Settings, Writer};
    use holdup_evidence::{Finish, SystemFacts};
    use holdup_model::report::{Backend, SubjectKind};
    use std::path::Path;

    fn case(folder: &Path, name: &str) {
        let file = std::fs::File::create(folder.join(format!("{name}{EVENTS}"))).unwrap();
        let ending = Ending {
            finish: Finish {
                started: 1,
                ended: 9,
                ..Finish::default()
            },
            facts: SystemFacts::default(),
            found_unmeasured: Vec::new(),
            host_figures: holdup_model::host_figures::HostFigures::default(),
            observed: Some(Observed {
                kind: SubjectKind::Run,
                backend: Backend::Bpf,
                command: vec!["true".to_owned()],
                pids: vec![1],
                started: 1,
                exit: Some(0),
                elsewhere: Vec::new(),
            }),
        };
        Writer::begin(file, "0.1.0", Settings::default())
            .finish(ending)
            .unwrap();
    }

    fn args(folder: &Path, bless: bool) -> Args {
        Args {
            corpus: folder.to_owned(),
            names: Vec::new(),
            bless,
            lines: 6,
            show: false,
            take: None,
            renamed: Vec::new(),
        }
    }

    #[test]
    fn what_was_blessed_is_expected_and_what_was_not_fails() {
        let folder = tempfile::TempDir::new().unwrap();
        let folder = folder.path();
        assert!(
            replay(&args(folder, false)).is_err(),
            "an empty corpus is no success"
        );
        case(folder, "one");
        assert!(!replay(&args(folder, false)).unwrap());
        assert!(replay(&args(folder, true)).unwrap());
        assert!(replay(&args(folder, false)).unwrap());
        let other = super::read(&folder.join(format!("one{EXPECTED}"))).unwrap();
        let other = serde_json::json!({"schema": "other", "subject": other["subject"]});
        super::write(&folder.join(format!("one{EXPECTED}")), &other).unwrap();
        assert!(!replay(&args(folder, false)).unwrap());
    }
}
