//! What is read is what was written, and what is no such file is refused.

use super::{Ending, Events, ReadError, Settings, Writer, replay};
use flate2::Compression;
use flate2::write::GzEncoder;
use holdup_evidence::{Event, Finish, SystemFacts, TaskName, ThreadId};
use holdup_model::attributed::Source;
use std::io::Write;

fn renamed(thread: u32) -> Event {
    Event::Renamed {
        thread: ThreadId(thread),
        name: format!("\u{1b}[2J \u{0} {thread}"),
    }
}

fn ending() -> Ending {
    Ending {
        finish: Finish {
            started: 1,
            ended: 7,
            ..Finish::default()
        },
        facts: SystemFacts::default(),
        found_unmeasured: Vec::new(),
        host_figures: holdup_model::host_figures::HostFigures::default(),
        observed: None,
    }
}

fn file(events: &[Event], settings: Settings) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), "0.1.0", settings);
    events.iter().for_each(|event| writer.event(event));
    writer.finish(ending()).unwrap()
}

fn packed(text: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

#[test]
fn events_come_back_as_they_were() {
    let settings = Settings {
        of_threads: true,
        pieces: Some(9),
        predict_cpus: None,
        source: Source::Sampled,
    };
    let written: Vec<Event> = (0..3).map(renamed).collect();
    let file = file(&written, settings);
    let mut events = Events::open(&file[..]).unwrap();
    assert_eq!(events.head().settings, settings);
    let mut read = Vec::new();
    while let Some(event) = events.next_event().unwrap() {
        read.push(event);
    }
    assert_eq!(read, written);
    assert_eq!(events.end().unwrap().1, ending());
    assert_eq!(replay(&file[..]).unwrap().ending, ending());
}

#[test]
fn a_file_that_is_cut_short_is_refused() {
    let whole = file(&[renamed(1)], Settings::default());
    for length in 0..whole.len() {
        assert!(replay(&whole[..length]).is_err(), "{length} bytes");
    }
    let head = r#"{"holdup_events":1,"holdup":"0.1.0"}"#;
    assert!(matches!(
        replay(&packed(&format!("{head}\n"))[..]),
        Err(ReadError::CutShort)
    ));
}

#[test]
fn another_version_and_other_lines_are_refused_with_their_place() {
    let later = packed("{\"holdup_events\":2,\"holdup\":\"9\"}\n");
    assert!(matches!(replay(&later[..]), Err(ReadError::Later(2))));
    let head = r#"{"holdup_events":1,"holdup":"0.1.0"}"#;
    let odd = packed(&format!("{head}\n{{\"event\":{{\"Odd\":1}}}}\n"));
    assert!(matches!(replay(&odd[..]), Err(ReadError::Line { line: 2, .. })));
    assert!(replay(&b"no gzip"[..]).is_err());
}

#[test]
fn an_event_about_another_task_comes_back() {
    let name = TaskName {
        pid: 1,
        tid: 2,
        name: "n\u{fffd}".into(),
        kernel: false,
    };
    let event = Event::Outsider(name);
    let file = file(std::slice::from_ref(&event), Settings::default());
    let mut events = Events::open(&file[..]).unwrap();
    assert_eq!(events.next_event().unwrap(), Some(event));
}
