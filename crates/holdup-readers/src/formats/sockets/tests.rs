//! Lists of `ss` and `netstat` with any columns, cut, and with absurd figures.

use crate::{Reading, read_text};
use holdup_evidence::observed::{SocketKey, SocketTable, TcpState};

fn table(reading: &Reading) -> &SocketTable {
    match reading.observed.sockets.as_slice() {
        [table] => table,
        other => panic!("{other:?}"),
    }
}

fn count(table: &SocketTable, state: TcpState, by: SocketKey, of: &str) -> u64 {
    let mut counts = table.counts.iter();
    counts
        .find(|count| (count.state, count.by, &*count.of) == (state, by, of))
        .map_or(0, |count| count.count)
}

const SS: &str = r#"State      Recv-Q Send-Q  Local Address:Port  Peer Address:Port Process
LISTEN     5      4           127.0.0.1:8080       0.0.0.0:*     users:(("app "x" y",pid=12,fd=3))
CLOSE-WAIT 1      0      [fe80::1]%eth0:9000     127.0.0.1:50540 users:(("app",pid=12,fd=23))
CLOSE-WAIT 1      0      [fe80::1]%eth0:9000     127.0.0.1:50541 users:(("app",pid=12,fd=24))
SYN-SENT   0      1            10.7.0.1:37456     10.7.0.9:5432  timer:(on,468ms,5)
ESTAB      0      3782144     127.0.0.1:41476    127.0.0.1:9100  timer:(persist,128ms,0)
ESTAB      128512 0           127.0.0.1:9100     127.0.0.1:41476
"#;

#[test]
fn a_list_of_ss() {
    let reading = read_text("s", SS.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "ss");
    let table = table(&reading);
    let queue = &table.queues[0];
    assert_eq!(
        (
            &*queue.local,
            queue.waiting,
            queue.limit,
            queue.process.as_deref()
        ),
        ("127.0.0.1:8080", 5, Some(4), Some("app \"x\" y"))
    );
    assert_eq!(count(table, TcpState::CloseWait, SocketKey::Process, "app"), 2);
    assert_eq!(
        count(
            table,
            TcpState::CloseWait,
            SocketKey::Local,
            "[fe80::1]%eth0:9000"
        ),
        2
    );
    assert_eq!(count(table, TcpState::SynSent, SocketKey::All, ""), 1);
    let [silent, full, unread] = table.connections.as_slice() else {
        panic!("{:?}", table.connections)
    };
    assert_eq!((silent.state, silent.unanswered), (Some(TcpState::SynSent), 5));
    assert!(full.probes && full.unsent == 3_782_144);
    assert_eq!(unread.unread, 128_512);
    assert_eq!(reading.accounts[0].not_understood, 0);
}

#[test]
fn the_figures_below_a_row_or_behind_it() {
    let row = "ESTAB 0 3782144 127.0.0.1:41476 127.0.0.1:9100 users:((\"a\",pid=1,fd=5))";
    let figures = "bbr wscale:10,10 rto:208 backoff:4 rtt:4.61/9.173 mss:47616 cwnd:16 segs_out:12 lastrcv:6640 rwnd_limited:6640ms(100.0%) retrans:0/1 notsent:3782144";
    for text in [
        format!("State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n{row}\n\t {figures}\n"),
        format!("State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n{row}\n{figures}\n"),
        format!("State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n{row} {figures}\n"),
    ] {
        let reading = read_text("s", text.as_bytes());
        let one = &table(&reading).connections[0];
        assert!(one.probes && table(&reading).has_figures, "{text}");
        assert_eq!(
            (one.window_full, one.retransmitted, one.segments),
            (Some(6_640_000_000), 1, Some(12))
        );
        assert_eq!((one.unanswered, one.silent), (0, Some(6_640_000_000)));
        assert_eq!(reading.accounts[0].not_understood, 0);
    }
    let text = "SYN-SENT 0 1 127.0.0.1:4 127.0.0.1:8080\n\t cubic rto:2000 backoff:1 cwnd:1 segs_out:6 unacked:1 retrans:1/5 lost:1\nESTAB 0 9 127.0.0.1:4 127.0.0.1:8080\n\t cubic rto:9000 backoff:6 rtt:1/1 cwnd:1 unacked:3 retrans:1/7\n";
    let reading = read_text("s", text.as_bytes());
    let unanswered: Vec<u64> = table(&reading)
        .connections
        .iter()
        .map(|one| one.unanswered)
        .collect();
    assert_eq!(unanswered, [6, 5]);
}

#[test]
fn without_a_heading_or_without_a_state() {
    let bare: String = SS.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let reading = read_text("s", bare.as_bytes());
    assert_eq!(count(table(&reading), TcpState::CloseWait, SocketKey::All, ""), 2);
    let rows = "Recv-Q Send-Q Local Address:Port Peer Address:Port\n0 0 10.0.0.1:5 10.0.0.2:80\n";
    let reading = read_text("s", format!("$ ss -tn state time-wait\n{rows}").as_bytes());
    assert_eq!(count(table(&reading), TcpState::TimeWait, SocketKey::All, ""), 1);
    let reading = read_text("s", rows.as_bytes());
    assert_eq!(table(&reading).total, 0);
    assert_eq!(reading.accounts[0].problems.len(), 1);
}

