//! Tests of strace and ltrace logs: their options, calls that come back later, cut lines and rubbish.

use crate::{Reading, read_text};
use holdup_evidence::observed::{CallTime, Calls};

fn read(text: &str) -> (Reading, Calls) {
    let reading = read_text("log", text.as_bytes());
    let calls = reading.observed.calls.first().cloned().unwrap_or_default();
    (reading, calls)
}

fn of<'a>(calls: &'a Calls, name: &str) -> &'a CallTime {
    calls
        .calls
        .iter()
        .find(|call| call.call == name)
        .unwrap_or_else(|| panic!("no {name}: {calls:?}"))
}

#[test]
fn a_single_thread_with_lengths() {
    let (reading, calls) = read(
        "execve(\"/usr/sbin/sshd\", [\"sshd\", \"-t\"], 0x7ff /* 3 vars */) = 0 <0.000500>\n\
         getrandom(\"\\x41\", 32, 0) = 32 <101.669156>\n\
         exit_group(0)                           = ?\n\
         +++ exited with 0 +++\n",
    );
    assert_eq!(reading.accounts[0].not_understood, 0);
    let random = of(&calls, "getrandom");
    assert_eq!(
        (random.ns, random.main, random.bytes),
        (101_669_156_000, 101_669_156_000, Some(32))
    );
    assert_eq!(random.thread, "sshd");
    assert_eq!(random.quote.line, 2);
    assert!(calls.followed);
}

#[test]
fn a_childs_time_lies_on_the_way_of_the_one_that_waits_for_it() {
    let (reading, calls) = read(
        "10  12:00:00.000000 execve(\"/bin/sh\", [\"sh\"], 0x1) = 0 <0.001000>\n\
         10  12:00:00.100000 vfork( <unfinished ...>\n\
         11  12:00:00.100100 execve(\"/bin/sleep\", [\"sleep\", \"2\"], 0x1 <unfinished ...>\n\
         10  12:00:00.100300 <... vfork resumed>) = 11 <0.000300>\n\
         10  12:00:00.101000 wait4(-1,  <unfinished ...>\n\
         11  12:00:00.101100 <... execve resumed>) = 0 <0.001000>\n\
         11  12:00:00.102000 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=2, tv_nsec=0}, 0x1) = 0 <2.000000>\n\
         11  12:00:02.103000 exit_group(0)     = ?\n\
         11  12:00:02.103500 +++ exited with 0 +++\n\
         10  12:00:02.104000 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11 <2.003000>\n\
         10  12:00:02.105000 exit_group(0)     = ?\n",
    );
    assert_eq!(reading.accounts[0].not_understood, 0);
    let (wait, sleep) = (of(&calls, "wait4"), of(&calls, "clock_nanosleep"));
    assert_eq!((wait.main, wait.handed_on), (0, 2_003_000_000));
    assert_eq!((sleep.main, sleep.thread.as_str()), (2_000_000_000, "sleep"));
    assert_eq!(wait.children, [(11, 2_003_000_000)]);
    assert_eq!(calls.elapsed, Some(2_105_000_000));
    assert!(calls.followed);
}

#[test]
fn without_lengths_the_next_line_tells_them_at_most() {
    let (_, calls) = read(
        "     0.000000 openat(AT_FDCWD, \"/dev/random\", O_RDONLY) = 3\n\
         \x20    0.000100 read(3, \"\\1\", 16) = 16\n\
         \x20    4.000000 close(3) = 0\n\
         \x20    0.000100 exit_group(0) = ?\n",
    );
    let read = of(&calls, "read");
    assert_eq!(
        (read.ns, read.object.as_deref()),
        (4_000_000_000, Some("/dev/random"))
    );
    assert!(calls.at_most);
    // Whole seconds: what looks like one may be next to none.
    let (_, calls) = read_seconds();
    assert_eq!(of(&calls, "read").ns, 3_000_000_000);
}

fn read_seconds() -> (Reading, Calls) {
    read("12:00:00 read(3, \"\", 16) = 0\n12:00:04 close(3) = 0\n12:00:04 exit_group(0) = ?\n")
}

