//! Tests of the stories, through the reader of texts and logs.

use crate::read_text;
use holdup_evidence::observed::StatementKind;

fn said(text: &str) -> Vec<(StatementKind, String)> {
    let all = read_text("t", text.as_bytes()).observed.statements;
    all.into_iter().map(|one| (one.kind, one.text)).collect()
}

fn has(text: &str, wanted: &str) -> StatementKind {
    let all = said(text);
    let found = all.iter().find(|(_, said)| said.contains(wanted));
    found.unwrap_or_else(|| panic!("{wanted}: {all:#?}")).0
}

fn has_not(text: &str, wanted: &str) {
    let all = said(text);
    assert!(
        all.iter().all(|(_, said)| !said.contains(wanted)),
        "{wanted}: {all:#?}"
    );
}

#[test]
fn the_error_handling_of_a_disk_climbs() {
    // The driver names the controller, and the line behind it the disk.
    let text = "[100.000000] mpt3sas_cm0: attempting task abort! scmd(00000000aa)\n\
        [100.000004] sd 3:0:9:0: CDB: Write(16): 8a 00 00 00\n\
        [130.500000] mpt3sas_cm0: attempting device reset! scmd(00000000aa)\n\
        [130.500004] sd 3:0:9:0: CDB: Write(16): 8a 00 00 00\n\
        [161.000000] mpt3sas_cm0: attempting host reset! scmd(00000000aa)\n\
        [161.000004] sd 3:0:9:0: CDB: Test Unit Ready: 00 00 00\n";
    let wanted = "sd 3:0:9:0 (mpt3sas_cm0) did not answer: Write, Test Unit Ready timed out; the error handling aborted requests, then reset \
        the device, then reset the controller, within 1 min 1 s in which its requests wait";
    assert_eq!(has(text, wanted), StatementKind::TimedOut);
    // The line itself names the disk, in a syslog.
    let text = "Mar  3 10:00:01 box kernel: sd 0:2:1:0: [sdb] tag#4 attempting target reset! scmd(0000)\n\
        Mar  3 10:00:41 box kernel: sd 0:2:1:0: [sdb] Device offlined - not ready after error recovery\n";
    let wanted = "sd 0:2:1:0 [sdb] did not answer; the error handling reset the target, within 40.00 s in which its requests wait; then it was \
        given up, and its requests fail";
    assert_eq!(has(text, wanted), StatementKind::Unreachable);
    // Another driver's words.
    let text = "kernel: qla2xxx [0000:05:00.0]-801c:7: Abort command issued nexus=7:0:2 --  1 2002.\n\
        kernel: qla2xxx [0000:05:00.0]-8009:7: DEVICE RESET ISSUED nexus=7:0:2 cmd=00.\n";
    has(text, "sd 7:0:2");
    let text = "[ 10.0] nvme nvme3: I/O 12 QID 3 timeout, aborting\n[ 40.0] nvme nvme3: I/O 12 QID 3 timeout, reset controller\n\
        [ 70.0] nvme nvme3: Device not ready; aborting reset, CSTS=0x1\n";
    has(
        text,
        "nvme3 did not answer; the error handling aborted requests, then reset the controller, within 1 min 0 s",
    );
}

