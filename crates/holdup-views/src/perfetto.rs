//! The waits as a trace for Perfetto: `perfetto.protos.Trace`, track events of every thread.
//!
//! In: a report. Out: the message. Each thread has a track with the single pieces of its time whose instants are known ([`spans`]), and
//! under it a counter for each cause of its time, which is 0 when observation began and the sum, in nanoseconds, when it
//! ended: what is known of waits that were added up, and no more. Times are nanoseconds since boot, the clock that traces of
//! the kernel have too, with a snapshot that ties it to the calendar; where the report does not tell them, time counts from
//! the begin.

use crate::samples::{Who, signed, window};
use crate::spans::{Span, boot, spans};
use holdup_evidence::{Cause, Ns};
use holdup_model::report::Report;
use prost::Message;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the trace.
///
/// # Errors
/// When writing to `out` fails.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&trace(report).encode_to_vec())
}

/// All packets are of one sequence, as if one program had written them.
const SEQUENCE: u32 = 1;

/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing before the first packet is needed to read it.
const BEGINS: u32 = 1;

/// Numbers of clocks, as in the format's `BuiltinClock`.
const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;

/// `CounterDescriptor.Unit`: nanoseconds.
const UNIT_TIME_NS: i32 = 1;

/// `TrackEvent.Type`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const COUNTER: i32 = 4;

/// Tracks, numbered as they come.
#[derive(Default)]
struct Tracks<'a> {
    packets: Vec<TracePacket>,
    last: u64,
    processes: BTreeMap<(u32, String), u64>,
    threads: BTreeMap<Who<'a>, u64>,
}

impl<'a> Tracks<'a> {
    fn add(&mut self, descriptor: TrackDescriptor) -> u64 {
        self.last += 1;
        self.packets.push(TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.last),
                ..descriptor
            }),
            ..TracePacket::default()
        });
        self.last
    }

    fn of_thread(&mut self, who: Who<'a>) -> u64 {
        if let Some(track) = self.threads.get(&who) {
            return *track;
        }
        let process = (who.pid, who.process());
        let of_process = match self.processes.get(&process) {
            Some(track) => *track,
            None => {
                let track = self.add(TrackDescriptor::of_process(who));
                self.processes.insert(process, track);
                track
            }
        };
        let track = self.add(TrackDescriptor::of_thread(who, of_process));
        self.threads.insert(who, track);
        track
    }
}

fn trace(report: &Report) -> Trace {
    let (began_unix, _) = window(report);
    let began = boot(report).map_or(0, |boot| began_unix.saturating_sub(boot));
    let ended = began.saturating_add(report.subject.wall_ns);

    let mut tracks = Tracks::default();
    let mut sums: BTreeMap<(u64, Cause), Ns> = BTreeMap::new();
    for wait in &report.waits {
        let track = tracks.of_thread(Who::of(&wait.asker));
        let sum = sums.entry((track, wait.cause)).or_default();
        *sum = sum.saturating_add(wait.ns);
    }
    let mut events: Vec<TracePacket> = Vec::new();
    for ((of_thread, cause), ns) in sums {
        let track = tracks.add(TrackDescriptor::of_cause(cause, of_thread));
        events.extend([(began, 0), (ended, ns)].map(|(at, value)| counted(track, at, value)));
    }
    for (track, span) in by_lane(&spans(report), &mut tracks) {
        let from = began.saturating_add_signed(span.start);
        let to = from.saturating_add(span.ns);
        // What does not fit into the clock has no length there.
        if from < to {
            events.extend([begin(track, from, &span), end(track, to)]);
        }
    }
    events.sort_by_key(|packet| packet.timestamp);

    let mut packet = vec![TracePacket {
        clock_snapshot: Some(ClockSnapshot {
            clocks: [(BOOTTIME, began), (REALTIME, began_unix)]
                .map(Clock::of)
                .to_vec(),
        }),
        timestamp: Some(began),
        sequence_flags: Some(BEGINS),
        ..TracePacket::default()
    }];
    packet.extend(tracks.packets);
    packet.extend(events);
    for one in &mut packet {
        one.trusted_packet_sequence_id = Some(SEQUENCE);
    }
    Trace { packet }
}