#[test]
fn a_call_that_never_came_back_is_open() {
    let (_, calls) = read(
        "7  1795320129.000000 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"10.0.0.1\")}, 16 <unfinished ...>\n\
         8  1795320139.000000 getpid() = 8 <0.000001>\n\
         8  1795320139.500000 read(3, \"cut in the mid",
    );
    let connect = of(&calls, "connect");
    assert!(connect.open);
    assert_eq!(
        (connect.ns, connect.object.as_deref()),
        (10_500_000_000, Some("TCP:[->10.0.0.1:80]"))
    );
    // Two threads from nowhere: nobody's way is reported.
    assert!(!calls.followed);
}

#[test]
fn polls_are_about_what_ended_them() {
    let (_, calls) = read(
        "poll([{fd=3<UDP:[10.0.0.1:5->10.0.0.2:53]>, events=POLLIN}], 1, 5000) = 0 (Timeout) <5.005000>\n\
         poll([{fd=3, events=POLLIN}, {fd=4<pipe:[7]>, events=POLLIN}], 2, -1) = 1 ([{fd=4, revents=POLLIN}]) <1.000000>\n\
         select(0, NULL, NULL, NULL, {tv_sec=1, tv_usec=0}) = 0 (Timeout) <1.001000>\n",
    );
    let mut polls = calls.calls.iter().filter(|call| call.call == "poll");
    let (first, second) = (polls.next().unwrap(), polls.next().unwrap());
    assert_eq!(
        (first.object.as_deref(), first.timed_out),
        (Some("UDP:[->10.0.0.2:53]"), 1)
    );
    assert_eq!((second.object.as_deref(), second.ready), (Some("pipe:[7]"), true));
    assert_eq!(of(&calls, "select").args, Some([0, 0, 0, 0]));
}

#[test]
fn refusals_and_the_sleeps_between_them() {
    let mut text = String::new();
    for _ in 0..4 {
        text.push_str("socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 3 <0.000010>\n");
        text.push_str("connect(3, {sa_family=AF_INET, sin_port=htons(99), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = -1 ECONNREFUSED (Connection refused) <0.000100>\n");
        text.push_str(
            "close(3) = 0 <0.000010>\nnanosleep({tv_sec=0, tv_nsec=500000000}, NULL) = 0 <0.500000>\n",
        );
    }
    let (_, calls) = read(&text);
    let [peer] = calls.refused.as_slice() else {
        panic!("{calls:?}")
    };
    assert_eq!(
        (peer.peer.as_str(), peer.refused, peer.sleeps, peer.slept),
        ("127.0.0.1:99", 4, 3, 1_500_000_000)
    );
}

#[test]
fn stacks_tell_who_asked() {
    let (reading, calls) = read(
        "nanosleep({tv_sec=1, tv_nsec=0}, NULL) = 0 <1.000000>\n > /usr/lib/libc.so.6(nanosleep+0x7) [0xfce67]\n > /opt/app(poll_queue+0x12) [0x1]\n\
         close(1) = 0 <0.000001>\n",
    );
    let stack = of(&calls, "nanosleep").stack.expect("a stack");
    let frames: Vec<&str> = reading.observed.stacks.frames(stack).collect();
    assert_eq!(frames, ["nanosleep (libc.so.6)", "poll_queue (app)"]);
}

#[test]
fn ltrace_lines_of_the_kernel_count_and_others_do_not() {
    let (reading, calls) = read(
        "[pid 8311] nanosleep(0x7fff46f38bb0, 0x7fff46f38bf0 <unfinished ...>\n\
         [pid 8311] SYS_clock_nanosleep(0, 0, 0x7fff46f38bb0, 0x7fff46f38bf0) = 0 <0.100233>\n\
         [pid 8311] <... nanosleep resumed> )             = 0 <0.102581>\n\
         [pid 8311] SYS_exit_group(0 <no return ...>\n\
         [pid 8311] +++ exited (status 0) +++\n",
    );
    assert_eq!(reading.observed.sources[0].format, "ltrace-log");
    assert_eq!(calls.calls.len(), 1);
    assert_eq!(of(&calls, "clock_nanosleep").ns, 100_233_000);
    assert_eq!(reading.accounts[0].not_understood, 0);
}