#[test]
fn each_recovery_of_a_disk_is_one() {
    let reset = |day: &str, from: u32| {
        format!(
            "Mar {day} 10:00:{from:02} box kernel: sd 0:2:1:0: [sdb] tag#4 attempting device reset! scmd(0000)\n\
             Mar {day} 10:00:{:02} box kernel: sd 0:2:1:0: [sdb] tag#4 device reset: SUCCESS scmd(0000)\n",
            from + 1
        )
    };
    let text = format!("{}{}", reset(" 3", 1), reset("12", 41));
    let wanted = "sd 0:2:1:0 [sdb] did not answer; the error handling reset the device, within 1.00 s in which its requests wait; the last reset \
        succeeded; it was so at 2 times, and this is the worst";
    assert_eq!(has(&text, wanted), StatementKind::TimedOut);
    // The controller alone is named, and days lie between.
    let of_controller = |day: &str, second: u32, words: &str| {
        format!("Mar {day} 10:00:{second:02} box kernel: mpt3sas_cm0: {words} scmd(00000000aa)\n")
    };
    let disk = |day: &str, second: u32| {
        format!("Mar {day} 10:00:{second:02} box kernel: sd 3:0:9:0: CDB: Write(16): 8a 00 00 00\n")
    };
    let begins = |day: &str, second: u32| {
        format!(
            "{}{}",
            of_controller(day, second, "attempting device reset!"),
            disk(day, second)
        )
    };
    let text = format!(
        "{}{}{}",
        begins(" 3", 2),
        begins("12", 2),
        of_controller("12", 5, "device reset: SUCCESS")
    );
    let wanted = "sd 3:0:9:0 (mpt3sas_cm0) did not answer: Write timed out; the error handling reset the device, within 3.00 s in which its requests \
        wait; the last reset succeeded; it was so at 2 times";
    has(&text, wanted);
    has_not(&text, "attempting device reset");
    // Aborted requests of several days are not many at once.
    let abort = |day: &str| {
        format!(
            "{}{}",
            of_controller(day, 1, "attempting task abort!"),
            disk(day, 1)
        )
    };
    has_not(&[" 3", " 5", " 7", " 9"].map(abort).concat(), "did not answer");
    // One that succeeded in between is not the end.
    let text = format!(
        "{}{}",
        reset(" 3", 1),
        "Mar  3 10:01:30 box kernel: sd 0:2:1:0: [sdb] Device offlined - not ready after error recovery\n"
    );
    assert_eq!(has(&text, "then it was given up"), StatementKind::Unreachable);
    has_not(&text, "succeeded");
}

#[test]
fn one_aborted_request_and_a_disk_that_is_found_are_no_story() {
    for text in [
        "[100.000000] mpt3sas_cm0: attempting task abort! scmd(00000000aa)\n[100.000004] sd 3:0:9:0: CDB: Read(16): 88 00\n",
        "[5.000000] sd 2:0:0:0: Power-on or device reset occurred\n",
        "10:00:01 upload timeout, aborting\n10:00:02 upload timeout, aborting\n10:00:03 upload timeout, aborting\n",
    ] {
        has_not(text, "did not answer");
    }
}

#[test]
fn a_connection_that_does_not_come_back() {
    let line = |second: u32| {
        format!(
            "Mar 03 10:00:{second:02} box iscsid[40]: iscsid: can't bind conn 5:0 to session 5, retcode -111 (115)\n"
        )
    };
    let broke = "Mar 03 10:00:01 box kernel:  connection5:0: detected conn error (1022)\n";
    let text = format!("{broke}{}{}{}", line(6), line(9), line(12));
    let wanted = "the iSCSI connection 5:0 broke (the target did not answer a ping in time) and does not come back: 3 attempts to connect again \
        failed, one every 3.00 s over 6.00 s, with error -111 (connection refused); its requests wait";
    assert_eq!(has(&text, wanted), StatementKind::Unreachable);
    let back =
        "Mar 03 10:00:14 box iscsid[40]: iscsid: connection5:0 is operational after recovery (3 attempts)\n";
    has_not(&format!("{text}{back}"), "does not come back");

    let again = |second: u32| {
        format!(
            "[{second}.000000] nvme nvme1: Failed reconnect attempt 1\n[{second}.000001] nvme nvme1: Reconnecting in 10 seconds...\n"
        )
    };
    let text = format!(
        "[100.000000] nvme nvme1: starting error recovery\n{}{}{}",
        again(100),
        again(110),
        again(120)
    );
    has(
        &text,
        "the connection of the NVMe controller nvme1 broke and does not come back: 3 attempts to connect again failed, one every 10.00 s over 20.00 s",
    );
    has_not(
        &format!("{text}[130.000000] nvme nvme1: Successfully reconnected (4 attempt)\n"),
        "does not come back",
    );

    let text = "[1.0] libceph: osd3 (1)10.1.0.4:6801 socket closed (con state CONNECTING)\n".repeat(4);
    has(
        &text,
        "the connection of the Ceph client to osd3 broke and does not come back: 4 attempts",
    );
    // One that was open each time is idle in between.
    let text: String = (10..16)
        .map(|hour| {
            format!("Mar  3 {hour}:00:00 box kernel: libceph: osd3 (1)10.1.0.4:6801 socket closed (con state OPEN)\n")
        })
        .collect();
    has_not(&text, "does not come back");
    has_not(
        "[1.0] libceph: mon0 (1)10.1.0.4:6789 session established\n",
        "does not come back",
    );
}

