//! Waiting on `/dev/random`, `/dev/hwrng` or whatever stands in their place.

use crate::rules::java_seeds::{STRONG_CLASS, STRONG_INSTANCE, SWITCH_IS_OF_NO_USE, Seeds};
use crate::rules::{Extend, Rule, RuleId, Run, Waits, dumps as dumped, fires, java_waits as java, say};
use holdup_artefacts::dumps::{Doing, Graph, dumps};
use holdup_evidence::observed::State;
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::FdKind;
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::BlockingEntropyDevice, check, seen)
    .about("random bytes are read from a source that blocks its readers")
    .causes(&[Cause::RandomDevice])
    .explains(&[RuleId::LockConvoy]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let path = say::name_or(&main.resource.name, "/dev/random");
    let impostor = main
        .resource
        .detail
        .fd_kind
        .filter(|kind| *kind != FdKind::CharacterDevice);
    let title = match impostor {
        Some(kind) => format!("{path} is a {}, and it blocks its readers", plain(kind)),
        None => format!("{path} blocks its readers"),
    };
    let mut finding = RULE.finding(Severity::Warning, title, waits);
    if let Some(kind) = impostor {
        let text = format!(
            "the descriptor that was read is a {}, not the kernel's device",
            plain(kind)
        );
        finding = finding
            .and(Evidence::new(text, "the open file"))
            .confidence(Confidence::Proved);
    }
    finding = finding
        .and_if(pool(run))
        .and_if(waits.holders().first().map(say::meanwhile));
    fires(remedies(run, waits, impostor, finding))
}

/// By thread dumps: a thread in a read for a seed. Of several dumps the first with one.
fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let dumps = dumps(observed);
    if dumps.is_empty() {
        return Verdict::CannotTell(dumped::NO_DUMP.to_owned());
    }
    let waits = Doing::Waits(Cause::RandomDevice);
    for dump in &dumps {
        let mut readers = dump
            .threads
            .iter()
            .enumerate()
            .filter(|(_, seen)| seen.doing == waits);
        let graph = Graph::of(dump);
        let Some((place, reader)) = readers
            .clone()
            .max_by_key(|(place, _)| dumped::behind(dump, &graph, *place))
        else {
            continue;
        };
        let others = readers.by_ref().count() - 1;
        let title = format!(
            "{} waits in a read of a blocking random source, although its state is {}",
            dumped::name(reader),
            state(reader.thread.state)
        );
        let (whom, during) = reader.asked_for();
        let mut text = format!(
            "it wants a seed for {}",
            reader.asker().unwrap_or("a generator of the runtime's own")
        );
        if let Some(whom) = whom {
            text = format!("{text}, called by {whom}");
        }
        if let Some(during) = during {
            text = format!("{text}, during {during}");
        }
        let behind = dumped::behind(dump, &graph, place);
        let queue = (behind > 0).then(|| {
            let text = format!("{} for a lock that it holds", waiting(behind));
            Evidence::new(text, dumped::place(run, reader))
        });
        let more = (others > 0).then(|| {
            let text = format!(
                "{} in such a read too",
                say::several(others as u64, "other thread")
            );
            Evidence::new(text, dumped::place(run, reader))
        });
        let finding = Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            title,
            Cause::RandomDevice,
            dumped::stands(run, reader),
        )
        .and(Evidence::new(text, dumped::place(run, reader)))
        .and_if(dumped::holds(run, reader))
        .and_if(queue)
        .and_if(more)
        .and_if(pool(run))
        .about(
            Resource {
                kind: ResourceKind::Device,
                name: "/dev/random".to_owned(),
                ..Resource::default()
            },
            dumped::asker(reader),
        );
        let strong = reader.frames.iter().any(|frame| frame.contains(STRONG_CLASS));
        let finding = if strong {
            finding
                .remedy(Remedy::safe(STRONG_INSTANCE))
                .remedy(Remedy::pointless(SWITCH_IS_OF_NO_USE))
        } else {
            finding.remedy(Remedy::safe(
                "start Java with -Djava.security.egd=file:/dev/./urandom, or set securerandom.source=file:/dev/./urandom \
                 in its java.security (from Java 8 on file:/dev/urandom will do)",
            ))
        };
        return fires(
            finding
                .remedy(Remedy::changing(
                    "run a kernel of 5.6 or later: its /dev/random never waits once it is seeded",
                    "a new kernel is a restart of the machine",
                ))
                .remedy(Remedy::safe(
                    "give the machine an entropy source: for a guest -device virtio-rng-pci, else a hardware generator or \
                     jitterentropy",
                )),
        );
    }
    let threads: usize = dumps.iter().map(|dump| dump.threads.len()).sum();
    Verdict::Clear(format!(
        "of {} in the dumps, 0 read a seed",
        say::several(threads as u64, "thread")
    ))
}

