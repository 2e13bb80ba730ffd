//! What a report has of Java virtual machines.

use holdup_evidence::jvm::Figures;
use holdup_evidence::{self as evidence, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Java virtual machine among what was observed. Its texts are its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Jvm {
    /// Its process.
    pub pid: u32,
    /// In a line: `OpenJDK 17.0.15, G1, 512 MB heap, 2 processors`.
    pub summary: String,
    /// Java's version; null where the machine shares no figures.
    pub version: Option<String>,
    /// The machine's name.
    pub name: Option<String>,
    /// Who built it.
    pub vendor: Option<String>,
    /// What collects its garbage: by its figures, else by the names of its threads.
    pub collector: Option<String>,
    /// How large its heap may become, bytes.
    pub max_heap_bytes: Option<u64>,
    /// Processors that it reckons with: its option, else the CPUs that it may run on, and no more than its quota pays for.
    pub processors: Option<u32>,
    /// Threads started for collecting garbage.
    pub collecting_threads: u32,
    /// Its options that begin with `-X`.
    pub options: Vec<String>,
    /// The main class, module or archive.
    pub main: Option<String>,
    /// How long it had run.
    pub uptime_ns: Option<Ns>,
    /// Why it tells nothing of itself; null where it does.
    pub untold: Option<String>,
    /// Collections that it counted while it was observed.
    pub collections: u64,
    /// How long these took.
    pub collecting_ns: Ns,
    /// The cause of the last one, whenever that was.
    pub last_collection: Option<String>,
    /// Safepoints that it counted while it was observed; null where it counts none.
    pub safepoints: Option<u64>,
    /// How long all its threads stood still at them, by its own count.
    pub stopped_ns: Option<Ns>,
    /// How long it took until they did.
    pub reaching_ns: Option<Ns>,
    /// Thread dumps that holdup asked it for, because its structures could not be read.
    #[serde(default)]
    pub dumps: Vec<JvmDump>,
}

/// A thread dump, for which the machine stood still.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JvmDump {
    /// From the request to the end of the answer: it stood still for at most so long.
    pub pause_ns: Ns,
    /// Threads that it had.
    pub threads: u32,
    /// Why it was asked.
    pub why: String,
}

impl From<&evidence::Jvm> for Jvm {
    fn from(jvm: &evidence::Jvm) -> Jvm {
        let (before, after) = (&jvm.before, &jvm.after);
        let since = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        Jvm {
            pid: jvm.pid,
            summary: summary(jvm),
            version: jvm.version.clone(),
            name: jvm.name.clone(),
            vendor: jvm.vendor.clone(),
            collector: jvm.collector.map(|collector| collector.name().to_owned()),
            max_heap_bytes: jvm.max_heap,
            processors: jvm.processors,
            collecting_threads: jvm.collecting_threads,
            options: jvm.options.clone(),
            main: jvm.main.clone(),
            uptime_ns: jvm.uptime,
            untold: untold(&jvm.figures),
            collections: after.collections.saturating_sub(before.collections),
            collecting_ns: after.collecting.saturating_sub(before.collecting),
            last_collection: after.last_cause.clone(),
            safepoints: since(before.safepoints, after.safepoints),
            stopped_ns: since(before.stopped, after.stopped),
            reaching_ns: since(before.reaching, after.reaching),
            dumps: jvm.dumps.iter().map(JvmDump::from).collect(),
        }
    }
}

impl From<&evidence::JvmDump> for JvmDump {
    fn from(dump: &evidence::JvmDump) -> JvmDump {
        JvmDump {
            pause_ns: dump.pause,
            threads: dump.threads,
            why: dump.why.clone(),
        }
    }
}

fn untold(figures: &Figures) -> Option<String> {
    match figures {
        Figures::Read => None,
        Figures::NotShared => Some(
            "it shares no performance data (-XX:+PerfDisableSharedMem, or it can't write to its /tmp)"
                .to_owned(),
        ),
        Figures::Unreadable(why) => Some(why.clone()),
    }
}

/// What it is, in a line.
fn summary(jvm: &evidence::Jvm) -> String {
    let name = jvm.name.as_deref().unwrap_or("Java");
    // `OpenJDK 64-Bit Server VM`, `Java HotSpot(TM) 64-Bit Server VM`.
    let brand = name.split(" 64-Bit").next().unwrap_or(name).trim();
    let what = match &jvm.version {
        Some(version) => format!("{brand} {version}"),
        None => "version not known".to_owned(),
    };
    let heap = jvm.max_heap.map(|bytes| format!("{} heap", memory(bytes)));
    let processors = jvm.processors.map(|count| match count {
        1 => "1 processor".to_owned(),
        more => format!("{more} processors"),
    });
    let collector = jvm.collector.map(|collector| collector.name().to_owned());
    let parts = [Some(what), collector, heap, processors];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    known.join(", ")
}

/// As `-Xmx` counts: in powers of two.
fn memory(bytes: u64) -> String {
    const MB: u64 = 1 << 20;
    const GB: u64 = 1 << 30;
    match bytes {
        0..GB => format!("{} MB", bytes / MB),
        _ if bytes.is_multiple_of(GB) => format!("{} GB", bytes / GB),
        _ => format!("{:.1} GB", bytes as f64 / GB as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::{Jvm, memory, summary};
    use holdup_evidence as evidence;
    use holdup_evidence::jvm::{Figures, JvmCounters};

    #[test]
    fn a_machine_is_told_in_a_line() {
        let mut jvm = evidence::Jvm {
            figures: Figures::Read,
            version: Some("17.0.15".into()),
            name: Some("OpenJDK 64-Bit Server VM".into()),
            collector: Some(evidence::Collector::G1),
            max_heap: Some(512 << 20),
            processors: Some(2),
            ..evidence::Jvm::default()
        };
        assert_eq!(summary(&jvm), "OpenJDK 17.0.15, G1, 512 MB heap, 2 processors");
        (jvm.version, jvm.max_heap) = (None, None);
        assert_eq!(summary(&jvm), "version not known, G1, 2 processors");
        assert_eq!(summary(&evidence::Jvm::default()), "version not known");
    }

    #[test]
    fn memory_is_in_the_units_of_its_option() {
        assert_eq!(memory(64 << 20), "64 MB");
        assert_eq!(memory(2 << 30), "2 GB");
        assert_eq!(memory((3 << 30) / 2), "1.5 GB");
    }

    #[test]
    fn counters_are_those_of_the_time_that_was_observed() {
        let counters = |collections, safepoints| JvmCounters {
            collections,
            safepoints,
            ..JvmCounters::default()
        };
        let jvm = evidence::Jvm {
            before: counters(10, Some(20)),
            after: counters(13, Some(25)),
            ..evidence::Jvm::default()
        };
        let found = Jvm::from(&jvm);
        assert_eq!((found.collections, found.safepoints), (3, Some(5)));
        let jvm = evidence::Jvm {
            after: counters(13, None),
            ..jvm
        };
        assert_eq!(Jvm::from(&jvm).safepoints, None);
    }
}
