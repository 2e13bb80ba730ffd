//! Tests of ps: shapes, versions, series, what is kept, and rubbish.

use super::columns::Columns;
use crate::{Reading, read_text};
use holdup_evidence::observed::{Metric, SeenThread, State, When};

fn read(text: &str) -> Reading {
    let reading = read_text("t", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "ps", "{text}");
    assert_eq!(reading.accounts[0].not_understood, 0, "{:?}", reading.accounts[0]);
    reading
}

fn kept(reading: &Reading) -> Vec<&SeenThread> {
    reading
        .observed
        .snapshots
        .iter()
        .flat_map(|snapshot| &snapshot.threads)
        .collect()
}

#[test]
fn the_usual_list_with_a_forest_and_long_commands() {
    let reading = read(
        "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root           2  0.0  0.0      0     0 ?        S    Nov21   0:00 [kthreadd]
root         300  0.0  0.0      0     0 ?        D    Nov21   0:01  \\_ [jbd2/sda1-8]
mail         900  1.0 12.5  40000 30000 ?        Ds   06:58   0:02 /usr/sbin/sendmail -bd -q15m
me          1000  0.0  0.1   4000  3000 pts/0    T    06:59   1:02      |   \\_ vim a file
",
    );
    let listed: Vec<_> = kept(&reading)
        .iter()
        .map(|task| (&*task.name, task.tid, task.state, task.terminal))
        .collect();
    assert_eq!(
        listed,
        [
            ("[jbd2/sda1-8]", Some(300), State::Uninterruptible, Some(false)),
            ("sendmail", Some(900), State::Uninterruptible, Some(false)),
            ("vim a file", Some(1000), State::Stopped, Some(true)),
        ]
    );
    assert_eq!(reading.observed.snapshots[0].total, Some(4));
    assert_eq!(reading.observed.snapshots[0].of_threads, Some(false));
    let memory = reading.observed.of(Metric::ProcessMemoryPercent).next().unwrap();
    assert_eq!(
        (&*memory.of, memory.points[0].value),
        ("sendmail (pid 900)", 12.5)
    );
}

#[test]
fn threads_with_their_wait_channels_again_and_again() {
    let reading = read(
        "Sun Nov 22 07:00:23 UTC 2026
 07:00:23 up 12 days, 14:49,  3 users,  load average: 12.55, 1.73, 1.67
    PID     TID STAT WCHAN                            COMMAND
      1       1 Ss   ep_poll                          systemd
    900     900 Dl   jbd2_log_wait_commit             mail er
    900     901 Dl   jbd2_log_wait_commit             mail er

Sun Nov 22 07:00:24 UTC 2026
 07:00:24 up 12 days, 14:49,  3 users,  load average: 12.55, 1.73, 1.67
    PID     TID STAT WCHAN                            COMMAND
    900     900 R    -                                mail er
    900     901 t    ptrace_stop                      mail er
",
    );
    let listed: Vec<_> = kept(&reading)
        .iter()
        .map(|task| (task.tid, task.state, task.kernel_function.as_deref()))
        .collect();
    assert_eq!(
        listed,
        [
            (Some(900), State::Uninterruptible, Some("jbd2_log_wait_commit")),
            (Some(901), State::Uninterruptible, Some("jbd2_log_wait_commit")),
            (Some(900), State::Runnable, None),
            (Some(901), State::Traced, Some("ptrace_stop")),
        ]
    );
    assert_eq!(reading.observed.snapshots.len(), 2);
    assert!(reading.observed.snapshots[1].at.is_some());
    let load = reading.observed.of(Metric::LoadAverage1).next().unwrap();
    assert_eq!(load.points.len(), 2);
    let all = reading.observed.of(Metric::ThreadsTotal).next().unwrap();
    assert_eq!(
        all.points.iter().map(|point| point.value).collect::<Vec<_>>(),
        [3.0, 2.0]
    );
}

