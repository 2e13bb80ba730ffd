//! How a cluster of Elasticsearch or OpenSearch is: `GET _cluster/health` and `GET _cluster/pending_tasks`.
//!
//! In: an answer, whole, cut, or in one line. Out: a statement about shards that are on no node, with the share that is active, and one about
//! the task that has waited longest for the master node. Source: Elasticsearch's reference, "Cluster health API" and "Pending cluster tasks API".

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::json_pairs::{is_json, pairs};
use crate::formats::report::{Largest, holds, name_of, ns_of, rounded};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("search-cluster", Family::Host, recognise)
    .about("health and pending tasks of an Elasticsearch cluster");

/// Milliseconds that a request waits for the master node before it is given up (`master_timeout`, 30 s where nobody sets it).
const MASTER_TIMEOUT_MS: f64 = 30_000.0;

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &str| holds(head, name);
    let health = has("\"unassigned_shards\"") && has("\"status\"") && has("\"active_shards\"");
    let tasks = has("\"time_in_queue_millis\"") && has("\"insert_order\"");
    Sureness::certain_if(health || tasks)
}

#[derive(Debug, Default)]
struct Health {
    cluster: String,
    /// Of the cluster; those of its indices follow.
    status: String,
    unassigned: f64,
    initializing: f64,
    relocating: f64,
    active: f64,
    share: Option<f64>,
    nodes: Option<f64>,
    pending: f64,
    waited_ms: f64,
    quote: Option<Quote>,
}

/// A task that is pending, as far as it is read.
#[derive(Debug, Default)]
struct Task {
    source: String,
    priority: String,
    executing: bool,
}

#[derive(Debug, Default)]
struct Reader {
    health: Health,
    task: Task,
    tasks: Largest,
    executing: String,
}

impl Reader {
    fn pair(&mut self, name: &str, text: &str, number: Option<f64>, out: &Out<'_>) -> bool {
        let health = &mut self.health;
        let figure = number.unwrap_or(0.0);
        match name {
            "cluster_name" => health.cluster = name_of(text),
            "status" if health.status.is_empty() && matches!(text, "green" | "yellow" | "red") => {
                health.status = text.to_owned();
                health.quote = Some(out.here());
            }
            // Those of the cluster come before those of its indices.
            "unassigned_shards" => health.unassigned = health.unassigned.max(figure),
            "initializing_shards" => health.initializing = health.initializing.max(figure),
            "relocating_shards" => health.relocating = health.relocating.max(figure),
            "active_shards" => health.active = health.active.max(figure),
            "active_shards_percent_as_number" => health.share = number,
            "number_of_nodes" => health.nodes = number,
            "number_of_pending_tasks" => health.pending = figure,
            "task_max_waiting_in_queue_millis" => health.waited_ms = figure,
            "insert_order" => self.task = Task::default(),
            "priority" => self.task.priority = name_of(text),
            "source" => self.task.source = name_of(text),
            "executing" => self.task.executing = text == "true",
            "time_in_queue_millis" => {
                let task = std::mem::take(&mut self.task);
                if task.executing && self.executing.is_empty() {
                    self.executing.clone_from(&task.source);
                }
                let named = format!("{} (priority {})", task.source, task.priority);
                self.tasks.take(figure, &named, out.here());
            }
            _ => return false,
        }
        true
    }
}