#[test]
fn unix_listeners_have_queues_too() {
    let text = "Netid State  Recv-Q Send-Q     Local Address:Port    Peer Address:PortProcess\n\
        u_str LISTEN 4      3      /run/app.sock 3419062            * 0    users:((\"python3\",pid=1,fd=70))\n\
        u_str ESTAB 0      0                      * 3419068            * 0\nudp UNCONN 0 0 127.0.0.53%lo:53 0.0.0.0:*\n";
    let reading = read_text("s", text.as_bytes());
    let queue = &table(&reading).queues[0];
    assert!(queue.unix);
    assert_eq!(
        (&*queue.local, queue.waiting, queue.limit),
        ("/run/app.sock", 4, Some(3))
    );
    assert_eq!(reading.accounts[0].not_understood, 0);
}

#[test]
fn a_list_of_netstat() {
    let text = "Active Internet connections (servers and established)
Proto Recv-Q Send-Q Local Address           Foreign Address         State       PID/Program name     Timer
tcp        5      0 127.0.0.1:8080          0.0.0.0:*               LISTEN      12/nginx: master     off (0.00/0/0)
tcp        0      1 10.7.0.1:37456          10.7.0.9:5432           SYN_SENT    13/app               on (0.12/5/0)
tcp        0 3782144 127.0.0.1:41476        127.0.0.1:9100          VERBUNDEN   -                    probe (0.00/0/0)
tcp6       0      0 ::1:5                   ::1:80                  TIME_WAIT   -                    timewait (9.00/0/0)
udp        0      0 0.0.0.0:68              0.0.0.0:*                           5/dhclient           off (0.00/0/0)
Active UNIX domain sockets (servers and established)
Proto RefCnt Flags       Type       State         I-Node   PID/Program name     Path
unix  2      [ ACC ]     STREAM     LISTENING     3419062  1/a                  /run/app.sock
";
    let reading = read_text("n", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "netstat");
    let table = table(&reading);
    assert_eq!((table.total, table.queues[0].limit), (4, None));
    assert_eq!(table.queues[0].process.as_deref(), Some("nginx"));
    assert_eq!(
        (table.connections[0].unanswered, table.connections[1].probes),
        (5, true)
    );
    assert_eq!(reading.accounts[0].not_understood, 0, "{:?}", reading.accounts[0]);
}

#[test]
fn a_summary_alone() {
    let text = "Total: 85\nTCP:   173 (estab 52, closed 101, orphaned 0, timewait 100)\n\nTransport Total     IP        IPv6\nTCP\t  72        72        0\n";
    let reading = read_text("s", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "ss");
    assert_eq!(reading.observed.series.len(), 2);
    assert_eq!(reading.accounts[0].not_understood, 0);
}

#[test]
fn many_peers_are_bounded_and_the_pile_is_found() {
    let mut text = String::from("State Recv-Q Send-Q Local Address:Port Peer Address:Port\n");
    for number in 0..60_000 {
        text += &format!(
            "TIME-WAIT 0 0 10.0.0.1:{} 10.9.{}.{}:{}\n",
            number % 60_000,
            number % 250,
            number % 249,
            number
        );
        if number % 10 == 0 {
            text += &format!("TIME-WAIT 0 0 10.0.0.1:{number} 10.0.0.2:443\n");
        }
    }
    let reading = read_text("s", text.as_bytes());
    let table = table(&reading);
    assert_eq!(
        count(table, TcpState::TimeWait, SocketKey::Peer, "10.0.0.2:443"),
        6_000
    );
    assert!(table.counts.len() < 50);
}

#[test]
fn rubbish_and_cut_lines() {
    let hostile = format!(
        "{SS}ESTAB 18446744073709551615 99999999999999999999 a:1 b:2\nESTAB 18446744073709551615 18446744073709551615 a:1 b:2 users:((\"\nESTAB\nESTAB 0\nu_str LISTEN 1\ntcp -1 0 a:1 b:2 LISTEN\n\0\0\ttimer:(on\n\t cwnd:1 rto: retrans:/ backoff:18446744073709551615 unacked:1 rwnd_limited:99999999999999999999ms\n"
    );
    for cut in 0..hostile.len() {
        let Some(text) = hostile.get(..cut) else { continue };
        for text in [text.to_owned(), text.replace("ESTAB", "tcp")] {
            let reading = read_text("s", text.as_bytes());
            let counted: u64 = reading.observed.sockets.iter().map(|table| table.total).sum();
            assert!(counted <= text.lines().count() as u64, "{text}");
        }
    }
}