fn waiting(count: usize) -> String {
    match count {
        1 => "1 thread waits".to_owned(),
        _ => format!("{count} threads wait"),
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Runnable => "RUNNABLE",
        _ => "not that of a wait",
    }
}

fn plain(kind: FdKind) -> &'static str {
    match kind {
        FdKind::Fifo => "named pipe",
        other => other.id(),
    }
}

/// Whether the kernel's own device could block at all.
fn pool(run: &Run<'_>) -> Option<Evidence> {
    let random = &run.facts.random;
    let text = match random.blocking_pool? {
        false => {
            "this kernel's own /dev/random never blocks once it is seeded: it has no blocking pool".to_owned()
        }
        true => {
            let level = random
                .entropy_available
                .map(|bits| format!(" ({bits} bits in it)"))
                .unwrap_or_default();
            format!("this kernel keeps a blocking pool{level}: /dev/random waits whenever it runs low")
        }
    };
    Some(Evidence::new(text, "/proc/sys/kernel/random"))
}

fn remedies(run: &Run<'_>, waits: &Waits<'_>, impostor: Option<FdKind>, finding: Finding) -> Finding {
    let main = waits.main();
    let path = say::name_or(&main.resource.name, "/dev/random").to_owned();
    let mut finding = match (impostor, run.facts.random.blocking_pool) {
        (Some(_), _) => finding
            .remedy(
                Remedy::safe("find out what was mounted or created over the device")
                    .with_command(format!("findmnt --target {0}; ls -l {0}", say::quoted(&path))),
            )
            .remedy(Remedy::changing(
                format!("put the kernel's device back in the place of {path} (character device 1:8)"),
                "another program may depend on the present file",
            )),
        (None, Some(true)) => finding
            .remedy(Remedy::safe(
                "read /dev/urandom or call getrandom: once seeded they are as good and never block",
            ))
            .remedy(Remedy::safe(
                "give the machine a source: for a guest -device virtio-rng-pci",
            )),
        (None, _) => finding.remedy(Remedy::safe(
            "read /dev/urandom or call getrandom: once seeded they are as good and never block",
        )),
    };
    let frames = java::frames(main);
    if main.asker.name.process == "java" || !frames.is_empty() {
        let seeds = Seeds::of(run, main.asker.name.pid);
        finding = finding.and_if(seeds.evidence());
        finding = match frames.iter().any(|frame| frame.contains(STRONG_CLASS)) {
            true => finding
                .remedy(Remedy::safe(STRONG_INSTANCE))
                .remedy(Remedy::pointless(SWITCH_IS_OF_NO_USE)),
            false => seeds.remedies(&path, !frames.is_empty(), finding),
        };
    }
    let feeds_itself = "rngd -r /dev/urandom: it only counts the same bytes again";
    if run.facts.random.blocking_pool == Some(true) {
        finding = finding.remedy(Remedy::pointless(feeds_itself));
    }
    finding
}
