//! `kubectl get events`: which warning there is most often, about which object, and why.
//!
//! In: a heading with `REASON` and `MESSAGE`, and rows in which cells may be missing or several words long; messages may go on in lines below. Out:
//! a statement for each reason and object of warnings, with how often. Without warnings: that there are none.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("kubernetes-events", Family::Logs, recognise).about("events of Kubernetes");

/// Pairs of a reason and an object that are kept, and bytes of a message.
const MAX_KINDS: usize = 500;
const MESSAGE: usize = 240;

/// What reasons of warnings mean.
const MEANINGS: [(&str, &str); 21] = [
    (
        "FailedScheduling",
        "the pod waits because no node has room for it or fits it",
    ),
    (
        "FailedMount",
        "the pod does not start because a volume could not be mounted",
    ),
    (
        "FailedAttachVolume",
        "the pod does not start because a volume could not be attached to its node",
    ),
    (
        "FailedCreatePodSandBox",
        "the pod does not start because its network or sandbox could not be made",
    ),
    (
        "NetworkNotReady",
        "the node's network is not ready, so its pods do not start",
    ),
    (
        "BackOff",
        "the container ends again and again, and its next start waits longer each time",
    ),
    (
        "Unhealthy",
        "a probe of the container fails: it does not answer, or too slowly",
    ),
    (
        "Evicted",
        "the pod was ended, because its node or the pod itself used too much memory, disk or process ids",
    ),
    (
        "EvictionThresholdMet",
        "the node runs out of memory, disk or process ids and ends pods",
    ),
    ("OOMKilling", "a process was killed because memory was used up"),
    (
        "SystemOOM",
        "a process was killed because the node's memory was used up",
    ),
    ("FailedKillPod", "the pod cannot be ended"),
    (
        "FailedPreStopHook",
        "the hook before the container's end failed or took too long",
    ),
    (
        "FailedPostStartHook",
        "the hook behind the container's start failed",
    ),
    ("FailedCreate", "a controller cannot make the pod"),
    (
        "NodeNotReady",
        "the node does not report that it works, so its pods are not served",
    ),
    (
        "FreeDiskSpaceFailed",
        "the node's disk is full and removing images did not help",
    ),
    ("ImageGCFailed", "removing unused images failed"),
    ("ErrImagePull", "the image could not be fetched"),
    ("ProvisioningFailed", "the storage for a claim could not be made"),
    (
        "FailedBinding",
        "a claim for storage finds no volume, and its pods wait",
    ),
];

/// Events that say that what others complain of has come about.
const OVER: [(&str, &str); 4] = [
    ("Scheduled", "FailedScheduling"),
    ("SuccessfulAttachVolume", "FailedAttachVolume"),
    ("ProvisioningSucceeded", "ProvisioningFailed"),
    ("NodeReady", "NodeNotReady"),
];

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    Sureness::certain_if(text.lines().any(is_heading))
}

/// `LAST SEEN  TYPE  REASON  OBJECT  MESSAGE`, `FIRSTSEEN  LASTSEEN  COUNT  NAME  KIND  …  REASON  SOURCE  MESSAGE`, and as `kubectl describe`
/// has them: `Type  Reason  Age  From  Message`.
fn is_heading(line: &str) -> bool {
    let words = columns_of(line);
    let has = |name: &str| words.iter().any(|word| word == name);
    let seen = has("LASTSEEN") || has("SEEN") || has("FIRSTSEEN") || has("AGE");
    seen && has("TYPE") && has("REASON") && words.last().is_some_and(|last| last == "MESSAGE")
}

fn columns_of(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_uppercase).collect()
}

/// One event.
#[derive(Debug, Default)]
struct Event {
    warns: bool,
    reason: String,
    object: String,
    message: String,
    times: u64,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    /// Names of the columns before the message.
    columns: Vec<String>,
    last: Option<Event>,
    all: Vec<Event>,
    events: u64,
}

/// An age: `12s`, `2h3m`, `3m (x12 over 30m)` without what is in brackets, `<unknown>`.
fn is_age(word: &str) -> bool {
    let of_numbers = word
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"dhms".contains(&byte));
    of_numbers
        && word.ends_with(['d', 'h', 'm', 's'])
        && word.starts_with(|first: char| first.is_ascii_digit())
        || word == "<unknown>"
}

