//! Readers of holdup's own that are stuck behind what they read: the report says so.
//!
//! In: the children that were killed and have not ended. Out: a line for each, for what could not be measured.

use holdup_detached::LeftBehind;
use holdup_evidence::NotMeasured;

/// What is said of those that there are now.
pub fn not_measured() -> impl Iterator<Item = NotMeasured> {
    holdup_detached::left_behind().into_iter().map(said)
}

fn said(left: LeftBehind) -> NotMeasured {
    let LeftBehind { pid, name, stuck_in } = left;
    NotMeasured {
        what: match stuck_in {
            Some(what) => format!("all of {what}"),
            None => "all that one of holdup's readers was asked for".to_owned(),
        },
        why: format!(
            "reading it timed out. A reader process of holdup ({name}, pid {pid}) is stuck in the kernel; it \
             was killed, and ends when that read returns"
        ),
        fix: "none is needed. To end the reader now, end the process that it reads, or the daemon of its \
         file system"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::said;
    use holdup_detached::LeftBehind;

    #[test]
    fn it_names_the_process_and_the_reader() {
        let left = LeftBehind {
            pid: 456,
            name: "holdup-look".to_owned(),
            stuck_in: Some("process 123 (cat)".to_owned()),
        };
        let said = said(left);
        assert_eq!(said.what, "all of process 123 (cat)");
        assert!(
            said.why.contains("(holdup-look, pid 456) is stuck in the kernel"),
            "{said:?}"
        );
    }
}
