//! The conditions of a Kubernetes node, as `kubectl describe node` prints them: whether it is ready, and what it is short of.
//!
//! In: a table with columns `Type`, `Status`, two times, `Reason`, `Message`. Out: a statement for each condition that is not as it should be. Source:
//! the conditions that the kubelet, network plug-ins and the node problem detector set.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("kubectl-node-conditions", Family::Logs, recognise)
        .about("conditions of kubectl describe node");

/// Letters of a message that are kept.
const MESSAGE: usize = 160;

/// Taints that are kept.
const MAX_TAINTS: usize = 16;

/// Blanks that part two columns at least.
const GAP: &str = "  ";

fn is_header(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("Type") && words.next() == Some("Status") && line.contains("LastTransitionTime")
}

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(text_of(head).lines().any(is_header))
}

/// What a condition that is not as it should be says of the node, and how grave that is.
fn meaning(of: &str, status: &str) -> Option<(StatementKind, &'static str)> {
    Some(match (of, status) {
        ("Ready", "False") => (StatementKind::Failed, "is not ready: it gets no new pods"),
        ("Ready", "Unknown") => (
            StatementKind::Unreachable,
            "does not report any more: its kubelet or its network hangs or is down",
        ),
        ("DiskPressure", "True") => (
            StatementKind::Exhausted,
            "is short of disk space: its pods are ended, and it gets no new ones",
        ),
        ("MemoryPressure", "True") => (
            StatementKind::Exhausted,
            "is short of memory: its pods are ended, and it gets no new ones without a request of memory",
        ),
        ("PIDPressure", "True") => (
            StatementKind::Exhausted,
            "is short of process ids: it gets no new pods",
        ),
        ("NetworkUnavailable", "True") => (StatementKind::Failed, "has no network for pods"),
        ("KernelDeadlock", "True") => (StatementKind::Stalled, "has tasks that hang in the kernel"),
        ("ReadonlyFilesystem", "True") => (
            StatementKind::Failed,
            "has a file system that takes no more writes",
        ),
        (
            "FrequentKubeletRestart"
            | "FrequentDockerRestart"
            | "FrequentContainerdRestart"
            | "ContainerRuntimeUnhealthy"
            | "KubeletUnhealthy",
            "True",
        ) => (StatementKind::Failed, "has a service that fails again and again"),
        _ => return None,
    })
}

#[derive(Debug, Default)]
struct Reader {
    node: String,
    /// Which taints keep pods away.
    taints: Vec<String>,
    within: bool,
    /// Where it is said that the node is ready.
    ready: Option<Quote>,
    troubles: u32,
    /// Whether a condition is so of which nobody here knows whether that is well.
    unsure: bool,
}

impl Reader {
    /// The taint that the node gets for a condition: `DiskPressure` is `node.kubernetes.io/disk-pressure`.
    fn taint_of(&self, condition: &str) -> Option<&str> {
        let bare = |text: &str| text.replace('-', "").to_ascii_lowercase();
        let (wanted, ready) = (bare(condition), condition == "Ready");
        let fits = |taint: &&String| {
            let key = bare(taint.split(':').next().unwrap_or(taint));
            let name = key.rsplit('/').next().unwrap_or(&key);
            name == wanted || ready && matches!(name, "notready" | "unreachable")
        };
        self.taints.iter().find(fits).map(String::as_str)
    }