#[test]
fn a_ring_that_does_not_move() {
    let report = |second: u32, head: &str, jiffies: &str| {
        format!(
            "[{second}.000000] e1000e 0000:02:00.0 enp2s0: Detected Hardware Unit Hang:\n[{second}.000000]   TDH                  <{head}>\n\
             [{second}.000000]   TDT                  <2c>\n[{second}.000000]   next_to_use          <2c>\n[{second}.000000]   time_stamp           \
             <1000>\n[{second}.000000]   jiffies              <{jiffies}>\n"
        )
    };
    let text = format!("{}{}", report(10, "b", "1100"), report(12, "b", "1300"));
    let wanted = "the network card e1000e 0000:02:00.0 enp2s0 does not send: its transmit ring does not move (head b, tail 2c), in 2 reports over \
        2.00 s, the oldest packet waits for 768 ticks of the kernel's clock";
    assert_eq!(has(&text, wanted), StatementKind::Stalled);
    let text = format!("{}{}", report(10, "b", "1100"), report(80, "1c", "1300"));
    has(&text, "its transmit ring stops again and again");
    let pair = "ixgbe 0000:03:00.1: eth3: Detected Tx Unit Hang\n  Tx Queue             <5>\n  TDH, TDT             <1e>, <24>\n";
    has(pair, "its transmit ring does not move (head 1e, tail 24)");
    has_not(
        "e1000e 0000:02:00.0 enp2s0: NIC Link is Up 1000 Mbps\n  TDH <b>\n",
        "does not send",
    );
}

#[test]
fn who_holds_a_guest_is_told_by_what_it_does() {
    let text = "2026-03-03 10:00:00.000+0000: 811: error : qemuDomainObjBeginJobInternal:4: Timed out during operation: cannot acquire state change \
        lock (held by monitor=remoteDispatchDomainBlockCommit) domain=web-7\n";
    has(
        text,
        "calls for the virtual machine web-7 time out, as its state change lock is held by a block job that merges images (commit)",
    );
    let text = "2026-03-03 10:00:00.000+0000: 811: warning : qemuDomainObjBeginJobInternal:4: Cannot start job (query, none, none) in API \
        remoteDispatchDomainMemoryStats for domain db-2; current job is (async nested, none, migration out) owned by (77 \
        remoteDispatchDomainMigratePerform3Params, 0 <null>, 77 remoteDispatchDomainMigratePerform3Params (flags=0x1)) for (0s, 0s, 95s)\n";
    has(
        text,
        "the virtual machine db-2 time out, as its state change lock is held for 1 min 35 s by a live migration that moves it",
    );
    let text = "error: Timed out during operation: cannot acquire state change lock (held by monitor=remoteDispatchDomainGetBlockInfo)\n";
    has(
        text,
        "calls for a virtual machine time out, as its state change lock is held by a query to QEMU's monitor",
    );
}

#[test]
fn a_start_that_timed_out_is_told_with_what_systemd_waited_for() {
    let log = "Mar 03 10:00:00 box systemd[1]: Starting My daemon...\nMar 03 10:01:30 box systemd[1]: mine.service: Start operation timed out. \
        Terminating.\n";
    let unit = |kind: &str| {
        format!(
            "[Unit]\nDescription=My daemon\n[Service]\nType={kind}\nExecStart=/opt/mine --serve\nThen the log says\n{log}"
        )
    };
    has(
        &unit("forking"),
        "mine.service did not become ready within 1 min 30 s and systemd ended it: it is of Type=forking, which means that its command puts itself \
         into the background and returns, but it did not return, or its PID file did not appear (ExecStart=/opt/mine --serve)",
    );
    has(
        &unit("notify"),
        "reports READY=1 over the notification socket, but no report came",
    );
    has(&unit("oneshot"), "does its work and ends, but it does not end");
    has_not(&unit("simple"), "did not become ready within");
    has_not(log, "it is of Type=");
    // The file of another unit says nothing of this one.
    for other in [
        unit("oneshot").replace("Description=My daemon", "Description=Other thing"),
        unit("oneshot").replace("Description=My daemon\n", ""),
        unit("oneshot").replace("Starting My daemon", "Starting yours.service - My daemon"),
    ] {
        has_not(&other, "it is of Type=");
    }
    let named = unit("oneshot").replace("Starting My daemon", "Starting mine.service - My daemon");
    has(&named, "mine.service did not become ready within 1 min 30 s");
}
