//! Files as they are found: of an earlier version, of a later one, cut off, changed, somebody else's, and places where none can be
//! written.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

#[path = "../examples/story/minutes.rs"]
mod minutes;
#[path = "../examples/story/look.rs"]
mod story_look;

use holdup_evidence::observed::State;
use holdup_model::attributed::AttributedWait;
use holdup_recording::{
    Error, Segment, folder, mask, merge, only_process, peek, read, read_one, redact, save, write,
};
use minutes::{BEGIN, MINUTE, SLOW, SLOW_SYNC, minute};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use story_look::look;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples")
        .join(name)
}

fn bytes_of(segment: &Segment) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(segment, &mut bytes).unwrap();
    bytes
}

/// From one byte that is changed to the next; a prime, so that no structure of a power of two is only met at its begin.
const STRIDE: usize = 211;

/// What reading these bytes says.
fn said(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    std::fs::write(&path, bytes).unwrap();
    let error = read_one(&path).unwrap_err().to_string();
    error.replace(&path.display().to_string(), "FILE")
}

#[test]
fn version_1_is_read() {
    let segment = read_one(&sample("version-1.parquet")).unwrap();
    assert_eq!(segment.head.command, ["unit postfix.service"]);
    assert_eq!(segment.head.started_unix, BEGIN);
    assert_eq!(segment.head.zone.name.as_deref(), Some("Europe/Zurich"));
    let wait = &segment.attributed.waits[0];
    assert_eq!(
        (wait.cause.id(), wait.ns, wait.count),
        ("disk.sync", 300_000_000, 30)
    );
    assert_eq!(wait.resource.name, "/var/spool/postfix/active");
    assert_eq!(wait.asker.stack[1].symbol.as_deref(), Some("vstream_fsync"));
    assert_eq!(segment.attributed.threads.len(), 2);
    assert_eq!(segment.facts.cpus, Some(4));
}

#[test]
fn version_2_is_read() {
    let segment = read_one(&sample("version-2.parquet")).unwrap();
    assert_eq!(segment.head.started_unix, BEGIN);
    assert_eq!(segment.facts.cpus, Some(4));
    let look = segment.look.unwrap();
    let figure = &look.observed.series[0];
    assert_eq!((figure.of.as_str(), figure.points.len()), ("sda", 3));
    assert_eq!(figure.points[2].value, 0.1 + 0.2);
    let task = &look.observed.snapshots[0].threads[0];
    assert_eq!((task.name.as_str(), task.state), ("qmgr", State::Uninterruptible));
    let stack: Vec<&str> = look.observed.stacks.frames(task.kernel_stack.unwrap()).collect();
    assert_eq!(stack, ["folio_wait_bit", "ext4_sync_file"]);
    assert_eq!(look.sight.cpu[0].amount, 12.5);
}

#[test]
fn only_what_an_earlier_holdup_would_misread_has_a_later_version() {
    let version = |segment: &Segment| {
        let bytes = bytes_of(segment);
        let key = b"holdup.version";
        let at = bytes.windows(key.len()).rposition(|window| window == key);
        // The value follows its own header and length.
        char::from(bytes[at.unwrap() + key.len() + 2])
    };
    assert_eq!(version(&minute(0, 1)), '1');
    assert_eq!(version(&look(0)), '2');
}

#[test]
fn a_later_version_is_refused_in_a_sentence_that_says_by_what_to_read_it() {
    let mut bytes = bytes_of(&minute(0, 1));
    let key = b"holdup.version";
    let at = bytes
        .windows(key.len())
        .rposition(|window| window == key)
        .unwrap();
    // The value follows its own header and length.
    let value = at + key.len() + 2;
    assert_eq!(bytes[value], b'1');
    bytes[value] = b'3';
    assert_eq!(
        said(&bytes),
        "\"FILE\" is a recording of version 3, made by holdup 0.1.0; this holdup reads versions up to 2: use that one, or a later one"
    );
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let bytes = bytes_of(&minute(0, 1));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        match read_one(&path) {
            Err(Error::NotARecording { .. }) => assert!(length < 4, "{length}"),
            Err(Error::Damaged { .. }) => assert!(length >= 4, "{length}"),
            other => panic!("{length}: {other:?}"),
        }
    }
}

