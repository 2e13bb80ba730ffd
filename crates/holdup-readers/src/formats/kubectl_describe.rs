//! `kubectl describe pod`: what became of a pod's containers.
//!
//! In: names and values, indented, one block for each container; and its events, whose lines are read like any log. Out: a statement for
//! each container that waits, was ended, or was started again: why, how often, and its limit of memory.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("kubectl-describe", Family::Logs, recognise).about("kubectl describe pod");

/// Bytes of a name or value.
const VALUE: usize = 80;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let has = |key: &str| head.lines().any(|line| line.trim_start().starts_with(key));
    let container = has("Container ID:") || has("Restart Count:") || has("Last State:");
    Sureness::certain_if(container && has("State:") && (has("Image:") || has("Ready:")))
}

/// Whose reason and exit code the next lines tell.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Other,
    State,
    Last,
    Limits,
}

#[derive(Debug, Default)]
struct Container {
    name: String,
    quote: Quote,
    state: String,
    /// Why it is in its state, and why it ended before.
    reason: String,
    last: String,
    exit_code: String,
    restarts: u64,
    memory: String,
    part: Part,
}

impl Container {
    /// What it is, gravest first; `None` where all is well.
    fn kind(&self) -> Option<StatementKind> {
        let ended = |reason: &str| !matches!(reason, "" | "Completed");
        Some(
            match (self.state.as_str(), self.reason.as_str(), self.last.as_str()) {
                (_, "OOMKilled", _) | (_, _, "OOMKilled") => StatementKind::Ended,
                ("Waiting", "CrashLoopBackOff", _) => StatementKind::Ended,
                ("Waiting", "ContainerCreating" | "PodInitializing", _) => StatementKind::Stalled,
                ("Waiting", _, _) => StatementKind::Failed,
                ("Terminated", reason, _) if ended(reason) => StatementKind::Ended,
                (_, _, last) if ended(last) => StatementKind::Failed,
                _ if self.restarts > 0 => StatementKind::Warned,
                _ => return None,
            },
        )
    }

    fn sentence(&self, pod: &str) -> String {
        let mut text = format!("container {}", self.name);
        if !pod.is_empty() {
            text.push_str(&format!(" of pod {pod}"));
        }
        let reason = match self.reason.as_str() {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        text.push_str(&format!(" is {}{reason}", self.state.to_ascii_lowercase()));
        let code = match self.exit_code.as_str() {
            "" => String::new(),
            code => format!(" with exit code {code}"),
        };
        match self.last.as_str() {
            "" => text.push_str(&code),
            last => text.push_str(&format!(", ended before by {last}{code}")),
        }
        if self.restarts > 0 {
            text.push_str(&format!(", {} restarts", self.restarts));
        }
        if !self.memory.is_empty() {
            text.push_str(&format!(", its limit of memory is {}", self.memory));
        }
        text
    }
}

#[derive(Debug, Default)]
struct Reader {
    pod: String,
    /// Within a list of containers.
    listed: bool,
    /// Blanks before a container's name.
    depth: Option<usize>,
    container: Option<Container>,
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(container) = self.container.take() else {
            return;
        };
        if let Some(kind) = container.kind() {
            let text = container.sentence(&self.pod);
            out.statement(statements::one(kind, None, container.quote, text));
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let depth = text.chars().take_while(|char| char.is_whitespace()).count();
        let Some((key, value)) = text.trim().split_once(':') else {
            return Understood::Ignorable;
        };
        let value: String = value.trim().chars().take(VALUE).collect();
        if key == "Name" && self.container.is_none() {
            self.pod = value;
            return Understood::Evidence;
        }
        if matches!(key, "Containers" | "Init Containers") && value.is_empty() {
            self.close(out);
            (self.listed, self.depth) = (true, None);
            return Understood::Evidence;
        }
        if self.listed && matches!(key, "Conditions" | "Volumes" | "Events" | "QoS Class") {
            self.close(out);
            self.listed = false;
        }
        let names = self.depth.is_none_or(|names| depth <= names);
        if self.listed && value.is_empty() && names && depth > 0 {
            self.close(out);
            self.depth = Some(depth);
            self.container = Some(Container {
                name: key.chars().take(VALUE).collect(),
                quote: out.here(),
                ..Container::default()
            });
            return Understood::Evidence;
        }
        // A list that begins in the middle has no name.
        if self.container.is_none() && matches!(key, "Container ID" | "State") {
            self.container = Some(Container {
                name: "without a name here".to_owned(),
                quote: out.here(),
                ..Container::default()
            });
        }
        let Some(container) = &mut self.container else {
            return Understood::Ignorable;
        };
        match key {
            "State" => (container.state, container.part) = (value, Part::State),
            "Last State" => container.part = Part::Last,
            "Limits" => container.part = Part::Limits,
            "Requests" | "Environment" | "Mounts" | "Liveness" | "Readiness" => container.part = Part::Other,
            "Reason" if container.part == Part::State => container.reason = value,
            "Reason" if container.part == Part::Last => container.last = value,
            "Exit Code" => container.exit_code = value,
            "Restart Count" => container.restarts = value.parse().unwrap_or(0),
            "memory" if container.part == Part::Limits => container.memory = value,
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const POD: &str = "Name:         cart-6d\nNamespace:    shop\nContainers:\n  cart:\n    Container ID:  containerd://12\n    Image:         cart:3\n    \
        State:          Waiting\n      Reason:       CrashLoopBackOff\n    Last State:     Terminated\n      Reason:       OOMKilled\n      \
        Exit Code:    137\n    Ready:          False\n    Restart Count:  6\n    Limits:\n      memory:  256Mi\n    Requests:\n      memory:  64Mi\n  \
        proxy:\n    Image:          proxy:1\n    State:          Running\n    Ready:          True\n    Restart Count:  0\nConditions:\n  Type  Status\n";

    #[test]
    fn why_a_container_was_ended_and_how_often() {
        let reading = read_text("p", POD.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "kubectl-describe");
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{:?}", reading.observed.statements)
        };
        assert_eq!(one.kind, StatementKind::Ended);
        assert_eq!(
            one.text,
            "container cart of pod cart-6d is waiting (CrashLoopBackOff), ended before by OOMKilled with exit code 137, 6 restarts, \
             its limit of memory is 256Mi"
        );
    }

    #[test]
    fn a_pod_that_runs_states_nothing_and_rubbish_neither() {
        let well = POD
            .replace("Waiting", "Running")
            .replace("CrashLoopBackOff", "")
            .replace("OOMKilled", "Completed")
            .replace("Count:  6", "Count:  0");
        assert_eq!(read_text("p", well.as_bytes()).observed.statements, []);
        let rubbish = "State:\nImage:\nLast State:\nReason:\nContainers:\n :\n  :\n:::";
        assert!(read_text("p", rubbish.as_bytes()).observed.statements.len() <= 1);
    }
}
