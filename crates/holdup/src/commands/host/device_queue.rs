//! What stands in the queue of a network device: who fills it, and whose bytes stand behind.
//!
//! In: queues and sockets at some times. Out: those that wait for a device, each with the one that has most in its queue. A queue that is
//! there all the time is as long as it takes to empty it: what leaves it in a second is known from two looks. The other end of a connection
//! may be in another network namespace of this machine, as of a container; whose it is, is told too.

use holdup_evidence::Ns;
use holdup_evidence::observed::DeviceQueue;
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::root::text_if_there;
use holdup_proc::{Root, device_queues, tasks};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

/// The shortest time that a byte stands in a queue, from which somebody notices, nanoseconds.
const MIN_DELAY_NS: Ns = 1_000_000_000;

/// Looks in which something must stand in the queue, and part of these in which somebody's bytes must.
const MIN_LOOKS: u32 = 3;
const MIN_SHARE: f64 = 0.5;

/// Part of the queue that the one who fills it must have in it.
const MIN_TAKEN_SHARE: f64 = 0.3;

/// Waits that are reported, and other network namespaces that are looked through for who has the other end.
const MAX_WAITS: usize = 100;
const MAX_NAMESPACES: usize = 64;

/// Lines of a list of connections that are read.
const MAX_LINES: usize = 20_000;

const SECOND: f64 = 1e9;

/// A device.
#[derive(Debug, Default)]
struct Device {
    looks: u32,
    kind: String,
    limit: Option<u64>,
    /// The longest that the queue was.
    backlog: u64,
    /// What had left it at the first look and at the last, and when, seconds since boot.
    first: Option<(u64, f64)>,
    last: Option<(u64, f64)>,
    /// Bytes of each socket, added up, the most of one look, and in how many looks; with its ends.
    sockets: HashMap<u64, Socket>,
}

#[derive(Debug, Clone)]
struct Socket {
    bytes: u64,
    most: u64,
    looks: u32,
    ends: (SocketAddr, SocketAddr),
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Devices {
    looks: u32,
    devices: BTreeMap<String, Device>,
    addresses: Option<Vec<(IpAddr, String)>>,
}

/// Somebody whose bytes stand in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) pid: u32,
    pub(super) holder: u32,
    pub(super) device: String,
    pub(super) ns: Ns,
    pub(super) queue: DeviceQueue,
    /// The process at the other end of its connection, in another network namespace of this machine.
    pub(super) asked_by: Option<u32>,
}

impl Devices {
    /// Looks once; `now` is in seconds since boot. Sockets are listed only while something stands in a queue.
    pub(super) fn turn(
        &mut self,
        now: f64,
        queues: &[device_queues::DeviceQueue],
        connections: fn() -> Vec<Connection>,
        datagrams: fn() -> Vec<Connection>,
    ) {
        self.looks += 1;
        let full: Vec<_> = queues.iter().filter(|queue| queue.backlog > 0).collect();
        if full.is_empty() {
            return;
        }
        let addresses = self.addresses.get_or_insert_with(device_queues::addresses);
        let device_of = |ip: IpAddr| {
            addresses
                .iter()
                .find(|(own, _)| *own == ip)
                .map(|(_, name)| name.clone())
        };
        for queue in &full {
            let device = self.devices.entry(queue.device.clone()).or_default();
            device.looks += 1;
            device.kind.clone_from(&queue.kind);
            device.limit = queue.limit;
            device.backlog = device.backlog.max(queue.backlog);
            device.first = device.first.or(Some((queue.sent, now)));
            device.last = Some((queue.sent, now));
        }
        let sockets = connections().into_iter().chain(datagrams());
        for one in sockets.filter(|one| one.unsent > 0 && one.inode != 0) {
            let device = match one.local.ip() {
                // One that is bound to no address may send by any: by the one that has a queue, if that is the only one.
                ip if ip.is_unspecified() => full
                    .first()
                    .filter(|_| full.len() == 1)
                    .map(|queue| queue.device.clone()),
                ip => device_of(ip.to_canonical()),
            };
            let Some(device) = device.and_then(|name| self.devices.get_mut(&name)) else {
                continue;
            };
            let socket = device.sockets.entry(one.inode).or_insert(Socket {
                bytes: 0,
                most: 0,
                looks: 0,
                ends: (one.local, one.peer),
            });
            socket.bytes += u64::from(one.unsent);
            socket.most = socket.most.max(u64::from(one.unsent));
            socket.looks += 1;
        }
    }