fn of_health(health: &Health) -> Option<Statement> {
    let quote = health.quote.clone()?;
    let cluster = match health.cluster.as_str() {
        "" => "the cluster".to_owned(),
        name => format!("cluster {name}"),
    };
    let mut text = format!("{cluster} is {}", health.status);
    if health.unassigned + health.initializing > 0.0 {
        text.push_str(&format!(
            ": {:.0} shards are on no node (unassigned), {:.0} are being made",
            health.unassigned, health.initializing
        ));
    } else {
        text.push_str(&format!(": all {:.0} shards are active", health.active));
    }
    if let Some(share) = health.share.filter(|share| *share < 100.0) {
        text.push_str(&format!("; {} % are active", rounded(share)));
    }
    if health.relocating > 0.0 {
        text.push_str(&format!("; {:.0} are being moved", health.relocating));
    }
    if health.pending > 0.0 {
        text.push_str(&format!(
            "; {:.0} tasks wait for the master node, the longest for {} s",
            health.pending,
            rounded(health.waited_ms / 1e3)
        ));
    }
    if let Some(nodes) = health.nodes {
        text.push_str(&format!("; it has {nodes:.0} nodes"));
    }
    let kind = match health.status.as_str() {
        "red" => StatementKind::Failed,
        _ if health.waited_ms >= MASTER_TIMEOUT_MS => StatementKind::Stalled,
        "yellow" => StatementKind::Warned,
        _ => StatementKind::WithinNorm,
    };
    Some(statements::one(kind, None, quote, text))
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let mut any = false;
        for (name, value) in pairs(&text) {
            any |= self.pair(name, value.text(), value.number(), out);
        }
        match any {
            true => Understood::Evidence,
            false if is_json(&text) => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        if let Some(one) = of_health(&read.health) {
            out.statement(one);
        }
        let Some((ms, task, quote)) = &read.tasks.first else {
            return;
        };
        let mut text = format!(
            "the task {task} has waited {} s for the master node, the longest of {} that are pending",
            rounded(ms / 1e3),
            read.tasks.count
        );
        if !read.executing.is_empty() {
            text.push_str(&format!("; it executes {}", read.executing));
        }
        let kind = match *ms >= MASTER_TIMEOUT_MS {
            true => StatementKind::Stalled,
            false => StatementKind::Took,
        };
        out.statement(statements::one(kind, Some(ns_of(ms / 1e3)), quote.clone(), text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const HEALTH: &str = r#"{"cluster_name":"shop","status":"red","timed_out":false,"number_of_nodes":4,"active_shards":180,"relocating_shards":0,"initializing_shards":2,"unassigned_shards":18,"number_of_pending_tasks":3,"task_max_waiting_in_queue_millis":1500,"active_shards_percent_as_number":90.0}"#;

    #[test]
    fn a_cluster_that_lacks_shards() {
        let reading = read_text("e", HEALTH.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "search-cluster");
        assert_eq!(
            reading.texts(),
            [
                "cluster shop is red: 18 shards are on no node (unassigned), 2 are being made; 90 % are active; 3 tasks wait for the \
                 master node, the longest for 1.5 s; it has 4 nodes"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Failed);
    }

    #[test]
    fn a_cluster_that_is_well() {
        let text = "{\n  \"cluster_name\" : \"shop\",\n  \"status\" : \"green\",\n  \"active_shards\" : 40,\n  \"unassigned_shards\" : 0\n}\n";
        let reading = read_text("e", text.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
        assert_eq!(
            reading.texts(),
            ["cluster shop is green: all 40 shards are active"]
        );
    }

    #[test]
    fn the_task_that_has_waited_longest() {
        let text = r#"{"tasks":[{"insert_order":11,"priority":"URGENT","source":"create-index [a]","executing":true,"time_in_queue_millis":41000,"time_in_queue":"41s"},{"insert_order":12,"priority":"HIGH","source":"put-mapping [b]","executing":false,"time_in_queue_millis":900,"time_in_queue":"900ms"}]}"#;
        let reading = read_text("e", text.as_bytes());
        assert_eq!(
            reading.texts(),
            [
                "the task create-index [a] (priority URGENT) has waited 41 s for the master node, the longest of 2 that are pending; \
                 it executes create-index [a]"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Stalled);
    }

    #[test]
    fn other_answers_are_none() {
        let text = r#"{"status":"red","shards":12}"#;
        assert_ne!(
            read_text("e", text.as_bytes()).observed.sources[0].format,
            "search-cluster"
        );
    }
}
