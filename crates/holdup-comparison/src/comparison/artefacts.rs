//! Artefacts for a comparison: what `time` printed, tables of calls, figures over time, thread dumps, profiles.
//!
//! In: what the readers understood of one file. Out: [`Source`]s, one for each kind of artefact in it.

use super::frames::Frames;
use super::made::{Made, Thing};
use super::runs::{Part, Run};
use super::source::{DUMP, Measured, REPORT, REQUEST, RUN, Source, of_frames};
use super::stacks::Stacks;
use holdup_evidence::observed::{JvmEvent, Metric, Samples, SpanKind, StackId, State, TlsEvent, What};
use holdup_evidence::{Cause, Ns, Observed, SystemFacts};
use holdup_model::report::{Compared, Measure};
use std::collections::BTreeMap;

/// Everything in one file that can be compared. `under`: only stacks through this function count.
#[must_use]
pub fn sources(name: &str, observed: &Observed, facts: &SystemFacts, under: Option<&str>) -> Vec<Source> {
    let all = [
        times(name, observed),
        calls(name, observed),
        dumps(name, observed, under),
        figures(name, observed),
    ];
    let mut sources: Vec<Source> = all.into_iter().flatten().collect();
    sources.extend(
        observed
            .samples
            .iter()
            .map(|samples| profile(name, observed, samples, under)),
    );
    sources.extend(logs(name, observed));
    if let (Some(kernel), Some(first)) = (&facts.kernel_release, sources.first_mut()) {
        first.facts.insert("kernel".to_owned(), kernel.clone());
    }
    sources
}

fn source(name: &str, what: Compared, measure: Measure, runs: Vec<Measured>) -> Source {
    Source {
        name: name.to_owned(),
        what: Some(what),
        measure,
        runs,
        facts: BTreeMap::new(),
        notes: Vec::new(),
        stacks: Stacks::default(),
    }
}

/// What `time` printed: each time one run.
fn times(name: &str, observed: &Observed) -> Option<Source> {
    let of = |kind: SpanKind| observed.spans.iter().filter(move |span| span.kind == kind);
    let elapsed: Vec<_> = of(SpanKind::CommandElapsed).collect();
    // Which belongs to which is known by their order, where there are as many of each.
    let beside = |kind: SpanKind| -> Option<Vec<Ns>> {
        let all: Vec<Ns> = of(kind).map(|span| span.ns).collect();
        (all.len() == elapsed.len()).then_some(all)
    };
    let (user, system) = (beside(SpanKind::CommandUser), beside(SpanKind::CommandSystem));
    let work: Vec<_> = of(SpanKind::Requests).collect();
    let work = (work.len() == elapsed.len()).then_some(work);
    let runs = elapsed.iter().enumerate().map(|(at, span)| {
        let mut parts = BTreeMap::new();
        let ran = user
            .as_ref()
            .zip(system.as_ref())
            .map(|(user, system)| (user[at], system[at]));
        // More CPU time than elapsed time is of several threads, and none of the elapsed time is known by it.
        if let Some((user, system)) = ran.filter(|(user, system)| user.saturating_add(*system) <= span.ns) {
            parts.insert(Part::own(Cause::CpuUser.id()), user as f64);
            parts.insert(Part::own(Cause::CpuKernel.id()), system as f64);
        }
        let found: f64 = parts.values().sum();
        parts.insert(Part::own(Cause::Unknown.id()), (span.ns as f64 - found).max(0.0));
        let mut units = BTreeMap::from([(RUN, 1.0)]);
        let words = work.as_ref().and_then(|work| work[at].name.split_once(' '));
        if let Some((count, what)) = words
            && let Ok(count) = count.parse::<f64>()
        {
            units.insert(if what == "requests" { REQUEST } else { RUN }, count);
        }
        Measured {
            run: Run {
                units: 1.0,
                total: span.ns as f64,
                parts,
                stretches: Vec::new(),
            },
            units,
            ..Measured::default()
        }
    });
    let runs: Vec<Measured> = runs.collect();
    let mut source = source(name, Compared::Times, Measure::Ns, runs);
    let command = elapsed
        .iter()
        .map(|span| span.name.as_str())
        .find(|name| !name.is_empty());
    source
        .facts
        .extend(command.map(|command| ("command".to_owned(), command.to_owned())));
    (!elapsed.is_empty()).then_some(source)
}