#[test]
fn on_a_terminal_the_first_thread_has_no_id_at_first() {
    let (reading, calls) = read(
        "execve(\"/bin/sh\", [\"sh\"], 0x1) = 0 <0.001000>\n\
         clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLDstrace: Process 21 attached\n\
         , child_tidptr=0x7efd) = 21 <0.000171>\n\
         [pid    21] execve(\"/bin/sleep\", [\"sleep\"], 0x1 <unfinished ...>\n\
         [pid    20] wait4(-1,  <unfinished ...>\n\
         [pid    21] <... execve resumed>) = 0 <0.001000>\n\
         [pid    21] nanosleep({tv_sec=3, tv_nsec=0}, NULL) = 0 <3.000000>\n\
         [pid    21] +++ exited with 0 +++\n\
         <... wait4 resumed>[{WIFEXITED(s)}], 0, NULL) = 21 <3.002000>\n\
         exit_group(0) = ?\n",
    );
    assert_eq!(reading.accounts[0].not_understood, 0);
    assert_eq!(
        (of(&calls, "wait4").handed_on, of(&calls, "nanosleep").main),
        (3_002_000_000, 3_000_000_000)
    );
    assert!(calls.followed);
}

#[test]
fn a_read_from_a_childs_pipe_is_a_wait_for_that_child() {
    let (_, calls) = read(
        "10  12:00:00.000000 fork() = 11 <0.000100>\n\
         10  12:00:00.100000 read(3<pipe:[7]>,  <unfinished ...>\n\
         11  12:00:00.200000 fsync(4</var/x>) = 0 <1.500000>\n\
         11  12:00:01.700000 write(1<pipe:[7]>, \"x\", 1) = 1 <0.000010>\n\
         10  12:00:01.710000 <... read resumed>\"x\", 1) = 1 <1.610000>\n",
    );
    let read = of(&calls, "read");
    assert_eq!((read.handed_on, read.main), (1_610_000_000, 0));
    assert_eq!(read.children, [(11, 1_610_000_000)]);
    assert_eq!(of(&calls, "fsync").main, 1_500_000_000);
}

#[test]
fn hostile_lines_never_end_the_reading() {
    let good = "7 12:00:00.5 read(3</x>, \"a\", 1) = 1 <0.1>\n";
    let mut text = good.as_bytes().to_vec();
    let bad: [&[u8]; 12] = [
        b"read(",
        b"read(3<<<<<<<",
        b"[pid ",
        b"[pid 99999999999] read(3) = 1",
        b"<... resumed>",
        b"<... x resumed>) = ",
        b"7 99:99:99.9999999999 close(4294967296) = 99999999999999999999 <9e99>",
        b"poll([{fd=,events=}{fd=9<",
        b"\0\0\0\xff\xfe(\x80) = 3<\xff",
        b"+++ ",
        b"wait4(-1, 0, 0, 0) = 4294967295 <18446744073.9>",
        b"clone(flags=CLONE_THREAD) = 7 <0.1>",
    ];
    for line in bad {
        text.extend_from_slice(line);
        text.push(b'\n');
        text.extend_from_slice(good.as_bytes());
    }
    let reading = read_text("log", &text);
    assert!(of(&reading.observed.calls[0], "read").count >= 12);
    for cut in 0..text.len() {
        let _ = read_text("log", text.get(..cut).unwrap_or_default());
    }
}

#[test]
fn a_clock_that_is_set_back_makes_no_wait() {
    let text = "1  12:00:00.000001 read(3, \"x\", 1) = 1 <-5.000000>\n1  12:00:01.000001 read(3, \"x\", 1) = 1 <0.000010>\n\
        1  11:00:01.000001 read(3, \"x\", 1) = 1 <0.9\n";
    let reading = read_text("t", text.as_bytes());
    assert_eq!(reading.accounts[0].not_understood, 1);
    let calls = &reading.observed.calls[0].calls;
    assert_eq!(calls.iter().map(|call| call.ns).sum::<u64>(), 10_000, "{calls:?}");
}
