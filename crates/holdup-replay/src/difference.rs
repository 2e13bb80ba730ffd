//! What is different between two reports: findings, figures, words.
//!
//! In: two reports as JSON. Out: a line for each difference. A finding that comes or goes, or has another severity, cause, resource, asker or
//! place in the list, is of the first kind; numbers are of the second; all other texts of the third.

use serde_json::Value;
use std::fmt;

/// Kinds of change, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// What is found.
    Finding,
    /// How much it is.
    Figure,
    /// In which words.
    Words,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Finding, Kind::Figure, Kind::Words];
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Kind::Finding => "finding",
            Kind::Figure => "figure ",
            Kind::Words => "words  ",
        })
    }
}

/// The longest text of a value in a line, characters.
const VALUE_CHARACTERS_MAX: usize = 120;

/// All differences.
pub(crate) fn differences(before: &Value, now: &Value) -> Vec<(Kind, String)> {
    let mut found = Vec::new();
    let (findings_before, findings_now) = (findings(before), findings(now));
    for gone in missing(&findings_before, &findings_now) {
        found.push((Kind::Finding, format!("- {gone}")));
    }
    for new in missing(&findings_now, &findings_before) {
        found.push((Kind::Finding, format!("+ {new}")));
    }
    if found.is_empty() && findings_before != findings_now {
        let order = |findings: &[String]| findings.join("; ");
        found.push((
            Kind::Finding,
            format!("order: {} → {}", order(&findings_before), order(&findings_now)),
        ));
    }
    walk("", before, now, &mut found);
    found.sort_by_key(|(kind, _)| *kind);
    found
}

/// Those of `of` that are not in `others`, as often as they are not.
fn missing<'a>(of: &'a [String], others: &[String]) -> Vec<&'a String> {
    let mut left: Vec<&String> = others.iter().collect();
    of.iter()
        .filter(|one| match left.iter().position(|other| other == one) {
            Some(place) => {
                left.remove(place);
                false
            }
            None => true,
        })
        .collect()
}

/// What makes a finding that finding, as a line each, in their order.
fn findings(report: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let one = |finding: &Value| {
        let parts = [
            &finding["rule"],
            &finding["severity"],
            &finding["confidence"],
            &finding["cause"],
            &finding["resource"]["name"],
            &finding["asker"]["process"],
            &finding["asker"]["frame"],
        ];
        parts.map(text).join(" · ")
    };
    let list = report["findings"].as_array();
    list.map(|list| list.iter().map(one).collect())
        .unwrap_or_default()
}

/// Compares value by value; of lists place by place.
fn walk(path: &str, before: &Value, now: &Value, found: &mut Vec<(Kind, String)>) {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for (key, value) in before {
                walk(
                    &format!("{path}/{key}"),
                    value,
                    now.get(key).unwrap_or(&Value::Null),
                    found,
                );
            }
            for (key, value) in now.iter().filter(|(key, _)| !before.contains_key(*key)) {
                walk(&format!("{path}/{key}"), &Value::Null, value, found);
            }
        }
        (Value::Array(before), Value::Array(now)) => {
            for index in 0..before.len().max(now.len()) {
                let at = |list: &[Value]| list.get(index).cloned().unwrap_or(Value::Null);
                walk(&format!("{path}/{index}"), &at(before), &at(now), found);
            }
        }
        (before, now) if before == now => {}
        (before, now) => {
            let number = before.is_number() || now.is_number();
            let kind = if number { Kind::Figure } else { Kind::Words };
            found.push((kind, format!("{path}: {} → {}", cut(before), cut(now))));
        }
    }
}

fn cut(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, differences};
    use serde_json::json;

    fn kinds(before: &serde_json::Value, now: &serde_json::Value) -> Vec<Kind> {
        differences(before, now)
            .into_iter()
            .map(|(kind, _)| kind)
            .collect()
    }

    #[test]
    fn the_same_is_no_difference() {
        let report = json!({"findings": [{"rule": "sleep", "ns": 1}], "causes": []});
        assert!(differences(&report, &report).is_empty());
    }

    #[test]
    fn findings_come_before_figures_and_figures_before_words() {
        let before = json!({"note": "a", "wall_ns": 1, "findings": [{"rule": "sleep"}]});
        let now = json!({"note": "b", "wall_ns": 2, "findings": []});
        let kinds = kinds(&before, &now);
        assert_eq!(kinds.first(), Some(&Kind::Finding));
        assert!(kinds.is_sorted());
        assert!(kinds.contains(&Kind::Figure) && kinds.contains(&Kind::Words));
    }

    #[test]
    fn another_order_of_findings_is_a_change_of_findings() {
        let (one, other) = (json!({"rule": "one"}), json!({"rule": "other"}));
        let before = json!({"findings": [one, other]});
        let now = json!({"findings": [other, one]});
        assert_eq!(kinds(&before, &now).first(), Some(&Kind::Finding));
    }

    #[test]
    fn a_finding_that_is_there_twice_and_then_once_has_gone_once() {
        let finding = json!({"rule": "one"});
        let before = json!({"findings": [finding, finding]});
        let now = json!({"findings": [finding]});
        let gone = differences(&before, &now);
        assert_eq!(gone.iter().filter(|(kind, _)| *kind == Kind::Finding).count(), 1);
    }
}