#[test]
fn whatever_byte_of_the_whole_is_changed_it_is_noticed() {
    let bytes = bytes_of(&minute(0, 1));
    let segment = minute(0, 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    // Every byte takes a minute; these are in all parts of the file.
    for at in (0..bytes.len()).step_by(STRIDE) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x40;
        std::fs::write(&path, &bytes).unwrap();
        // What holdup reads is as it was, or is refused: columns it does not read, and the head has no checksum.
        if let Ok(read) = read_one(&path) {
            assert_eq!(read.attributed, segment.attributed, "{at}");
            assert_eq!(read.facts, segment.facts, "{at}");
        }
    }
}

#[test]
fn what_claims_to_be_huge_takes_no_memory() {
    // A footer longer than the file, a whole behind its end, and one that unpacks to more than any.
    let bytes = bytes_of(&minute(0, 1));
    let mut long_footer = bytes.clone();
    let tail = long_footer.len() - 8;
    long_footer[tail..tail + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(said(&long_footer).contains("its end is missing"));
    let zeros = zstd::bulk::compress(&vec![b' '; 80 << 20], 3).unwrap();
    assert!(said(&with_whole(&zeros)).contains("bytes unpacked, at most 67108864"));
    let nested = format!("{{\"x\":{}", "[".repeat(1 << 20));
    assert!(said(&with_whole(&checked(nested.as_bytes()))).contains("is damaged (its contents"));
    let many = format!(
        "{{\"attributed\":{{\"threads\":[{}{{}}]}}}}",
        "{},".repeat(600_000)
    );
    assert!(said(&with_whole(&checked(many.as_bytes()))).contains("objects, at most 500000"));
}

fn checked(text: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::Write::write_all(&mut encoder, text).unwrap();
    encoder.finish().unwrap()
}

/// A recording with this in place of its whole: put before its footer, and named there by digits as many as were there.
fn with_whole(packed: &[u8]) -> Vec<u8> {
    let mut head = minute(0, 1);
    // Room for other digits: a footer's texts have their length before them.
    head.attributed.waits[0].asker.stack = (0..200_000)
        .map(|number| holdup_evidence::Frame {
            offset: number * 7_919,
            ..holdup_evidence::Frame::default()
        })
        .collect();
    let mut bytes = bytes_of(&head);
    let tail = bytes.len() - 8;
    let size = u32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap()) as usize;
    let footer = bytes.split_off(tail - size);
    let at = bytes.len();
    bytes.extend(packed);
    let key = b"holdup.whole";
    let place = footer
        .windows(key.len())
        .position(|window| window == key)
        .unwrap()
        + key.len();
    let length = usize::from(footer[place + 1]);
    let digits = format!("{at} {}", packed.len());
    assert!(digits.len() <= length, "{digits} needs {length} places");
    let digits = format!("{}{digits}", "0".repeat(length - digits.len()));
    bytes.extend(&footer[..place + 2]);
    bytes.extend(digits.as_bytes());
    bytes.extend(&footer[place + 2 + length..]);
    bytes
}

#[test]
fn a_file_is_for_its_owner_alone_and_replaces_what_was_there_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    save(&minute(0, 1), &path).unwrap();
    save(&minute(1, 1), &path).unwrap();
    assert_eq!(peek(&path).unwrap().started_unix, BEGIN + MINUTE.cast_signed());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        folder.path().read_dir().unwrap().count(),
        1,
        "nothing else is left"
    );
}

#[test]
fn what_is_no_regular_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    for place in [link.as_path(), folder.path()] {
        let error = save(&minute(0, 1), place).unwrap_err().to_string();
        assert!(
            error.ends_with("is not a regular file; name a new file for the recording"),
            "{error}"
        );
    }
    let error = save(&minute(0, 1), &folder.path().join("gone/x")).unwrap_err();
    assert!(error.to_string().contains("No such file or directory"), "{error}");
}

