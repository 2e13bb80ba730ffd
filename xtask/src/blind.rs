//! `cargo xtask blind --texts DIR`: judges `holdup read` by artefacts that strangers published.
//!
//! In: `blind/artefacts.jsonl`, which says where each artefact stands in a public repository and what is wrong in it, written
//! before any run by somebody who does not write readers; and their texts, which are not part of the project. Out: how many
//! are right, of the open half and of the sealed half, and what is wrong with those of the open half. Of the sealed half only
//! counts are printed, so that nothing can be fitted to it.

use crate::{process, workspace};
use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the texts are, and what to print.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A directory with the texts, each as ID.txt
    #[arg(long, value_name = "DIR", required_unless_present = "mirrors")]
    texts: Vec<PathBuf>,
    /// A directory with git directories of the repositories, as OWNER+NAME; texts are taken from their commits
    #[arg(long, value_name = "DIR")]
    mirrors: Option<PathBuf>,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
    /// Run the sealed half too; prints its counts and nothing else of it
    #[arg(long)]
    sealed: bool,
    /// Write what is wrong with the open half to this file, a line of JSON each
    #[arg(long, value_name = "FILE")]
    misses: Option<PathBuf>,
}

/// An artefact: where it stands, and what is true of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Artefact {
    id: String,
    repository: String,
    commit: String,
    path: String,
    first_line: usize,
    last_line: usize,
    format: String,
    kind: Kind,
    difficulty: String,
    truth: String,
    /// Each group needs one of its words in one sentence of the answer.
    must_contain: Vec<Vec<String>>,
    /// Accusations that would do harm.
    must_not: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Trouble,
    Healthy,
}

/// What came of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Right,
    /// It has an answer, and not this one.
    Wrong,
    /// It says that there is nothing.
    Silent,
    /// It is not read at all.
    Refused,
    /// A warning about a healthy one.
    FalseAlarm,
}

#[derive(Debug, Default, Clone, Copy)]
struct Row {
    troubles: u64,
    right: u64,
    silent: u64,
    refused: u64,
    healthy: u64,
    false_alarms: u64,
}

impl Row {
    fn add(&mut self, kind: Kind, outcome: Outcome) {
        match kind {
            Kind::Trouble => self.troubles += 1,
            Kind::Healthy => self.healthy += 1,
        }
        self.right += u64::from(kind == Kind::Trouble && outcome == Outcome::Right);
        self.silent += u64::from(kind == Kind::Trouble && outcome == Outcome::Silent);
        self.refused += u64::from(outcome == Outcome::Refused);
        self.false_alarms += u64::from(outcome == Outcome::FalseAlarm);
    }

    fn sum(rows: impl Iterator<Item = Row>) -> Row {
        rows.fold(Row::default(), |mut sum, row| {
            sum.troubles += row.troubles;
            sum.right += row.right;
            sum.silent += row.silent;
            sum.refused += row.refused;
            sum.healthy += row.healthy;
            sum.false_alarms += row.false_alarms;
            sum
        })
    }
}

/// Reads, judges, prints. Judges nothing in the sense of a test: the figures are for people.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let manifest = workspace::root().join("blind/artefacts.jsonl");
    let text = std::fs::read_to_string(&manifest).with_context(|| format!("read {}", manifest.display()))?;
    let mut rows: [BTreeMap<String, Row>; 2] = Default::default();
    let mut missing = 0;
    let mut misses = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let artefact: Artefact = serde_json::from_str(line).with_context(|| format!("in {line}"))?;
        let sealed = is_sealed(&artefact.id);
        if sealed && !args.sealed {
            continue;
        }
        let Some(text) = text_of(&artefact, args) else {
            missing += 1;
            continue;
        };
        let report = read(&holdup, text)?;
        let outcome = judge(&artefact, report.as_ref());
        rows[usize::from(sealed)]
            .entry(artefact.format.clone())
            .or_default()
            .add(artefact.kind, outcome);
        if !sealed && outcome != Outcome::Right {
            let said = report.as_ref().map(answers).unwrap_or_default();
            writeln!(
                misses,
                "{}",
                serde_json::json!({"id": artefact.id, "format": artefact.format, "difficulty": artefact.difficulty,
                    "outcome": format!("{outcome:?}"), "truth": artefact.truth, "said": said})
            )?;
        }
    }
    print(&rows[0], "open");
    if args.sealed {
        print(&rows[1], "sealed");
    }
    if missing > 0 {
        println!("{missing} artefacts have no text here");
    }
    if let Some(file) = &args.misses {
        std::fs::write(file, misses).with_context(|| format!("write {}", file.display()))?;
    }
    if rows[0].is_empty() && rows[1].is_empty() {
        bail!("no text of any artefact was found");
    }
    Ok(())
}

