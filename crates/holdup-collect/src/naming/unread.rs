//! What was not read or named, in the words of the report.
//!
//! In: the list of it. Out: a sentence each, with equal ones put together.

use holdup_evidence::NotMeasured;
use holdup_symbols::{Unread, Why};
use std::collections::{BTreeMap, BTreeSet};

/// So many files or processes are named in a sentence.
const NAMED_MAX: usize = 6;

/// What was not measured because of it.
pub(crate) fn not_measured(unread: &[Unread]) -> Vec<NotMeasured> {
    let mut costly = BTreeSet::new();
    let mut files: BTreeMap<Why, BTreeSet<String>> = BTreeMap::new();
    for one in unread {
        match one {
            Unread::Callers { pid } => drop(costly.insert(pid.to_string())),
            Unread::File { name, pid, why } | Unread::Names { name, pid, why } => {
                let file = format!("{name} (process {pid})");
                files.entry(*why).or_default().insert(file);
            }
        }
    }
    let callers = (!costly.is_empty()).then(|| NotMeasured {
        what: format!("some callers in stacks of process {}", listed(costly)),
        why: "its files make it too costly to find them: holdup spends at most 0.5 s of CPU time on that at once, and then 2 % of a CPU".into(),
        fix: "none: causes and times are complete".into(),
    });
    let names = files.into_iter().map(|(why, files)| NotMeasured {
        what: format!("names of functions in {}", listed(files)),
        why: reason(why).into(),
        fix: remedy(why).into(),
    });
    callers.into_iter().chain(names).collect()
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::Silent => "the file system of the file did not answer",
        Why::MayBlock => "the file is on a file system that may never answer, so it was not opened",
        Why::Costly => "finding them takes too much CPU time",
        Why::Broken => "the file broke the process that read it",
        Why::Interrupted => "a signal asked for the report at once",
    }
}

fn remedy(why: Why) -> &'static str {
    match why {
        Why::Silent => "look at the server of that file system; causes and times are complete",
        Why::MayBlock | Why::Costly | Why::Broken => "none: causes and times are complete",
        Why::Interrupted => "run it again, and wait for the report",
    }
}

fn listed(names: BTreeSet<String>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    let first: Vec<String> = names.into_iter().take(NAMED_MAX).collect();
    match more {
        0 => first.join(", "),
        _ => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::not_measured;
    use holdup_symbols::{Unread, Why};

    #[test]
    fn equal_reasons_are_one_sentence() {
        let silent = |number: u32| Unread::File {
            name: format!("lib{number}.so"),
            pid: 7,
            why: Why::Silent,
        };
        let unread: Vec<Unread> = (1..=8)
            .map(silent)
            .chain([Unread::Callers { pid: 9 }, Unread::Callers { pid: 8 }])
            .collect();
        let listed = not_measured(&unread);
        assert_eq!(listed.len(), 2);
        assert_eq!(listed[0].what, "some callers in stacks of process 8, 9");
        assert!(
            listed[1]
                .what
                .starts_with("names of functions in lib1.so (process 7), lib2.so")
        );
        assert!(listed[1].what.ends_with("and 2 more") && listed[1].why.contains("did not answer"));
    }
}
