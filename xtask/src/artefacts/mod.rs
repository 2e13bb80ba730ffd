//! `cargo xtask artefacts`: reads every sample of every format and judges the verdict.
//!
//! In: `crates/holdup/tests/samples/<format>/<name>` with a `<name>.toml` beside each, which says how the sample came about
//! and what is true of it; and `seeds.toml` there, what must be said of the seed artefacts, which are not part of the
//! project and may be absent. Out: a table of formats, what was not right, and the counts; on demand how fast each format
//! is read, and a page of it all.

mod speed;
mod table;

use crate::report::Report;
use crate::tally::Tally;
use crate::{process, workspace};
use anyhow::{Context, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use table::Row;

/// What to read, and by what.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
    /// Measure how fast each format is read too, MB for each second of CPU time
    #[arg(long)]
    speed: bool,
    /// Write the table as a page to this file too
    #[arg(long, value_name = "FILE", requires = "speed", conflicts_with = "names")]
    table: Option<PathBuf>,
    /// Only samples whose path contains one of these
    names: Vec<String>,
}

/// Where the seed artefacts are, beside the checkout.
const SEEDS: &str = "../shared/seed-artefacts";

/// Where a sample comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// The tool itself wrote it.
    Captured,
    /// It was written by hand after a description of the format.
    Constructed,
}

/// What stands beside a sample.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    kind: Kind,
    /// How a captured one was made.
    command: Option<String>,
    /// What a constructed one was made after.
    source: Option<String>,
    version: String,
    /// What was really wrong.
    wrong: String,
    expect: Expect,
}

/// What must be said.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    /// The format of its first part.
    format: String,
    /// Ids of all findings that are more than notes.
    findings: BTreeSet<String>,
    /// Ids of notes that must be there too.
    #[serde(default)]
    notes: BTreeSet<String>,
    /// Texts that findings must contain.
    #[serde(default)]
    says: Vec<String>,
    /// What the first line of the account must contain.
    #[serde(default)]
    account: Option<String>,
    /// Lines of it that are not understood.
    not_understood: u64,
    /// Artefacts of the same folder that are read together with it.
    #[serde(default)]
    files: Vec<String>,
}

/// What must be said of seed artefacts that are read together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    files: Vec<String>,
    /// Ids of findings that must be there, notes included.
    findings: BTreeSet<String>,
    #[serde(default)]
    says: Vec<String>,
    /// Ids of findings that would be wrong.
    #[serde(default)]
    never: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seeds {
    seed: Vec<Seed>,
}

/// The rules that some sample expects, notes included, each with whether a tool itself wrote one of the samples.
#[cfg(test)]
pub(crate) fn expected_rules() -> anyhow::Result<BTreeMap<String, bool>> {
    let mut rules = BTreeMap::new();
    for path in samples(&folder())? {
        let Sample { kind, expect, .. } = about(&path)?;
        for rule in expect.findings.into_iter().chain(expect.notes) {
            *rules.entry(rule).or_default() |= kind == Kind::Captured;
        }
    }
    Ok(rules)
}

/// Where the samples are.
fn folder() -> PathBuf {
    workspace::root().join("crates/holdup/tests/samples")
}

/// Reads, judges, prints; an error when something is not right.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let folder = folder();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut tally = Tally::default();
    let mut largest = speed::Largest::default();
    for path in samples(&folder)? {
        let name = path.strip_prefix(&folder)?.display().to_string();
        if !args.names.is_empty() && !args.names.iter().any(|wanted| name.contains(wanted)) {
            continue;
        }
        let (sample, report) = read(&holdup, &path).with_context(|| name.clone())?;
        let complaints = judge(&sample, &report, &path);
        largest.add(&sample.expect.format, &path);
        let row = rows.entry(sample.expect.format.clone()).or_default();
        match sample.kind {
            Kind::Captured => row.captured += 1,
            Kind::Constructed => row.constructed += 1,
        }
        row.right += u64::from(complaints.is_empty());
        for artefact in &report.artefacts {
            row.lines += artefact.lines;
            row.not_understood += artefact.not_understood;
        }
        tally += Tally::one(complaints.is_empty());
        wrong.extend(complaints.into_iter().map(|what| format!("{name}: {what}")));
    }
    if args.speed {
        for (format, speed) in largest.measure(&holdup)? {
            rows.entry(format).or_default().speed = Some(speed);
        }
    }
    print!("{}", table::render(&rows));
    if args.names.is_empty() {
        let (seeds, words) = seeds(&holdup, &folder, &mut wrong)?;
        println!("\n{words}");
        tally += seeds;
        if let Some(file) = &args.table {
            std::fs::write(file, table::page(&rows, &words, &workspace::machine()?))
                .with_context(|| format!("write {}", file.display()))?;
        }
    }
    if !wrong.is_empty() {
        println!("\nNot right:");
        wrong.iter().for_each(|what| println!("{what}"));
    }
    println!("\n{tally}");
    if tally.failed > 0 {
        bail!(
            "{} of {} are not read right",
            tally.failed,
            tally.passed + tally.failed
        );
    }
    Ok(())
}

