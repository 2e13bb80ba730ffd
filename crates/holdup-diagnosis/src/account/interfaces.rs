//! The busiest network interface, what it drops, the queues of sockets, and tables that fill up.

use super::values::{self, figure, parts};
use super::{Rank, Ranked};
use crate::rules::list::{connection_table_full, file_table_full, link_saturated, segments_sent_again};
use crate::rules::percent;
use holdup_evidence::Observed;
use holdup_evidence::observed::{Metric, SeenConnection, SocketKey, SocketTable, TcpState};
use holdup_evidence::units::duration;

/// Connections that are closed at one end alone from which on they are reported: one or two may be on their way.
const MIN_NOT_CLOSED: u64 = 3;

/// Segments of a connection from which on the share that was sent again says something.
const MIN_SEGMENTS: u64 = 100;

/// The part of a program's connections that are most of them.
const MIN_SHARE: f64 = 0.5;

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    add_busiest(observed, all);
    add_lost(observed, all);
    for table in &observed.sockets {
        add_sockets(observed, table, all);
    }
    add_table(
        observed,
        (Metric::OpenFiles, Metric::OpenFilesLimit),
        ("open files", file_table_full::MIN_USED_SHARE),
        all,
    );
    add_table(
        observed,
        (Metric::ConntrackEntries, Metric::ConntrackLimit),
        ("tracked connections", connection_table_full::MIN_USED_SHARE),
        all,
    );
}

fn add_busiest(observed: &Observed, all: &mut Vec<Ranked>) {
    let kinds = [
        (
            Metric::NetworkReceivedPacketsPerSecond,
            Metric::NetworkReceivedKibPerSecond,
            "received",
        ),
        (
            Metric::NetworkSentPacketsPerSecond,
            Metric::NetworkSentKibPerSecond,
            "sent",
        ),
    ];
    // A bridge or a container's end carries what a card carries; that one has most packets.
    let most = |metric| {
        values::largest(observed, metric)
            .into_iter()
            .find(|value| value.of() != "lo")
    };
    let busiest = most(Metric::NetworkUtilPercent)
        .filter(|value| value.value() >= 1.0)
        .or_else(|| most(Metric::NetworkReceivedPacketsPerSecond))
        .or_else(|| most(Metric::NetworkReceivedKibPerSecond));
    let Some(busiest) = busiest else { return };
    let mut listed = Vec::new();
    for (packets, kib, what) in kinds {
        let packets = busiest.beside(packets).filter(|count| *count >= 1.0);
        let kib = busiest.beside(kib).filter(|kib| *kib >= 1.0);
        match (packets, kib) {
            (Some(packets), Some(kib)) => listed.push(format!(
                "{what} {} packets a second of {} bytes each, {} KiB/s",
                figure(packets),
                figure((kib * 1024.0 / packets).round()),
                figure(kib)
            )),
            (Some(packets), None) => listed.push(format!("{what} {} packets a second", figure(packets))),
            (None, Some(kib)) => listed.push(format!("{what} {} KiB/s", figure(kib))),
            (None, None) => {}
        }
    }
    if listed.is_empty() {
        return;
    }
    let utilisation = busiest.beside(Metric::NetworkUtilPercent);
    let full = link_saturated::MIN_USED_PERCENT;
    let (rank, words) = match utilisation {
        Some(used) if used >= full => (Rank::Saturated, format!("; {} % of its speed", figure(used))),
        Some(used) if used > 0.0 => (
            Rank::Ordinary,
            format!("; {} % of its speed ({full} % or more is short)", figure(used)),
        ),
        _ => (Rank::Largest, "; its speed is not known".to_owned()),
    };
    let text = format!(
        "{} is the busiest interface: {}{words}",
        busiest.of(),
        parts(&listed)
    );
    let line = Ranked::new(rank, busiest.of(), text, (observed, &busiest.point.quote));
    all.push(line.share(utilisation.unwrap_or(0.0) / 100.0));
}

fn add_lost(observed: &Observed, all: &mut Vec<Ranked>) {
    let kinds = [
        (Metric::NetworkReceiveDropsPerSecond, "drops", "received packets"),
        (
            Metric::NetworkReceiveErrorsPerSecond,
            "receives",
            "damaged packets",
        ),
    ];
    for (metric, verb, what) in kinds {
        let most = values::largest(observed, metric).into_iter().next();
        if let Some(most) = most.filter(|most| most.value() > 0.0) {
            let text = format!("{} {verb} {} {what} a second", most.of(), figure(most.value()));
            all.push(Ranked::new(
                Rank::Failed,
                most.of(),
                text,
                (observed, &most.point.quote),
            ));
        }
    }
    let counts = [
        (
            Metric::ListenQueueOverflows,
            "connections were refused because a listener's queue was full",
        ),
        (
            Metric::SynQueueOverflows,
            "requests for a connection were dropped",
        ),
    ];
    for (metric, what) in counts {
        let most = values::largest(observed, metric).into_iter().next();
        if let Some(most) = most.filter(|most| most.value() >= 1.0) {
            let text = format!("{} {what}{}", figure(most.value()), most.since_boot());
            all.push(Ranked::new(
                Rank::Failed,
                "listen queue",
                text,
                (observed, &most.point.quote),
            ));
        }
    }
}

