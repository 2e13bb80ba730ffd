//! `holdup read` as a user runs it: packed files, folders and archives, all encodings, and what was made to do harm.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{HOLDUP, lossy};
use tempfile::TempDir;

const TABLE: &str = "% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 99.96  101.677521   101677521         1           getrandom
------ ----------- ----------- --------- --------- ----------------
100.00  101.677521                     1           total
";

/// What everybody may not be: a user without rights.
const NOBODY: u32 = 65_534;

fn read(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(HOLDUP);
    command.arg("read").args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).output().unwrap()
}

fn report(arguments: &[&str], folder: &Path) -> Value {
    let output = read(&[&["--format", "json"], arguments].concat(), folder);
    assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Nothing was understood: 1, no report, and one sentence that says these words and nothing that a terminal obeys.
fn nothing(arguments: &[&str], folder: &Path, words: &[&str]) {
    let output = read(arguments, folder);
    let text = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(output.stdout.is_empty());
    assert_eq!(text.lines().count(), 1, "{text}");
    for word in words {
        assert!(text.contains(word), "{text}");
    }
    assert!(!text.contains('\x1b'), "{text:?}");
}

/// The names of the artefacts of the format that all of these are of.
fn tables(report: &Value) -> Vec<String> {
    let artefacts = report["artefacts"].as_array().unwrap().iter();
    let tables = artefacts.filter(|one| one["format"] == "strace-summary");
    tables
        .map(|one| {
            assert_eq!(
                (&one["not_understood"], &one["lines"]),
                (&0.into(), &5.into()),
                "{one}"
            );
            one["name"].as_str().unwrap().to_owned()
        })
        .collect()
}

fn run(folder: &Path, words: &[&str]) {
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", words[0]));
    assert!(output.status.success(), "{words:?}: {}", lossy(&output.stderr));
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("table"), TABLE).unwrap();
    folder
}

#[test]
fn packed_files_are_told_by_their_content() {
    let folder = folder();
    let path = folder.path();
    for (tool, name) in [("gzip", "a"), ("xz", "b"), ("bzip2", "c")] {
        let output = Command::new(tool)
            .arg("-c")
            .arg(path.join("table"))
            .output()
            .unwrap();
        fs::write(path.join(name), output.stdout).unwrap();
    }
    run(path, &["sh", "-c", "gzip -c b > twice"]);
    run(
        path,
        &["sh", "-c", "gzip -c table > two; gzip -c /dev/null >> two"],
    );
    for name in ["a", "b", "c", "twice", "two"] {
        assert_eq!(tables(&report(&[name], path)), [name]);
    }
    let packed = fs::read(path.join("a")).unwrap();
    let mut child = Command::new(HOLDUP)
        .args(["read", "--format", "json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&packed).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        tables(&serde_json::from_slice(&output.stdout).unwrap()),
        ["stdin"]
    );
    // Cut off: what came before the cut counts.
    let many = TABLE.repeat(20_000);
    fs::write(path.join("many"), many).unwrap();
    run(path, &["sh", "-c", "gzip -1 -c many | head -c 20000 > cut"]);
    let report = report(&["cut"], path);
    let cut = &report["artefacts"][0];
    assert!(cut["lines"].as_u64().unwrap() > 1_000, "{cut}");
    assert!(
        cut["problems"][0].as_str().unwrap().contains("to its end"),
        "{cut}"
    );
}

#[test]
fn archives_and_folders_are_walked() {
    let folder = folder();
    let path = folder.path();
    let deep = format!("tree/{}/sos_commands", "a-long-name-".repeat(12));
    fs::create_dir_all(path.join(&deep)).unwrap();
    fs::write(path.join(&deep).join("strace_-c"), TABLE).unwrap();
    fs::write(path.join("tree/rubbish"), [0x80, 1, 2, 3].repeat(999)).unwrap();
    fs::write(path.join("tree/other"), "words that no tool prints\n").unwrap();
    fs::write(path.join("tree/empty"), "").unwrap();
    symlink("/etc/passwd", path.join("tree/link")).unwrap();
    run(path, &["mkfifo", "tree/fifo"]);
    run(path, &["tar", "cf", "gnu.tar", "tree"]);
    run(
        path,
        &["tar", "-c", "-J", "--format=pax", "-f", "pax.tar.xz", "tree"],
    );
    for (name, kind) in [("tree", "folder"), ("gnu.tar", "tar"), ("pax.tar.xz", "tar")] {
        let report = report(&[name], path);
        let within = if kind == "tar" {
            format!("{name}/{deep}")
        } else {
            deep.clone()
        };
        assert_eq!(tables(&report), [format!("{within}/strace_-c")]);
        let whole = &report["artefacts"][0];
        assert_eq!(whole["format"], kind);
        let files = &whole["files"];
        assert_eq!(
            (&files["read"], &files["not_recognised"], &files["links"]),
            (&1.into(), &2.into(), &1.into())
        );
        assert_eq!(files["names"].as_array().unwrap().len(), 2, "{files}");
        let problems = whole["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].as_str().unwrap().contains("tree/fifo"),
            "{problems:?}"
        );
        // One by one only with -v.
        let short = lossy(&read(&[name], path).stdout);
        assert!(
            short.contains("2 files not recognised") && !short.contains("other"),
            "{short}"
        );
        let long = lossy(&read(&["-v", name], path).stdout);
        assert!(long.contains("tree/other"), "{long}");
    }
}

#[test]
fn zip_archives_are_read() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("link"), "/etc/passwd").unwrap();
    let script = "import zipfile, stat