    fn who(&self) -> String {
        match self.node.as_str() {
            "" => "the node".to_owned(),
            name => format!("node {name}"),
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let text = text.trim();
        if let Some(name) = text.strip_prefix("Name:") {
            self.node = name.trim().chars().take(MESSAGE).collect();
            return Understood::Evidence;
        }
        // Of a copy that begins below the name, the lease of the node has it.
        if let Some(name) = text
            .strip_prefix("HolderIdentity:")
            .filter(|_| self.node.is_empty())
        {
            self.node = name.trim().chars().take(MESSAGE).collect();
            return Understood::Evidence;
        }
        // The first taint stands behind the word, others below it.
        let taint = text.strip_prefix("Taints:").unwrap_or(text).trim();
        let keeps_away = [":NoSchedule", ":NoExecute"]
            .iter()
            .any(|effect| taint.ends_with(effect));
        if keeps_away && !taint.contains(' ') && self.taints.len() < MAX_TAINTS {
            self.taints.push(taint.chars().take(MESSAGE).collect());
            return Understood::Evidence;
        }
        if is_header(text) {
            self.within = true;
            return Understood::Evidence;
        }
        if !self.within {
            return Understood::Ignorable;
        }
        let mut words = text.split_whitespace();
        let (Some(of), Some(status)) = (words.next(), words.next()) else {
            return Understood::Ignorable;
        };
        if of.starts_with("--") {
            return Understood::Evidence;
        }
        if !matches!(status, "True" | "False" | "Unknown") {
            self.within = false;
            return Understood::Ignorable;
        }
        if (of, status) == ("Ready", "True") {
            self.ready = Some(out.here());
        }
        if let Some((kind, means)) = meaning(of, status) {
            self.troubles += 1;
            let node = self.who();
            // The reason and the message stand last; what is before them are times, with single blanks.
            let said: Vec<&str> = text
                .split(GAP)
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .collect();
            let said = said.get(4..).map(|said| said.join(": ")).unwrap_or_default();
            let said: String = said.chars().take(MESSAGE).collect();
            // What the runtime or the network says is wrong may be a known message.
            let known = crate::messages::of(said.as_bytes()).filter(|found| found.message.kind().is_some());
            let known = known.map(|found| found.message.known(said.as_bytes(), found.at).means);
            let known = known.map_or_else(String::new, |means| format!("; {means}"));
            let why = match said.as_str() {
                "" => String::new(),
                said => format!(" ({said})"),
            };
            let taint = match self.taint_of(of) {
                Some(taint) => format!("; its taint {taint} keeps pods pending or away"),
                None => String::new(),
            };
            let text = format!("{node} {means}: {of} {status}{why}{known}{taint}");
            out.statement(statements::one(kind, None, out.here(), text));
        } else {
            self.unsure |= status != "False" && of != "Ready";
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let (Some(quote), 0, false) = (self.ready.take(), self.troubles, self.unsure) {
            let text = format!("{} is ready, and short of nothing", self.who());
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const NODE: &str = "Name:               shop-3\nTaints:             node.kubernetes.io/disk-pressure:NoSchedule\nConditions:\n  \
        Type                 Status  LastHeartbeatTime                 LastTransitionTime                Reason                       Message\n  \
        ----                 ------  -----------------                 ------------------                ------                       -------\n  \
        NetworkUnavailable   False   Wed, 05 Aug 2020 09:12:31 +0530   Wed, 05 Aug 2020 09:12:31 +0530   CalicoIsUp                   Calico is running\n  \
        DiskPressure         True    Wed, 05 Aug 2020 12:43:36 +0530   Tue, 04 Aug 2020 23:02:06 +0530   KubeletHasDiskPressure       kubelet has disk pressure\n  \
        Ready                True    Wed, 05 Aug 2020 12:43:36 +0530   Tue, 04 Aug 2020 23:02:06 +0530   KubeletReady                 kubelet is ready\n\
        Addresses:\n  InternalIP:  10.0.0.3\n";

    #[test]
    fn a_pressure_is_told_with_the_node_and_its_reason() {
        let found = read_text("n", NODE.as_bytes()).observed;
        assert_eq!(found.statements.len(), 1, "{:?}", found.statements);
        assert_eq!(found.statements[0].kind, StatementKind::Exhausted);
        assert_eq!(
            found.statements[0].text,
            "node shop-3 is short of disk space: its pods are ended, and it gets no new ones: DiskPressure True \
             (KubeletHasDiskPressure: kubelet has disk pressure); its taint node.kubernetes.io/disk-pressure:NoSchedule keeps pods pending or away"
        );
    }

    #[test]
    fn a_node_that_does_not_report_is_no_healthy_one() {
        let found = read_text(
            "n",
            NODE.replace("DiskPressure         True ", "DiskPressure         False")
                .replace("Ready                True   ", "Ready                Unknown")
                .as_bytes(),
        )
        .observed;
        assert_eq!(found.statements.len(), 1, "{:?}", found.statements);
        assert_eq!(found.statements[0].kind, StatementKind::Unreachable);
    }

    #[test]
    fn conditions_of_the_node_problem_detector_are_no_health() {
        let with = |of: &str, status: &str| {
            let row = format!("{of:<20} {status:<7}");
            let text = NODE.replace("DiskPressure         True   ", &row);
            assert!(text.contains(&row));
            let found = read_text("n", text.as_bytes()).observed.statements;
            found
                .into_iter()
                .map(|one| (one.kind, one.text))
                .collect::<Vec<_>>()
        };
        let told = with("KernelDeadlock", "True");
        assert_eq!(told[0].0, StatementKind::Stalled);
        let told = with("ReadonlyFilesystem", "True");
        assert_eq!(told[0].0, StatementKind::Failed);
        assert!(told[0].1.contains("takes no more writes"), "{told:?}");
        assert_eq!(told.len(), 1);
        // Of one that is not known it is not known whether that is well.
        assert_eq!(with("CorruptOverlay", "True"), []);
        assert_eq!(with("DiskPressure", "Unknown"), []);
        assert_eq!(with("CorruptOverlay", "False").len(), 1);
    }

    #[test]
    fn a_healthy_node_has_no_trouble() {
        let found = read_text(
            "n",
            NODE.replace("DiskPressure         True ", "DiskPressure         False")
                .replace("disk-pressure:NoSchedule", "x")
                .as_bytes(),
        )
        .observed;
        assert_eq!(found.statements.len(), 1, "{:?}", found.statements);
        assert_eq!(
            found.statements[0].text,
            "node shop-3 is ready, and short of nothing"
        );
    }
}