/// The longest queue, the connection that most is unread of, and the state with most sockets.
fn add_sockets(observed: &Observed, table: &SocketTable, all: &mut Vec<Ranked>) {
    if let Some(queue) = table.queues.first().filter(|queue| queue.waiting > 0) {
        let of = queue
            .limit
            .map_or_else(String::new, |limit| format!(" of at most {limit}"));
        let by = queue
            .process
            .as_ref()
            .map_or_else(String::new, |name| format!(" ({name})"));
        let text = format!(
            "{} clients{of} wait to be accepted at {}{by}",
            queue.waiting, queue.local
        );
        let full = queue.limit.is_some_and(|limit| queue.waiting >= limit);
        let rank = if full { Rank::Saturated } else { Rank::Largest };
        all.push(Ranked::new(rank, &queue.local, text, (observed, &queue.quote)));
    }
    add_not_closed(observed, table, all);
    let kinds = [
        ("has not read", "bytes in its receive queue"),
        ("was not answered", "bytes in its send queue"),
    ];
    for (at, (did_not, what)) in kinds.into_iter().enumerate() {
        let bytes = |one: &&SeenConnection| if at == 0 { one.unread } else { one.unsent };
        let Some(most) = table
            .connections
            .iter()
            .max_by_key(bytes)
            .filter(|most| bytes(most) > 0)
        else {
            continue;
        };
        let who = most.process.as_deref().unwrap_or("a process");
        let text = format!(
            "{who} {did_not} {} {what}, {} to {}",
            bytes(&most),
            most.local,
            most.peer
        );
        all.push(Ranked::new(
            Rank::Largest,
            &most.local,
            text,
            (observed, &most.quote),
        ));
    }
    add_sent_again(observed, table, all);
    let half_open = table
        .counts
        .iter()
        .filter(|count| count.state == TcpState::SynReceived);
    let by_peer = half_open
        .clone()
        .filter(|count| count.by == SocketKey::Peer)
        .max_by_key(|count| count.count);
    let of_all = half_open
        .filter(|count| count.by == SocketKey::All)
        .max_by_key(|count| count.count);
    if let Some(half_open) = of_all {
        let peer = by_peer.map_or_else(String::new, |peer| format!(", most of them from {}", peer.of));
        let text = format!(
            "{} connections are half open (SYN_RECV){peer}: their clients have not answered yet",
            half_open.count
        );
        all.push(Ranked::new(
            Rank::Largest,
            "half-open connections",
            text,
            (observed, &half_open.quote),
        ));
    }
}

/// The connection that sent most of its segments again, and the one whose peer took no more for longest.
fn add_sent_again(observed: &Observed, table: &SocketTable, all: &mut Vec<Ranked>) {
    let again = |one: &SeenConnection| {
        let sent = one.segments.filter(|sent| *sent >= MIN_SEGMENTS)?;
        (one.retransmitted > 0).then(|| one.retransmitted as f64 / sent as f64)
    };
    let worst = table
        .connections
        .iter()
        .filter_map(|one| Some((again(one)?, one)))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    if let Some((share, one)) = worst {
        let text = format!(
            "{} of {} segments from {} to {} were sent again, {} (from {} on it is much)",
            one.retransmitted,
            one.segments.unwrap_or(0),
            one.local,
            one.peer,
            percent(share),
            percent(segments_sent_again::MIN_RETRANSMITTED_SHARE)
        );
        let much = share >= segments_sent_again::MIN_RETRANSMITTED_SHARE;
        let rank = if much { Rank::Failed } else { Rank::Ordinary };
        all.push(Ranked::new(rank, &one.peer, text, (observed, &one.quote)).share(share));
    }
    let longest = table
        .connections
        .iter()
        .filter_map(|one| Some((one.window_full?, one)));
    if let Some((ns, one)) = longest.max_by_key(|(ns, _)| *ns).filter(|(ns, _)| *ns > 0) {
        let text = format!(
            "{} took no more data from {} for {} (its receive window was full)",
            one.peer,
            one.local,
            duration(ns)
        );
        all.push(Ranked::new(Rank::Largest, &one.peer, text, (observed, &one.quote)).ns(ns));
    }
}

