//! `kubectl get pods` and `kubectl get nodes`: which of them do not work, and for how long.
//!
//! In: a heading with `READY`, `STATUS` and `RESTARTS`, or `STATUS`, `ROLES` and `VERSION`; rows of words. Out: a statement for each state
//! that is no good, with how many have it and which has it worst; else that all are well.
//! Source: the printers of Kubernetes (`pkg/printers/internalversion/printers.go`), "Pod Lifecycle" and "Nodes" of its documentation.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, name_of, ns_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("kubernetes-pods", Family::Host, recognise).about("kubectl get pods, get nodes");

/// Seconds that a pod may take to be scheduled and started: the objective of Kubernetes' own scalability tests is 5 s with the image at
/// hand ("Kubernetes scalability thresholds"); an image has to be pulled on top of that.
const MAX_START_SECONDS: f64 = 60.0;

/// Rows that are looked at, and states that are kept.
const MAX_ROWS: u64 = 200_000;
const MAX_STATES: usize = 60;

/// Words of a row.
const MAX_WORDS: usize = 40;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(any_line(head, |line| Heading::of(line).is_some()))
}

/// Which list it is, and where its columns are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Heading {
    /// By the place of the name.
    Pods {
        name: usize,
    },
    Nodes,
}

impl Heading {
    fn of(line: &str) -> Option<Heading> {
        let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
        match words.as_slice() {
            ["NAME", "READY", "STATUS", "RESTARTS", ..] => Some(Heading::Pods { name: 0 }),
            ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", ..] => Some(Heading::Pods { name: 1 }),
            ["NAME", "STATUS", "ROLES", "AGE", "VERSION", ..] => Some(Heading::Nodes),
            _ => None,
        }
    }
}

/// A row of pods.
#[derive(Debug, PartialEq)]
struct Pod {
    name: String,
    /// Containers that are ready, and all.
    ready: (u64, u64),
    status: String,
    restarts: u64,
    /// `3m`, of the last restart.
    last_restart: String,
    age: String,
}

impl Pod {
    fn of(line: &str, name: usize) -> Option<Pod> {
        let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
        let at = |place: usize| words.get(place).copied();
        let (ready, all) = at(name + 1)?.split_once('/')?;
        let restarts = at(name + 3)?.parse().ok()?;
        // `118 (3m ago)`.
        let ago = at(name + 4).and_then(|word| word.strip_prefix('('));
        let age = if ago.is_some() {
            at(name + 6)?
        } else {
            at(name + 4)?
        };
        Some(Pod {
            name: name_of(at(name)?),
            ready: (ready.parse().ok()?, all.parse().ok()?),
            status: name_of(at(name + 2)?),
            restarts,
            last_restart: ago.unwrap_or_default().to_owned(),
            age: name_of(age),
        })
    }

    /// What is wrong with it: of which kind, and in the words of the list.
    fn trouble(&self) -> Option<(StatementKind, String)> {
        use StatementKind as K;
        let status = self.status.as_str();
        // `Init:CrashLoopBackOff` of a container that has to end before the others begin.
        let last = status.rsplit(':').next().unwrap_or(status);
        let kind = match last {
            "Running" if self.ready.0 < self.ready.1 => {
                return Some((K::Stalled, "Running and not ready".to_owned()));
            }
            "Running" | "Completed" | "Succeeded" => return None,
            "CrashLoopBackOff" | "OOMKilled" | "Evicted" => K::Ended,
            "ImagePullBackOff" | "ErrImagePull" | "Unknown" | "NodeLost" => K::Unreachable,
            "Pending" | "ContainerCreating" | "PodInitializing" | "Terminating" | "SchedulingGated" => {
                K::Stalled
            }
            // `Init:0/2`: that many have ended.
            steps if steps.contains('/') => K::Stalled,
            _ => K::Failed,
        };
        let soon = kind == K::Stalled && age_s(&self.age).is_some_and(|seconds| seconds < MAX_START_SECONDS);
        (!soon).then(|| (kind, status.to_owned()))
    }
}

/// Seconds of `5d3h`, `12m`, `45s`.
fn age_s(age: &str) -> Option<f64> {
    crate::formats::report::length(age)
}

/// All that have one state.
#[derive(Debug)]
struct State {
    kind: StatementKind,
    status: String,
    count: u64,
    /// The one with most restarts, then the oldest.
    worst: String,
    restarts: u64,
    last_restart: String,
    age_s: f64,
    quote: Quote,
}

impl State {
    fn sentence(&self, all: u64, what: &str) -> Statement {
        let mut text = match self.count {
            1 => format!("the {what} {} is {}", self.worst, self.status),
            count => format!(
                "{count} of {all} {what}s are {}, for instance {}",
                self.status, self.worst
            ),
        };
        if self.restarts > 0 {
            text.push_str(&format!(", which was restarted {} times", self.restarts));
            if !self.last_restart.is_empty() {
                text.push_str(&format!(" (last {} ago)", self.last_restart));
            }
        }
        let ns = (self.age_s > 0.0).then(|| ns_of(self.age_s));
        if let Some(ns) = ns {
            text.push_str(&format!("; created {} ago", duration(ns)));
        }
        statements::one(self.kind, None, self.quote.clone(), text)
    }
}

#[derive(Debug, Default)]
struct Reader {
    heading: Option<Heading>,
    rows: u64,
    restarts: u64,
    states: Vec<State>,
    quote: Option<Quote>,
}

