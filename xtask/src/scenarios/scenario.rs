//! What a scenario says of itself: the file `scenario.toml` in its folder.
//!
//! In: the folder `scenarios/`. Out: every scenario in it, by name, with what a right report must say.

use super::jdk::Jdk;
use anyhow::Context;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Percentage points by which holdup's share may differ from the workload's own, where a scenario names no
/// other: CMD's start and end are inside holdup's elapsed time and outside the workload's.
pub(crate) const TOLERANCE: f64 = 5.0;

/// The largest tolerance that needs no reason.
const TOLERANCE_WITHOUT_REASON: f64 = 10.0;

/// A scenario: a stall made for real, and its healthy twin.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// The name of its folder.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// What its file says.
    pub(crate) about: About,
    /// The JDK that it is made on, where it is about Java.
    pub(crate) jdk: Option<Jdk>,
}

/// The file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    /// What it shows, in a line.
    pub(crate) shows: String,
    /// Debian packages that it runs or is compiled with.
    pub(crate) packages: Vec<String>,
    /// Libraries that its C programs are linked with, by pkg-config's names.
    #[serde(default)]
    pub(crate) link: Vec<String>,
    /// Whether `cargo xtask test` makes it on every kernel of the guests too: emulation is slow, so few do.
    #[serde(default)]
    pub(crate) everywhere: bool,
    /// What holdup must be able to see with, in the words of `holdup doctor`; without it nothing can be judged.
    #[serde(default)]
    pub(crate) sees_with: Vec<String>,
    /// Versions of Java that it is made on, each for itself: those of them that are installed.
    #[serde(default)]
    pub(crate) jdks: Vec<u32>,
    /// How many CPUs it takes.
    #[serde(default = "one")]
    pub(crate) cpus: u32,
    /// What it may run beside.
    #[serde(default)]
    pub(crate) company: Company,
    /// What a right report of the stall says.
    pub(crate) expect: Expect,
}

/// What a scenario may run beside. What is not right beside others is made again alone, so this decides how long all take, and not what
/// is right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Company {
    /// Nothing: it is about the whole machine, a CPU, or memory that the machine has one of.
    None,
    /// One other: it has a disk, a network, a cgroup or services of its own, and works now and then.
    #[default]
    One,
    /// Two others: both sides mostly sleep, and neither the stall nor its truth depends on a CPU, a disk, or anything that the machine
    /// has one of.
    Two,
}

impl Company {
    /// How many run at once.
    pub(crate) fn side_by_side(self) -> usize {
        match self {
            Company::None => 1,
            Company::One => 2,
            Company::Two => 3,
        }
    }
}

/// What a right report of the stall says. A list of patterns is satisfied by any one of them, as a part of the
/// text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// The cause of the wait (or CPU time) that is the trouble; of a whole machine that of the finding. `a|b` where figures can't
    /// tell which of two, or the machine decides which is larger.
    pub(crate) cause: String,
    /// The cause that has most of the critical path, where that is not `cause`: the waiter's time is then
    /// followed to another thread or process of the run. `a|b` where it is now the one and now the other.
    pub(crate) on_path: Option<String>,
    /// Which of holdup's figures is compared with the workload's own.
    #[serde(default)]
    pub(crate) measure: Measure,
    /// What is waited for: name or a detail of the resource.
    pub(crate) resource: Vec<String>,
    /// Who asked: process, thread, frame or module.
    pub(crate) asker: Vec<String>,
    /// Who is in the way: process, thread and how it is known, in that order. Where the truth has the holder's process id, that counts too.
    #[serde(default)]
    pub(crate) holder: Vec<String>,
    /// Rules that must fire; `a|b` is either, where which one is right hangs on what else the machine does.
    pub(crate) findings: Vec<String>,
    /// Whether the first of them must be the first finding of all, as of a whole machine whose other findings are nobody's question.
    #[serde(default)]
    pub(crate) first: bool,
    /// Rules that may fire beside them.
    #[serde(default)]
    pub(crate) beside: Vec<String>,
    /// Texts that the first of `findings` must contain, all of them; `a|b` is either.
    #[serde(default)]
    pub(crate) says: Vec<String>,
    /// Of a look at the whole machine: texts that its first sentence, its rows or its facts contain, all of them; `a|b` is either.
    /// Those of the twin contain none.
    #[serde(default)]
    pub(crate) host_says: Vec<String>,
    /// Rules that must be ruled out, each with a figure, of the stall and of its twin: what people suspect.
    #[serde(default)]
    pub(crate) ruled_out: Vec<String>,
    /// Texts that the stall's report has of what could not be measured, all of them; `a|b` is either.
    #[serde(default)]
    pub(crate) not_measured: Vec<String>,
    /// Percentage points of the elapsed time by which the share may be off.
    #[serde(default = "tolerance")]
    pub(crate) tolerance: f64,
    /// Why it must be more than ten, in a sentence: what the two figures count differently.
    pub(crate) tolerance_reason: Option<String>,
}

