//! Why a shard of Elasticsearch or OpenSearch is on no node: `GET _cluster/allocation/explain`.
//!
//! In: the answer, whole, cut, or in one line. Out: a statement about the shard, by its index and number: why it left its node, what
//! the cluster says of it, and which rules refused it on how many nodes. Source: Elasticsearch's reference, "Cluster allocation explain API".

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::json_pairs::{Value, is_json, pairs};
use crate::formats::report::{holds, name_of};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("allocation-explain", Family::Host, recognise)
    .about("_cluster/allocation/explain of Elasticsearch");

/// Rules that are kept apart, and characters of a sentence.
const MAX_RULES: usize = 40;
const SENTENCE_CHARS: usize = 260;

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &str| holds(head, name);
    let explains =
        has("\"allocate_explanation\"") || has("\"can_allocate\"") || has("\"can_remain_on_current_node\"");
    Sureness::certain_if(
        explains && (has("\"deciders\"") || has("\"unassigned_info\"") || has("\"current_state\"")),
    )
}

/// A rule that refused the shard, what it says, and on how many nodes.
#[derive(Debug)]
struct Rule {
    name: String,
    decision: String,
    says: String,
    /// The first node that it refused, and how many.
    node: String,
    nodes: u64,
}

#[derive(Debug, Default)]
struct Reader {
    index: String,
    shard: String,
    primary: Option<bool>,
    state: String,
    reason: String,
    details: String,
    can: String,
    explanation: String,
    node: String,
    quote: Option<Quote>,
    /// The rule that is being read, and its decision.
    rule: (String, String),
    rules: Vec<Rule>,
}

fn sentence(text: &str) -> String {
    text.replace("\\\"", "\"").chars().take(SENTENCE_CHARS).collect()
}

impl Reader {
    fn pair(&mut self, name: &str, value: Value<'_>, out: &mut Out<'_>) -> bool {
        let text = value.text();
        match name {
            "index" => {
                // Another shard's answer.
                if !self.index.is_empty() && !self.state.is_empty() && value != Value::Nested {
                    self.end(out);
                }
                self.index = name_of(text);
            }
            "shard" => self.shard = name_of(text),
            "primary" => self.primary = Some(text == "true"),
            "current_state" => {
                self.state = name_of(text);
                self.quote = Some(out.here());
            }
            "reason" if self.reason.is_empty() => self.reason = name_of(text),
            "details" => self.details = sentence(text),
            "can_allocate" | "can_remain_on_current_node" | "can_move_to_other_node"
                if self.can.is_empty() =>
            {
                self.can = name_of(text);
            }
            "allocate_explanation"
            | "move_explanation"
            | "rebalance_explanation"
            | "can_remain_explanation"
                if self.explanation.is_empty() =>
            {
                self.explanation = sentence(text);
            }
            "node_name" => self.node = name_of(text),
            "decider" => self.rule = (name_of(text), String::new()),
            "decision" => self.rule.1 = name_of(text),
            "explanation" if !self.rule.0.is_empty() => self.close_rule(text, out),
            _ => return false,
        }
        true
    }

