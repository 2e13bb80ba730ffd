//! `EXPLAIN ANALYZE` of PostgreSQL and of MySQL: what each step of a query's plan took.
//!
//! In: a tree of steps by their indentation, each with its estimate and what it took, and notes below a step. Out: a statement
//! about the step that took longest without the steps below it, or the trigger that did; of a plan that was not run, the step
//! of which the planner expects most.

use super::unindexed;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("query-plan", Family::Databases, recognise).about("EXPLAIN ANALYZE");

/// Steps of one plan that are kept.
pub(super) const STEPS: usize = 2_000;

/// Bytes of a step's name, and of its notes.
pub(super) const NAME: usize = 100;
pub(super) const NOTES: usize = 200;

/// The second-longest is named too if it is at least so large a part of the longest.
const SECOND: f64 = 0.25;

/// Milliseconds to nanoseconds.
const MS: f64 = 1e6;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let (mut steps, mut run) = (0, false);
    for step in head.lines().filter_map(Step::of) {
        steps += 1;
        run |= step.took.is_some();
    }
    match (steps, run) {
        (0, _) => Sureness::No,
        (_, true) => Sureness::Certain,
        (1, false) => Sureness::No,
        (_, false) => Sureness::Likely,
    }
}

/// One step of a plan.
#[derive(Debug, Clone, Default)]
pub(super) struct Step {
    /// Blanks before it, or how deep it is in a document.
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) quote: Quote,
    /// The planner's estimate, and the rows that it expects.
    pub(super) cost: Option<f64>,
    pub(super) expected: Option<f64>,
    /// What one loop took at its end, in ms; rows of a loop; loops.
    pub(super) took: Option<(f64, f64, f64)>,
    /// Processes that share what stands below a `Gather`.
    pub(super) processes: f64,
    /// What the steps directly below took, and cost.
    pub(super) below: (f64, f64),
    pub(super) notes: String,
    /// Rows of a loop that a filter threw away, and that filter.
    pub(super) removed: Option<f64>,
    pub(super) filter: String,
    /// Milliseconds that it and what is below it read and wrote, and blocks that were read.
    pub(super) io: super::explain_io::Io,
    /// Rows of a loop that were left where another step filters them.
    pub(super) kept: Option<f64>,
}

impl Step {
    /// ` ->  Seq Scan on t  (cost=0.00..1.10 rows=10 width=4) (actual time=0.1..0.2 rows=3 loops=1)`.
    fn of(line: &str) -> Option<Step> {
        let line = unwrapped(line);
        let figures = ["(cost=", "(actual time=", "(actual rows=", "(never executed)"]
            .iter()
            .filter_map(|begin| line.find(begin))
            .min()?;
        let (name, figures) = line.split_at_checked(figures)?;
        let depth = name.len() - name.trim_start().len();
        let name = name.trim();
        let name = name.strip_prefix("->").unwrap_or(name).trim();
        let range = |key: &str| {
            let value = figures.split_once(key)?.1;
            let value = value.split([' ', ')']).next()?;
            value.rsplit("..").next()?.parse::<f64>().ok()
        };
        let cost = range("cost=");
        let actual = figures.split_once("(actual ").map(|(_, actual)| actual);
        let of_actual = |key: &str| {
            let value = actual?.split_once(key)?.1;
            value.split([' ', ')']).next()?.parse::<f64>().ok()
        };
        let took = match range("actual time=") {
            Some(ms) => Some((
                ms,
                of_actual("rows=").unwrap_or(0.0),
                of_actual("loops=").unwrap_or(1.0),
            )),
            None if figures.contains("(never executed)") => Some((0.0, 0.0, 0.0)),
            None => None,
        };
        if name.is_empty() || cost.is_none() && took.is_none() {
            return None;
        }
        let expected = figures
            .split_once("(cost=")
            .and_then(|(_, estimate)| estimate.split_once("rows="))
            .and_then(|(_, rows)| rows.split([' ', ')']).next()?.parse().ok());
        Some(Step {
            depth,
            name: name.chars().take(NAME).collect(),
            cost,
            expected,
            took,
            processes: 1.0,
            ..Step::default()
        })
    }

    /// All of its loops, in ms.
    fn total(&self) -> f64 {
        self.took.map_or(0.0, |(ms, _, loops)| {
            ms * (loops / self.processes).max(loops.min(1.0))
        })
    }

