//! Conditions as people write them: `disk.sync>20%,net.dns>200ms,finding:lock-convoy,severity>=warning`.
//!
//! In: text. Out: conditions, or what would be right. All that can be wrong is found here, before anything runs.

use holdup_evidence::{Cause, Ns};
use holdup_model::finding::Severity;
use std::fmt;

/// Conditions of one command line: more are a mistake.
const MOST_CONDITIONS: usize = 32;

/// Longest limit, seconds: a year.
const MOST_SECONDS: f64 = 31_536_000.0;

/// A finding that no baseline has.
const NEW_FINDING: &str = "new-finding";
/// AFTER is slower than BEFORE.
const REGRESSION: &str = "regression";
const FINDING: &str = "finding:";
const SEVERITY: &str = "severity>=";

/// Units of a limit that is a length of time, in nanoseconds. A longer name stands before one that it ends with.
const UNITS: [(&str, f64); 7] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("min", 60e9),
    ("h", 3_600e9),
    ("s", 1e9),
];

/// Severities by name, as the report has them.
const SEVERITIES: [(&str, Severity); 3] = [
    ("note", Severity::Note),
    ("warning", Severity::Warning),
    ("critical", Severity::Critical),
];

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// Causes took more than a limit.
    Time {
        /// The id of a cause, or of an area, as it was given.
        named: String,
        /// The causes that this means.
        causes: Vec<Cause>,
        /// The limit.
        limit: Limit,
    },
    /// A rule fires.
    Rule(String),
    /// A finding of this severity or above.
    Severity(Severity),
    /// A finding that the baseline does not have.
    NewFinding,
    /// AFTER is slower than BEFORE, by more than this part of BEFORE.
    Regression(f64),
}

/// What causes may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// A part of the whole, 0 to 1.
    Share(f64),
    /// Nanoseconds.
    Time(Ns),
}

/// One condition or more: any of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// Reads them. `is_rule` knows the ids of rules.
    ///
    /// # Errors
    /// What would be right, as the end of a sentence that begins with "needs".
    pub fn parse(text: &str, is_rule: impl Fn(&str) -> bool) -> Result<Conditions, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        if parts.len() > MOST_CONDITIONS {
            return Err(format!("at most {MOST_CONDITIONS} conditions"));
        }
        let all: Result<Vec<Condition>, String> = parts.iter().map(|part| one(part, &is_rule)).collect();
        Ok(Conditions(all?))
    }

    /// Each of them.
    #[must_use]
    pub fn all(&self) -> &[Condition] {
        &self.0
    }

    /// Whether one of them compares findings with a baseline.
    #[must_use]
    pub fn need_baseline(&self) -> bool {
        self.0.contains(&Condition::NewFinding)
    }

    /// The first that is about a comparison (`of_diff`), or about anything else.
    #[must_use]
    pub fn first_of(&self, of_diff: bool) -> Option<&Condition> {
        let is = |one: &&Condition| matches!(one, Condition::Regression(_)) == of_diff;
        self.0.iter().find(is)
    }
}

fn one(text: &str, is_rule: &impl Fn(&str) -> bool) -> Result<Condition, String> {
    if text == NEW_FINDING {
        return Ok(Condition::NewFinding);
    }
    if text == REGRESSION {
        return Ok(Condition::Regression(0.0));
    }
    if let Some(rule) = text.strip_prefix(FINDING) {
        return match is_rule(rule) {
            true => Ok(Condition::Rule(rule.to_owned())),
            false => Err(format!(
                "the id of a rule after {FINDING} (`holdup explain` lists them)"
            )),
        };
    }
    if let Some(name) = text.strip_prefix(SEVERITY) {
        let found = SEVERITIES.iter().find(|(known, _)| *known == name);
        return found
            .map(|(_, severity)| Condition::Severity(*severity))
            .ok_or_else(|| format!("note, warning or critical after {SEVERITY}"));
    }
    let (name, limit) = text.split_once('>').ok_or_else(wanted)?;
    let (name, limit) = (name.trim(), limit.trim());
    if name == REGRESSION {
        return match limit_of(limit) {
            Some(Limit::Share(share)) => Ok(Condition::Regression(share)),
            _ => Err(format!(
                "a percentage after {REGRESSION}>, such as {REGRESSION}>5%"
            )),
        };
    }
    let causes = causes_named(name);
    if causes.is_empty() {
        return Err(format!(
            "a cause or an area of causes before >, and there is none called {name:?} (`holdup explain` lists them)"
        ));
    }
    match limit_of(limit) {
        Some(Limit::Share(share)) if share >= 1.0 => {
            Err("a percentage below 100: no more than all of the time is ever spent".to_owned())
        }
        Some(limit) => Ok(Condition::Time {
            named: name.to_owned(),
            causes,
            limit,
        }),
        None => Err(format!(
            "a percentage or a length of time after {name}>, such as 20% or 200ms"
        )),
    }
}