/// Connections that their peers have closed and the program has not, of all that it had.
fn add_not_closed(observed: &Observed, table: &SocketTable, all: &mut Vec<Ranked>) {
    let most = |by: SocketKey| {
        let of_state = table
            .counts
            .iter()
            .filter(move |count| count.state == TcpState::CloseWait);
        of_state
            .filter(move |count| count.by == by)
            .max_by_key(|count| count.count)
    };
    let Some(closed) = most(SocketKey::All).filter(|closed| closed.count >= MIN_NOT_CLOSED) else {
        return;
    };
    let open: u64 = table
        .counts
        .iter()
        .filter(|count| count.by == SocketKey::All && count.state == TcpState::Established)
        .map(|count| count.count)
        .sum();
    let who = most(SocketKey::Process).map_or_else(|| "the program".to_owned(), |who| who.of.clone());
    let at =
        most(SocketKey::Local).map_or_else(String::new, |local| format!(", most of them at {}", local.of));
    let unread = table
        .connections
        .iter()
        .map(|one| one.unread)
        .filter(|unread| *unread > 0)
        .max();
    let unread = unread.map_or_else(String::new, |unread| {
        format!(", with up to {unread} bytes unread")
    });
    let share = closed.count as f64 / closed.count.saturating_add(open).max(1) as f64;
    // Who closes its connections at all has hardly any of these at any time.
    let rank = if share >= MIN_SHARE {
        Rank::Saturated
    } else {
        Rank::Largest
    };
    let text = format!(
        "{who} has not closed {} connections that their peers have closed (CLOSE_WAIT), beside {open} that are open{at}{unread}",
        closed.count
    );
    all.push(Ranked::new(rank, who, text, (observed, &closed.quote)).share(share));
}

/// A table of the kernel that has a limit.
fn add_table(
    observed: &Observed,
    (used, limit): (Metric, Metric),
    (what, full): (&str, f64),
    all: &mut Vec<Ranked>,
) {
    let Some(value) = values::largest(observed, used).into_iter().next() else {
        return;
    };
    let Some(limit) = value.beside(limit).filter(|limit| *limit > 0.0) else {
        return;
    };
    let share = value.value() / limit;
    let rank = if share >= full {
        Rank::Saturated
    } else {
        Rank::Ordinary
    };
    let text = format!(
        "{} of at most {} {what} ({} % is nearly all)",
        figure(value.value()),
        figure(limit),
        full * 100.0
    );
    all.push(Ranked::new(rank, what, text, (observed, &value.point.quote)).share(share));
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use crate::account::values::tests::report;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{Metric, SeenConnection, SocketTable};

    #[test]
    fn small_packets_are_told_by_their_number_and_size() {
        let observed = report(&[
            (Metric::NetworkReceivedPacketsPerSecond, "eth0", 12_607.0),
            (Metric::NetworkReceivedKibPerSecond, "eth0", 664.86),
            (Metric::NetworkReceivedPacketsPerSecond, "lo", 90_000.0),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "eth0 is the busiest interface: received 12607 packets a second of 54 bytes each, 664.9 KiB/s; its speed is not known"
        );
    }

    #[test]
    fn a_full_table_is_saturated_and_another_is_ordinary() {
        let observed = report(&[
            (Metric::OpenFiles, "", 990.0),
            (Metric::OpenFilesLimit, "", 1000.0),
            (Metric::ConntrackEntries, "", 10.0),
            (Metric::ConntrackLimit, "", 65_536.0),
        ]);
        let lines = account(&observed);
        assert_eq!(
            lines[0].text,
            "990 of at most 1000 open files (90 % is nearly all)"
        );
        assert_eq!(
            lines[1].text,
            "10 of at most 65536 tracked connections (90 % is nearly all)"
        );
    }

    #[test]
    fn bytes_that_nobody_reads_name_their_process() {
        let observed = Observed {
            sockets: vec![SocketTable {
                connections: vec![SeenConnection {
                    local: "10.0.0.1:8765".to_owned(),
                    peer: "10.0.0.2:9".to_owned(),
                    process: Some("python3".to_owned()),
                    unread: 2000,
                    ..SeenConnection::default()
                }],
                ..SocketTable::default()
            }],
            ..Observed::default()
        };
        assert_eq!(
            account(&observed)[0].text,
            "python3 has not read 2000 bytes in its receive queue, 10.0.0.1:8765 to 10.0.0.2:9"
        );
    }
}