with zipfile.ZipFile('a.zip', 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.write('table', '../../out/table')
    link = zipfile.ZipInfo('link'); link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive.writestr(link, '/etc/passwd')
with zipfile.ZipFile('b', 'w') as archive:
    archive.write('a.zip')
";
    run(path, &["python3", "-c", script]);
    assert_eq!(tables(&report(&["a.zip"], path)), ["a.zip/../../out/table"]);
    let nested = report(&["b"], path);
    assert_eq!(tables(&nested), ["b/a.zip/../../out/table"]);
    assert_eq!(nested["artefacts"][1]["files"]["links"], 1);
    run(path, &["sh", "-c", "head -c 300 a.zip > cut.zip"]);
    nothing(&["cut.zip"], path, &["cut.zip", "damaged or cut off"]);
}

#[test]
fn a_bomb_is_refused_with_a_sentence() {
    let folder = folder();
    let path = folder.path();
    run(path, &["sh", "-c", "head -c 200M /dev/zero | gzip -9 > bomb.gz"]);
    nothing(&["bomb.gz"], path, &["as of a bomb"]);
    run(
        path,
        &[
            "sh",
            "-c",
            "gzip -9 < bomb.gz > twice; tar cf bombs.tar twice table bomb.gz",
        ],
    );
    let report = report(&["bombs.tar"], path);
    assert_eq!(tables(&report), ["bombs.tar/table"]);
    let problems = report["artefacts"][0]["problems"].to_string();
    assert!(
        problems.contains("bomb.gz: ") && problems.contains("twice: "),
        "{problems}"
    );
    // Packed within itself without end.
    run(
        path,
        &[
            "sh",
            "-c",
            "cp table n; for i in 1 2 3 4 5 6 7 8; do gzip -c n > m; mv m n; done",
        ],
    );
    nothing(&["n"], path, &["times over"]);
}