#[test]
fn zombies_keep_their_parent() {
    let reading = read(
        "UID          PID    PPID  C STIME TTY          TIME CMD
root           1       0  0 Nov21 ?        00:00:03 /sbin/init
app          500       1  0 Nov21 ?        00:00:03 /opt/app/bin/spawner --fork
app          501     500  0 Nov21 ?        00:00:00 [worker] <defunct>
app          502     500  0 Nov21 ?        00:00:00 [worker] <defunct>
",
    );
    let listed: Vec<_> = kept(&reading)
        .iter()
        .map(|task| (&*task.name, task.pid, task.parent, task.state))
        .collect();
    assert_eq!(
        listed,
        [
            ("[worker]", Some(501), Some(500), State::Zombie),
            ("[worker]", Some(502), Some(500), State::Zombie),
            ("spawner", Some(500), None, State::Unknown),
        ]
    );
    assert!(!reading.observed.snapshots[0].states);
}

#[test]
fn a_prompt_names_the_columns_of_rows_that_were_picked_out() {
    let reading = read(
        "root@host1:~# ps -eLo pid,stat,lstart,wchan:24,comm | grep ' D'
    900 Ds   Sun Nov 22 06:00:01 2026 jbd2_log_wait_commit     sendmail
",
    );
    let [task] = kept(&reading)[..] else {
        panic!("{reading:?}")
    };
    assert_eq!(
        (&*task.name, task.kernel_function.as_deref()),
        ("sendmail", Some("jbd2_log_wait_commit"))
    );
    assert_eq!(reading.observed.of(Metric::ThreadsTotal).count(), 0);
}

#[test]
fn columns_in_any_order() {
    let row = |head: &str, row: &str| {
        let columns = Columns::of_head(head.as_bytes()).unwrap_or_else(|| panic!("{head}"));
        let row = columns.row(row.as_bytes()).unwrap_or_else(|| panic!("{row}"));
        (
            row.pid,
            String::from_utf8_lossy(row.name).into_owned(),
            String::from_utf8_lossy(row.state).into_owned(),
        )
    };
    let describe = |name: &str| (Some(7), name.to_owned(), "D".to_owned());
    assert_eq!(
        row(
            "  PID COMMAND         STAT WCHAN",
            "    7 tmux: server    D    do_epoll_wait"
        ),
        describe("tmux: server")
    );
    assert_eq!(
        row(
            "S     PID  PSR NLWP     ELAPSED CMD",
            "D       7    1    3  1-02:03:04 x y"
        ),
        describe("x y")
    );
    assert_eq!(
        row(
            "F S UID PID PPID C PRI NI ADDR SZ WCHAN TTY TIME CMD",
            "4 D 0 7 1 0 80 0 - 1129 jbd2_l ? 00:00:00 sync"
        ),
        describe("sync")
    );
    assert_eq!(row("PID STARTED STAT COMMAND", "7 Nov 21 D x"), describe("x"));
    assert_eq!(row("PID STARTED STAT COMMAND", "7 07:00:23 D x"), describe("x"));
    let cut = Columns::of_head(b"F S UID PID PPID C PRI NI ADDR SZ WCHAN TTY TIME CMD").unwrap();
    let cut = cut
        .row(b"4 D 0 7 1 0 80 0 - 1129 jbd2_l ? 00:00:00 sync")
        .unwrap();
    assert_eq!(cut.waits_in(), Some((&b"jbd2_l"[..], true)));
}

#[test]
fn heads_of_other_tools_are_none() {
    for head in [
        "",
        "PID",
        "PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND",
        "  PID  PPID USER     STAT   VSZ %VSZ CPU %CPU COMMAND",
        "COMMAND  PID USER   FD   TYPE DEVICE SIZE/OFF NODE NAME",
        "# Time        UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command",
        "PROCESS PID 1",
        "Name: x",
    ] {
        assert_eq!(Columns::of_head(head.as_bytes()), None, "{head}");
    }
}