/// Each span with its track. A thread waits for one thing at a time; what overlaps all the same (clocks of two CPUs may
/// differ) goes to a further track of it, because a slice on a track must end before the one that it is in.
fn by_lane<'a>(spans: &[Span<'a>], tracks: &mut Tracks<'a>) -> Vec<(u64, Span<'a>)> {
    let mut lanes: BTreeMap<u64, Vec<(u64, i64)>> = BTreeMap::new();
    let mut placed = Vec::new();
    for span in spans {
        let of_thread = tracks.of_thread(span.who);
        let lanes = lanes
            .entry(of_thread)
            .or_insert_with(|| vec![(of_thread, i64::MIN)]);
        let free = lanes.iter().position(|(_, until)| *until <= span.start);
        let lane = free.unwrap_or_else(|| {
            let further = TrackDescriptor {
                name: Some("at the same time".to_owned()),
                parent_uuid: Some(of_thread),
                ..TrackDescriptor::default()
            };
            lanes.push((tracks.add(further), i64::MIN));
            lanes.len() - 1
        });
        lanes[lane].1 = span.start.saturating_add(signed(span.ns));
        placed.push((lanes[lane].0, *span));
    }
    placed
}

fn begin(track: u64, at: Ns, span: &Span<'_>) -> TracePacket {
    event(
        at,
        TrackEvent {
            r#type: Some(SLICE_BEGIN),
            track_uuid: Some(track),
            categories: vec!["wait".to_owned()],
            name: Some(span.cause.id().to_owned()),
            debug_annotations: span.attributes().into_iter().map(DebugAnnotation::of).collect(),
            ..TrackEvent::default()
        },
    )
}

fn end(track: u64, at: Ns) -> TracePacket {
    event(
        at,
        TrackEvent {
            r#type: Some(SLICE_END),
            track_uuid: Some(track),
            ..TrackEvent::default()
        },
    )
}

fn counted(track: u64, at: Ns, value: Ns) -> TracePacket {
    event(
        at,
        TrackEvent {
            r#type: Some(COUNTER),
            track_uuid: Some(track),
            counter_value: Some(signed(value)),
            ..TrackEvent::default()
        },
    )
}

fn event(at: Ns, event: TrackEvent) -> TracePacket {
    TracePacket {
        timestamp: Some(at),
        track_event: Some(event),
        ..TracePacket::default()
    }
}

// The messages of the format, with the fields that are written; numbers as in Perfetto's trace_packet.proto and those below it.

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(message, optional, tag = "6")]
    clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    clocks: Vec<Clock>,
}

#[derive(Clone, PartialEq, Message)]
struct Clock {
    #[prost(uint32, optional, tag = "1")]
    clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    timestamp: Option<u64>,
}

impl Clock {
    fn of((id, at): (u32, Ns)) -> Clock {
        Clock {
            clock_id: Some(id),
            timestamp: Some(at),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
}

impl TrackDescriptor {
    fn of_process(who: Who<'_>) -> TrackDescriptor {
        let name = who.process();
        match i32::try_from(who.pid) {
            Ok(pid) if pid > 0 => TrackDescriptor {
                process: Some(ProcessDescriptor {
                    pid: Some(pid),
                    process_name: Some(name),
                }),
                ..TrackDescriptor::default()
            },
            _ => TrackDescriptor {
                name: Some(name),
                ..TrackDescriptor::default()
            },
        }
    }

    fn of_thread(who: Who<'_>, of_process: u64) -> TrackDescriptor {
        let name = who.thread();
        let numbers = (i32::try_from(who.pid), i32::try_from(who.tid));
        match numbers {
            (Ok(pid), Ok(tid)) if pid > 0 && tid > 0 => TrackDescriptor {
                thread: Some(ThreadDescriptor {
                    pid: Some(pid),
                    tid: Some(tid),
                    thread_name: Some(name),
                }),
                parent_uuid: Some(of_process),
                ..TrackDescriptor::default()
            },
            _ => TrackDescriptor {
                name: Some(name),
                parent_uuid: Some(of_process),
                ..TrackDescriptor::default()
            },
        }
    }

    fn of_cause(cause: Cause, of_thread: u64) -> TrackDescriptor {
        TrackDescriptor {
            name: Some(cause.id().to_owned()),
            parent_uuid: Some(of_thread),
            counter: Some(CounterDescriptor {
                unit: Some(UNIT_TIME_NS),
            }),
            ..TrackDescriptor::default()
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")]
    unit: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    counter_value: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

impl DebugAnnotation {
    fn of((name, text): (&str, String)) -> DebugAnnotation {
        DebugAnnotation {
            string_value: Some(text),
            name: Some(name.to_owned()),
        }
    }
}