    /// Who waits for a device, and who fills its queue; `own` is the process that looks.
    pub(super) fn finish(self, root: &Root, own: u32) -> Vec<Waits> {
        let slow = self.devices.into_iter().filter_map(|(name, device)| {
            let often =
                device.looks >= MIN_LOOKS && f64::from(device.looks) >= MIN_SHARE * f64::from(self.looks);
            let ((before, from), (after, to)) = device.first.zip(device.last)?;
            let rate = after.saturating_sub(before) as f64 / (to - from);
            let ns = (device.backlog as f64 / rate * SECOND) as Ns;
            (often && to > from && rate > 0.0 && ns >= MIN_DELAY_NS).then_some((name, device, rate, ns))
        });
        let slow: Vec<_> = slow.collect();
        if slow.is_empty() {
            return Vec::new();
        }
        let wanted: HashSet<Open> = slow
            .iter()
            .flat_map(|(_, device, ..)| device.sockets.keys())
            .map(|inode| Open::Socket(*inode))
            .collect();
        let holders = descriptors::holders(root, &wanted, own);
        let of = |inode: u64| holders.get(&Open::Socket(inode))?.first().copied();
        let mut found = Vec::new();
        for (name, device, rate, ns) in slow {
            let mut by_process: BTreeMap<u32, (u64, u64, Vec<&Socket>)> = BTreeMap::new();
            for (inode, socket) in &device.sockets {
                let Some(pid) = of(*inode) else { continue };
                let known = by_process.entry(pid).or_default();
                known.0 += socket.bytes;
                known.1 += socket.most;
                known.2.push(socket);
            }
            let all: u64 = by_process.values().map(|(bytes, ..)| bytes).sum();
            let Some((holder, (bytes, taken, _))) = by_process.iter().max_by_key(|(_, (bytes, ..))| *bytes)
            else {
                continue;
            };
            if (*bytes as f64) < MIN_TAKEN_SHARE * all as f64 {
                continue;
            }
            let queue = DeviceQueue {
                kind: device.kind.clone(),
                backlog: device.backlog,
                rate: rate as u64,
                limit: device.limit,
                taken: *taken,
            };
            // What a program that fills the queue itself has in it waits for nobody else.
            let small = |bytes: u64| (bytes as f64) < MIN_TAKEN_SHARE * all as f64 / 2.0;
            let often =
                |socket: &&&Socket| f64::from(socket.looks) >= MIN_SHARE * f64::from(device.looks) / 2.0;
            for (pid, (bytes, _, sockets)) in &by_process {
                if pid == holder || !small(*bytes) {
                    continue;
                }
                for socket in sockets.iter().filter(often) {
                    found.push((
                        Waits {
                            pid: *pid,
                            holder: *holder,
                            device: name.clone(),
                            ns,
                            queue: queue.clone(),
                            asked_by: None,
                        },
                        socket.ends,
                    ));
                }
            }
        }
        found.truncate(MAX_WAITS);
        let ends: HashSet<(SocketAddr, SocketAddr)> =
            found.iter().map(|(_, (local, peer))| (*peer, *local)).collect();
        let others = elsewhere(root, own, &ends);
        let with = |(waits, (local, peer)): (Waits, (SocketAddr, SocketAddr))| Waits {
            asked_by: others.get(&(peer, local)).copied(),
            ..waits
        };
        found.into_iter().map(with).collect()
    }
}

/// Who has these ends of connections in other network namespaces of this machine.
fn elsewhere(
    root: &Root,
    own: u32,
    ends: &HashSet<(SocketAddr, SocketAddr)>,
) -> HashMap<(SocketAddr, SocketAddr), u32> {
    if ends.is_empty() {
        return HashMap::new();
    }
    let namespace = |pid: u32| std::fs::read_link(root.proc.join(pid.to_string()).join("ns/net")).ok();
    let mut seen: HashSet<_> = namespace(own).into_iter().collect();
    let mut inodes: HashMap<u64, (SocketAddr, SocketAddr)> = HashMap::new();
    for pid in tasks::processes(root) {
        if seen.len() > MAX_NAMESPACES {
            break;
        }
        let Some(name) = namespace(pid) else { continue };
        if !seen.insert(name) {
            continue;
        }
        for file in ["net/tcp", "net/tcp6"] {
            let text = text_if_there(&root.proc.join(pid.to_string()).join(file)).unwrap_or_default();
            for line in text.lines().skip(1).take(MAX_LINES) {
                if let Some((local, peer, inode)) = connection(line)
                    && ends.contains(&(local, peer))
                {
                    inodes.insert(inode, (local, peer));
                }
            }
        }
    }
    let wanted: HashSet<Open> = inodes.keys().map(|inode| Open::Socket(*inode)).collect();
    if wanted.is_empty() {
        return HashMap::new();
    }
    let holders = descriptors::holders(root, &wanted, own);
    let known = inodes.into_iter().filter_map(|(inode, ends)| {
        let pid = holders.get(&Open::Socket(inode))?.first()?;
        Some((ends, *pid))
    });
    known.collect()
}