/// A message in bounds, with the volumes that it names at its end.
fn short(message: &str) -> String {
    let mut short: String = message.chars().take(MESSAGE).collect();
    let volumes = message
        .rfind("unmounted volumes=[")
        .and_then(|at| message.get(at..));
    if let Some(volumes) = volumes
        && let Some((names, _)) = volumes.split_once(']')
        && !short.contains(names)
    {
        short.push_str(" ... ");
        short.extend(names.chars().take(MESSAGE));
        short.push(']');
    }
    short
}

impl Event {
    /// A row. Its type is the one cell that is always there; its reason stands behind that.
    fn of(columns: &[String], line: &str, quote: Quote) -> Option<Event> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let kind = words
            .iter()
            .position(|word| matches!(*word, "Normal" | "Warning"))?;
        let before = words.get(..kind)?;
        let kind_first = columns.first().is_some_and(|first| first == "TYPE");
        let ages = before.iter().filter(|word| is_age(word)).count();
        if ages == 0 && !(kind_first && kind == 0) {
            return None;
        }
        let reason = words.get(kind + 1)?;
        let place = |name: &str| columns.iter().position(|column| column == name);
        // In the newer form the object stands behind the reason, in the older one its name before the type.
        let behind = place("OBJECT") > place("REASON");
        let is_name = |word: &&&str| !is_age(word) && word.parse::<u64>().is_err() && !word.starts_with("(x");
        let object = match (behind, place("NAME")) {
            (true, _) => words.get(kind + 2).copied()?,
            (false, Some(_)) => before.iter().find(is_name).copied()?,
            (false, None) => "",
        };
        let ahead = if kind_first {
            words.get(kind..kind + 6)
        } else {
            Some(before)
        };
        let count = ahead.unwrap_or_default().iter().find_map(|word| {
            let of_brackets = word.strip_prefix("(x").and_then(|count| count.parse().ok());
            of_brackets.or_else(|| word.parse::<u64>().ok())
        });
        let tail = words.get(kind + 2 + usize::from(behind)..).unwrap_or_default();
        Some(Event {
            warns: words.get(kind) == Some(&"Warning"),
            reason: reason.chars().take(MESSAGE).collect(),
            object: object.chars().take(MESSAGE).collect(),
            message: short(&tail.join(" ")),
            times: count.unwrap_or(1),
            quote,
        })
    }

    /// What the reason comes to, in words for whoever does not know it.
    fn means(&self) -> Option<&'static str> {
        let known = MEANINGS.iter().find(|(reason, _)| *reason == self.reason);
        known.map(|(_, means)| *means)
    }

    fn kind(&self) -> StatementKind {
        let ended = ["OOMKilling", "SystemOOM", "BackOff", "Evicted"];
        let timed = self.message.contains("timed out") || self.message.contains("timeout");
        match self.reason.as_str() {
            reason if ended.contains(&reason) => StatementKind::Ended,
            "FailedScheduling" => StatementKind::Stalled,
            _ if timed => StatementKind::TimedOut,
            _ => StatementKind::Failed,
        }
    }
}