#[test]
fn busybox_has_fewer_columns() {
    let reading = read(
        "PID   USER     TIME  COMMAND\n    1 root      0:00 {init} /bin/sh /init\n   61 root      0:00 dd if=/dev/sda\n",
    );
    assert_eq!(reading.observed.snapshots[0].total, Some(2));
    let reading = read(
        "PID   USER     VSZ  STAT COMMAND\n    1 root     2424 S    sh\n   61 root     2424 D    dd if=/dev/sda\n",
    );
    assert_eq!(kept(&reading)[0].state, State::Uninterruptible);
}

#[test]
fn many_threads_are_counted() {
    let mut text = "    PID     TID STAT WCHAN    COMMAND\n      1       1 Ss   -        init\n".to_owned();
    for tid in 100..700 {
        text += &format!("    100     {tid} Sl   -        pool\n");
    }
    let reading = read(&text);
    let threads = reading.observed.of(Metric::ProcessThreads).next().unwrap();
    assert_eq!((&*threads.of, threads.points[0].value), ("pool (pid 100)", 600.0));
}

#[test]
fn a_date_before_the_list_is_its_time() {
    let reading = read("2026-11-22T07:00:23+00:00\n  PID STAT COMMAND\n    7 D x\n");
    assert_eq!(
        reading.observed.snapshots[0].at,
        Some(When::Unix(1_795_330_823_000_000_000))
    );
}

#[test]
fn rubbish_and_cut_lines_are_counted_and_nothing_worse() {
    let text = "    PID     TID STAT WCHAN                            COMMAND
    900     900 Dl   jbd2_log_wait_commit             mailer
  PID STARTED STAT COMMAND
7 Nov 21 D x
";
    for cut in 0..text.len() {
        let mut bytes = text.as_bytes()[..cut].to_vec();
        bytes.extend_from_slice(b"\n\xff\0\nPID PID PID COMMAND COMMAND\n1 2 3 4 5\n99999999999999999999 1 D x y z\nps -o\nps -o , PID\n");
        let reading = read_text("t", &bytes);
        assert!(reading.accounts[0].lines >= 2);
    }
}

#[test]
fn rows_that_were_picked_out_have_no_head() {
    let reading = read(
        "root         300  0.0  0.0      0     0 ?        D    Nov21   0:01 [jbd2/sda1-8]
mail         900  1.0 12.5  40000 30000 ?        Ds   06:58   0:02 /usr/sbin/sendmail -bd -q15m
",
    );
    let names: Vec<_> = kept(&reading)
        .iter()
        .map(|task| (&*task.name, task.state))
        .collect();
    assert_eq!(
        names,
        [
            ("[jbd2/sda1-8]", State::Uninterruptible),
            ("sendmail", State::Uninterruptible)
        ]
    );
    for other in [
        "alice 300 0.5 0.1 12 40 ? no Nov21 0:01 x\n",
        "router 300 0 0 0 0 ? D Nov21 0:01 x\n",
        "a b c\n1 2 3\n",
    ] {
        let format = &read_text("t", other.as_bytes()).observed.sources[0].format;
        assert_ne!(format, "ps", "{other}");
    }
}

#[test]
fn columns_that_stand_right_behind_their_option() {
    let reading = read(
        "# ps -eopid,state,wchan:32,cmd | awk '$2 ~ /D/'
2770 D txg_rele_to_sync                 [z_wr_int_h/0]
19513 D vfs_fsync_range                  [nfsd]
",
    );
    let listed: Vec<_> = kept(&reading)
        .iter()
        .map(|task| (&*task.name, task.tid, task.kernel_function.as_deref()))
        .collect();
    assert_eq!(
        listed,
        [
            ("[z_wr_int_h/0]", Some(2770), Some("txg_rele_to_sync")),
            ("[nfsd]", Some(19513), Some("vfs_fsync_range")),
        ]
    );
    assert!(Columns::of_command(b"$ ps -eofficial").is_none());
    assert!(Columns::of_command(b"$ ps -eopid,nothing").is_none());
}