    /// Without the steps below.
    fn own(&self) -> f64 {
        (self.total() - self.below.0).max(0.0)
    }

    fn own_cost(&self) -> f64 {
        (self.cost.unwrap_or(0.0) - self.below.1).max(0.0)
    }

    /// How often, how many rows, and what was noted below it.
    fn sentence(&self) -> String {
        let mut text = String::new();
        if let Some((_, rows, loops)) = self.took {
            if loops > 1.0 {
                text.push_str(&format!(", {loops} loops"));
            }
            if let Some(expected) = self.expected.filter(|expected| {
                let (more, less) = (rows.max(*expected).max(1.0), rows.min(*expected).max(1.0));
                more / less >= MISJUDGED
            }) {
                text.push_str(&format!(", {rows} rows a loop where {expected} were expected"));
            }
        }
        if !self.notes.is_empty() {
            text.push_str("; ");
            text.push_str(&self.notes);
        }
        text.push_str(&super::explain_io::told(&self.io, self.total()).unwrap_or_default());
        text.push_str(&unindexed::told(self).unwrap_or_default());
        text
    }
}

/// An estimate of rows that is off by so much misleads the planner.
const MISJUDGED: f64 = 10.0;

/// A line without the quotes and signs of tools that print one line of a plan as one value.
fn unwrapped(line: &str) -> &str {
    let line = line.trim_end();
    let line = line.strip_suffix('+').unwrap_or(line).trim_end();
    let line = match line.trim_start().strip_prefix(['"', '|']) {
        Some(inner) => inner.trim_end_matches(['"', '|', ',']),
        None => line,
    };
    line.trim_end()
}

/// Notes that say why a step takes long, by how they begin.
const NOTED: [&str; 10] = [
    "Rows Removed by",
    "Sort Method: external",
    "Heap Fetches:",
    "I/O Timings:",
    "Lossy",
    "Heap Blocks:",
    "Disk Usage:",
    "Workers Planned: ",
    "Filter:",
    "Sort Method: top-N",
];

#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) steps: Vec<Step>,
    pub(super) triggers: Vec<(String, f64, f64, Quote)>,
    /// The whole query, in ms.
    pub(super) whole: Option<f64>,
    /// Processes of the steps below a `Gather`, by its depth.
    pub(super) gathers: Vec<(usize, f64)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        if let Some(mut step) = Step::of(&text) {
            // A second plan begins where nothing stands before a step.
            if self.steps.first().is_some_and(|first| step.depth < first.depth) || self.whole.is_some() {
                self.end(out);
            }
            step.quote = out.here();
            if !self.push(step) {
                out.account().left_out += 1;
            }
            return Understood::Evidence;
        }
        let text = unwrapped(&text).trim();
        // What a step took stands below its estimate where the line was wrapped.
        if text.starts_with("(actual ")
            && let Some(step) = self.steps.last_mut().filter(|step| step.took.is_none())
            && let Some(rest) = Step::of(&format!("{} {text}", step.name))
        {
            step.took = rest.took;
            return Understood::Evidence;
        }
        let after = |key: &str| {
            let value = text.split_once(key)?.1.trim_start();
            value.split([' ', ')']).next()?.parse::<f64>().ok()
        };
        if ["Execution Time:", "Execution time:", "Total runtime:"]
            .iter()
            .any(|key| text.starts_with(key))
        {
            self.whole = after(": ").or_else(|| after(":"));
            return Understood::Evidence;
        }
        if let Some(rest) = text.strip_prefix("Trigger ")
            && let (Some((name, _)), Some(ms)) = (rest.split_once(':'), after("time="))
        {
            if self.triggers.len() < STEPS {
                let name = name.chars().take(NAME).collect();
                self.triggers
                    .push((name, ms, after("calls=").unwrap_or(1.0), out.here()));
            }
            return Understood::Evidence;
        }
        let Some(step) = self.steps.last_mut() else {
            return Understood::No;
        };
        if let Some(workers) = after("Workers Launched:") {
            self.gathers.push((step.depth, workers + 1.0));
        }
        let batches = after("Batches:").filter(|batches| *batches > 1.0);
        let noted = NOTED.iter().any(|begin| text.starts_with(begin));
        if let Some(filter) = text.strip_prefix("Filter: ").filter(|_| step.filter.is_empty()) {
            step.filter = filter.chars().take(NOTES).collect();
        }
        step.removed = step.removed.or_else(|| after("Rows Removed by Filter:"));
        step.io.take(text);
        if (noted || batches.is_some()) && step.notes.len() < NOTES {
            if !step.notes.is_empty() {
                step.notes.push_str(", ");
            }
            step.notes
                .extend(super::printable(text.as_bytes()).chars().take(NOTES));
        }
        match text.contains(':') {
            true => Understood::Evidence,
            false if text.is_empty() => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let mut plan = std::mem::take(self);
        plan.add_up();
        unindexed::take_filters(&mut plan.steps);
        let Some(first) = plan.steps.first() else { return };
        if plan.steps.iter().all(|step| step.took.is_none()) {
            plan.estimate(out);
            return;
        }
        let whole = plan.whole.unwrap_or(first.total()).max(first.total());
        let mut parts: Vec<(f64, String, String, &Quote)> = plan
            .steps
            .iter()
            .map(|step| (step.own(), step.name.clone(), step.sentence(), &step.quote))
            .chain(plan.triggers.iter().map(|(name, ms, calls, quote)| {
                (*ms, format!("trigger {name}"), format!(", {calls} calls"), quote)
            }))
            .collect();
        parts.sort_by(|one, other| other.0.total_cmp(&one.0));
        let [(ms, name, more, quote), rest @ ..] = parts.as_slice() else {
            return;
        };
        // Minutes are reported in seconds too: the plan counts in milliseconds, and the reader looks for the figure.
        let length = |ms: f64| match ms {
            1e3.. => format!("{:.2} s", ms.min(1e12) / 1e3),
            _ => duration((ms.max(0.0) * MS) as Ns),
        };
        let share = if whole > 0.0 { ms / whole } else { 0.0 };
        let mut text = format!(
            "{name} takes {} of its own, {:.0} % of the query's {}{more}",
            length(*ms),
            100.0 * share,
            length(whole)
        );
        if let Some((second, name, more, _)) = rest.first().filter(|second| second.0 >= ms * SECOND) {
            text.push_str(&format!("; next {name}, {}{more}", length(*second)));
        }
        let ns = (whole.clamp(0.0, 1e12) * MS) as Ns;
        out.statement(statements::one(
            StatementKind::Took,
            Some(ns),
            (*quote).clone(),
            text,
        ));
    }
}