/// A line of `/proc/PID/net/tcp`.
fn connection(line: &str) -> Option<(SocketAddr, SocketAddr, u64)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, peer) = (end(fields.next()?)?, end(fields.next()?)?);
    Some((local, peer, fields.nth(6)?.parse().ok()?))
}

/// `0100007F:1F90`: an address in words of the machine's own order, and a port.
fn end(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for word in ip.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip: IpAddr = match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok()?.into(),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::{Devices, connection};
    use holdup_proc::Root;
    use holdup_proc::conversations::Connection;
    use holdup_proc::device_queues::DeviceQueue;
    use std::net::SocketAddr;
    use std::os::unix::fs::symlink;

    fn socket(local: &str, peer: &str, inode: u64, unsent: u32) -> Connection {
        Connection {
            unsent,
            ..Connection::at_rest(local.parse().unwrap(), peer.parse().unwrap(), inode)
        }
    }

    fn connections() -> Vec<Connection> {
        vec![
            socket("10.0.0.1:7001", "10.0.0.2:40001", 71, 5),
            socket("192.168.0.1:7001", "192.168.0.9:40001", 72, 900_000),
            socket("10.0.0.1:7001", "10.0.0.2:40002", 73, 0),
        ]
    }

    fn datagrams() -> Vec<Connection> {
        vec![socket("10.0.0.1:5000", "10.0.0.2:6000", 81, 160_000)]
    }

    /// A machine whose process 7 answers, 8 sends datagrams, 9 sends by another device, and 20, in another network namespace, has asked 7.
    fn found(backlog: u64, rate: u64) -> Vec<(u32, u32, Option<u32>, u64)> {
        let folder = tempfile::tempdir().unwrap();
        for (pid, sockets, namespace) in [
            (1, vec![], "1"),
            (7, vec![71, 73], "1"),
            (8, vec![81], "1"),
            (9, vec![72], "1"),
            (20, vec![91], "2"),
        ] {
            let process = folder.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(process.join("fd")).unwrap();
            std::fs::create_dir_all(process.join("ns")).unwrap();
            std::fs::create_dir_all(process.join("net")).unwrap();
            symlink(format!("net:[{namespace}]"), process.join("ns/net")).unwrap();
            for (number, inode) in sockets.into_iter().enumerate() {
                symlink(
                    format!("socket:[{inode}]"),
                    process.join("fd").join(number.to_string()),
                )
                .unwrap();
            }
        }
        let line = "  sl  local_address rem_address\n   0: 0200000A:9C41 0100000A:1B59 01 00000000:00000000 00:00000000 00000000  1000        0 91 1 0\n";
        std::fs::write(folder.path().join("proc/20/net/tcp"), line).unwrap();
        let root = Root::below(folder.path());
        let mut devices = Devices {
            addresses: Some(vec![
                ("10.0.0.1".parse().unwrap(), "wan".to_owned()),
                ("192.168.0.1".parse().unwrap(), "eth0".to_owned()),
            ]),
            ..Devices::default()
        };
        for turn in 0..5 {
            let queue = DeviceQueue {
                device: "wan".to_owned(),
                kind: "tbf".to_owned(),
                backlog,
                sent: rate * turn,
                limit: None,
            };
            devices.turn(turn as f64, &[queue], connections, datagrams);
        }
        let waits = devices.finish(&root, 1).into_iter();
        waits
            .map(|one| (one.pid, one.holder, one.asked_by, one.ns))
            .collect()
    }

    #[test]
    fn whose_bytes_stand_behind_those_that_fill_a_queue_is_told() {
        assert_eq!(found(180_000, 60_000), [(7, 8, Some(20), 3_000_000_000)]);
    }

    #[test]
    fn a_queue_that_is_soon_empty_holds_nobody_up() {
        assert!(found(180_000, 600_000).is_empty());
        assert!(found(0, 60_000).is_empty());
    }

    #[test]
    fn a_line_of_a_namespace_is_read() {
        let (local, peer, inode) = connection(
            "0: 0200000A:9C41 0100000A:1B59 01 00000000:00000000 00:00000000 00000000 1000 0 91 1 0",
        )
        .unwrap();
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(
            (local, peer, inode),
            (at("10.0.0.2:40001"), at("10.0.0.1:7001"), 91)
        );
        assert_eq!(connection("0: x:1 y:2"), None);
    }
}