/// Every sample, in order.
fn samples(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for format in std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let format = format?.path();
        if !format.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&format)? {
            let beside = file?.path();
            let Some(name) = beside.to_str().and_then(|path| path.strip_suffix(".toml")) else {
                continue;
            };
            found.push(PathBuf::from(name));
        }
    }
    found.sort();
    Ok(found)
}

/// What stands beside a sample.
fn about(path: &Path) -> anyhow::Result<Sample> {
    let beside = format!("{}.toml", path.display());
    let text = std::fs::read_to_string(&beside).with_context(|| format!("read {beside}"))?;
    let sample: Sample = toml::from_str(&text).with_context(|| beside.clone())?;
    let origin = match sample.kind {
        Kind::Captured => &sample.command,
        Kind::Constructed => &sample.source,
    };
    if origin.as_deref().is_none_or(str::is_empty) || sample.version.is_empty() || sample.wrong.is_empty() {
        bail!("{beside}: a sample says how it was made, by which version, and what was wrong");
    }
    Ok(sample)
}

fn read(holdup: &Path, path: &Path) -> anyhow::Result<(Sample, Report)> {
    let sample = about(path)?;
    let others = sample.expect.files.iter().map(|other| path.with_file_name(other));
    let files: Vec<PathBuf> = std::iter::once(path.to_owned()).chain(others).collect();
    let report = report(holdup, &files)?;
    Ok((sample, report))
}

/// What holdup says of some files.
fn report(holdup: &Path, files: &[PathBuf]) -> anyhow::Result<Report> {
    let mut command = Command::new(holdup);
    command.args(["read", "--json", "-"]).args(files);
    let text = process::output(&mut command)?;
    serde_json::from_str(&text).with_context(|| format!("the report of {}", process::words(&command)))
}

/// What is not as it should be.
fn judge(sample: &Sample, report: &Report, path: &Path) -> Vec<String> {
    let expect = &sample.expect;
    let mut wrong = Vec::new();
    let own = || report.artefacts.iter().filter(|one| Path::new(&one.name) == path);
    let format = own()
        .find(|one| one.lines > 0)
        .and_then(|one| one.format.as_deref());
    if format != Some(&expect.format) {
        wrong.push(format!("format: {format:?} instead of {}", expect.format));
    }
    let missed: u64 = own().map(|one| one.not_understood).sum();
    if missed != expect.not_understood {
        let texts: Vec<&str> = own()
            .flat_map(|one| one.misunderstood.iter().map(|line| line.text.as_str()))
            .collect();
        wrong.push(format!(
            "{missed} lines not understood instead of {}: {texts:?}",
            expect.not_understood
        ));
    }
    let by = |note: bool| -> BTreeSet<String> {
        let of = report
            .findings
            .iter()
            .filter(|one| (one.severity == "note") == note);
        of.map(|one| one.rule.clone()).collect()
    };
    if by(false) != expect.findings {
        wrong.push(format!(
            "findings: {:?} instead of {:?}",
            by(false),
            expect.findings
        ));
    }
    let notes: Vec<_> = expect.notes.difference(&by(true)).cloned().collect();
    if !notes.is_empty() {
        wrong.push(format!("no note {notes:?}"));
    }
    wrong.extend(unsaid(&expect.says, report));
    let first = report
        .account
        .first()
        .map_or("nothing", |line| line.text.as_str());
    if let Some(text) = expect.account.as_ref().filter(|text| !first.contains(*text)) {
        wrong.push(format!("the account begins with {first:?} instead of {text:?}"));
    }
    wrong
}

