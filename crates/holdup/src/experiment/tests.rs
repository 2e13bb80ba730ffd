//! Rooms and filters on this kernel, as root and as nobody.

mod filter;

use super::without::sync;
use holdup_subject::filter::{Answer, program};
use holdup_subject::mounts::Mount;
use holdup_subject::room::Room;
use holdup_subject::subject::{Command, Ended, Here, Setting, Standing, Subject};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

/// The user that owns nothing.
const NOBODY: libc::uid_t = 65_534;

/// How a script ends in a room.
fn ends(mounts: &[Mount], here: &Path, script: &str, answer: Option<Answer>) -> Ended {
    let room = Room::make(mounts).unwrap();
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap();
    let filter = answer.map_or(vec![], |answer| program(sync::CALLS, answer));
    let directory = Here::new(here.to_owned(), &File::open(here).unwrap()).unwrap();
    let setting = Setting {
        namespaces: room.namespaces().collect(),
        directory: directory.in_room(&room).unwrap(),
        stdio: [null.as_raw_fd(), null.as_raw_fd(), libc::STDERR_FILENO],
        filter: &filter,
        standing: Standing::of_self(),
    };
    let command = Command {
        argv: ["sh", "-c", script].map(Into::into).to_vec(),
        user: None,
    };
    let mut subject = Subject::prepare_in(&command, Some(&setting)).unwrap();
    subject.go();
    subject.wait().unwrap()
}

/// Whether that is so for a process that is nobody, with a directory of its own.
fn as_nobody(is_so: impl FnOnce(&Path) -> bool) -> bool {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    // SAFETY: the child becomes nobody with plain system calls; what it does then is what a test does, and it ends at once.
    unsafe {
        match libc::fork() {
            -1 => false,
            0 => {
                libc::syscall(libc::SYS_setgroups, 0, 0);
                libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY);
                libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY);
                // As a process has it that was nobody from its start.
                libc::prctl(libc::PR_SET_DUMPABLE, 1);
                let here = directory.path();
                let so = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| is_so(here)));
                libc::_exit(i32::from(!so.unwrap_or(false)))
            }
            child => {
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                status == 0
            }
        }
    }
}

/// fsync of a device that has nothing to sync is an error, unless nobody makes the call.
const SYNC_NOTHING: &str = "dd if=/dev/null of=/dev/null conv=fsync status=none 2>/dev/null";

fn syncs_are_answered(here: &Path) -> bool {
    let with = |answer| ends(&[], here, SYNC_NOTHING, answer);
    with(None) == Ended::Exited(1)
        && with(Some(Answer::Done)) == Ended::Exited(1)
        && with(Some(Answer::AtOnce)) == Ended::Exited(0)
}

/// What is written, removed and renamed there is so for the script alone; its process ids are the room's.
fn changes_stay_inside(here: &Path) -> bool {
    let mounts = [Mount::Memory {
        over: here.to_owned(),
        held: Arc::new(File::open(here).unwrap().into()),
        most: 1 << 20,
    }];
    let script =
        "echo more >>old && rm gone && echo new >made && [ $(wc -l <old) = 2 ] && [ ! -e /proc/$PPID/exe ]";
    std::fs::write(here.join("old"), "1\n").unwrap();
    std::fs::write(here.join("gone"), "2\n").unwrap();
    let ended = ends(&mounts, here, script, None);
    ended == Ended::Exited(0)
        && std::fs::read_to_string(here.join("old")).unwrap() == "1\n"
        && here.join("gone").exists()
        && !here.join("made").exists()
}

#[test]
fn syncs_are_answered_by_the_filter_as_root_and_as_nobody() {
    assert!(syncs_are_answered(Path::new("/")));
    assert!(as_nobody(syncs_are_answered));
}

#[test]
fn memory_over_a_directory_keeps_it_as_it_is_as_root_and_as_nobody() {
    let directory = tempfile::tempdir().unwrap();
    // What means something in the options of an overlay is nothing special in a name.
    let odd = directory.path().join("a,b:c\\d");
    std::fs::create_dir(&odd).unwrap();
    assert!(changes_stay_inside(&odd));
    assert!(as_nobody(changes_stay_inside));
}

/// A text is in the place of a file for the script alone, and everybody may read it.
fn a_text_stands_in_a_files_place(here: &Path) -> bool {
    let file = here.join("file");
    std::fs::write(&file, "as it is").unwrap();
    let mounts = ["first", "second"].map(|text| Mount::Text {
        text: text.into(),
        over: file.clone(),
    });
    // Of two the later is on top; nothing of where they were written is left.
    let script = "[ $(cat file) = second ] && [ $(stat -c %a file) = 644 ] && ! grep -q text /proc/self/mounts && [ -d /proc/1 ]";
    ends(&mounts, here, script, None) == Ended::Exited(0)
        && std::fs::read_to_string(&file).unwrap() == "as it is"
}

#[test]
fn a_text_in_the_place_of_a_file_is_there_for_cmd_alone_as_root_and_as_nobody() {
    let directory = tempfile::tempdir().unwrap();
    assert!(a_text_stands_in_a_files_place(directory.path()));
    assert!(as_nobody(a_text_stands_in_a_files_place));
}

#[test]
fn a_room_ends_with_all_that_runs_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let held = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    // The one that is left behind would never end; the room's end does not come before its.
    let script = "flock fifo sleep 100000 >/dev/null & until ! flock -n fifo true; do :; done";
    assert_eq!(ends(&[], directory.path(), script, None), Ended::Exited(0));
    // SAFETY: a descriptor and an integer.
    let free = unsafe { libc::flock(held.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    assert_eq!(free, 0);
}
