//! Interpreters whose frames are not read, in the words of the report.
//!
//! In: a process, and why its interpreter was refused. Out: a sentence for each reason.

use holdup_evidence::NotMeasured;
use holdup_runtimes::interpreted::{Kind, Lasting, Refused};
use std::collections::{BTreeMap, BTreeSet};

/// So many processes are named in a sentence.
const NAMED_MAX: usize = 6;

/// Processes of a reason that are counted.
const COUNTED_MAX: usize = 1024;

/// Those that were refused.
#[derive(Debug, Default)]
pub(super) struct RefusedOnes(BTreeMap<(Kind, String), BTreeSet<u32>>);

impl RefusedOnes {
    /// A process's interpreter is not read.
    pub(super) fn add(&mut self, pid: u32, refused: Refused) {
        // So far it has no frames.
        if refused.lasting() == Lasting::UntilItRuns {
            return;
        }
        let pids = self.0.entry((refused.kind(), refused.to_string())).or_default();
        if pids.len() < COUNTED_MAX {
            pids.insert(pid);
        }
    }

    /// What was not measured because of it.
    pub(super) fn not_measured(&self) -> impl Iterator<Item = NotMeasured> {
        self.0.iter().map(|((kind, why), pids)| {
            let named: Vec<String> = pids.iter().take(NAMED_MAX).map(u32::to_string).collect();
            let more = match pids.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            NotMeasured {
                what: format!(
                    "{} functions in stacks of process {}{more}",
                    kind.language(),
                    named.join(", ")
                ),
                why: why.clone(),
                fix: format!("{} is read; causes and times are complete", kind.versions()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::RefusedOnes;
    use holdup_runtimes::php;
    use holdup_runtimes::python::{Refused, Version};
    use holdup_runtimes::ruby;

    #[test]
    fn each_reason_is_a_sentence() {
        let old = Version { major: 3, minor: 7 };
        let mut refused = RefusedOnes::default();
        for pid in 1..=8 {
            refused.add(pid, Refused::Unsupported(old).into());
        }
        refused.add(9, Refused::NoVersion.into());
        refused.add(10, Refused::NoThreads(old).into());
        let other = Version { major: 1, minor: 9 };
        refused.add(11, ruby::Refused::Unsupported(other).into());
        let threads = Version { major: 8, minor: 2 };
        refused.add(12, php::Refused::ThreadSafe(threads).into());
        let listed: Vec<_> = refused.not_measured().map(|one| (one.what, one.why)).collect();
        let said = |what: &str, why: &str| (what.to_owned(), why.to_owned());
        let expected = [
            said(
                "Python functions in stacks of process 1, 2, 3, 4, 5, 6 and 2 more",
                "CPython 3.7 is not supported",
            ),
            said(
                "Python functions in stacks of process 9",
                "the version of CPython is not known",
            ),
            said(
                "Ruby functions in stacks of process 11",
                "Ruby 1.9 is not supported",
            ),
            said(
                "PHP functions in stacks of process 12",
                "the thread-safe build of PHP 8.2 is not supported",
            ),
        ];
        assert_eq!(listed, expected);
    }
}