#[test]
fn a_directory_is_read_in_order_and_what_is_no_recording_left_alone() {
    let folder_ = tempfile::tempdir().unwrap();
    for number in [2, 0, 1] {
        save(
            &minute(number, 1),
            &folder_.path().join(format!("{}.parquet", 9 - number)),
        )
        .unwrap();
    }
    std::fs::write(folder_.path().join("notes.txt"), "x").unwrap();
    std::fs::write(folder_.path().join("other.parquet"), "PK").unwrap();
    std::fs::write(folder_.path().join(".holdup-tmp.parquet"), "PAR1").unwrap();
    let starts: Vec<i64> = read(folder_.path())
        .unwrap()
        .iter()
        .map(|segment| segment.head.started_unix - BEGIN)
        .collect();
    assert_eq!(starts, [0, 60_000_000_000, 120_000_000_000]);
    std::fs::write(folder_.path().join("cut.parquet"), "PAR1 and no more").unwrap();
    assert!(matches!(read(folder_.path()), Err(Error::Damaged { .. })));
    let found = folder(folder_.path()).unwrap();
    assert_eq!((found.segments.len(), found.problems.len()), (3, 1));
}

#[test]
fn one_process_is_told_of_as_if_it_alone_had_been_watched() {
    let mut segment = minute(SLOW, 3);
    assert!(only_process(&mut segment, "qmgr"));
    assert_eq!(segment.attributed.threads.len(), 1);
    assert_eq!(segment.attributed.coverage.observed, MINUTE);
    let sync = segment.attributed.path[&holdup_evidence::Cause::DiskSync];
    assert_eq!(sync.ns, SLOW_SYNC);
    assert!(!only_process(&mut segment, "nginx"));
}

#[test]
fn redacted_is_who_where_and_with_what() {
    let mut segment = minute(0, 1);
    segment.head.kind = holdup_model::report::SubjectKind::Run;
    segment.head.command = ["/usr/bin/make", "-C", "/home/al/shop"]
        .map(str::to_owned)
        .to_vec();
    segment.attributed.waits[0].resource.name = "/home/al/shop/mail1.log".to_owned();
    segment.attributed.waits[1].resource.name = "mail1:25".to_owned();
    redact(&mut segment);
    assert_eq!(segment.head.command, ["/usr/bin/make", "[2 arguments taken out]"]);
    assert_eq!(segment.attributed.waits[0].resource.name, "/home/***");
    assert_eq!(segment.attributed.waits[1].resource.name, "***:25");
    assert_eq!(segment.head.host, None);
    let text = format!("{segment:?}");
    assert!(!text.contains("mail1") && !text.contains("shop"));
}

#[test]
fn of_a_look_at_a_machine_secrets_are_masked_and_names_taken_out() {
    let mut masked = look(0);
    mask(&mut masked);
    let text = format!("{masked:?}");
    assert!(!text.contains("hunter2") && text.contains("https://al:***@mail1/x"));
    let mut redacted = look(0);
    redact(&mut redacted);
    let seen = redacted.look.unwrap();
    let file = seen.observed.snapshots[0].threads[0].file.clone().unwrap();
    assert_eq!(file.path, "/home/***");
    assert_eq!(seen.sight.older[0].text, "fetched https://al:***@***/x");
}

#[test]
fn a_host_may_be_called_what_a_kind_of_thing_is() {
    // Ids of enums stand in the file as texts, too: a host called so must not cost the recording.
    for name in ["disk", "file", "attach", "kernel", "sync"] {
        for mut segment in [minute(0, 1), look(0)] {
            segment.head.host = Some(name.to_owned());
            segment.head.unit = Some(format!("backup-{name}.service"));
            let (kind, waits) = (segment.head.kind, segment.attributed.waits.clone());
            redact(&mut segment);
            assert_eq!(segment.head.host, None);
            assert_eq!(segment.head.unit.as_deref(), Some("backup-***.service"), "{name}");
            assert_eq!(segment.head.kind, kind);
            let causes = |of: &[AttributedWait]| of.iter().map(|wait| wait.cause).collect::<Vec<_>>();
            assert_eq!(causes(&segment.attributed.waits), causes(&waits));
        }
    }
}

#[test]
fn a_look_is_none_of_several_segments() {
    let one = merge([minute(0, 1), look(1), minute(2, 1)]).unwrap();
    assert_eq!(one.look, None);
    assert!(
        one.head
            .approximate
            .iter()
            .any(|what| what.contains("a snapshot of the whole machine"))
    );
}
