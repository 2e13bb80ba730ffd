//! poll, select and epoll.

use super::{Case, object};
use holdup_evidence::{Call, Cause, Clock, TaskName, ThreadId, Waker};
use holdup_model::attributed::Common;

const IN: u16 = 1;
const OUT: u16 = 4;

#[test]
fn polls_belong_to_the_object_that_ended_them() {
    let poll = |count| Case::new("poll", [0, count, 1000, 0]);
    let cases = [
        (
            poll(2)
                .polled("pipe", IN, IN)
                .polled("tcp 10.0.0.1:80", IN, 0)
                .returned(1),
            Cause::IpcPipe,
        ),
        (
            poll(2)
                .polled("pipe", IN, 0)
                .polled("tcp 10.0.0.1:80", IN, IN)
                .returned(1),
            Cause::NetReceive,
        ),
        (
            poll(2)
                .polled("pipe", IN, 0)
                .polled("tcp 10.0.0.1:80", OUT, OUT)
                .returned(1),
            Cause::NetSend,
        ),
        (
            poll(1).polled("tcp syn-sent 10.0.0.1:80", OUT, OUT).returned(1),
            Cause::NetConnect,
        ),
        (
            poll(1)
                .polled("tcp syn-sent 10.0.0.1:80", IN | OUT, 0x18)
                .returned(1),
            Cause::NetConnect,
        ),
        (
            poll(1).polled("tcp listen 0.0.0.0:80", IN, IN).returned(1),
            Cause::NetAccept,
        ),
        (
            poll(1).polled("udp 10.0.0.1:53", IN, IN).returned(1),
            Cause::NetDns,
        ),
        (poll(1).polled("unix /run/x", IN, IN).returned(1), Cause::IpcUnix),
        (poll(1).polled("timerfd", IN, IN).returned(1), Cause::TimerSleep),
        (poll(1).polled("signalfd", IN, IN).returned(1), Cause::IpcQueue),
        (
            poll(1).polled("char 136:0 /dev/pts/0", IN, IN).returned(1),
            Cause::IpcTty,
        ),
        (poll(1).polled("pidfd", IN, IN).returned(1), Cause::ProcessChild),
        (
            poll(1).polled("fifo /dev/random", IN, IN).returned(1),
            Cause::RandomDevice,
        ),
        (
            poll(1).polled("char 1:8 /dev/random", IN, IN).returned(1),
            Cause::RandomDevice,
        ),
        (
            poll(1)
                .polled("tcp closed 10.0.0.1:80", OUT, OUT | 0x18)
                .returned(1),
            Cause::NetConnect,
        ),
        // Nothing has come yet: room to send is what it is about, unless others are awaited there.
        (
            Case::new("epoll_wait", [4, 0, 3, 0])
                .polled("signalfd", IN, 0)
                .polled("pipe", IN, 0)
                .polled("tcp 10.0.0.1:80", OUT, 0),
            Cause::NetSend,
        ),
        (
            Case::new("epoll_wait", [4, 0, 3, 0])
                .polled("tcp listen 0.0.0.0:80", IN, 0)
                .polled("tcp 10.0.0.1:80", OUT, 0),
            Cause::PollWait,
        ),
        // Seen as it left the CPU it was connecting; looked up again afterwards it is connected.
        (
            poll(1)
                .on("tcp syn-sent 10.0.0.1:80")
                .polled("tcp 10.0.0.1:80", OUT, OUT)
                .returned(1),
            Cause::NetConnect,
        ),
        // Under way, or failed, the answers of an earlier call still stand there.
        (
            poll(2).polled("pipe", IN, IN).polled("tcp 10.0.0.1:80", IN, 0),
            Cause::PollWait,
        ),
        // The object alone, without memory.
        (poll(1).on("udp 10.0.0.1:53"), Cause::NetDns),
        (poll(2).on("udp 10.0.0.1:53"), Cause::PollWait),
        // All of a set are one cause: whichever ended it.
        (
            poll(2)
                .polled("tcp 10.0.0.1:80", IN, 0)
                .polled("tcp 10.0.0.2:80", IN, 0),
            Cause::NetReceive,
        ),
        (
            poll(2).polled("tcp 10.0.0.1:80", IN, 0).polled("pipe", IN, 0),
            Cause::PollWait,
        ),
    ];
    for (index, (case, expected)) in cases.iter().enumerate() {
        let got = case.classify();
        assert_eq!(got.cause, *expected, "case {index}: {}", got.resource.name);
        assert!(!got.timed_out, "case {index}");
    }
}

