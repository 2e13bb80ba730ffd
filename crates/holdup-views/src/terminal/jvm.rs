//! The lines about Java virtual machines.

use super::margins;
use crate::sheet::Sheet;
use crate::units::{counted, duration};
use holdup_model::report::{Jvm, Report};

/// Machines described singly; more are counted.
const MAX_JVMS: usize = 4;

/// Writes them below the header.
pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    let all = &report.jvms;
    let alone = all.len() == 1;
    let first = all.iter().take(MAX_JVMS).map(|jvm| line(jvm, alone));
    margins::lines(sheet, first, all.len(), |more| {
        format!(
            "{}; the JSON report lists them",
            counted(more, "more JVM", "more JVMs")
        )
    });
}

fn line(jvm: &Jvm, alone: bool) -> String {
    let what = match alone {
        true => "a JVM".to_owned(),
        false => format!("process {} is a JVM", jvm.pid),
    };
    let why = jvm.untold.as_ref().map(|why| format!("; {why}"));
    format!(
        "{what}: {}{}{}",
        jvm.summary,
        why.unwrap_or_default(),
        asked(jvm).unwrap_or_default()
    )
}

/// What it was made to do for the report.
fn asked(jvm: &Jvm) -> Option<String> {
    let pauses = || jvm.dumps.iter().map(|dump| dump.pause_ns);
    let all = duration(pauses().fold(0, u64::saturating_add));
    let count = u64::try_from(jvm.dumps.len()).unwrap_or(u64::MAX);
    (count > 0).then(|| {
        let dumps = counted(count, "thread dump", "thread dumps");
        format!("; holdup asked it for {dumps}, which stopped it for at most {all} in total")
    })
}

#[cfg(test)]
mod tests {
    use super::{Jvm, line};
    use holdup_model::report::JvmDump;

    fn dump(pause_ns: u64) -> JvmDump {
        JvmDump {
            pause_ns,
            ..JvmDump::default()
        }
    }

    #[test]
    fn one_needs_no_number_and_one_that_tells_nothing_says_why() {
        let mut jvm = Jvm {
            pid: 7,
            summary: "OpenJDK 17.0.15, G1".to_owned(),
            ..Jvm::default()
        };
        assert_eq!(line(&jvm, true), "a JVM: OpenJDK 17.0.15, G1");
        jvm.untold = Some("it shares nothing".to_owned());
        assert_eq!(
            line(&jvm, false),
            "process 7 is a JVM: OpenJDK 17.0.15, G1; it shares nothing"
        );
        jvm.untold = None;
        jvm.dumps = [3_000_000, 1_000_000].map(dump).into();
        assert_eq!(
            line(&jvm, true),
            "a JVM: OpenJDK 17.0.15, G1; holdup asked it for 2 thread dumps, which stopped it for at most \
             4.0 ms in total"
        );
    }
}