#[test]
fn text_is_read_in_any_encoding() {
    let folder = folder();
    let path = folder.path();
    let utf16 = |high_first: bool, mark: bool| -> Vec<u8> {
        let text = if mark {
            format!("\u{feff}{TABLE}")
        } else {
            TABLE.to_owned()
        };
        let unit = |unit: u16| {
            if high_first {
                unit.to_be_bytes()
            } else {
                unit.to_le_bytes()
            }
        };
        text.encode_utf16().flat_map(unit).collect()
    };
    let bytes = |text: &str| text.as_bytes().to_vec();
    let half = TABLE.len() / 2;
    for (name, text) in [
        ("utf-16-le", utf16(false, false)),
        ("utf-16-le-mark", utf16(false, true)),
        ("utf-16-be", utf16(true, false)),
        ("utf-16-be-mark", utf16(true, true)),
        ("utf-8-mark", [b"\xef\xbb\xbf", TABLE.as_bytes()].concat()),
        ("dos", bytes(&TABLE.replace('\n', "\r\n"))),
        ("mac", bytes(&TABLE.replace('\n', "\r"))),
        ("terminal", bytes(&TABLE.replace('\n', "\r\r\n"))),
        ("no-last-end", bytes(TABLE.trim_end())),
        (
            "zeros",
            [&TABLE.as_bytes()[..half], &[0; 5_000], &TABLE.as_bytes()[half..]].concat(),
        ),
        (
            "colours",
            bytes(
                &TABLE
                    .replace("getrandom", "\x1b[01;31m\x1b[Kgetrandom\x1b[m\x1b[K")
                    .replace("% time", "\x1b]0;sh\x07% time"),
            ),
        ),
        // What `cat` makes of a file that two shells wrote to.
        (
            "mixed",
            [
                TABLE.as_bytes()[..half].to_vec(),
                utf16(false, false)[2 * half..].to_vec(),
            ]
            .concat(),
        ),
    ] {
        fs::write(path.join(name), text).unwrap();
        let report = report(&[name], path);
        assert_eq!(tables(&report), [name]);
        assert_eq!(report["findings"][0]["rule"], "crng-not-seeded", "{name}");
    }
}

#[test]
fn what_is_no_text_of_a_known_format_is_said_in_a_sentence() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("empty"), "").unwrap();
    nothing(&["empty"], path, &["nothing to read"]);
    fs::write(path.join("blank"), " \n\t\n\r\n").unwrap();
    nothing(&["blank"], path, &["3 lines not recognised"]);
    fs::write(
        path.join("rubbish"),
        (0..90_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect::<Vec<_>>(),
    )
    .unwrap();
    nothing(&["rubbish"], path, &["binary data"]);
    fs::write(path.join("zeros"), vec![0; 100_000]).unwrap();
    nothing(&["zeros"], path, &["nothing"]);
    fs::write(path.join("for\x1b[31m\nyou"), "hello \x1b]0;owned\x07 there\n").unwrap();
    // A text that states nothing is read, and it is said that it is nothing.
    let found = report(&["for\x1b[31m\nyou"], path);
    assert_eq!(found["artefacts"][0]["format"], "text");
    assert_eq!(found["account"].as_array().map(Vec::len), Some(0), "{found}");
    let shown = lossy(&read(&["for\x1b[31m\nyou"], path).stdout);
    assert!(
        shown.contains("No failure and no length of time is stated in words in"),
        "{shown}"
    );
    assert!(!shown.contains("\x1b[31m"), "{shown:?}");
    nothing(&["no\x1b[31m\nwhere"], path, &["cannot read", "No such file"]);
    run(path, &["mkfifo", "fifo"]);
    nothing(&["fifo"], path, &["fifo", "FIFO"]);
    nothing(&["/dev/zero"], path, &["device"]);
    // What was understood beside it still is.
    let output = read(&["empty", "missing", "table", "rubbish"], path);
    assert_eq!(output.status.code(), Some(0));
    assert!(lossy(&output.stdout).contains("getrandom") && lossy(&output.stderr).contains("missing"));
}

#[test]
fn a_line_of_a_hundred_megabytes_is_one_line() {
    let folder = folder();
    let path = folder.path();
    run(
        path,
        &[
            "sh",
            "-c",
            "cat table > long; head -c 100M /dev/zero | tr '\\0' x >> long; echo >> long; cat table >> long",
        ],
    );
    let report = report(&["long"], path);
    let long = &report["artefacts"][0];
    assert_eq!(
        (&long["lines"], &long["not_understood"]),
        (&11.into(), &1.into()),
        "{long}"
    );
    assert!(
        long["problems"][0]
            .as_str()
            .unwrap()
            .contains("1 lines are longer"),
        "{long}"
    );
}

