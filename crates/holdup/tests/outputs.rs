//! Files that a report is written to: through nobody else's link, into no FIFO or device of somebody else's, whole or not at all.
//!
//! Root runs these tests; what belongs to somebody else is nobody's.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{HOLDUP, holdup, json, lossy};
use tempfile::TempDir;

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// Every way to name a file, with a name that fits.
fn options(file: &str) -> [Vec<String>; 5] {
    [
        vec!["--json".to_owned(), file.to_owned()],
        vec!["--html".to_owned(), file.to_owned()],
        vec![format!("--export=collapsed={file}")],
        vec![format!("--export=markdown={file}")],
        vec!["-o".to_owned(), file.to_owned()],
    ]
}

/// `holdup run OPTIONS -- touch RAN`.
fn run(options: &[String], ran: &Path) -> Output {
    let mut command = Command::new(HOLDUP);
    command.arg("run").args(options).args(["--", "touch"]).arg(ran);
    command.stdin(Stdio::null()).output().unwrap()
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// A folder that everybody may enter, with one of nobody's in it.
fn stage() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(place.path().join("theirs")).unwrap();
    chown(place.path().join("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
    place
}

#[test]
fn somebody_elses_link_or_fifo_is_refused_before_cmd_runs() {
    let place = stage();
    let at = |name: &str| place.path().join(name);
    std::fs::write(at("secret"), "root's").unwrap();
    symlink(at("secret"), at("theirs/link")).unwrap();
    symlink(place.path(), at("theirs/way")).unwrap();
    for name in ["theirs/link", "theirs/way"] {
        lchown(at(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    nix::unistd::mkfifo(&at("theirs/fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    chown(at("theirs/fifo"), Some(NOBODY), Some(NOBODY)).unwrap();
    nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for name in [
        "theirs/link",
        "theirs/way/new",
        "theirs/fifo",
        "fifo",
        "theirs",
        "none/file",
    ] {
        for options in options(at(name).to_str().unwrap()) {
            // A FIFO that nobody reads would keep it for good: that it comes back is part of the test.
            let output = run(&options, &at("ran"));
            let stderr = lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(125), "{options:?}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{options:?}: {stderr}");
            assert!(!at("ran").exists(), "{options:?}: CMD ran");
        }
    }
    assert_eq!(std::fs::read_to_string(at("secret")).unwrap(), "root's");
    assert_eq!((names(place.path()), names(&at("theirs"))), (3, 3));
}

#[test]
fn a_report_is_for_its_owner_alone_and_there_when_it_is_whole() {
    let place = stage();
    let at = |name: &str| place.path().join(name);
    for (number, options) in options("x").iter().enumerate() {
        let file = at(&format!("theirs/{number}"));
        std::fs::write(&file, "before").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        std::fs::hard_link(&file, at(&format!("kept{number}"))).unwrap();
        let path = file.to_str().unwrap();
        let options: Vec<String> = options
            .iter()
            .map(|word| match word.as_str() {
                "x" => path.to_owned(),
                word => word.replace("=x", &format!("={path}")),
            })
            .collect();
        let output = run(&options, &at("ran"));
        assert_eq!(output.status.code(), Some(0), "{}", lossy(&output.stderr));
        let about = file.metadata().unwrap();
        assert_eq!((about.mode() & 0o7777, about.uid()), (0o600, 0), "{options:?}");
        assert_eq!(
            std::fs::read_to_string(at(&format!("kept{number}"))).unwrap(),
            "before"
        );
    }
    assert_eq!(names(&at("theirs")), options("x").len());
}

#[test]
fn streams_of_ones_own_take_a_report() {
    let place = stage();
    let shell = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", script, HOLDUP]).current_dir(place.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{script}: {}",
            lossy(&output.stderr)
        );
        lossy(&output.stdout)
    };
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"] {
        let report = shell(&format!(r#""$0" run --json {path} -- true 2>/dev/null"#));
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["subject"]["exit"], 0, "{path}");
    }
    shell(r#""$0" run --json /dev/null -- true 2>/dev/null"#);
    // What a shell puts there for a command that reads; the shell waits for it.
    shell(r#""$0" run --json >(cat >piped.json) -- true 2>/dev/null; wait $!"#);
    assert_eq!(json(&place.path().join("piped.json"))["subject"]["exit"], 0);
    // A FIFO of one's own, with a reader.
    shell(
        r#"mkfifo own; exec 9<>own; "$0" run --json own -- true 2>/dev/null; timeout 60 head -c1 <&9 | grep -q '{'"#,
    );
}

#[test]
fn nothing_selected_leaves_no_file() {
    let place = stage();
    let file = place.path().join("report.json");
    let mut command = Command::new(HOLDUP);
    command.args(["attach", "--name", "no-such-program", "-d", "1", "--json"]);
    let output = command.arg(&file).stdin(Stdio::null()).output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    let output = holdup(&["--json", file.to_str().unwrap()])
        .arg("/no/such/program")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127), "{}", lossy(&output.stderr));
    assert_eq!(names(place.path()), 1, "only the folder that was there");
}