/// Which half an artefact is of: by its id alone (FNV-1a), so that nobody chooses.
fn is_sealed(id: &str) -> bool {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The upper bits are the mixed ones.
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 63 == 1
}

/// Its text: as a file, or as lines of a file of a commit.
fn text_of(artefact: &Artefact, args: &Args) -> Option<Vec<u8>> {
    let name = format!("{}.txt", artefact.id);
    let as_file = args
        .texts
        .iter()
        .find_map(|folder| std::fs::read(folder.join(&name)).ok());
    as_file.or_else(|| {
        let folder = args.mirrors.as_ref()?.join(artefact.repository.replace('/', "+"));
        let git_directory = [folder.join("repo"), folder]
            .into_iter()
            .find(|path| path.is_dir())?;
        lines_of(&git_directory, artefact)
    })
}

fn lines_of(git_directory: &Path, artefact: &Artefact) -> Option<Vec<u8>> {
    let shown = Command::new("git")
        .arg("--git-dir")
        .arg(git_directory)
        .args(["show", &format!("{}:{}", artefact.commit, artefact.path)])
        .output()
        .ok()
        .filter(|shown| shown.status.success())?;
    let first = artefact.first_line.checked_sub(1)?;
    let lines: Vec<&[u8]> = shown.stdout.split_inclusive(|byte| *byte == b'\n').collect();
    Some(lines.get(first..artefact.last_line.min(lines.len()))?.concat())
}

/// Has holdup read it; `None` where it refuses.
fn read(holdup: &Path, text: Vec<u8>) -> anyhow::Result<Option<Value>> {
    let file = tempfile::NamedTempFile::new().context("make a file")?;
    std::fs::write(file.path(), text).context("write the artefact")?;
    let mut command = Command::new(holdup);
    command
        .args(["read", "--json", "-", "-q"])
        .arg(file.path())
        .stderr(Stdio::null());
    let output = command.output().with_context(|| process::words(&command))?;
    Ok(serde_json::from_slice(&output.stdout).ok())
}

fn judge(artefact: &Artefact, report: Option<&Value>) -> Outcome {
    let Some(report) = report.filter(|report| !list(report, "artefacts").is_empty()) else {
        return Outcome::Refused;
    };
    if artefact.kind == Kind::Healthy {
        let alarm = list(report, "findings")
            .iter()
            .any(|finding| finding["severity"] != "note");
        return if alarm {
            Outcome::FalseAlarm
        } else {
            Outcome::Right
        };
    }
    let answers = answers(report);
    let says =
        |answer: &String, words: &[String]| words.iter().any(|word| answer.contains(&word.to_lowercase()));
    let harmful = answers.iter().any(|answer| {
        artefact
            .must_not
            .iter()
            .any(|word| answer.contains(&word.to_lowercase()))
    });
    let right = answers
        .iter()
        .any(|answer| artefact.must_contain.iter().all(|group| says(answer, group)));
    match (right && !harmful, answers.is_empty()) {
        (true, _) => Outcome::Right,
        (false, true) => Outcome::Silent,
        (false, false) => Outcome::Wrong,
    }
}