#[test]
fn names_with_escapes_are_harmless() {
    let folder = folder();
    let path = folder.path();
    fs::create_dir(path.join("tree")).unwrap();
    fs::write(path.join("tree/\x1b[31mred\nline"), TABLE).unwrap();
    fs::write(path.join("tree/\x1b]0;owned\x07"), "nothing that is known\n").unwrap();
    run(path, &["mkfifo", "tree/\x1b[2Jfifo"]);
    run(path, &["tar", "cf", "t.tar", "tree"]);
    for name in ["tree", "t.tar"] {
        for arguments in [&[name][..], &["-v", name]] {
            let output = read(arguments, path);
            assert_eq!(output.status.code(), Some(0));
            let text = lossy(&output.stdout);
            assert!(
                text.contains("red") && !text.contains(['\x1b', '\x07']),
                "{text:?}"
            );
        }
    }
}

#[test]
fn a_folder_without_permission_is_named() {
    let folder = folder();
    let path = folder.path();
    let closed = path.join("tree/closed");
    fs::create_dir_all(&closed).unwrap();
    fs::write(path.join("tree/table"), TABLE).unwrap();
    fs::write(path.join("tree/secret"), TABLE).unwrap();
    for (path, mode) in [(path, 0o755), (&closed, 0), (&path.join("tree/secret"), 0)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    // The binary is copied: where it was built, others may have no way in.
    let own = path.join("holdup");
    fs::copy(HOLDUP, &own).unwrap();
    let run = |name: &str| {
        let mut command = Command::new(&own);
        command.args(["read", "--format", "json", name]).current_dir(path);
        command.uid(NOBODY).gid(NOBODY).output().unwrap()
    };
    let output = run("tree");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(tables(&report), ["tree/table"]);
    let problems = report["artefacts"][0]["problems"].to_string();
    assert!(
        problems.contains("tree/closed: cannot be listed: Permission denied"),
        "{problems}"
    );
    assert!(
        problems.contains("tree/secret: cannot be read: Permission denied"),
        "{problems}"
    );
    let output = run("tree/closed");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        lossy(&output.stderr).contains("Permission denied"),
        "{}",
        lossy(&output.stderr)
    );
}