#[test]
fn polls_that_time_out_stay_with_what_they_awaited() {
    let poll = || Case::new("poll", [0, 2, 5000, 0]).returned(0);
    let cases = [
        (
            poll().polled("eventfd", IN, 0).polled("udp 10.0.0.1:53", IN, 0),
            Cause::NetDns,
        ),
        (
            poll()
                .polled("pipe", IN, 0)
                .polled("tcp syn-sent 10.0.0.1:80", OUT, 0),
            Cause::NetConnect,
        ),
        (
            poll().polled("unix", IN, 0).polled("tcp 10.0.0.1:80", IN, 0),
            Cause::NetReceive,
        ),
        (
            poll()
                .polled("unix /run/x", IN, 0)
                .polled("tcp 10.0.0.1:80", IN, 0),
            Cause::PollWait,
        ),
        (
            poll().polled("eventfd", IN, 0).polled("pipe", IN, 0),
            Cause::IpcPipe,
        ),
        (
            poll()
                .polled("tcp 10.0.0.1:80", IN, 0)
                .polled("tcp 10.0.0.2:80", IN, 0),
            Cause::NetReceive,
        ),
        (Case::new("poll", [0, 0, 5000, 0]), Cause::TimerSleep),
        (Case::new("select", [0, 0, 0, 0]), Cause::TimerSleep),
        (Case::new("pselect6", [8, 0, 0, 0]), Cause::TimerSleep),
    ];
    for (index, (case, expected)) in cases.iter().enumerate() {
        let got = case.classify();
        assert_eq!(got.cause, *expected, "case {index}: {}", got.resource.name);
        assert!(got.timed_out, "case {index}");
    }
    let forever = Case::new("poll", [0, 0, 0xffff_ffff, 0]);
    assert_eq!(forever.cause(), Cause::IpcSignal);
    let unknown = poll()
        .polled("unix /run/x", IN, 0)
        .polled("tcp 10.0.0.1:80", IN, 0)
        .classify();
    assert_eq!(
        unknown.resource.detail.texts()["descriptors"],
        "3 /run/x, 3 10.0.0.1:80 (tcp)"
    );
}

#[test]
fn epoll_is_told_by_its_ready_list_the_socket_or_the_waker() {
    let epoll = || Case::new("epoll_wait", [5, 0, 16, 1000]).on("epoll");
    let mut by_list = epoll();
    by_list.ready = Some(object("pipe"));
    assert_eq!(by_list.cause(), Cause::IpcPipe);
    let mut by_socket = epoll();
    by_socket.woken_by_socket = Some(object("tcp 10.0.0.1:80"));
    assert_eq!(by_socket.cause(), Cause::NetReceive);
    let mut connecting = epoll();
    connecting.ready = Some(object("tcp syn-sent 10.0.0.1:80"));
    assert_eq!(connecting.cause(), Cause::NetConnect);
    let killer = Case::new("kill", [0; 4]).call;
    let task = TaskName {
        pid: 1,
        tid: 1,
        name: "sh".to_owned(),
        kernel: false,
    };
    let both = |call| {
        let set = epoll().polled("signalfd", IN, 0).polled("tcp 10.0.0.1:80", IN, 0);
        set.woken(Waker::Outside {
            task: task.clone(),
            call,
        })
        .cause()
    };
    assert_eq!(both(killer), Cause::IpcQueue);
    assert_eq!(both(Call::none()), Cause::PollWait);
    assert_eq!(epoll().cause(), Cause::PollWait);
}