impl Reader {
    fn add(&mut self, pod: &Pod, out: &mut Out<'_>) {
        self.restarts = self.restarts.saturating_add(pod.restarts);
        let Some((kind, status)) = pod.trouble() else {
            return;
        };
        let age_s = age_s(&pod.age).unwrap_or(0.0);
        let new = State {
            kind,
            status,
            count: 1,
            worst: pod.name.clone(),
            restarts: pod.restarts,
            last_restart: pod.last_restart.clone(),
            age_s,
            quote: out.here(),
        };
        self.put(new, out);
    }

    /// Adds one to those of its state; of all, the one with most restarts is named.
    fn put(&mut self, new: State, out: &mut Out<'_>) {
        if let Some(known) = self.states.iter_mut().find(|known| known.status == new.status) {
            let count = known.count + 1;
            if (new.restarts, new.age_s) > (known.restarts, known.age_s) {
                *known = new;
            }
            known.count = count;
        } else if self.states.len() < MAX_STATES {
            self.states.push(new);
        } else {
            out.account().left_out += 1;
        }
    }

    fn node(&mut self, line: &str, out: &mut Out<'_>) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
        let [name, status, _, age, version, ..] = words.as_slice() else {
            return None;
        };
        version.starts_with('v').then_some(())?;
        if status
            .split(',')
            .any(|part| matches!(part, "NotReady" | "Unknown"))
        {
            let new = State {
                kind: StatementKind::Unreachable,
                status: name_of(status),
                count: 1,
                worst: name_of(name),
                restarts: 0,
                last_restart: String::new(),
                age_s: age_s(age).unwrap_or(0.0),
                quote: out.here(),
            };
            self.put(new, out);
        }
        Some(())
    }

    fn close(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let (Some(heading), Some(quote)) = (read.heading, read.quote) else {
            return;
        };
        let what = match heading {
            Heading::Pods { .. } => "pod",
            Heading::Nodes => "node",
        };
        if read.states.is_empty() {
            let text = match heading {
                Heading::Pods { .. } => format!(
                    "all {} pods are running and ready, or completed; {} restarts",
                    read.rows, read.restarts
                ),
                Heading::Nodes => format!("all {} nodes are ready", read.rows),
            };
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
        for state in &read.states {
            out.statement(state.sentence(read.rows, what));
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(heading) = Heading::of(&text) {
            self.close(out);
            self.heading = Some(heading);
            return Understood::Evidence;
        }
        if self.rows >= MAX_ROWS {
            out.account().left_out += 1;
            return Understood::Evidence;
        }
        let is_row = match self.heading {
            Some(Heading::Pods { name }) => Pod::of(&text, name).map(|pod| self.add(&pod, out)).is_some(),
            Some(Heading::Nodes) => self.node(&text, out).is_some(),
            None => false,
        };
        if !is_row {
            return Understood::No;
        }
        self.rows += 1;
        if self.quote.is_none() {
            self.quote = Some(out.here());
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
    use holdup_evidence::observed::StatementKind as K;

    fn said(text: &str) -> Vec<(K, String)> {
        let reading = read_text("p", text.as_bytes());
        assert!(
            reading
                .observed
                .sources
                .iter()
                .any(|source| source.format == "kubernetes-pods"),
            "{text}"
        );
        let all = reading.observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn states_that_are_no_good() {
        let text = "$ kubectl get pods -A\nNAMESPACE   NAME       READY   STATUS             RESTARTS        AGE\n\
            shop        web-1      0/1     CrashLoopBackOff   118 (3m ago)    9h\n\
            shop        web-2      0/1     CrashLoopBackOff   12              9h\n\
            shop        db-0       1/1     Running            0               40d\n\
            shop        cart-7     0/2     Pending            0               25m\n\
            shop        new-1      0/1     ContainerCreating  0               4s\n\
            shop        api-3      1/2     Running            3 (2d ago)      5d3h\n\
            shop        job-1      0/1     Completed          0               1h\n";
        assert_eq!(
            said(text),
            [
                (
                    K::Ended,
                    "2 of 7 pods are CrashLoopBackOff, for instance web-1, which was restarted 118 times (last 3m ago); created 9 h 0 min ago"
                        .to_owned()
                ),
                (K::Stalled, "the pod cart-7 is Pending; created 25 min 0 s ago".to_owned()),
                (
                    K::Stalled,
                    "the pod api-3 is Running and not ready, which was restarted 3 times (last 2d ago); created 5 d 3 h ago".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn pods_and_nodes_that_are_well() {
        let text = "NAME    READY   STATUS    RESTARTS   AGE\nweb-1   1/1     Running   0          9h\n";
        assert_eq!(
            said(text),
            [(
                K::WithinNorm,
                "all 1 pods are running and ready, or completed; 0 restarts".to_owned()
            )]
        );
        let text = "NAME   STATUS                     ROLES    AGE   VERSION\nn1     Ready                      worker   40d   v1.29.1\n\
            n2     NotReady,SchedulingDisabled   worker   40d   v1.29.1\n";
        assert!(
            said(text)[0]
                .1
                .starts_with("the node n2 is NotReady,SchedulingDisabled"),
            "{text}"
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "NAME READY STATUS RESTARTS AGE\n/ / / / /\na 1/ Running x 9\n",
            "NAME STATUS ROLES AGE VERSION\na\n",
            "NAME READY STATUS RESTARTS AGE\na 99999999999999999999/1 Running 1 (\n",
        ] {
            assert!(
                read_text("p", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
