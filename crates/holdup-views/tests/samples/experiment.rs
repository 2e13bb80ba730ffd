//! An experiment as `holdup try` makes it, from made-up runs: a mail queue, as it is and in memory.

use super::database;
use holdup_comparison::experiment::{Arm, Design, Pair, judge};
use holdup_evidence::{Cause, Ns};
use holdup_model::report::{PredictedBy, Report, SubjectKind};
use std::collections::BTreeMap;

fn arm(causes: &[(Cause, Ns)]) -> Arm {
    let path: BTreeMap<Cause, Ns> = causes.iter().copied().collect();
    Arm {
        elapsed: path.values().sum(),
        path,
    }
}

/// Three runs each way, and the middle one of those as it is.
pub fn in_memory() -> Report {
    let mut report = database().report();
    report.subject.kind = SubjectKind::Try;
    let design = Design {
        without: "disk".to_owned(),
        causes: vec![Cause::DiskSync, Cause::DiskWrite],
        how: "writes below DIR stay in memory; reads of other files still use the disk".to_owned(),
        escapes: "reads, and files that are not below DIR".to_owned(),
        risk: "durability: a crash or a reboot clears memory, and all data written is lost".to_owned(),
        contained: vec!["processes: those that CMD leaves running are killed after each run".to_owned()],
        not_contained: vec!["the network: CMD really calls servers, 6 times".to_owned()],
    };
    let pairs: Vec<Pair> = [0, 7_000_000, 3_000_000]
        .into_iter()
        .map(|more| Pair {
            as_is: arm(&[
                (Cause::DiskSync, 910_000_000 + more),
                (Cause::SchedRunqueue, 40_000_000),
                (Cause::CpuUser, 120_000_000),
            ]),
            without: arm(&[
                (Cause::DiskSync, 2_000_000 + more / 2),
                (Cause::SchedRunqueue, 60_000_000),
                (Cause::CpuUser, 121_000_000),
            ]),
        })
        .collect();
    let predicted = Some((175_000_000, PredictedBy::Replay));
    let mut experiment = judge(&design, &pairs, predicted);
    experiment
        .notes
        .push("names in /etc/hosts in the runs without net.dns: db.shop.test".to_owned());
    report.experiment = Some(experiment);
    report
}