/// Which of holdup's figures is compared with the workload's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Measure {
    /// The cause's share of the critical path.
    #[default]
    Path,
    /// The share that the first expected finding has.
    Finding,
    /// What the first expected finding is about, of the time with requests to answer.
    Requests,
    /// The sum of the threads' waits with this cause, of all observed time.
    Waits,
}

fn one() -> u32 {
    1
}

fn tolerance() -> f64 {
    TOLERANCE
}

impl Expect {
    /// Whether a cause is the trouble's.
    pub(crate) fn is_cause(&self, cause: &str) -> bool {
        self.cause.split('|').any(|one| one == cause)
    }

    /// The cause that must have most of the critical path.
    pub(crate) fn path_cause(&self) -> &str {
        self.on_path.as_deref().unwrap_or(&self.cause)
    }

    /// Refuses a large tolerance without a reason, and a reason without one.
    fn check(&self) -> anyhow::Result<()> {
        let reason = self.tolerance_reason.as_deref().map(str::trim);
        match (self.tolerance > TOLERANCE_WITHOUT_REASON, reason) {
            (true, None | Some("")) => anyhow::bail!(
                "a tolerance of {} points, above {TOLERANCE_WITHOUT_REASON}, needs a tolerance_reason",
                self.tolerance
            ),
            (false, Some(_)) => {
                anyhow::bail!(
                    "a tolerance of {} points needs no tolerance_reason",
                    self.tolerance
                )
            }
            _ => Ok(()),
        }
    }
}

/// Every scenario under `folder`, or those named, sorted by name.
pub(crate) fn load(folder: &Path, names: &[String]) -> anyhow::Result<Vec<Scenario>> {
    let mut scenarios = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let folder = entry.context("read the folder of scenarios")?.path();
        let file = folder.join("scenario.toml");
        if !file.exists() {
            continue;
        }
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let about: About = toml::from_str(&text).with_context(|| format!("understand {}", file.display()))?;
        about
            .expect
            .check()
            .with_context(|| format!("accept {}", file.display()))?;
        scenarios.push(Scenario {
            name: name.context("a scenario's folder has a name")?,
            folder,
            about,
            jdk: None,
        });
    }
    scenarios.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(unknown) = names
        .iter()
        .find(|name| scenarios.iter().all(|scenario| scenario.name != **name))
    {
        let known: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        anyhow::bail!("there is no scenario {unknown}; there are {}", known.join(", "));
    }
    if !names.is_empty() {
        scenarios.retain(|scenario| names.contains(&scenario.name));
    }
    Ok(scenarios)
}

