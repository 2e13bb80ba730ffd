//! The budget of an observation, in words. Nothing is said of one that nobody set and that left nothing out.

use crate::units::{duration, percent};
use holdup_evidence::budget::Thinned;
use holdup_model::report::Budget;

/// `budget 3 %: 1.2 % used; left out: stacks from 0.5 s on`.
pub(crate) fn words(budget: &Budget) -> Option<String> {
    if !budget.firm && budget.thinned.is_empty() {
        return None;
    }
    let share = budget.share * 100.0;
    let used = percent_of(budget);
    let mut words = format!("budget {share:.1} % of a CPU: {used} used");
    let left_out: Vec<String> = budget
        .thinned
        .iter()
        .map(|step| match (step.what, step.until_ns) {
            (Thinned::Time, _) => format!("everything after {}", duration(step.since_ns)),
            (what, None) => format!("{} from {} on", name(what), duration(step.since_ns)),
            (what, Some(until)) => format!(
                "{} from {} to {}",
                name(what),
                duration(step.since_ns),
                duration(until)
            ),
        })
        .collect();
    if !left_out.is_empty() {
        words.push_str("; left out: ");
        words.push_str(&left_out.join(", "));
    }
    Some(words)
}

/// What was used, of the time of which the budget is a share.
fn percent_of(budget: &Budget) -> String {
    let whole = budget.allowed_ns as f64 / budget.share.max(f64::EPSILON);
    percent(budget.used_ns, whole as u64)
}

fn name(what: Thinned) -> &'static str {
    match what {
        Thinned::Requests => "some single requests",
        Thinned::Stacks => "four in five stacks",
        Thinned::Repeats => "records of repeated waits",
        Thinned::MostStacks => "most stacks",
        Thinned::Time => "the rest of the time",
    }
}

#[cfg(test)]
mod tests {
    use super::words;
    use holdup_evidence::budget::Thinned;
    use holdup_model::report::{Budget, ThinnedStep};

    fn budget(firm: bool, thinned: Vec<ThinnedStep>) -> Budget {
        Budget {
            share: 0.03,
            firm,
            allowed_ns: 150_000_000,
            used_ns: 60_000_000,
            programs_ns: 20_000_000,
            own_ns: 40_000_000,
            counted: true,
            start_ns: 400_000_000,
            thinned,
        }
    }

    #[test]
    fn what_nobody_set_and_nothing_was_left_out_for_is_not_mentioned() {
        assert_eq!(words(&budget(false, Vec::new())), None);
    }

    #[test]
    fn what_was_left_out_says_since_when() {
        let step = |what, until_ns| ThinnedStep {
            what,
            since_ns: 500_000_000,
            until_ns,
            effect: String::new(),
        };
        let said = words(&budget(
            true,
            vec![
                step(Thinned::Stacks, Some(2_000_000_000)),
                step(Thinned::Time, None),
            ],
        ));
        let said = said.unwrap();
        assert!(
            said.starts_with("budget 3.0 % of a CPU: 1.2 % used; left out: "),
            "{said}"
        );
        assert!(
            said.contains("four in five stacks from 500 ms to 2.00 s"),
            "{said}"
        );
        assert!(said.ends_with("everything after 500 ms"), "{said}");
    }
}