impl Reader {
    /// Takes a step; whether there was room.
    pub(super) fn push(&mut self, mut step: Step) -> bool {
        if self.steps.len() >= STEPS {
            return false;
        }
        self.gathers.retain(|(depth, _)| *depth < step.depth);
        step.processes = self.gathers.last().map_or(1.0, |(_, processes)| *processes);
        self.steps.push(step);
        true
    }

    /// Gives each step what the steps directly below it took.
    fn add_up(&mut self) {
        let mut above: Vec<usize> = Vec::new();
        for at in 0..self.steps.len() {
            let Some(step) = self.steps.get(at) else { return };
            let (depth, total, cost) = (step.depth, step.total(), step.cost.unwrap_or(0.0));
            // What ran in several processes ends with the one that gathers it.
            while above
                .last()
                .is_some_and(|last| self.steps.get(*last).is_some_and(|last| last.depth >= depth))
            {
                above.pop();
            }
            if let Some(parent) = above.last().and_then(|last| self.steps.get_mut(*last)) {
                parent.below.0 += total;
                parent.below.1 += cost;
            }
            above.push(at);
        }
    }

    /// A plan that was not run.
    fn estimate(&self, out: &mut Out<'_>) {
        let largest = self
            .steps
            .iter()
            .max_by(|one, other| one.own_cost().total_cmp(&other.own_cost()));
        let (Some(step), Some(whole)) = (largest, self.steps.first().and_then(|first| first.cost)) else {
            return;
        };
        let share = if whole > 0.0 {
            100.0 * step.own_cost() / whole
        } else {
            0.0
        };
        let text = format!(
            "{} is expected to take most, {share:.0} % of the plan's cost {whole}{}; the query was not run, so nothing is measured",
            step.name,
            step.sentence()
        );
        out.statement(statements::one(
            StatementKind::Took,
            None,
            step.quote.clone(),
            text,
        ));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> String {
        let reading = read_text("plan", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "query-plan", "{text}");
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        one.text.clone()
    }

    #[test]
    fn a_step_is_told_without_the_steps_below_it() {
        let text = " Sort  (cost=9.00..9.10 rows=5 width=8) (actual time=900.000..901.000 rows=5 loops=1)\n\
            \x20  Sort Key: o.day\n\
            \x20  ->  Nested Loop  (cost=0.00..8.00 rows=5 width=8) (actual time=0.100..890.000 rows=5 loops=1)\n\
            \x20        ->  Seq Scan on item i  (cost=0.00..2.00 rows=1000 width=8) (actual time=0.010..10.000 rows=1000 loops=1)\n\
            \x20        ->  Seq Scan on orders o  (cost=0.00..3.00 rows=1 width=8) (actual time=0.400..0.800 rows=0 loops=1000)\n\
            \x20              Filter: (item = i.id)\n\
            \x20              Rows Removed by Filter: 9000\n\
            \x20Planning Time: 0.200 ms\n Execution Time: 902.500 ms\n";
        let said = said(text);
        assert!(
            said.starts_with(
                "Seq Scan on orders o takes 800 ms of its own, 89 % of the query's 903 ms, 1000 loops"
            ),
            "{said}"
        );
        assert!(said.contains("Rows Removed by Filter: 9000"), "{said}");
    }

    #[test]
    fn processes_that_work_side_by_side_are_not_added_up() {
        let text = " Gather  (cost=1.00..9.10 rows=5 width=8) (actual time=1.000..100.000 rows=5 loops=1)\n\
            \x20  Workers Planned: 3\n   Workers Launched: 3\n\
            \x20  ->  Parallel Seq Scan on big  (cost=0.00..8.00 rows=5 width=8) (actual time=0.100..95.000 rows=1 loops=4)\n\
            \x20Execution Time: 101.000 ms\n";
        assert!(
            said(text)
                .starts_with("Parallel Seq Scan on big takes 95.0 ms of its own, 94 % of the query's 101 ms"),
            "{}",
            said(text)
        );
    }

    #[test]
    fn triggers_and_plans_of_mysql_and_plans_that_were_not_run() {
        let text = "Delete on a  (cost=0.00..1.00 rows=1 width=6) (actual time=2.000..2.000 rows=0 loops=1)\n\
            Trigger for constraint b_a_fkey on a: time=480.000 calls=3\nExecution Time: 483.000 ms\n";
        assert!(
            said(text).starts_with("trigger for constraint b_a_fkey on a takes 480 ms of its own, 99 %"),
            "{}",
            said(text)
        );
        let text = "-> Nested loop inner join  (cost=4.95 rows=9) (actual time=0.153..0.200 rows=9 loops=1)\n    \
            -> Table scan on t2  (cost=1.15 rows=9) (actual time=0.080..0.181 rows=9 loops=1)\n";
        assert!(
            said(text).starts_with("Table scan on t2 takes 181 µs of its own"),
            "{}",
            said(text)
        );
        let text = "Hash Join  (cost=10.00..50.00 rows=5 width=8)\n  ->  Seq Scan on a  (cost=0.00..40.00 rows=9 width=8)\n";
        assert!(
            said(text).starts_with("Seq Scan on a is expected to take most, 80 % of the plan's cost 50"),
            "{}",
            said(text)
        );
    }

    #[test]
    fn lines_that_were_wrapped_are_one_step() {
        let text = "Sort  (cost=289.12..291.62 rows=200 width=48)\n       (actual time=70.000..80.000 rows=5 loops=1)\n  \
            ->  Seq Scan on a  (cost=0.00..210.00 rows=6000 width=8)\n                     (actual time=0.100..9.000 rows=5 loops=1)\n";
        assert!(
            said(text).starts_with("Sort takes 71.0 ms of its own, 89 % of the query's 80.0 ms"),
            "{}",
            said(text)
        );
    }

    #[test]
    fn rubbish_is_no_plan() {
        for text in [
            "(cost=",
            "x (cost=1..2",
            "a (actual time=..) (cost=1..1 rows=9999999999999999999999 loops=0)\n(never executed)",
            "-> (cost=nan..inf rows=1)",
            "Workers Launched: -1\n a (actual time=1..1e300 rows=1 loops=1e300)\nExecution Time: x ms",
        ] {
            assert!(
                read_text("plan", text.as_bytes()).observed.statements.len() <= 1,
                "{text}"
            );
        }
    }
}
