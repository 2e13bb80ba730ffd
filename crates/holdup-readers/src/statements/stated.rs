//! What a line states: by the message that it is, else by its words, else by a state or an error in its structure.

use super::{counters, kinds, shape, structured, tables};
use crate::messages;
use holdup_evidence::observed::{Known, StatementKind};

/// What a line states.
#[derive(Debug, Default)]
pub(super) struct Stated {
    /// The kind, and where it is said.
    pub(super) found: Option<kinds::Found>,
    /// What is known of its message.
    pub(super) known: Option<Known>,
    /// A number of whom that message names; 0 of nobody.
    pub(super) names: u64,
    /// Whether its message is ordinary: then neither its words nor its lengths say that anything is wrong.
    pub(super) usual: bool,
}

/// What a line states.
pub(super) fn of(line: &[u8]) -> Stated {
    let says_nothing = shape::is_sql(line) || shape::is_legend(line) || counters::counts_nothing(line);
    let message = match says_nothing || kinds::is_of_no_trouble(line) {
        true => None,
        false => messages::of(line),
    };
    if let Some(messages::Found { message, at }) = message {
        let found = message.kind().map(|kind| kinds::Found { kind, at });
        return Stated {
            found,
            known: found.map(|_| message.known(line, at)),
            names: found.map_or(0, |_| message.names(line, at)),
            usual: found.is_none(),
        };
    }
    let of_words = match says_nothing {
        true => None,
        false => kinds::of(line),
    };
    let found = of_words.or_else(|| {
        let of_state = || tables::of_pairs(line);
        let of_server = |at| (StatementKind::Failed, at);
        let (kind, at) = structured::server_error(line).map(of_server).or_else(of_state)?;
        Some(kinds::Found { kind, at })
    });
    Stated {
        found,
        ..Stated::default()
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::messages::tests::examples;
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn each_known_message_states_its_kind_and_an_ordinary_one_nothing() {
        let wrong: Vec<&str> = examples()
            .into_iter()
            .filter(|(message, line)| {
                let stated = of(line.as_bytes());
                stated.found.map(|found| found.kind) != message.kind()
                    || stated.usual != message.kind().is_none()
            })
            .map(|(_, line)| line)
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_line_with_a_known_message_keeps_its_own_words_and_times_and_says_what_is_known() {
        let text = "2026-03-03 10:00:00 nf_conntrack: table full, dropping packet\n\
                    2026-03-03 10:00:09 nf_conntrack: table full, dropping packet\n";
        let said = read_text("t", text.as_bytes()).observed.statements;
        let [one] = said.as_slice() else {
            panic!("{said:?}")
        };
        assert_eq!(one.kind, StatementKind::Exhausted);
        assert_eq!(
            (one.times, one.text.as_str()),
            (2, "nf_conntrack: table full, dropping packet")
        );
        assert!(one.known.is_some() && one.first.is_some() && one.first != one.last);
    }

    #[test]
    fn lines_that_name_others_are_told_each() {
        let down = |node: u32| {
            format!(
                "2026-03-03 10:00:0{node},123 INFO Gossiper - InetAddress /10.0.0.{node}:7000 is now DOWN\n"
            )
        };
        let said = |text: &str| {
            let all = read_text("t", text.as_bytes()).observed.statements.into_iter();
            all.filter_map(|one| Some((one.times, one.known?.means)))
                .collect::<Vec<_>>()
        };
        let means = |node: u32| format!("this node hears nothing of /10.0.0.{node}:7000 any more");
        let text = format!("{}{}{}", down(1), down(2), down(1));
        assert_eq!(said(&text), [(2, means(1)), (1, means(2))]);
        // Of very many some are told.
        let many: String = (0..90)
            .map(|node| {
                format!(
                    "2026-03-03 10:00:00,123 INFO Gossiper - InetAddress /10.0.0.{node}:7000 is now DOWN\n"
                )
            })
            .collect();
        assert_eq!(said(&many).len(), 50);
    }

    #[test]
    fn an_ordinary_message_states_nothing_though_its_words_do() {
        let text = "perf: interrupt took too long (2511 > 2500), lowering kernel.perf_event_max_sample_rate to 79500\n";
        assert_eq!(read_text("t", text.as_bytes()).observed.statements, []);
        let other = "the interrupt took too long (2511 > 2500)\n";
        assert_eq!(read_text("t", other.as_bytes()).observed.statements.len(), 1);
    }
}