/// Tables of calls: each one run.
fn calls(name: &str, observed: &Observed) -> Option<Source> {
    let runs = observed.calls.iter().map(|table| {
        let mut parts: BTreeMap<Part, f64> = BTreeMap::new();
        let mut made: BTreeMap<Made, f64> = BTreeMap::new();
        for call in &table.calls {
            *parts.entry(Part::own(call.call.clone())).or_default() += call.ns as f64;
            let calls = Thing::Calls(call.call.clone());
            *made.entry(calls.into()).or_default() += call.count as f64;
        }
        Measured {
            run: Run {
                units: 1.0,
                total: parts.values().sum(),
                parts,
                stretches: Vec::new(),
            },
            units: BTreeMap::from([(RUN, 1.0)]),
            requests: None,
            made,
        }
    });
    let runs: Vec<Measured> = runs.filter(|run| run.run.total > 0.0).collect();
    let mut source = source(name, Compared::Calls, Measure::Ns, runs);
    let command = observed.calls.iter().find_map(|table| table.command.clone());
    source
        .facts
        .extend(command.map(|command| ("command".to_owned(), command)));
    (!source.runs.is_empty()).then_some(source)
}

/// Figures over time: the mean of each.
fn figures(name: &str, observed: &Observed) -> Option<Source> {
    let mut parts = BTreeMap::new();
    let mut reports = 0;
    // How long threads lived is no figure of a machine, but of a log that tells of threads.
    let figures = observed.series.iter();
    for series in figures.filter(|series| series.metric != Metric::ThreadLifeMs) {
        let values: Vec<f64> = series.of_intervals().map(|point| point.value).collect();
        let all = values.len() == series.points.len() && series.count > 0;
        reports = reports.max(values.len());
        let mean = match values.len() {
            0 => continue,
            // Those that were not kept count too, where none was of the time since boot.
            _ if all => series.sum / series.count as f64,
            count => values.iter().sum::<f64>() / count as f64,
        };
        match of_program(&series.of) {
            // Another boot has other numbers for the same: all processes of a program are one figure.
            Some(program) => *parts.entry(figure(series.metric, program)).or_insert(0.0) += mean,
            None => {
                parts.insert(figure(series.metric, &series.of), mean);
            }
        }
    }
    let run = Measured {
        run: Run {
            units: 1.0,
            total: 0.0,
            parts,
            stretches: Vec::new(),
        },
        units: BTreeMap::from([(REPORT, 1.0)]),
        ..Measured::default()
    };
    (reports > 0).then(|| source(name, Compared::Figures, Measure::Count, vec![run]))
}

/// The program of `cron (pid 71)`.
fn of_program(of: &str) -> Option<&str> {
    let (program, number) = of.strip_suffix(')')?.rsplit_once(" (pid ")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(program)
}

/// `sda: disk util percent`.
fn figure(metric: Metric, of: &str) -> Part {
    let mut words = String::new();
    for letter in format!("{metric:?}").chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    let name = match of.is_empty() {
        true => words,
        false => format!("{of}: {words}"),
    };
    match metric.is_percent() {
        true => Part::measured(name, Measure::Percent),
        false => Part::own(name),
    }
}

/// Thread dumps: a profile whose samples are threads, for each dump.
fn dumps(name: &str, observed: &Observed, under: Option<&str>) -> Option<Source> {
    let mut frames = Frames::under(under);
    let mut states: BTreeMap<Made, f64> = BTreeMap::new();
    for thread in observed.snapshots.iter().flat_map(|snapshot| &snapshot.threads) {
        if let Some(stack) = thread.stack {
            frames.add(&joined(observed, stack), 1);
        }
        if thread.state != State::Unknown {
            let threads = Thing::ThreadsIn(state(thread.state));
            *states.entry(threads.into()).or_default() += 1.0;
        }
    }
    let run = Measured {
        run: of_frames(&frames, 1.0),
        units: BTreeMap::from([(DUMP, observed.snapshots.len() as f64)]),
        requests: None,
        made: states,
    };
    (frames.total() > 0).then(|| source(name, Compared::Dumps, Measure::Threads, vec![run]))
}

fn state(state: State) -> &'static str {
    match state {
        State::Unknown => "of no state",
        State::Runnable => "runnable",
        State::Blocked => "blocked at a monitor",
        State::Waiting => "waiting",
        State::TimedWaiting => "waiting with a limit",
        State::Sleeping => "sleeping",
        State::Ended => "ended",
        State::Interruptible => "asleep (S)",
        State::Uninterruptible => "asleep uninterruptibly (D)",
        State::Stopped => "stopped",
        State::Traced => "held by a tracer",
        State::Zombie => "zombies",
        State::Idle => "idle kernel threads",
    }
}