/// What counts as an answer: each finding with its evidence, and the first line of the account.
fn answers(report: &Value) -> Vec<String> {
    let of_finding = |finding: &Value| {
        let mut words = vec![finding["title"].as_str().unwrap_or_default().to_owned()];
        words.push(
            finding["resource"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        );
        for evidence in list(finding, "evidence") {
            words.push(evidence["text"].as_str().unwrap_or_default().to_owned());
        }
        words.join(" ").to_lowercase()
    };
    let mut answers: Vec<String> = list(report, "findings").iter().map(of_finding).collect();
    if let Some(first) = list(report, "account").first() {
        let part = |key: &str| first[key].as_str().unwrap_or_default();
        answers.push(format!("{} {}", part("what"), part("text")).to_lowercase());
    }
    answers
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn print(rows: &BTreeMap<String, Row>, half: &str) {
    println!(
        "{:<32} {:>8} {:>6} {:>7} {:>8} {:>8} {:>13}",
        half, "troubles", "right", "silent", "refused", "healthy", "false alarms"
    );
    let all = Row::sum(rows.values().copied());
    for (name, row) in rows
        .iter()
        .map(|(name, row)| (name.as_str(), row))
        .chain([("all", &all)])
    {
        println!(
            "{name:<32} {:>8} {:>6} {:>7} {:>8} {:>8} {:>13}",
            row.troubles, row.right, row.silent, row.refused, row.healthy, row.false_alarms
        );
    }
    let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    println!(
        "{half} half: {:.1} % of {} troubles right, {:.1} % of {} healthy with a false alarm, {} refused\n",
        percent(all.right, all.troubles),
        all.troubles,
        percent(all.false_alarms, all.healthy),
        all.healthy,
        all.refused
    );
}

#[cfg(test)]
mod tests {
    use super::{Artefact, Kind, Outcome, is_sealed, judge};
    use serde_json::json;

    fn artefact(kind: Kind) -> Artefact {
        Artefact {
            id: "one".to_owned(),
            repository: String::new(),
            commit: String::new(),
            path: String::new(),
            first_line: 1,
            last_line: 1,
            format: String::new(),
            kind,
            difficulty: String::new(),
            truth: String::new(),
            must_contain: vec![vec!["sda".to_owned()], vec!["98".to_owned(), "99".to_owned()]],
            must_not: vec!["sdb".to_owned()],
        }
    }

    #[test]
    fn one_sentence_has_to_say_it_all() {
        let report = |title: &str, evidence: &str| json!({"artefacts": [{}], "findings": [{"title": title, "severity": "warning", "evidence": [{"text": evidence}]}, {"title": "98 % elsewhere"}]});
        let trouble = artefact(Kind::Trouble);
        let judged = |report| judge(&trouble, Some(&report));
        assert_eq!(judged(report("SDA is busy", "99 % of the time")), Outcome::Right);
        assert_eq!(judged(report("sda is busy", "always")), Outcome::Wrong);
        assert_eq!(judged(report("sda is busy, 99 %", "so is sdb")), Outcome::Wrong);
        assert_eq!(
            judged(json!({"artefacts": [{}], "findings": []})),
            Outcome::Silent
        );
        assert_eq!(judge(&trouble, None), Outcome::Refused);
        let account = json!({"artefacts": [{}], "findings": [], "account": [{"what": "disk sda", "text": "98 % busy"}, {"what": "sdb"}]});
        assert_eq!(judge(&trouble, Some(&account)), Outcome::Right);
        let healthy = artefact(Kind::Healthy);
        assert_eq!(judge(&healthy, Some(&report("x", "y"))), Outcome::FalseAlarm);
        assert_eq!(judge(&healthy, Some(&account)), Outcome::Right);
    }

    #[test]
    fn halves_are_about_equal() {
        let sealed = (0..1000)
            .filter(|number| is_sealed(&format!("artefact-{number}")))
            .count();
        assert!((400..600).contains(&sealed), "{sealed}");
    }
}