/// The Debian packages that these scenarios need, and those of the stage itself.
pub(crate) fn packages(scenarios: &[Scenario]) -> BTreeSet<String> {
    let stage = ["bash", "coreutils", "gcc", "iproute2", "libc6-dev", "util-linux"];
    let own = scenarios
        .iter()
        .flat_map(|scenario| scenario.about.packages.iter().cloned());
    stage.into_iter().map(str::to_owned).chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::{About, Company, Scenario, TOLERANCE, load};
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Where the scenarios are in this checkout.
    fn folder() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios"))
    }

    #[test]
    fn every_file_is_understood_and_every_scenario_complete() {
        let scenarios = load(folder(), &[]).unwrap();
        assert!(scenarios.len() >= 20, "only {} scenarios", scenarios.len());
        for scenario in scenarios {
            let script = std::fs::read_to_string(scenario.folder.join("scenario.sh")).unwrap();
            for function in ["setup()", "stall()", "healthy()"] {
                assert!(script.contains(function), "{} lacks {function}", scenario.name);
            }
            assert!(!scenario.about.shows.is_empty(), "{}", scenario.name);
            let rules = &scenario.about.expect;
            assert!(
                rules.says.is_empty() || !rules.findings.is_empty(),
                "{}: says is about a finding, and none is expected",
                scenario.name
            );
        }
    }

    #[test]
    fn a_large_tolerance_needs_a_reason_and_a_small_one_has_none() {
        let with = |lines: &str| {
            let text = format!(
                "shows = ''\npackages = []\n[expect]\ncause = ''\nresource = []\nasker = []\nfindings = []\n{lines}"
            );
            toml::from_str::<About>(&text).unwrap().expect.check()
        };
        assert!(with("").is_ok());
        assert!(with("tolerance = 10").is_ok());
        assert!(with("tolerance = 12").is_err());
        assert!(with("tolerance = 12\ntolerance_reason = ' '").is_err());
        assert!(with("tolerance = 12\ntolerance_reason = 'The log counts less.'").is_ok());
        assert!(with("tolerance_reason = 'The log counts less.'").is_err());
    }

    #[test]
    fn reasons_are_sentences() {
        let mut scenarios = load(folder(), &[]).unwrap();
        scenarios.extend(load(&folder().join("guest"), &[]).unwrap());
        for scenario in scenarios {
            if let Some(reason) = &scenario.about.expect.tolerance_reason {
                let words = reason.split_whitespace().count();
                assert!(
                    words >= 8
                        && reason.ends_with('.')
                        && reason.starts_with(|first: char| first.is_uppercase()),
                    "{}: {reason}",
                    scenario.name
                );
            }
        }
    }

    /// What makes a run depend on a CPU, on a disk, or on what the machine has one of: functions of the stage.
    const NEEDS_THE_MACHINE: [&str; 24] = [
        "precedence",
        "quota",
        "make_cpu_cgroup",
        "come_first",
        "loop_disk",
        "slow_disk",
        "throttle",
        "dirty_limit",
        "limit_memory",
        "swap_disk",
        "swap_compressed",
        "task_cgroup",
        "compile_java",
        "experiment ",
        "host ",
        "record_machine ",
        "look_at_machine ",
        "start_postgres",
        "start_redis",
        "start_nginx",
        "start_php",
        "start_postfix",
        "start_tls",
        "start_shop",
    ];

    #[test]
    fn what_runs_beside_two_others_only_sleeps() {
        let scenarios = load(folder(), &[]).unwrap();
        let sharing: Vec<_> = scenarios
            .iter()
            .filter(|one| one.about.company == Company::Two)
            .collect();
        assert!(sharing.len() >= 40, "only {} scenarios", sharing.len());
        for scenario in sharing {
            let (name, about) = (&scenario.name, &scenario.about);
            let script = std::fs::read_to_string(scenario.folder.join("scenario.sh")).unwrap();
            let used = NEEDS_THE_MACHINE.iter().find(|word| {
                let mut lines = script.lines().map(|line| {
                    // A function of one line: what it does.
                    line.split_once("() { ").map_or(line, |(_, body)| body)
                });
                lines.any(|line| line.trim_start().starts_with(*word))
            });
            assert_eq!(used, None, "{name}");
            assert!(about.jdks.is_empty() && about.cpus == 1, "{name}");
            let causes = [about.expect.cause.as_str(), about.expect.path_cause()];
            let of_cpu = |cause: &&str| cause.starts_with("cpu.") || cause.starts_with("sched.");
            assert_eq!(causes.iter().find(|cause| of_cpu(cause)), None, "{name}");
            // One that must be exact, or that is known not to be, is not to be disturbed.
            assert!(
                (about.expect.tolerance - TOLERANCE).abs() < f64::EPSILON,
                "{name}"
            );
        }
    }

    /// Rules that neither a scenario nor a sample tests: what nothing explains can't be made on purpose; which cause loading a program
    /// has depends on where it lies; and scenarios observe programs, not the whole machine that they share with others.
    const ELSEWHERE: &[&str] = &[
        "answers-left-unread",
        "awaited-thread-waits",
        "call-stays-at-await",
        "clients-do-not-read",
        "clients-turned-away",
        "clients-without-answer",
        "computing-in-event-loop",
        "connections-ended-at-once",
        "datagrams-unanswered",
        "dialled-port-closed",
        "executor-waits-for-itself",
        "file-lock-polled",
        "goroutines-await-silence",
        "goroutines-wait-for-names",
        "goroutines-wait-for-others",
        "lock-file-names-maker",
        "server-owes-answer",
        "task-limit-reached",
        "tasks-wait-for-peer",
        "no-descriptor-left",
        "java-threads-unsignalled",
        "no-space-for-writes",
        "nobody-completes",
        "own-log-explains",
        "wait-unexplained",
        "program-fails-again",
        "program-load-slow",
        "tasks-queue-for-lock",
        "tasks-wait-for-lock",
        "tasks-wait-for-others",
        "tasks-wait-to-send",
    ];

    /// Of those, what a test with a real program of its own observes: a scenario's figures are of threads.
    const OWN_TEST: &[&str] = &[
        "computing-in-event-loop",
        "executor-waits-for-itself",
        "file-lock-polled",
        "goroutines-wait-for-names",
        "goroutines-wait-for-others",
        "program-fails-again",
        "tasks-queue-for-lock",
        "tasks-wait-for-lock",
        "tasks-wait-to-send",
    ];

    /// What a rule's page says where no scenario must find the rule.
    const IN_GUESTS: &str = "Observed live by the tests in virtual machines only.";
    const EITHER: &str = "Observed live by the tests, which accept another rule in its place.";
    const RECORDED: &str = "Tested on recorded artefacts only; never observed live by the tests.";
    const CONSTRUCTED: &str = "Tested on constructed artefacts only; never observed live by the tests.";
    const IN_OWN_TEST: &str = "Observed live by a test of its own, with a real program.";
    const EXAMPLES: &str = "Tested on the examples of this page only; never observed live by the tests.";

    /// Rules that scenarios expect: those that must be there, and those of which one of several must.
    fn observed(scenarios: &[Scenario]) -> (BTreeSet<String>, BTreeSet<String>) {
        let findings = scenarios.iter().flat_map(|one| &one.about.expect.findings);
        let (either, sure): (Vec<&String>, Vec<&String>) = findings.partition(|rules| rules.contains('|'));
        let each = |rules: Vec<&String>| {
            let rules = rules.into_iter().flat_map(|rules| rules.split('|'));
            rules.map(str::to_owned).collect()
        };
        (each(sure), each(either))
    }

    #[test]
    fn a_page_says_where_its_rule_was_never_observed_live() {
        let (sure, either) = observed(&load(folder(), &[]).unwrap());
        let (in_guests, _) = observed(&load(&folder().join("guest"), &[]).unwrap());
        let booted = include_str!("../guest/randomness.rs");
        let samples = crate::artefacts::expected_rules().unwrap();
        for rule in crate::generate::rules::here().unwrap() {
            let id = rule.id.as_str();
            let wanted = match samples.get(id) {
                _ if sure.contains(id) => None,
                _ if either.contains(id) => Some(EITHER),
                _ if in_guests.contains(id) || booted.contains(&format!("\"{id}\"")) => Some(IN_GUESTS),
                _ if OWN_TEST.contains(&id) => Some(IN_OWN_TEST),
                Some(true) => Some(RECORDED),
                Some(false) => Some(CONSTRUCTED),
                None => Some(EXAMPLES),
            };
            let page = std::fs::read_to_string(crate::workspace::root().join(rule.path("md"))).unwrap();
            let (_, known) = page.split_once("## How we know\n").unwrap();
            let (known, _) = known.split_once("\n## ").unwrap();
            let says: Vec<&str> = known
                .lines()
                .filter(|line| {
                    [IN_GUESTS, EITHER, IN_OWN_TEST, RECORDED, CONSTRUCTED, EXAMPLES].contains(line)
                })
                .collect();
            assert_eq!(
                says,
                wanted.into_iter().collect::<Vec<_>>(),
                "{}, under \"How we know\", a line by itself",
                rule.path("md")
            );
        }
    }

    #[test]
    fn every_rule_has_a_scenario_and_every_scenario_names_rules() {
        let scenarios = load(folder(), &[]).unwrap();
        let rules: Vec<String> = crate::generate::rules::here()
            .unwrap()
            .into_iter()
            .map(|rule| rule.id)
            .collect();
        let each = |rules: &String| rules.split('|').map(str::to_owned).collect::<Vec<String>>();
        // What only artefacts show is made real by a sample of them.
        let samples = crate::artefacts::expected_rules().unwrap();
        let mut expected: BTreeSet<String> = samples.into_keys().collect();
        let in_guests = load(&folder().join("guest"), &[]).unwrap();
        expected.extend(
            scenarios
                .iter()
                .chain(&in_guests)
                .flat_map(|one| one.about.expect.findings.iter().flat_map(each)),
        );
        let tested = ELSEWHERE.iter().find(|rule| expected.contains(**rule));
        assert_eq!(tested, None, "it has a scenario or a sample now");
        let missing: Vec<&String> = rules
            .iter()
            .filter(|rule| !expected.contains(*rule) && !ELSEWHERE.contains(&rule.as_str()))
            .collect();
        assert!(missing.is_empty(), "no scenario or sample expects {missing:?}");
        let named = scenarios
            .iter()
            .flat_map(|one| one.about.expect.findings.iter().chain(&one.about.expect.beside));
        let unknown: BTreeSet<String> = named
            .flat_map(each)
            .filter(|rule| !rules.contains(rule))
            .collect();
        assert!(unknown.is_empty(), "there are no rules {unknown:?}");
    }

    #[test]
    fn a_name_that_is_none_is_refused_with_those_that_are() {
        let error = load(folder(), &["no-such".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("no-such") && error.contains("slow-fuse"),
            "{error}"
        );
    }

    #[test]
    fn a_name_selects() {
        let chosen = load(folder(), &["sleep".to_owned()]).unwrap();
        assert_eq!(
            chosen.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
            ["sleep"]
        );
    }
}