/// Texts that no finding has.
fn unsaid(says: &[String], report: &Report) -> Vec<String> {
    let words: Vec<String> = report.findings.iter().map(|finding| finding.words()).collect();
    let missing = says
        .iter()
        .filter(|text| !words.iter().any(|words| words.contains(*text)));
    missing.map(|text| format!("nothing says {text:?}")).collect()
}

/// Judges the seed artefacts, where they are; also in words.
fn seeds(holdup: &Path, folder: &Path, wrong: &mut Vec<String>) -> anyhow::Result<(Tally, String)> {
    let text = std::fs::read_to_string(folder.join("seeds.toml")).context("read seeds.toml")?;
    let seeds: Seeds = toml::from_str(&text).context("seeds.toml")?;
    let there = workspace::root().join(SEEDS);
    if !there.is_dir() {
        let words = format!("seed artefacts: not run ({SEEDS} is not there)");
        return Ok((Tally::default(), words));
    }
    let mut tally = Tally::default();
    for seed in &seeds.seed {
        let files: Vec<PathBuf> = seed.files.iter().map(|file| there.join(file)).collect();
        let report = report(holdup, &files)?;
        let found: BTreeSet<String> = report.findings.iter().map(|one| one.rule.clone()).collect();
        let mut complaints: Vec<String> = unsaid(&seed.says, &report);
        let missing: Vec<_> = seed.findings.difference(&found).collect();
        if !missing.is_empty() {
            complaints.push(format!("{missing:?} not found, but {found:?}"));
        }
        let never: Vec<_> = seed.never.intersection(&found).collect();
        if !never.is_empty() {
            complaints.push(format!("{never:?} is wrong"));
        }
        tally += Tally::one(complaints.is_empty());
        let name = seed.files.join(" + ");
        wrong.extend(complaints.into_iter().map(|what| format!("seed {name}: {what}")));
    }
    let words = format!(
        "seed artefacts: {} of {} right",
        tally.passed,
        tally.passed + tally.failed
    );
    Ok((tally, words))
}

#[cfg(test)]
mod tests {
    use super::{Expect, Kind, Sample, judge};
    use crate::report::Report;
    use std::path::Path;

    const REPORT: &str = r#"{"schema": "holdup.report/1", "subject": {"pids": [], "wall_ns": 0, "exit": null}, "causes": [], "threads": [],
        "waits": [], "findings": [{"rule": "disk-busy", "severity": "warning", "title": "sdb is busy", "cause": "disk.write",
          "ns": null, "share": null, "resource": {"kind": "device", "name": "sdb"}, "evidence": [{"text": "99 %", "source": "x:3"}],
          "remedies": []}], "account": [{"what": "sdb", "text": "sdb is 99 % busy", "source": "x:3"}],
        "artefacts": [{"name": "x", "format": "iostat", "lines": 9, "not_understood": 1, "misunderstood": [{"line": 2, "text": "?"}]}]}"#;

    fn complaints(findings: &[&str], says: &str, account: &str, not_understood: u64) -> Vec<String> {
        let report: Report = serde_json::from_str(REPORT).unwrap();
        let sample = Sample {
            kind: Kind::Captured,
            command: Some("iostat".into()),
            source: None,
            version: "1".into(),
            wrong: "it".into(),
            expect: Expect {
                format: "iostat".into(),
                findings: findings.iter().map(|id| (*id).to_owned()).collect(),
                notes: [].into(),
                says: vec![says.to_owned()],
                account: Some(account.to_owned()),
                not_understood,
                files: Vec::new(),
            },
        };
        judge(&sample, &report, Path::new("x"))
    }

    #[test]
    fn a_sample_is_right_only_if_all_is() {
        assert_eq!(
            complaints(&["disk-busy"], "99 %", "sdb is 99 %", 1),
            Vec::<String>::new()
        );
        assert_eq!(complaints(&[], "98 %", "sda", 0).len(), 4);
    }
}
