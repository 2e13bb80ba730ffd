//! Requests of Rails with the parts that their time went to: rendering the views, the database, collecting garbage, and what is left, which is
//! the application's own code.
//!
//! In: `Completed 200 OK in 2411ms (Views: 2331.6ms | ActiveRecord: 16.4ms)`, lograge's `duration=2411.2 view=2331.6 db=16.4`, and the templates
//! above: `Rendered x.html.erb (455.5ms)`. Out: of the longest request which part has most of it.

use super::{Line, behind, leading_number};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;

/// Milliseconds from which a request is long: up to a second, people do not lose their thread (Nielsen, Usability Engineering, 1993).
const LONG_MS: f64 = 1_000.0;

/// The part of a request that has to be in one of its parts for that to be told.
const MIN_PART: f64 = 0.5;

/// The part above which the figures do not fit together: they are rounded.
const MAX_PART: f64 = 1.01;

/// Bytes of the name of a template.
const MAX_CHARS: usize = 80;

/// Names of parts as people know them.
const NAMES: [(&str, &str); 5] = [
    ("Views", "rendering the views"),
    ("ActiveRecord", "the database (ActiveRecord)"),
    ("GC", "collecting garbage"),
    ("view", "rendering the views"),
    ("db", "the database"),
];

#[derive(Debug)]
struct Request {
    total: f64,
    parts: Vec<(String, f64)>,
    template: Option<(String, f64)>,
    number: u64,
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    longest: Option<Request>,
    requests: u64,
    /// The slowest template since the last request.
    template: Option<(String, f64)>,
}

/// `Completed 200 OK in 2411ms (Views: 2331.6ms | ActiveRecord: 16.4ms (3 queries, 1 cached) | GC: 4.0ms)`.
fn completed(text: &str) -> Option<(f64, Vec<(String, f64)>)> {
    let rest = behind(text, "Completed ")?;
    let (_, rest) = rest.split_once(" in ")?;
    let (total, rest) = leading_number(rest)?;
    let (_, inside) = rest.strip_prefix("ms")?.split_once('(')?;
    let parts = inside.split(" | ").filter_map(|part| {
        let (name, value) = part.split_once(": ").or_else(|| part.split_once('='))?;
        let (value, unit) = leading_number(value)?;
        unit.starts_with("ms").then(|| (name.trim().to_owned(), value))
    });
    Some((total, parts.take(8).collect()))
}

/// `status=200 duration=58.33 view=40.43 db=15.26`, in milliseconds.
fn lograge(text: &str) -> Option<(f64, Vec<(String, f64)>)> {
    // Other programs have a view and a duration, too.
    behind(text, "status=")?;
    let value = |name: &str| Some(leading_number(behind(text, name)?)?.0);
    let total = value(" duration=")?;
    let view = value(" view=")?;
    let database = value(" db=");
    let parts = [("view", Some(view)), ("db", database)];
    let parts = parts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Some((total, parts.collect()))
}

/// `Rendered x.html.erb within layouts/a (1830.9ms)`, `(Duration: 18.2ms | Allocations: 3)`.
fn rendered(text: &str) -> Option<(String, f64)> {
    let (_, rest) = text.split_once("Rendered ")?;
    let (name, inside) = rest.rsplit_once('(')?;
    let inside = inside.trim_start_matches("Duration: ");
    let (ms, unit) = leading_number(inside)?;
    let name = name.split(" within ").next()?.trim();
    let name = name.rsplit('/').next()?;
    (unit.starts_with("ms") && !name.is_empty()).then(|| (name.chars().take(MAX_CHARS).collect(), ms))
}

impl Requests {
    pub(super) fn line(&mut self, line: Line<'_>) {
        if let Some((name, ms)) = rendered(line.text) {
            if self.template.as_ref().is_none_or(|(_, most)| ms > *most) {
                self.template = Some((name, ms));
            }
            return;
        }
        let Some((total, parts)) = completed(line.text).or_else(|| lograge(line.text)) else {
            return;
        };
        let template = self.template.take();
        self.requests += 1;
        if self.longest.as_ref().is_none_or(|longest| total > longest.total) {
            self.longest = Some(Request {
                total,
                parts,
                template,
                number: line.number,
            });
        }
    }

    pub(super) fn end(self, told: &mut Told) -> Option<Fact> {
        let request = self.longest.filter(|request| request.total >= LONG_MS)?;
        let known: f64 = request.parts.iter().map(|(_, ms)| *ms).sum();
        let mut parts: Vec<(String, f64)> = request
            .parts
            .iter()
            .map(|(name, ms)| (named(name), *ms))
            .collect();
        parts.push((
            "the application's own code and what it calls".to_owned(),
            (request.total - known).max(0.0),
        ));
        parts.sort_by(|one, other| other.1.total_cmp(&one.1));
        let ((most, ms), others) = parts.split_first()?;
        let share = ms / request.total;
        if !(MIN_PART..=MAX_PART).contains(&share) {
            return None;
        }
        told.add(request.number);
        let others = others
            .iter()
            .map(|(name, ms)| format!("{name} {ms:.1} ms ({:.1} %)", ms / request.total * 100.0));
        let others = others.collect::<Vec<_>>().join(", ");
        let template = request
            .template
            .filter(|(_, ms)| *ms <= request.total && most.contains("views"));
        let template = template.map_or_else(String::new, |(name, ms)| {
            format!(
                "; the slowest template is {name} with {ms:.1} ms ({:.0} %)",
                ms / request.total * 100.0
            )
        });
        let of = match self.requests {
            1 => "a request".to_owned(),
            requests => format!("the longest of {requests} requests"),
        };
        Some(Fact {
            kind: StatementKind::Took,
            share: None,
            ns: Some((request.total.clamp(0.0, 1e12) * 1e6) as Ns),
            line: request.number,
            text: format!(
                "{of} took {:.0} ms, and {:.0} % of that, {ms:.1} ms, is {most}; {others}{template}",
                request.total,
                share * 100.0
            ),
        })
    }
}

fn named(name: &str) -> String {
    let known = NAMES.iter().find(|(short, _)| *short == name);
    known.map_or_else(
        || name.chars().take(MAX_CHARS).collect(),
        |(_, long)| (*long).to_owned(),
    )
}
