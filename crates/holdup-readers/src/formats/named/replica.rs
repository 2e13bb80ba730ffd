//! `SHOW SLAVE STATUS\G` and `SHOW REPLICA STATUS\G` of MySQL and MariaDB.
//!
//! Out: whether the replica runs, how far it is behind, and what its thread does.

use super::{Names, Reader, has};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::new(
    "replica-status",
    Family::Databases,
    |head| has(head, NAMES, 2),
    Shape::Lines(|| Reader::boxed(judge)),
)
.about("SHOW REPLICA STATUS of MySQL");

const NAMES: &[&str] = &[
    "Slave_IO_Running",
    "Slave_SQL_Running",
    "Seconds_Behind_Master",
    "Replica_IO_Running",
    "Replica_SQL_Running",
    "Seconds_Behind_Source",
];

/// Seconds behind from which a replica is: the server tells whole seconds, and one transaction may take some.
const BEHIND_S: f64 = 10.0;

/// The value of the first of several names of the same.
fn of<'a>(names: &'a Names, both: [&'static str; 2]) -> (&'static str, &'a str) {
    let [old, new] = both;
    match names.text(old) {
        "" => (new, names.text(new)),
        value => (old, value),
    }
}

fn judge(names: &Names) -> Vec<Statement> {
    let (_, source) = of(names, ["Master_Host", "Source_Host"]);
    let (io_name, io) = of(names, ["Slave_IO_Running", "Replica_IO_Running"]);
    let (sql_name, sql) = of(names, ["Slave_SQL_Running", "Replica_SQL_Running"]);
    let (name, behind) = of(names, ["Seconds_Behind_Master", "Seconds_Behind_Source"]);
    let (_, does) = of(names, ["Slave_SQL_Running_State", "Replica_SQL_Running_State"]);
    let error = |name: &str| match names.text(name) {
        "" => String::new(),
        error => format!(": {error}"),
    };
    let mut said = Vec::new();
    if sql == "No" {
        let text = format!(
            "the replica's SQL thread has stopped ({sql_name} No){}",
            error("Last_SQL_Error")
        );
        said.push(names.say(StatementKind::Failed, sql_name, text));
    }
    if matches!(io, "No" | "Connecting") {
        let text = format!(
            "the replica has no connection to {source} ({io_name} {io}){}",
            error("Last_IO_Error")
        );
        said.push(names.say(StatementKind::Unreachable, io_name, text));
    }
    let Some(seconds) = names.number(name).filter(|_| !behind.is_empty()) else {
        return said;
    };
    let ns = super::seconds(seconds);
    let (kind, norm) = match seconds >= BEHIND_S {
        true => (StatementKind::Stalled, String::new()),
        false => (
            StatementKind::WithinNorm,
            format!(" (from {BEHIND_S} s on it is behind)"),
        ),
    };
    let does = match does {
        "" => String::new(),
        does => format!("; its SQL thread: {does}"),
    };
    let text = format!(
        "the replica is {} behind {source} ({name} {seconds:.0}){norm}{does}",
        duration(ns)
    );
    said.push(Statement {
        ns: Some(ns),
        ..names.say(kind, name, text)
    });
    said
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(behind: &str, sql: &str) -> Vec<(StatementKind, String)> {
        let text = format!(
            "*************************** 1. row ***************************\n               Slave_IO_State: Waiting for master to send event\n\
             \x20                 Master_Host: 10.0.0.4\n             Slave_IO_Running: Yes\n            Slave_SQL_Running: {sql}\n\
             \x20       Seconds_Behind_Master: {behind}\n               Last_SQL_Error: Deadlock found\n"
        );
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "replica-status");
        let all = reading.observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn how_far_it_is_behind_and_why_it_stopped() {
        let text = "the replica is 2 h 5 min behind 10.0.0.4 (Seconds_Behind_Master 7500)";
        assert_eq!(said("7500", "Yes"), [(StatementKind::Stalled, text.to_owned())]);
        assert_eq!(said("0", "Yes")[0].0, StatementKind::WithinNorm);
        let text = "the replica's SQL thread has stopped (Slave_SQL_Running No): Deadlock found";
        assert_eq!(said("NULL", "No"), [(StatementKind::Failed, text.to_owned())]);
    }
}
