//! `squeue` of Slurm: which jobs wait, and for what.
//!
//! In: a heading with `JOBID` and `NODELIST(REASON)` or `REASON`, and a row for each job. Out: a statement about the reason that most
//! pending jobs have, with the first of them. Source: the manual of `squeue`, job reason codes.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, name_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("squeue", Family::Host, recognise).about("squeue of Slurm");

/// Reasons that are kept apart.
const MAX_REASONS: usize = 100;

/// Reasons of jobs that wait for their turn; any other needs somebody, or a limit that others reach.
const IN_TURN: [&str; 8] = [
    "Priority",
    "Resources",
    "Dependency",
    "BeginTime",
    "Cleaning",
    "None",
    "JobArrayTaskLimit",
    "Reservation",
];

/// What the best known reasons mean, by how they begin.
const MEANINGS: &[(&str, &str)] = &[
    ("Priority", "others have a higher priority"),
    ("Resources", "it waits for nodes, CPUs or memory to become free"),
    (
        "DependencyNeverSatisfied",
        "the job that it depends on will never end as it must",
    ),
    ("Dependency", "it waits for another job"),
    ("BeginTime", "its time of beginning is not yet reached"),
    ("JobHeld", "it is held, and begins only when it is released"),
    ("ReqNodeNotAvail", "a node that it asks for is not available"),
    (
        "PartitionTimeLimit",
        "it asks for more time than the partition gives",
    ),
    (
        "PartitionNodeLimit",
        "it asks for more nodes than the partition gives",
    ),
    ("PartitionDown", "the partition is down"),
    ("NodeDown", "a node that it needs is down"),
    (
        "Nodes required for job are DOWN",
        "nodes that it needs are down or reserved",
    ),
    ("Assoc", "a limit of the account or user is reached"),
    ("QOS", "a limit of its quality of service is reached"),
    ("Licenses", "it waits for a licence"),
    ("BadConstraints", "nothing fits what it asks for"),
    ("launch failed", "it could not be started, and is held"),
];

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(holds(head, "JOBID") && any_line(head, |line| Heading::of(line).is_some()))
}

/// Which word of a row is what.
#[derive(Debug, Clone, Copy)]
struct Heading {
    id: usize,
    state: usize,
    name: Option<usize>,
    partition: Option<usize>,
}

impl Heading {
    fn of(line: &str) -> Option<Heading> {
        let last = line.split_whitespace().last()?;
        let at = |name: &str| line.split_whitespace().position(|word| word == name);
        (last.ends_with("(REASON)") || last == "REASON").then_some(Heading {
            id: at("JOBID")?,
            state: at("ST").or_else(|| at("STATE"))?,
            name: at("NAME"),
            partition: at("PARTITION"),
        })
    }
}

#[derive(Debug)]
struct Waits {
    reason: String,
    jobs: u64,
    first: String,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    heading: Option<Heading>,
    reasons: Vec<Waits>,
    pending: u64,
    all: u64,
    quote: Option<Quote>,
}

impl Reader {
    fn row(&mut self, text: &str, out: &mut Out<'_>) -> Option<()> {
        let heading = self.heading?;
        let word = |at: usize| text.split_whitespace().nth(at);
        let id = word(heading.id)?;
        if !id.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let state = word(heading.state)?;
        let known = |state: &str| {
            (2..=15).contains(&state.len())
                && state
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
                || matches!(state, "R" | "F" | "S")
        };
        // A name of several words moves the columns behind it.
        let mut states = text.split_whitespace().skip(heading.state);
        let state = if known(state) {
            state
        } else {
            states.find(|word| matches!(*word, "R" | "PD" | "CG"))?
        };
        self.all = self.all.saturating_add(1);
        self.quote.get_or_insert_with(|| out.here());
        if !matches!(state, "PD" | "PENDING") {
            return Some(());
        }
        self.pending = self.pending.saturating_add(1);
        let reason = match text.find('(').and_then(|at| text.get(at + 1..)) {
            Some(reason) => reason.trim_end().trim_end_matches(')'),
            None => text.split_whitespace().last()?,
        };
        let reason = name_of(reason);
        if let Some(known) = self.reasons.iter_mut().find(|known| known.reason == reason) {
            known.jobs = known.jobs.saturating_add(1);
        } else if self.reasons.len() < MAX_REASONS {
            let mut first = format!("job {}", name_of(id));
            if let Some(name) = heading.name.and_then(word) {
                first.push_str(&format!(" ({})", name_of(name)));
            }
            if let Some(partition) = heading.partition.and_then(word) {
                first.push_str(&format!(" of partition {}", name_of(partition)));
            }
            self.reasons.push(Waits {
                reason,
                jobs: 1,
                first,
                quote: out.here(),
            });
        } else {
            out.account().left_out += 1;
        }
        Some(())
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(heading) = Heading::of(&text) {
            self.end(out);
            self.heading = Some(heading);
            return Understood::Evidence;
        }
        match self.row(&text, out) {
            Some(()) => Understood::Evidence,
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some(quote) = read.quote else { return };
        let in_turn = |reason: &str| IN_TURN.contains(&reason);
        // What needs somebody comes before what waits for its turn.
        let told = read
            .reasons
            .iter()
            .max_by_key(|waits| (!in_turn(&waits.reason), waits.jobs));
        let Some(waits) = told else {
            let text = format!("none of {} jobs is pending", read.all);
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
            return;
        };
        let meaning = MEANINGS.iter().find(|(begin, _)| waits.reason.starts_with(begin));
        let meaning = meaning.map_or_else(String::new, |(_, meaning)| format!(": {meaning}"));
        let text = format!(
            "{} is pending for {}{meaning}; {} of {} pending jobs have that reason, {} jobs are listed",
            waits.first, waits.reason, waits.jobs, read.pending, read.all
        );
        let kind = match in_turn(&waits.reason) {
            true => StatementKind::Took,
            false => StatementKind::Stalled,
        };
        out.statement(statements::one(kind, None, waits.quote.clone(), text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const LIST: &str = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n\
        \x20             9120       gpu    train      ada PD       0:00      4 (AssocGrpGRES)\n\
        \x20             9121       gpu    tests      bob PD       0:00      1 (Priority)\n\
        \x20             9008       gpu    sweep      ada  R    3:12:44      1 node07\n";

    #[test]
    fn the_reason_that_needs_somebody() {
        let reading = read_text("q", LIST.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "squeue");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "job 9120 (train) of partition gpu is pending for AssocGrpGRES: a limit of the account or user is reached; \
                 1 of 2 pending jobs have that reason, 3 jobs are listed"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Stalled);
    }

    #[test]
    fn jobs_that_wait_for_their_turn_or_run_are_no_trouble() {
        let turn = LIST.replace("AssocGrpGRES", "Resources");
        assert_eq!(
            read_text("q", turn.as_bytes()).observed.statements[0].kind,
            StatementKind::Took
        );
        let runs: String = LIST
            .lines()
            .filter(|line| !line.contains(" PD "))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(
            read_text("q", runs.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
    }

    #[test]
    fn other_lists_are_none() {
        let text = "JOBID NAME STATE\n12 a PENDING\n";
        assert_ne!(
            read_text("q", text.as_bytes()).observed.sources[0].format,
            "squeue"
        );
    }
}
