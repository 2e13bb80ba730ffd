//! Tests of what `/proc` has of tasks: each file, headings, prefixes, series and rubbish.

use crate::{Reading, read_text};
use holdup_evidence::observed::{Metric, Snapshot, State};

const STATUS: &str = "Name:\tmailer
Umask:\t0022
State:\tD (disk sleep)
Tgid:\t210
Ngid:\t0
Pid:\t211
PPid:\t1
TracerPid:\t7
VmSwap:\t       0 kB
Threads:\t1200
voluntary_ctxt_switches:\t14
";
const STACK: &str = "[<0>] jbd2_log_wait_commit+0xe6/0x150 [jbd2]
[<0>] ext4_sync_file+0x1bb/0x330
[<0>] do_fsync+0x38/0x70
";
const CALL: &str = "74 0x5 0x0 0x0 0x7f 0x0 0x0 0x7ffd8 0x7f30";

fn snapshots(text: &str) -> (Reading, Vec<Snapshot>) {
    let reading = read_text("t", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "proc-task", "{text}");
    assert_eq!(reading.accounts[0].not_understood, 0, "{:?}", reading.accounts[0]);
    let snapshots = reading.observed.snapshots.clone();
    (reading, snapshots)
}

#[test]
fn a_status_a_stack_and_a_call_one_after_the_other() {
    let (reading, all) = snapshots(&format!("{STATUS}{STACK}{CALL}\n"));
    let [snapshot] = all.as_slice() else {
        panic!("{all:?}")
    };
    let [task] = snapshot.threads.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(
        (&*task.name, task.pid, task.tid),
        ("mailer", Some(210), Some(211))
    );
    assert_eq!(
        (task.state, task.tracer, task.parent),
        (State::Uninterruptible, Some(7), Some(1))
    );
    assert_eq!(task.kernel_function.as_deref(), Some("jbd2_log_wait_commit"));
    let frames: Vec<&str> = reading
        .observed
        .stacks
        .frames(task.kernel_stack.unwrap())
        .collect();
    assert_eq!(frames, ["jbd2_log_wait_commit", "ext4_sync_file", "do_fsync"]);
    assert_eq!(task.call.map(|call| (call.number, call.args[0])), Some((74, 5)));
    let threads = reading.observed.of(Metric::ProcessThreads).next().unwrap();
    assert_eq!(
        (&*threads.of, threads.points[0].value),
        ("mailer (pid 210)", 1200.0)
    );
}

#[test]
fn prefixes_and_headings_say_whose_it_is() {
    let grep = "/proc/10/wchan:do_wait
/proc/11/task/12/stack:[<0>] rpc_wait_bit_killable+0x1e/0xa0 [sunrpc]
/proc/11/task/12/stack:[<0>] __wait_on_bit+0x2a/0x90
/proc/13/wchan:0
";
    let tail = "==> /proc/10/wchan <==
do_wait
==> /proc/11/task/12/stack <==
[<0>] rpc_wait_bit_killable+0x1e/0xa0 [sunrpc]
[<0>] __wait_on_bit+0x2a/0x90

==> /proc/13/wchan <==
0
";
    for text in [grep, tail] {
        let (_, all) = snapshots(text);
        let [snapshot] = all.as_slice() else {
            panic!("{all:?}")
        };
        let listed: Vec<_> = snapshot
            .threads
            .iter()
            .map(|task| (task.pid, task.tid, task.kernel_function.as_deref()))
            .collect();
        assert_eq!(
            listed,
            [
                (Some(10), Some(10), Some("do_wait")),
                (Some(11), Some(12), Some("rpc_wait_bit_killable")),
                (Some(13), Some(13), None)
            ]
        );
        assert!(!snapshot.states);
    }
}

#[test]
fn the_same_file_again_is_another_instant() {
    let text = "$ cat /proc/10/stack\n[<0>] do_wait+0x1/0x2\n$ cat /proc/10/stack\n[<0>] pipe_read+0x1/0x2\n";
    let reading = read_text("t", text.as_bytes());
    let functions: Vec<_> = reading
        .observed
        .snapshots
        .iter()
        .flat_map(|snapshot| &snapshot.threads)
        .map(|task| task.kernel_function.as_deref())
        .collect();
    assert_eq!(functions, [Some("do_wait"), Some("pipe_read")]);
    let (_, all) = snapshots("/proc/10/wchan:do_wait\n/proc/11/wchan:do_wait\n/proc/10/wchan:do_wait\n");
    assert_eq!(all.len(), 2);
}

#[test]
fn old_stacks_and_stats() {
    let text = "[<ffffffff8106a54f>] do_wait+0x1bf/0x220
[<ffffffffffffffff>] 0xffffffffffffffff
77 (a (name) x) D 1 77 77 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 3 0 100 1000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 5 0 0 0 0 0 0 0 0 0 0
";
    let (_, all) = snapshots(text);
    let tasks: Vec<_> = all.iter().flat_map(|snapshot| &snapshot.threads).collect();
    assert_eq!(tasks[0].kernel_function.as_deref(), Some("do_wait"));
    assert_eq!(
        (&*tasks[1].name, tasks[1].state),
        ("a (name) x", State::Uninterruptible)
    );
}

#[test]
fn a_lone_channel_is_a_weak_hint_and_a_word_is_none() {
    let (_, all) = snapshots("rpc_wait_bit_killable");
    assert_eq!(
        all[0].threads[0].kernel_function.as_deref(),
        Some("rpc_wait_bit_killable")
    );
    for text in ["hello", "0", "Some_Word", "two_words here"] {
        assert!(read_text("t", text.as_bytes()).observed.is_empty(), "{text}");
    }
}

#[test]
fn rubbish_and_cut_lines_are_counted_and_nothing_worse() {
    let text = format!("==> /proc/1/status <==\n{STATUS}==> /proc/1/stack <==\n{STACK}{CALL}\n1 (x) S 1 2\n");
    for cut in 0..text.len() {
        let mut bytes = text.as_bytes()[..cut].to_vec();
        bytes.extend_from_slice(b"\n\xff\0\n[<\n[<0>] \n/proc/99999999999/stack:\n/proc/1/task//stack:x\n(x\n)(\n-1 0x\n==> /proc/1/stack\n");
        let reading = read_text("t", &bytes);
        assert!(reading.accounts[0].lines >= 2);
    }
}