impl Reader {
    /// Adds the last event to those of its reason and object.
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(event) = self.last.take() else { return };
        self.events += 1;
        if !event.warns {
            // What went well at last holds nobody up any more.
            let over = OVER.iter().filter(|(good, _)| *good == event.reason);
            for (_, bad) in over {
                self.all
                    .retain(|known| known.reason != *bad || known.object != event.object);
            }
            return;
        }
        let same = |known: &Event| known.reason == event.reason && known.object == event.object;
        match self.all.iter().position(same) {
            Some(at) => {
                if let Some(known) = self.all.get_mut(at) {
                    known.times = known.times.saturating_add(event.times);
                }
            }
            None if self.all.len() < MAX_KINDS => self.all.push(event),
            None => out.account().left_out += 1,
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..1_000).unwrap_or(line));
        if text.trim().is_empty() {
            return Understood::Ignorable;
        }
        if is_heading(&text) {
            self.columns = columns_of(&text);
            return Understood::Evidence;
        }
        if let Some(event) = Event::of(&self.columns, &text, out.here()) {
            self.close(out);
            self.last = Some(event);
            return Understood::Evidence;
        }
        if !text.contains(char::is_alphanumeric) {
            return Understood::Ignorable;
        }
        // The message goes on.
        let Some(last) = &mut self.last else {
            return Understood::No;
        };
        if last.message.len() < MESSAGE {
            last.message.push_str(" | ");
            last.message.extend(text.trim().chars().take(MESSAGE));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
        let mut all = std::mem::take(&mut self.all);
        all.sort_by_key(|event| std::cmp::Reverse(event.times));
        if all.is_empty() && self.events > 0 {
            let text = format!("{} events of Kubernetes, none of them a warning", self.events);
            out.statement(statements::one(StatementKind::WithinNorm, None, out.here(), text));
        }
        let most = all.first().map(Event::kind);
        for event in all {
            // The reason that there is most often is the first to be named, whatever it is.
            let kind = most.map_or(event.kind(), |most| event.kind().max(most));
            let of = match event.object.as_str() {
                "" => String::new(),
                object => format!(" of {object}"),
            };
            let text = match event.means() {
                Some(means) => format!("{}{of}: {means}: {}", event.reason, event.message),
                None => format!("{}{of}: {}", event.reason, event.message),
            };
            out.statement(Statement {
                times: event.times,
                ..statements::one(kind, None, event.quote, text)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn the_reason_that_has_most_of_all_rows_with_missing_cells() {
        let text = "LASTSEEN   FIRSTSEEN   COUNT     NAME     KIND      SUBOBJECT     TYPE      REASON     SOURCE     MESSAGE\n\
            2m         2m          1         web-1    Pod                     Normal    Scheduled  default-scheduler   Successfully assigned\n\
            10s        2h          843       db-0     Pod                     Warning   FailedMount   kubelet, node-2     MountVolume.SetUp failed\n\
            caused by: exit status 32\n1m         30m         12        web-1    Pod    spec.containers{web}  Warning   Unhealthy   kubelet, node-1     Readiness probe failed\n";
        let reading = read_text("e", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "kubernetes-events");
        let one = &reading.observed.statements[0];
        assert_eq!((one.kind, one.times), (StatementKind::Failed, 843));
        assert_eq!(
            one.text,
            "FailedMount of db-0: the pod does not start because a volume could not be mounted: kubelet, node-2 MountVolume.SetUp failed | caused by: exit status 32"
        );
    }

    #[test]
    fn events_of_a_description_and_reasons_in_lines_below() {
        let old = "Events:\n  FirstSeen\tLastSeen\tCount\tFrom\tSubobjectPath\tType\tReason\tMessage\n  ---------\t--------\t-----\t----\t----\t----\t------\t-------\n  \
            3m\t3m\t2\t{default-scheduler }\tWarning\tFailedScheduling\tpod (ci-6) failed to fit in any node\nfit failure on node (n1): Insufficient cpu\n";
        assert_eq!(
            read_text("e", old.as_bytes()).texts(),
            [
                "FailedScheduling: the pod waits because no node has room for it or fits it: pod (ci-6) failed to fit in any node | fit failure on node (n1): Insufficient cpu"
            ]
        );
        let new = "Events:\n  Type     Reason            Age                From               Message\n  ----     ------            ----               ----               -------\n  \
            Warning  FailedScheduling  3m (x12 over 30m)  default-scheduler  0/4 nodes are available: 4 Insufficient cpu.\n";
        let reading = read_text("e", new.as_bytes());
        assert_eq!(reading.observed.statements[0].times, 12);
    }

    #[test]
    fn the_newer_form_and_a_healthy_one() {
        let text = "LAST SEEN   TYPE      REASON      OBJECT       MESSAGE\n5m          Normal    Scheduled   pod/web-6d   Successfully assigned\n\
            3m (x12 over 30m)   Warning   BackOff   pod/web-6d   Back-off restarting failed container\n";
        let reading = read_text("e", text.as_bytes());
        assert_eq!(
            reading.texts(),
            [
                "BackOff of pod/web-6d: the container ends again and again, and its next start waits longer each time: Back-off restarting failed container"
            ]
        );
        let images = "LAST SEEN   TYPE      REASON          OBJECT    MESSAGE\n\
            5m          Warning   ImageGCFailed   node/n1   failed to get imageFs info: unable to find data in memory cache\n";
        let reading = read_text("e", images.as_bytes());
        let told = reading.texts();
        assert!(
            told[0].contains("removing unused images failed") && !told[0].contains("full"),
            "{told:?}"
        );
        let well: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
        let reading = read_text("e", well.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
    }
}