/// Causes by the id of one, such as `disk.sync`, or by that of an area, such as `disk`; empty where there is none.
#[must_use]
pub fn causes_named(name: &str) -> Vec<Cause> {
    let of = |cause: &Cause| {
        let rest = cause.id().strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    Cause::ALL.iter().copied().filter(of).collect()
}

fn wanted() -> String {
    format!(
        "conditions such as disk.sync>20%, net.dns>200ms, {FINDING}RULE, {SEVERITY}warning, {NEW_FINDING} or \
         {REGRESSION}, separated by commas"
    )
}

/// `20%`, `200ms`, `1.5s`.
fn limit_of(text: &str) -> Option<Limit> {
    let number = |digits: &str, most: f64| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: Option<f64> = digits.trim_end().parse().ok();
        number.filter(|number| plain && (0.0..=most).contains(number))
    };
    if let Some(digits) = text.strip_suffix('%') {
        return number(digits, 1_000.0).map(|percent| Limit::Share(percent / 100.0));
    }
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))?;
    number(digits, MOST_SECONDS * 1e9 / unit).map(|amount| Limit::Time((amount * unit).round() as Ns))
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Share(share) => write!(f, "{}%", tidy(share * 100.0)),
            Limit::Time(ns) => {
                let (unit, name) = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")]
                    .into_iter()
                    .find(|(unit, _)| ns.is_multiple_of(*unit))
                    .unwrap_or((1, "ns"));
                write!(f, "{}{name}", ns / unit)
            }
        }
    }
}

/// Without the digits that binary fractions add: 0.07 × 100 is 7.000000000000001.
fn tidy(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Time { named, limit, .. } => write!(f, "{named}>{limit}"),
            Condition::Rule(rule) => write!(f, "{FINDING}{rule}"),
            Condition::Severity(severity) => {
                let name = SEVERITIES.iter().find(|(_, known)| known == severity);
                write!(f, "{SEVERITY}{}", name.map_or("", |(name, _)| name))
            }
            Condition::NewFinding => f.write_str(NEW_FINDING),
            Condition::Regression(share) if *share > 0.0 => {
                write!(f, "{REGRESSION}>{}", Limit::Share(*share))
            }
            Condition::Regression(_) => f.write_str(REGRESSION),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, Conditions, Limit, limit_of};
    use holdup_model::finding::Severity;

    fn parse(text: &str) -> Result<Conditions, String> {
        Conditions::parse(text, |rule| rule == "lock-convoy")
    }

    #[test]
    fn conditions_are_read_and_written_the_same() {
        for text in [
            "disk.sync>20%",
            "disk>7%",
            "net.dns>200ms",
            "timer.sleep>1500ms",
            "cpu>0%",
            "finding:lock-convoy",
            "severity>=warning",
            "new-finding",
            "regression",
            "regression>2.5%",
        ] {
            let read = parse(text).unwrap();
            let [one] = read.all() else { panic!("{text}") };
            assert_eq!(one.to_string(), text);
        }
        let many = parse("disk.sync>20%, severity>=critical").unwrap();
        assert_eq!(many.all().len(), 2);
        assert_eq!(many.all()[1], Condition::Severity(Severity::Critical));
    }

    #[test]
    fn an_area_means_all_of_its_causes() {
        let read = parse("disk>10%").unwrap();
        let Condition::Time { causes, .. } = &read.all()[0] else {
            panic!()
        };
        assert!(causes.len() > 3 && causes.iter().all(|cause| cause.id().starts_with("disk.")));
    }

    #[test]
    fn limits_have_a_unit() {
        assert_eq!(limit_of("1.5s"), Some(Limit::Time(1_500_000_000)));
        assert_eq!(limit_of("2min"), Some(Limit::Time(120_000_000_000)));
        assert_eq!(limit_of("7µs"), Some(Limit::Time(7_000)));
        assert_eq!(limit_of("20 %"), None, "the shell would split it");
        for wrong in [
            "",
            "20",
            "%",
            "-1%",
            "1e9%",
            "NaN%",
            "infs",
            "0x1s",
            "99999999999h",
            "1.2.3s",
        ] {
            assert_eq!(limit_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_mistake_says_what_would_be_right() {
        for (text, expected) in [
            ("", "conditions such as"),
            ("disk.sync", "conditions such as"),
            ("disk.sync>20%,", "conditions such as"),
            ("dsk>20%", "none called \"dsk\""),
            ("disk.sy>20%", "none called \"disk.sy\""),
            (">20%", "none called \"\""),
            ("disk.sync>fast", "such as 20% or 200ms"),
            ("disk.sync>100%", "below 100"),
            ("finding:nonsense", "the id of a rule"),
            ("severity>=bad", "note, warning or critical"),
            ("regression>5ms", "a percentage"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
        assert!(parse(&vec!["new-finding"; 33].join(",")).is_err());
    }
}