/// A profile of any format but collapsed stacks in a plain file, which are added up as they are read.
fn profile(name: &str, observed: &Observed, samples: &Samples, under: Option<&str>) -> Source {
    // What is read as a whole is bounded, and so is its picture.
    let mut frames = Frames::under(under).with_stacks();
    for (stack, weight) in &samples.stacks {
        frames.add(&joined(observed, *stack), *weight);
    }
    let kept: u64 = samples
        .stacks
        .iter()
        .map(|(_, weight)| *weight)
        .fold(0, u64::saturating_add);
    let mut source = Source::of_profile(name.to_owned(), &frames, samples.weight);
    if kept < samples.total {
        let lost = (samples.total - kept) as f64 / samples.total as f64;
        let lost = holdup_evidence::units::share(lost);
        source.notes.push(format!(
            "{name}: stacks with {lost} of its weight are too many and are not in it"
        ));
    }
    source
}

/// A stack as collapsed ones are written.
fn joined(observed: &Observed, stack: StackId) -> Vec<u8> {
    let mut frames: Vec<&str> = observed.stacks.frames(stack).collect();
    frames.reverse();
    frames.join(";").into_bytes()
}

/// What logs of a JVM and of TLS tell: no time, but what was made anew.
fn logs(name: &str, observed: &Observed) -> Option<Source> {
    let mut made: BTreeMap<Made, f64> = BTreeMap::new();
    let in_log = |what: Thing| Made { what, in_log: true };
    let mut add = |what: Thing, count: f64| *made.entry(in_log(what)).or_default() += count;
    let (mut steps, mut began) = (0.0, false);
    for span in &observed.spans {
        steps += f64::from(u8::from(matches!(
            span.kind,
            SpanKind::LogStep | SpanKind::StepWithThreads
        )));
    }
    for happening in &observed.happenings {
        match &happening.what {
            What::Jvm(JvmEvent::ThreadStarted { .. }) => {
                began = true;
                add(Thing::Threads, 1.0);
            }
            What::Tls(TlsEvent::ClientHello {
                session_id, ticket, ..
            }) => {
                add(Thing::HandshakesBegun, 1.0);
                let offers = *session_id > 0 || *ticket == Some(true);
                add(Thing::HandshakesOffering, f64::from(u8::from(offers)));
            }
            What::Tls(TlsEvent::Certificate { .. }) => add(Thing::Certificates, 1.0),
            What::Tls(TlsEvent::ServerHello {
                resumed: Some(true), ..
            }) => add(Thing::ResumedHandshakes, 1.0),
            What::Tls(TlsEvent::Fatal { .. }) => add(Thing::FatalAlerts, 1.0),
            _ => {}
        }
    }
    // A log that shows work being done, and no thread begin, tells that too.
    if steps > 0.0 && !began {
        add(Thing::Threads, 0.0);
    }
    let log = Measured {
        made,
        ..Measured::default()
    };
    (!log.made.is_empty()).then(|| Source {
        what: None,
        ..source(name, Compared::Times, Measure::Count, vec![log])
    })
}

#[cfg(test)]
mod tests {
    use super::{Part, figures};
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{Metric, Point, Series};
    use holdup_model::report::Measure;

    #[test]
    fn processes_of_one_program_are_one_figure_whatever_their_numbers() {
        let series = |of: &str, value: f64| Series {
            metric: Metric::ProcessCpuPercent,
            of: of.to_owned(),
            source: 0,
            points: vec![Point {
                value,
                ..Point::default()
            }],
            count: 1,
            sum: value,
        };
        let observed = Observed {
            series: vec![
                series("rustc (pid 71)", 50.0),
                series("rustc (pid 9)", 30.0),
                series("odd (pid x)", 1.0),
            ],
            ..Observed::default()
        };
        let source = figures("one", &observed).unwrap();
        let parts = &source.runs[0].run.parts;
        let of = |name: &str| {
            parts
                .get(&Part::measured(
                    format!("{name}: process cpu percent"),
                    Measure::Percent,
                ))
                .copied()
        };
        assert_eq!(of("rustc"), Some(80.0));
        assert_eq!(of("odd (pid x)"), Some(1.0));
        assert_eq!(parts.len(), 2);
    }
}