#[test]
fn a_connection_that_is_being_made_is_awaited_whatever_else_a_loop_listens_to() {
    let among = |call: Case| {
        call.polled("eventfd", IN, 0)
            .polled("tcp listen 0.0.0.0:80", IN, 0)
            .polled("tcp 10.0.0.7:40000", IN, 0)
            .polled("tcp syn-sent 10.0.0.1:5432", OUT, 0)
    };
    let epoll = || Case::new("epoll_wait", [5, 0, 16, 1000]).on("epoll");
    for case in [
        among(epoll().returned(0)),
        among(epoll()),
        among(Case::new("poll", [0, 4, 100, 0]).returned(0)),
        among(Case::new("pselect6", [9, 0, 4096, 0]).returned(0)),
    ] {
        let got = case.classify();
        assert_eq!(got.cause, Cause::NetConnect, "{}", got.resource.name);
        assert!(
            got.resource.name.contains("10.0.0.1:5432"),
            "{}",
            got.resource.name
        );
    }
    // A client that came ended it: that is what the loop waited for, as far as a poll can tell.
    let client = among(Case::new("poll", [0, 4, 100, 0]).returned(1)).polled("tcp 10.0.0.8:40001", IN, IN);
    assert_eq!(client.cause(), Cause::NetReceive);
    // One that is made is none that is being made.
    let made = epoll()
        .returned(0)
        .polled("tcp listen 0.0.0.0:80", IN, 0)
        .polled("tcp 10.0.0.1:5432", OUT, 0);
    assert_eq!(made.cause(), Cause::PollWait);
}

#[test]
fn a_poll_that_a_child_s_end_interrupts_waits_for_the_child() {
    const INTERRUPTED: i64 = -514;
    let ended = |name: &str| Waker::Thread {
        thread: ThreadId(1),
        clock: Clock::default(),
        call: Case::new(name, [0; 4]).call,
    };
    let select = || Case::new("pselect6", [4, 4096, 0, 0]).polled("pipe", IN, 0);
    let child = select().returned(INTERRUPTED).woken(ended("exit_group"));
    assert_eq!(child.cause(), Cause::ProcessChild);
    // Who ends, and so closes the pipe, makes the call succeed; who writes is no child that ends.
    let closed = select().returned(1).woken(ended("exit_group"));
    assert_eq!(closed.cause(), Cause::IpcPipe);
    let signalled = select().returned(INTERRUPTED).woken(ended("kill"));
    assert_eq!(signalled.cause(), Cause::IpcPipe);
}

#[test]
fn an_event_loop_that_awaits_only_itself_sleeps() {
    let poll = || Case::new("poll", [0, 2, 5000, 0]);
    let pair = "unix";
    let alone = |case: Case| case.returned(0).classify();
    let own = alone(poll().polled(pair, IN, 0).own().polled("eventfd", IN, 0));
    assert_eq!((own.cause, own.timed_out), (Cause::TimerSleep, true));
    let shared = alone(poll().polled(pair, IN, 0).polled("eventfd", IN, 0));
    assert_eq!(shared.cause, Cause::IpcUnix, "its other end may be anybody's");
    let both = alone(
        poll()
            .polled("pipe", IN, 0)
            .own()
            .polled("udp 10.0.0.1:53", IN, 0),
    );
    assert_eq!(both.cause, Cause::NetDns);
}

#[test]
fn what_only_the_process_itself_has_the_ends_of_is_no_peer() {
    const FOR_EVER: u64 = u64::MAX;
    const SECOND: u64 = 1000;
    for both_ends in ["unix", "pipe"] {
        let poll = |limit| {
            Case::new("epoll_wait", [3, 0, 16, limit])
                .polled(both_ends, IN, 0)
                .own()
        };
        // It is still there as observation ends: nothing was returned.
        let sleeps = poll(SECOND).classify();
        assert_eq!(sleeps.cause, Cause::TimerSleep, "{both_ends}");
        let waits = poll(FOR_EVER).classify();
        assert_eq!(waits.cause, Cause::IpcQueue, "{both_ends}");
        assert_eq!(waits.resource.common(), Some(Common::OwnWakeup), "{both_ends}");
        // Another thread of the process wrote.
        let woken = Case::new("epoll_wait", [3, 0, 16, FOR_EVER])
            .returned(1)
            .polled(both_ends, IN, IN)
            .own()
            .classify();
        assert_eq!(woken.cause, Cause::IpcQueue, "{both_ends}");
        assert_eq!(woken.resource.common(), Some(Common::OwnWakeup), "{both_ends}");
        // What else is outstanding is what is awaited.
        let asked = poll(SECOND).polled("tcp 10.0.0.1:5432", IN, 0);
        assert_eq!(asked.cause(), Cause::NetReceive, "{both_ends}");
        let theirs = Case::new("epoll_wait", [3, 0, 16, SECOND]).polled(both_ends, IN, 0);
        let peer = matches!(theirs.cause(), Cause::IpcUnix | Cause::IpcPipe);
        assert!(peer, "its other end may be anybody's");
    }
}
