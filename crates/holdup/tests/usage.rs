//! Bad usage and holdup's own failures: one sentence, and the exit status of the contract.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::process::{Command, Output};
use support::{HOLDUP, holdup, lossy};

fn call(arguments: &[&str]) -> Output {
    Command::new(HOLDUP).args(arguments).output().unwrap()
}

/// Exactly one line on stderr that begins with holdup's name and contains the words, and nothing on stdout.
fn one_sentence(output: &Output, status: i32, words: &str) {
    let text = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("holdup: ") && text.contains(words), "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn bad_usage_is_2_and_says_what_would_be_right() {
    one_sentence(&call(&["run"]), 2, "holdup run -- CMD");
    one_sentence(&call(&["run", "--jsn", "x", "--", "true"]), 2, "--json");
    one_sentence(
        &call(&["run", "--format", "xml", "--", "true"]),
        2,
        "terminal, json",
    );
    one_sentence(&call(&["run", "--user"]), 2, "--user");
    one_sentence(&call(&["run", "--buffer", "3M", "--", "true"]), 2, "64K to 1G");
    one_sentence(&call(&["frobnicate"]), 2, "run, read, boot, explain or doctor");
    one_sentence(&call(&["explain", "disk.snyc"]), 2, "disk.sync");
}

#[test]
fn without_a_command_it_says_what_to_do_here() {
    let output = call(&[]);
    let text = lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), text.lines().count()),
        (Some(2), 1),
        "{text}"
    );
    assert!(text.contains("holdup run -- CMD"), "{text}");
    let guide = lossy(&output.stdout);
    assert!(
        guide.contains("holdup top") && guide.lines().count() < 15,
        "{guide}"
    );
}

#[test]
fn what_is_asked_for_is_printed() {
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["--version"],
        &["explain"],
        &["generate", "schema"],
    ] {
        let output = call(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(
            !output.stdout.is_empty() && output.stderr.is_empty(),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(HOLDUP)
        .arg("explain")
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), lossy(&output.stderr)),
        (Some(0), String::new())
    );
}

#[test]
fn a_command_that_does_not_start_has_its_status() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    std::fs::write(&text, "not a program\n").unwrap();
    let text = text.to_str().unwrap();
    let run = |program: &str| holdup(&[]).arg(program).output().unwrap();
    one_sentence(&run("no-such-program"), 127, "PATH");
    one_sentence(&run("/no/such/program"), 127, "no program");
    one_sentence(&run(text), 126, "execute");
    one_sentence(&run("/"), 126, "execute");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(text, std::fs::Permissions::from_mode(0o755)).unwrap();
    one_sentence(&run(text), 126, "#!");
    std::fs::write(text, "#!/no/such/interpreter\n").unwrap();
    one_sentence(&run(text), 127, "interpreter");
}

#[test]
fn a_name_full_of_escapes_moves_nothing() {
    let output = holdup(&[]).arg("\x1b[2J\u{202e}no\nsuch").output().unwrap();
    one_sentence(&output, 127, "no program");
    assert!(!lossy(&output.stderr).contains(['\x1b', '\u{202e}']));
}

#[test]
fn holdups_own_failures_are_125_and_come_before_the_command_runs() {
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("ran");
    for (options, words) in [
        (
            ["--json", "/no/such/directory/report"],
            "/no/such/directory/report",
        ),
        (["--user", "no-such-user"], "no-such-user"),
    ] {
        one_sentence(
            &holdup(&options).arg("touch").arg(&mark).output().unwrap(),
            125,
            words,
        );
        assert!(!mark.exists());
    }
}

#[test]
fn without_privileges_it_is_one_sentence_that_names_doctor() {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let directory = tempfile::tempdir().unwrap();
    // Where nobody can reach it.
    let binary = directory.path().join("holdup");
    std::fs::copy(HOLDUP, &binary).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(&binary)
        .args(["run", "--backend", "bpf", "--", "echo", "ran"])
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    one_sentence(&output, 125, "holdup doctor");
    let doctor = Command::new(&binary)
        .arg("doctor")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert_eq!(doctor.status.code(), Some(1));
    assert!(lossy(&doctor.stdout).contains("holdup run cannot trace here"));
}
