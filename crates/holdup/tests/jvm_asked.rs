//! A JVM whose structures can't be read is asked by files in its `/tmp`. holdup touches them with the ids of the JVM and with none of root's
//! rights: what the JVM's own user could not make does not appear, wherever the JVM has mounted what.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Guarded, HOLDUP, json, list, lossy, read_to_end, read_until};
use tempfile::TempDir;

/// The user whose programs these are.
const NOBODY: u32 = 65_534;

/// When this is over, the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the programs are: not below the `/tmp` that they hide.
fn folder(owner: u32) -> TempDir {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(folder.path(), Some(owner), Some(owner)).unwrap();
    folder
}

/// A process of nobody's that looks like a JVM, and a folder that it has as its `/tmp`.
struct Fake {
    process: Guarded,
    said: ChildStdout,
    tmp: TempDir,
    _programs: TempDir,
}

impl Fake {
    /// `tmp_of`: whose folder it mounts over its `/tmp`, in a user namespace of its own, where it is root.
    fn start(tmp_of: u32) -> Fake {
        assert!(nix::unistd::geteuid().is_root(), "these attacks are on root");
        let (tmp, programs) = (folder(tmp_of), folder(0));
        let library = programs.path().join("libjvm.so");
        fs::write(&library, [0; 4096]).unwrap();
        let script = programs.path().join("fake.py");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jvm_asked/fake.py");
        fs::copy(source, &script).unwrap();
        for file in [&library, &script] {
            fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
            .args(["unshare", "--user", "--map-root-user", "--mount", "--"])
            .args([
                "sh",
                "-c",
                "mount --bind \"$1\" /tmp && exec python3 \"$2\" \"$3\"",
                "sh",
            ])
            .arg(tmp.path())
            .args([&script, &library])
            .current_dir("/")
            .stdout(Stdio::piped());
        let mut process = Guarded::spawn(&mut command);
        let mut said = process.0.stdout.take().unwrap();
        read_until(&mut said, "runs\n");
        Fake {
            process,
            said,
            tmp,
            _programs: programs,
        }
    }

    fn pid(&self) -> String {
        self.process.0.id().to_string()
    }

    fn in_tmp(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.tmp.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Ends it, and returns what it said of being asked.
    fn end(mut self) -> String {
        self.process.0.kill().unwrap();
        read_to_end(&mut self.said)
    }
}

/// What `attach` says of what it has not measured in the JVM.
fn attached(pid: &str, duration: &str) -> (serde_json::Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let output = Command::new(HOLDUP)
        .args(["attach", "-p", pid, "-d", duration, "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    let report = json(&file);
    let lines = list(&report["coverage"], "not_measured").iter();
    let java = lines.filter(|line| line["what"].as_str().unwrap().starts_with("Java frames"));
    let why: Vec<&str> = java.map(|line| line["why"].as_str().unwrap()).collect();
    let why = why.join("\n");
    (report, why)
}

#[test]
fn nothing_is_made_where_its_user_could_make_nothing() {
    let fake = Fake::start(0);
    // Longer than a JVM is too young to be asked.
    let (_, why) = attached(&fake.pid(), "4");
    assert!(
        why.contains("/tmp can't be used") && why.contains("Permission denied"),
        "{why}"
    );
    assert!(fake.in_tmp().is_empty(), "{:?}", fake.in_tmp());
    // It was not asked either: a signal follows the file.
    assert_eq!(fake.end(), "");
}

#[test]
fn what_is_made_for_it_is_its_users_and_is_gone_afterwards() {
    let fake = Fake::start(NOBODY);
    attached(&fake.pid(), "4");
    // Who asked may have been left behind: it puts the file away by itself.
    let until = Instant::now() + PATIENCE;
    while !fake.in_tmp().is_empty() {
        assert!(Instant::now() < until, "{:?}", fake.in_tmp());
        std::thread::yield_now();
    }
    let name = format!("asked: ['.attach_pid{}']\n", fake.pid());
    let said = fake.end();
    assert!(said.starts_with(&name), "{said:?} is not {name:?}");
}

#[test]
fn the_file_goes_when_holdup_is_killed() {
    let mut fake = Fake::start(NOBODY);
    let mut command = Command::new(HOLDUP);
    command
        .args(["attach", "-p", &fake.pid(), "-d", "60"])
        .stdout(Stdio::null());
    let holdup = Guarded::spawn(&mut command);
    let name = format!("asked: ['.attach_pid{}']\n", fake.pid());
    read_until(&mut fake.said, &name);
    for file in fake.in_tmp() {
        // It may be gone: who asks has its own time.
        let owner = fs::symlink_metadata(file).map(|file| (file.uid(), file.gid()));
        assert!(owner.is_ok_and(|owner| owner == (NOBODY, NOBODY)));
    }
    holdup.signal(Signal::SIGKILL);
    let until = Instant::now() + PATIENCE;
    while !fake.in_tmp().is_empty() {
        assert!(Instant::now() < until, "{:?}", fake.in_tmp());
        std::thread::yield_now();
    }
}

/// A JVM whose library has another name for one of its structures.
const HIDDEN: &str = r#"
mount --bind "$1" "$2/lib/server/libjvm.so" &&
exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$2/bin/java" -XX:+UseSerialGC -Xmx64m "$3"
"#;

/// It waits for a monitor that its main thread has.
const PROGRAM: &str = r#"
public class Held {
    public static void main(String[] args) throws Exception {
        Object lock = new Object();
        synchronized (lock) {
            Thread till = new Thread(() -> { synchronized (lock) { } }, "till");
            till.setDaemon(true);
            till.start();
            while (till.getState() != Thread.State.BLOCKED) Thread.onSpinWait();
            System.out.println("runs");
            Thread.sleep(3_600_000);
        }
    }
}
"#;

#[test]
fn a_jvm_of_an_ordinary_user_answers() {
    let home = Path::new("/usr/lib/jvm/java-17-openjdk-amd64")
        .canonicalize()
        .expect("Debian's JDK 17 is installed");
    let programs = folder(0);
    let library = programs.path().join("libjvm.so");
    let hidden = Command::new("sed")
        .arg("s/_constMethod/_constXethod/g")
        .arg(home.join("lib/server/libjvm.so"))
        .stdout(fs::File::create(&library).unwrap())
        .status();
    assert!(hidden.unwrap().success());
    let source = programs.path().join("Held.java");
    fs::write(&source, PROGRAM).unwrap();
    for file in [&library, &source] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--", "sh", "-c", HIDDEN, "sh"])
        .args([&library, &home, &source])
        .current_dir("/")
        .stdout(Stdio::piped());
    let mut java = Guarded::spawn(&mut command);
    read_until(java.0.stdout.as_mut().unwrap(), "runs\n");
    let pid = java.0.id().to_string();
    let (report, why) = attached(&pid, "6");
    assert_eq!(why, "", "it was asked, and answered");
    let dumps: Vec<_> = list(&report, "jvms")
        .iter()
        .flat_map(|jvm| list(jvm, "dumps"))
        .collect();
    assert!(!dumps.is_empty(), "{}", report["jvms"]);
    let trigger = format!("/tmp/.attach_pid{pid}");
    assert!(!Path::new(&trigger).exists());
    fs::remove_file(format!("/tmp/.java_pid{pid}")).ok();
}
