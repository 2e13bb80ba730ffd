//! Which statements lead: a cause that a known message names comes before what suffers from it.
//!
//! In: the statements of all artefacts. Out: the rank of each, beside the known signs of the same artefact, and what its message means. What is in no
//! table may say more than a known cause: it keeps its place.

use super::Rank;
use holdup_evidence::observed::{MessageRole, Statement, StatementKind};
use holdup_evidence::units::duration;
use holdup_model::title::Title;
use std::collections::{HashMap, HashSet};

/// The known messages of each artefact.
pub(super) struct Signs {
    /// How grave its signs are.
    gravest: HashMap<u32, Rank>,
    /// Those with a known cause.
    with_cause: HashSet<u32>,
}

impl Signs {
    /// The signs among statements, each with the rank that its kind has.
    pub(super) fn of(statements: &[&Statement], rank: impl Fn(StatementKind) -> Rank) -> Signs {
        let mut gravest: HashMap<u32, Rank> = HashMap::new();
        for one in statements.iter().filter(|one| is_sign(one)) {
            let rank = rank(one.kind);
            let known = gravest.entry(one.quote.source).or_insert(rank);
            *known = rank.min(*known);
        }
        let causes = statements.iter().filter(|one| is_cause(one));
        Signs {
            gravest,
            with_cause: causes.map(|one| one.quote.source).collect(),
        }
    }

    /// The rank of a statement that ranks so by itself: a cause ranks as high as the gravest known sign beside it, which is what came of it.
    pub(super) fn rank(&self, one: &Statement, rank: Rank) -> Rank {
        let sign = self.gravest.get(&one.quote.source).filter(|_| is_cause(one));
        sign.map_or(rank, |sign| rank.min(*sign))
    }

    /// Whether a statement is a cause with a known sign of its artefact beside it.
    pub(super) fn leads(&self, one: &Statement) -> bool {
        is_cause(one) && self.gravest.contains_key(&one.quote.source)
    }

    /// Whether a statement is a sign with a known cause of its artefact beside it.
    pub(super) fn follows(&self, one: &Statement) -> bool {
        is_sign(one) && self.with_cause.contains(&one.quote.source)
    }
}

/// Whether a statement is a known cause of trouble, and no mere warning.
fn is_cause(one: &Statement) -> bool {
    role(one) == Some(MessageRole::Cause) && one.kind <= StatementKind::Failed
}

fn is_sign(one: &Statement) -> bool {
    role(one) == Some(MessageRole::Sign)
}

/// What a message means, of which program, how long it was, and then what it says: whoever does not know the message reads what it comes to
/// first. `often` says whether its own words have the longest length already.
pub(super) fn with_meaning(said: Title, one: &Statement, often: bool) -> Title {
    let Some(known) = &one.known else {
        return said;
    };
    let means = known.means.as_str();
    // A figure and what it is of are our words already.
    if one.of_reader {
        return said.with(format!(": {means}"));
    }
    let named = means
        .split(|char: char| !char.is_alphanumeric())
        .any(|word| word.eq_ignore_ascii_case(&known.program));
    let who = match named || known.program.is_empty() {
        true => String::new(),
        false => format!("{}: ", known.program),
    };
    let length = one
        .ns
        .map(duration)
        .filter(|length| !often && !means.contains(length.as_str()));
    let length = length.map_or_else(String::new, |length| format!(" ({length})"));
    Title::from(format!("{who}{means}{length}")).followed_by(": ", &said)
}

fn role(one: &Statement) -> Option<MessageRole> {
    one.known.as_ref().map(|known| known.role)
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{Known, MessageRole, Quote, Source, Statement, StatementKind};

    fn statement(
        kind: StatementKind,
        line: u64,
        text: &str,
        known: Option<(MessageRole, &str)>,
    ) -> Statement {
        let known = known.map(|(role, means)| Known {
            role,
            program: "kernel".to_owned(),
            means: means.to_owned(),
        });
        Statement {
            kind,
            ns: None,
            share: None,
            times: 1,
            first: None,
            last: None,
            of_reader: false,
            known,
            quote: Quote { source: 0, line },
            text: text.to_owned(),
            blames: Vec::new(),
        }
    }

    fn texts(statements: Vec<Statement>) -> Vec<String> {
        let observed = Observed {
            sources: vec![Source::default()],
            statements,
            ..Observed::default()
        };
        account(&observed).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_cause_comes_before_its_signs_however_grave_they_are_and_both_say_what_they_mean() {
        let sign = statement(
            StatementKind::Ended,
            3,
            "task hung, panic",
            Some((MessageRole::Sign, "a task waited too long")),
        );
        let timed_out = statement(StatementKind::TimedOut, 4, "10.0.0.1:80 timed out", None);
        let cause = statement(
            StatementKind::Failed,
            9,
            "sda: failed command",
            Some((MessageRole::Cause, "the disk fails")),
        );
        assert_eq!(
            texts(vec![sign, timed_out, cause]),
            [
                "kernel: the disk fails: sda: failed command",
                "kernel: a task waited too long: task hung, panic",
                "10.0.0.1:80 timed out"
            ]
        );
    }

    #[test]
    fn what_no_table_has_keeps_its_place_before_a_known_cause() {
        let mut repeated = statement(StatementKind::Failed, 2, "4 errors on channel 2", None);
        repeated.times = 7;
        let known = statement(
            StatementKind::Failed,
            1,
            "checks logged",
            Some((MessageRole::Cause, "something reported a fault")),
        );
        assert_eq!(texts(vec![known, repeated])[0], "4 errors on channel 2 (7 times)");
    }

    #[test]
    fn a_warning_of_a_cause_stays_behind_what_failed() {
        let failed = statement(StatementKind::Failed, 2, "mount of /srv failed", None);
        let warned = statement(
            StatementKind::Warned,
            1,
            "clock of cpu1 is unstable",
            Some((MessageRole::Cause, "another clock is used")),
        );
        assert_eq!(
            texts(vec![warned, failed]),
            [
                "mount of /srv failed",
                "kernel: another clock is used: clock of cpu1 is unstable"
            ]
        );
    }
}