    fn close_rule(&mut self, says: &str, out: &mut Out<'_>) {
        let (name, decision) = std::mem::take(&mut self.rule);
        if !matches!(decision.as_str(), "NO" | "THROTTLE") {
            return;
        }
        if let Some(known) = self
            .rules
            .iter_mut()
            .find(|known| known.name == name && known.decision == decision)
        {
            known.nodes = known.nodes.saturating_add(1);
        } else if self.rules.len() < MAX_RULES {
            let (says, node) = (sentence(says), self.node.clone());
            self.rules.push(Rule {
                name,
                decision,
                says,
                node,
                nodes: 1,
            });
        } else {
            out.account().left_out += 1;
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let mut any = false;
        for (name, value) in pairs(&text) {
            any |= self.pair(name, value, out);
        }
        match any {
            true => Understood::Evidence,
            false if is_json(&text) => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let quote = read.quote.clone().unwrap_or_else(|| out.here());
        if read.index.is_empty() && read.rules.is_empty() && read.explanation.is_empty() {
            return;
        }
        let which = match read.primary {
            Some(true) => "primary shard",
            Some(false) => "replica shard",
            None => "shard",
        };
        let shard = match (read.shard.as_str(), read.index.as_str()) {
            ("", "") => "a shard".to_owned(),
            ("", index) => format!("a shard of index {index}"),
            (shard, index) => format!("{which} {shard} of index {index}"),
        };
        let state = match read.state.as_str() {
            "" => "unassigned",
            state => state,
        };
        let assigned = matches!(state, "started" | "STARTED" | "relocating" | "initializing");
        let mut text = format!("{shard} is {state}");
        if !read.reason.is_empty() && !assigned {
            text.push_str(&format!(" ({})", read.reason));
        }
        if !read.explanation.is_empty() {
            text.push_str(&format!(": {}", read.explanation));
        }
        let first = read.rules.iter().max_by_key(|rule| rule.nodes);
        if let Some(rule) = first {
            let nodes = match rule.nodes {
                1 if rule.node.is_empty() => "1 node".to_owned(),
                1 => format!("node {}", rule.node),
                nodes => format!("{nodes} nodes"),
            };
            text.push_str(&format!(
                "; the rule {} says {} on {nodes}: {}",
                rule.name, rule.decision, rule.says
            ));
            let names = read.rules.iter().map(|other| other.name.as_str());
            let others: Vec<&str> = names.filter(|name| *name != rule.name).collect();
            if !others.is_empty() {
                text.push_str(&format!("; so do {}", others.join(", ")));
            }
        } else if !read.details.is_empty() && !assigned {
            text.push_str(&format!("; details: {}", read.details));
        }
        let of_disk = first.is_some_and(|rule| rule.name == "disk_threshold" && rule.decision == "NO");
        let stays = assigned && matches!(read.can.as_str(), "yes" | "");
        let kind = match (stays, of_disk) {
            (true, _) => StatementKind::WithinNorm,
            (false, true) => StatementKind::Exhausted,
            (false, false) if assigned => StatementKind::Warned,
            (false, false) => StatementKind::Stalled,
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const ANSWER: &str = r#"{
  "index" : "orders-7",
  "shard" : 2,
  "primary" : false,
  "current_state" : "unassigned",
  "unassigned_info" : {
    "reason" : "NODE_LEFT",
    "at" : "2024-01-01T00:00:00.000Z",
    "last_allocation_status" : "no_attempt"
  },
  "can_allocate" : "no",
  "allocate_explanation" : "no node may have it",
  "node_allocation_decisions" : [
    {
      "node_name" : "data-1",
      "node_decision" : "no",
      "deciders" : [
        { "decider" : "same_shard", "decision" : "YES", "explanation" : "fine" },
        {
          "decider" : "disk_threshold",
          "decision" : "NO",
          "explanation" : "above the low watermark, 9.1% free"
        }
      ]
    }
  ]
}
"#;

    #[test]
    fn the_shard_and_the_rule_that_refused_it() {
        let reading = read_text("e", ANSWER.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "allocation-explain");
        let told = "replica shard 2 of index orders-7 is unassigned (NODE_LEFT): no node may have it; the rule disk_threshold says NO \
                    on node data-1: above the low watermark, 9.1% free";
        assert_eq!(reading.texts(), [told]);
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Exhausted);
        let one_line: String = ANSWER.lines().map(str::trim).collect();
        assert_eq!(read_text("e", one_line.as_bytes()).texts(), [told]);
        let behind_a_command = format!("GET _cluster/allocation/explain\n\n{ANSWER}");
        assert_eq!(read_text("e", behind_a_command.as_bytes()).texts(), [told]);
    }

    #[test]
    fn a_shard_that_is_where_it_may_be_is_well() {
        let text = r#"{"index":"a","shard":0,"primary":true,"current_state":"started","can_remain_on_current_node":"yes","can_rebalance_cluster":"yes","rebalance_explanation":"it stays"}"#;
        let reading = read_text("e", text.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
    }

    #[test]
    fn other_answers_are_none() {
        let text = r#"{"index":"a","explanation":"no","decision":"NO"}"#;
        assert_ne!(
            read_text("e", text.as_bytes()).observed.sources[0].format,
            "allocation-explain"
        );
    }
}