#[test]
fn bad_usage_is_2() {
    let folder = folder();
    for arguments in [&[][..], &["--collect-script", "table"], &["--nonsense", "table"]] {
        assert_eq!(
            read(arguments, folder.path()).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

/// What a sample of a format has, as it was captured.
fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples")
        .join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rules(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.filter_map(|one| one["rule"].as_str()).collect()
}

#[test]
fn times_that_run_backwards_are_said_and_are_no_gap() {
    let folder = folder();
    let path = folder.path();
    let line = |time: &str| format!("2026-03-01 {time} INFO starting the next one\n");
    let back: String = ["12:00:00", "12:00:02", "11:00:00", "11:00:03"]
        .map(line)
        .concat();
    fs::write(path.join("back"), back).unwrap();
    let once = report(&["back"], path);
    assert_eq!(rules(&once), ["log-time-runs-backwards"]);
    let title = once["findings"][0]["title"].as_str().unwrap();
    assert!(title.contains("60 min 2 s"), "{title}");
    // Shuffled: nothing between two lines can be reported, and a sentence says so whole.
    let shuffled: String = (0..300)
        .map(|n| line(&format!("{:02}:{:02}:07", n * 7 % 24, n * 11 % 60)))
        .collect();
    fs::write(path.join("shuffled"), shuffled).unwrap();
    let text = lossy(&read(&["shuffled"], path).stdout);
    let text: Vec<&str> = text.split_whitespace().collect();
    assert!(
        text.join(" ")
            .contains("it is not in order, so gaps are not known"),
        "{text:?}"
    );
}

#[test]
fn negative_lengths_are_not_taken() {
    let folder = folder();
    let path = folder.path();
    let trace = "7 12:00:00.1 read(3, \"x\", 1) = 1 <-5.000000>\n7 12:00:09.1 read(3, \"x\", 1) = 1 <2.000000>\n\
        7 11:00:01.1 read(3, \"x\", 1) = 1 <0.000010>\n";
    fs::write(path.join("trace"), trace).unwrap();
    let found = report(&["trace"], path);
    assert_eq!(
        found["artefacts"][0]["not_understood"], 1,
        "{}",
        found["artefacts"]
    );
    assert_eq!(found["waits"].as_array().unwrap().len(), 1);
    assert_eq!(found["waits"][0]["ns"], 2_000_010_000_u64, "{}", found["waits"]);
    let busy = "Device            r/s     w/s     rkB/s     wkB/s   await  %util\n\
        sda              0.00  900.00      0.00   3600.00  -17.00 -99.00\n";
    fs::write(path.join("iostat"), busy.repeat(3)).unwrap();
    assert_eq!(rules(&report(&["iostat"], path)), [""; 0]);
}

#[test]
fn artefacts_that_were_cut_are_read_to_the_cut() {
    let folder = folder();
    let path = folder.path();
    let trace = sample("strace-log/sqlite.log");
    // In the middle of a line.
    let cut = (trace.len() / 2..).find(|at| trace[*at] == b'(').unwrap() + 3;
    fs::write(path.join("trace"), &trace[..cut]).unwrap();
    let found = report(&["trace"], path);
    assert_eq!(rules(&found), ["small-synchronous-writes"]);
    assert_eq!(
        found["artefacts"][0]["not_understood"], 0,
        "{}",
        found["artefacts"]
    );
    // Half of a dump's header, and half of a thread's.
    let dump = sample("thread-dump/stands-still-17.txt");
    let header = dump.windows(4).position(|four| four == b"Full").unwrap();
    fs::write(path.join("half"), &dump[header + 20..]).unwrap();
    assert_eq!(rules(&report(&["half"], path)), ["thread-stands-still"]);
    fs::write(path.join("short"), "Full thread du").unwrap();
    assert_eq!(report(&["short"], path)["artefacts"][0]["format"], "text");
    fs::write(
        path.join("name"),
        "Full thread dump OpenJDK:\n\n\"main\" #1 prio=5 os_pr",
    )
    .unwrap();
    let output = read(&["name"], path);
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        lossy(&output.stderr)
    );
    // Archives: what is whole in them counts, and a sentence says the rest.
    for number in 0..40 {
        fs::write(path.join(format!("table{number}")), TABLE.repeat(40)).unwrap();
    }
    run(
        path,
        &[
            "sh",
            "-c",
            "tar cf whole.tar table?*; head -c 100000 whole.tar > cut.tar",
        ],
    );
    run(
        path,
        &["sh", "-c", "gzip -1 < whole.tar | head -c 3000 > cut.tgz"],
    );
    for name in ["cut.tar", "cut.tgz"] {
        let found = report(&[name], path);
        let problems = found["artefacts"].to_string();
        assert!(
            problems.contains("cut off") || problems.contains("to its end"),
            "{problems}"
        );
        assert!(
            found["artefacts"][0]["files"]["read"].as_u64().unwrap() > 1,
            "{problems}"
        );
    }
}

#[test]
fn links_and_archives_within_archives_have_an_end() {
    let folder = folder();
    let path = folder.path();
    fs::create_dir_all(path.join("tree/deeper")).unwrap();
    fs::write(path.join("tree/table"), TABLE).unwrap();
    symlink("..", path.join("tree/deeper/up")).unwrap();
    symlink("itself", path.join("tree/itself")).unwrap();
    let found = report(&["tree"], path);
    assert_eq!(tables(&found), ["tree/table"]);
    assert_eq!(found["artefacts"][0]["files"]["links"], 2);
    nothing(&["tree/itself"], path, &["cannot read", "symbolic links"]);
    run(
        path,
        &[
            "sh",
            "-c",
            "cp table n; for i in 1 2 3; do tar czf m n; mv m n; done; cp n three; \
             for i in 1 2 3 4 5 6 7 8 9; do tar czf m n; mv m n; done",
        ],
    );
    assert_eq!(tables(&report(&["three"], path)), ["three/n/n/n"]);
    nothing(&["n"], path, &["n"]);
}
