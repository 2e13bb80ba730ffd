//! `/proc/PID/net/{tcp,tcp6,unix}`: the sockets of a process's network namespace, by inode.
//!
//! In: a process. Out: which sockets listen, where, how many clients they have not accepted, and which two are the ends of one
//! connection on this machine. The tables may be long; what is beyond the limit is not known, and said to be.

mod ends;

use crate::listeners;
use crate::names;
use crate::root::Root;
use crate::sampling::sockets::unix_table;
use ends::{Ends, Found};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;

/// Most that is read of one table, bytes: some fifty thousand connections.
const MAX_BYTES: u64 = 8 << 20;

/// TCP's state `LISTEN`, as the tables have it.
const LISTEN: &str = "0A";

/// TCP's state `SYN_SENT`.
const SYN_SENT: &str = "02";

/// A Unix socket's flag that it listens (`__SO_ACCEPTCON`).
const ACCEPTS: u32 = 1 << 16;

/// `SOCK_DGRAM`, and `SS_UNCONNECTED`, as the table of Unix sockets has them.
const DATAGRAM: &str = "0002";
const UNCONNECTED: &str = "01";

/// What counts a Unix socket's uses from which on somebody else's socket is connected to it: its own process and its place in
/// the table are two.
const USED_BY_OTHERS: u32 = 3;

/// A TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// Own end.
    pub local: SocketAddr,
    /// Other end.
    pub peer: SocketAddr,
    /// Whether it listens.
    pub listens: bool,
    /// Whether it asked for a connection and has had no answer.
    pub knocks: bool,
    /// Of one that listens: clients that were not accepted yet.
    pub waiting: u32,
    /// Of a connection: bytes that have come and were not read.
    pub unread: u32,
    /// Of a connection: bytes that the other end has not acknowledged.
    pub unsent: u32,
    /// Whether it asks the other end now and then if there is room again: that has said that it takes nothing more.
    pub probes: bool,
    /// Inode; 0 of one that no process has.
    pub inode: u64,
}

/// A Unix socket with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unix {
    /// Its path, `@name` when abstract. Hostile text.
    pub path: String,
    /// Whether it listens, or takes datagrams from whoever knows its path; else it was accepted there.
    pub listens: bool,
    /// Whether it is for datagrams, has a path of its own, and looks connected: a client's is, and so is that of a server whose clients have
    /// gone. Only who asks for its peer knows.
    pub may_take: bool,
    /// Of one that listens: clients that it has not accepted, where that is known.
    pub waiting: Option<u32>,
}

/// The sockets of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sockets {
    /// TCP. To be changed by `set_tcp` alone once something was looked up.
    pub tcp: Vec<Tcp>,
    /// UDP, which has the same ends and no listeners.
    pub udp: Vec<Tcp>,
    /// Unix sockets without a path, by inode.
    pub unnamed: HashSet<u64>,
    /// Unix sockets with a path, by inode.
    pub unix: HashMap<u64, Unix>,
    /// What is looked up of TCP's.
    pub(crate) found: Found,
}

impl Sockets {
    /// Whether a socket is in the tables.
    #[must_use]
    pub fn knows(&self, inode: u64) -> bool {
        let ip = || {
            self.tcp
                .iter()
                .chain(&self.udp)
                .any(|socket| socket.inode == inode)
        };
        self.unix.contains_key(&inode) || self.unnamed.contains(&inode) || ip()
    }

    /// The socket of UDP that gets what is sent to an address of this machine.
    #[must_use]
    pub fn bound_to(&self, address: SocketAddr) -> Option<u64> {
        let ip = address.ip().to_canonical();
        let at = |socket: &&Tcp| {
            let own = socket.local.ip().to_canonical();
            // One of all addresses gets only what is sent to this machine; over loopback that is certain.
            let any = own.is_unspecified() && ip.is_loopback();
            let unconnected = socket.peer.port() == 0;
            socket.inode != 0 && unconnected && socket.local.port() == address.port() && (own == ip || any)
        };
        self.udp.iter().find(at).map(|socket| socket.inode)
    }

    /// Whether it asked for a connection and had no answer when the tables were read.
    #[must_use]
    pub fn knocks(&self, inode: u64) -> bool {
        let knocks = |socket: &Tcp| socket.inode == inode && socket.knocks;
        self.tcp.iter().any(knocks)
    }

    /// Whether a socket of TCP listens: a connection whose other end it is was not accepted yet.
    #[must_use]
    pub fn listens(&self, inode: u64) -> bool {
        self.ends().listening.contains(&inode)
    }

    /// Puts newly read sockets of TCP in the place of the known ones, and forgets what was looked up of those.
    pub(crate) fn set_tcp(&mut self, tcp: Vec<Tcp>) {
        self.tcp = tcp;
        self.found = Found::default();
    }

    fn ends(&self) -> &Ends {
        self.found.of(&self.tcp)
    }

    /// The inode of the other end of a connection between two sockets of this namespace; of one that nobody has accepted
    /// yet, that of the socket in whose queue it stands.
    #[must_use]
    pub fn other_end(&self, local: SocketAddr, peer: SocketAddr) -> Option<u64> {
        self.ends().other(local, peer)
    }
}

/// The sockets that a process can see; what cannot be read or understood is left out.
#[must_use]
pub fn read(root: &Root, pid: u32) -> Sockets {
    let mut sockets = without_tcp(root, pid);
    sockets.set_tcp(tcp_of(root, pid));
    sockets
}

/// The same without TCP's: the kernel looks through a table for those that has room for hundreds of thousands of connections, which takes
/// two hundred times as long as all else.
#[must_use]
pub fn without_tcp(root: &Root, pid: u32) -> Sockets {
    let table = unix_by_kernel(root, pid).unwrap_or_else(|| unix_by_text(&lines(root, pid, "unix")));
    let mut sockets = Sockets {
        udp: ip(root, pid, ["udp", "udp6"]),
        ..Sockets::default()
    };
    for (inode, socket) in table {
        match socket {
            Some(named) => drop(sockets.unix.insert(inode, named)),
            None => drop(sockets.unnamed.insert(inode)),
        }
    }
    sockets
}

/// Unix sockets by inode, with what is known of those that have a path.
type UnixTable = HashMap<u64, Option<Unix>>;

/// What the kernel tells of the own namespace by messages, in which a name cannot pretend to be another socket.
fn unix_by_kernel(root: &Root, pid: u32) -> Option<UnixTable> {
    if *root != Root::system() {
        return None;
    }
    let own = names::network_namespace(root, std::process::id())?;
    let same = names::network_namespace(root, pid)? == own;
    same.then(unix_table::read).flatten()
}

/// The table as text. Whoever binds a socket to an abstract name may have line ends in it, and so add lines about any socket: what two lines
/// tell of one is not known.
fn unix_by_text(lines: &[String]) -> UnixTable {
    let mut table = UnixTable::new();
    let mut told = HashSet::new();
    for line in lines {
        let of_named = || unix(line).map(|(inode, named)| (inode, Some(named)));
        let Some((inode, socket)) = unnamed(line).map(|inode| (inode, None)).or_else(of_named) else {
            continue;
        };
        match told.insert(inode) {
            true => drop(table.insert(inode, socket)),
            false => drop(table.remove(&inode)),
        }
    }
    table
}

/// UDP's alone.
#[must_use]
pub fn udp_of(root: &Root, pid: u32) -> Vec<Tcp> {
    ip(root, pid, ["udp", "udp6"])
}

/// TCP's alone.
#[must_use]
pub fn tcp_of(root: &Root, pid: u32) -> Vec<Tcp> {
    ip(root, pid, ["tcp", "tcp6"])
}

fn ip(root: &Root, pid: u32, files: [&str; 2]) -> Vec<Tcp> {
    let lines = files.into_iter().flat_map(|file| lines(root, pid, file));
    lines.filter_map(|line| tcp(&line)).collect()
}

/// A table's lines without its heading.
fn lines(root: &Root, pid: u32, file: &str) -> Vec<String> {
    let path = root.proc.join(pid.to_string()).join("net").join(file);
    let lines = File::open(path)
        .ok()
        .map(|file| BufReader::new(file.take(MAX_BYTES)).split(b'\n').skip(1));
    lines
        .into_iter()
        .flatten()
        .map_while(Result::ok)
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .collect()
}

/// How often a client of a process's network namespace found a listener's queue full, since it was made:
/// `ListenOverflows` of `/proc/PID/net/netstat`, a line of names above a line of numbers.
#[must_use]
pub fn overflows(root: &Root, pid: u32) -> Option<u64> {
    let file = root.proc.join(pid.to_string()).join("net/netstat");
    let text = std::fs::read_to_string(file).ok()?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut pairs = names
        .split_ascii_whitespace()
        .zip(numbers.split_ascii_whitespace());
    pairs.find(|(name, _)| *name == "ListenOverflows")?.1.parse().ok()
}

/// How the column about a connection's timer begins if that is the one for asking whether there is room again (`proc_net_tcp.rst` of the kernel).
const PROBES_ROOM: &str = "04:";

/// `  0: 0100007F:2328 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 …`.
fn tcp(line: &str) -> Option<Tcp> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let listens = *words.get(3)? == LISTEN;
    let (sent, received) = words.get(4)?.split_once(':')?;
    let count = |word: &str| u32::from_str_radix(word, 16).ok();
    let (sent, received) = (count(sent)?, count(received)?);
    Some(Tcp {
        local: listeners::address(words.get(1)?)?,
        peer: listeners::address(words.get(2)?)?,
        listens,
        knocks: *words.get(3)? == SYN_SENT,
        waiting: if listens { received } else { 0 },
        unread: if listens { 0 } else { received },
        unsent: if listens { 0 } else { sent },
        probes: words.get(5).is_some_and(|timer| timer.starts_with(PROBES_ROOM)),
        inode: words.get(9)?.parse().ok()?,
    })
}

/// The inode of a Unix socket that has no path.
fn unnamed(line: &str) -> Option<u64> {
    let rest = line.splitn(7, ' ').nth(6)?.trim();
    rest.parse().ok().filter(|_| is_of_table(line))
}

/// Whether a line has the columns that the kernel writes: what a name adds need not.
fn is_of_table(line: &str) -> bool {
    /// Digits of the columns between the address and the inode.
    const DIGITS: [usize; 5] = [8, 8, 8, 4, 2];
    let is_hex = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = line.split(' ');
    let address = words.next().and_then(|word| word.strip_suffix(':'));
    let columns = DIGITS.iter().all(|digits| {
        let word = words.next().unwrap_or_default();
        word.len() == *digits && is_hex(word)
    });
    address.is_some_and(is_hex) && columns
}

/// `0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/x.sock`.
fn unix(line: &str) -> Option<(u64, Unix)> {
    if !is_of_table(line) {
        return None;
    }
    let mut words = line.splitn(8, ' ').map(str::trim);
    let uses = u32::from_str_radix(words.nth(1)?, 16).ok()?;
    let flags = u32::from_str_radix(words.nth(1)?, 16).ok()?;
    let (kind, state) = (words.next()?, words.next()?);
    // Whoever connects a socket for datagrams makes both ends look connected.
    let takes_from_any = kind == DATAGRAM && (state == UNCONNECTED || uses >= USED_BY_OTHERS);
    let may_take = kind == DATAGRAM && !takes_from_any;
    // The inode is padded with blanks.
    let rest = line.splitn(7, ' ').nth(6)?.trim_start();
    let (inode, path) = rest.split_once(' ')?;
    Some((
        inode.parse().ok()?,
        Unix {
            path: path.to_owned(),
            // Clients of datagrams connect theirs, or have a name that the kernel chose, which is abstract.
            listens: flags & ACCEPTS != 0 || takes_from_any && !path.starts_with('@'),
            may_take: may_take && !path.starts_with('@'),
            waiting: None,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::{Sockets, Unix, overflows, read, without_tcp};
    use crate::root::{Root, Tree};

    #[test]
    fn both_ends_of_a_connection_are_found_and_who_listens() {
        let tree = Tree::new(&[
            (
                "proc/7/net/tcp",
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 100 1\n\
                 1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000 0 0 101 1\n\
                 2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 0 0 102 1\n\
                 3: 00000000:1F91 00000000:0000 0A 00000000:00000002 00:00000000 00000000 0 0 103 1\n\
                 4: 0100007F:1F91 0100007F:C351 01 00000000:00000000 00:00000000 00000000 0 0 0 1\n\
                 5: 0100007F:C351 0100007F:1F91 01 00000000:00000000 00:00000000 00000000 0 0 104 1\n\
                 6: 0100007F:C352 0100007F:1F91 02 00000001:00000000 01:00000063 00000001 0 0 105 1\n\
                 cut off\n",
            ),
            (
                "proc/7/net/unix",
                "Num       RefCount Protocol Flags    Type St Inode Path\n\
                 0000000000000000: 00000002 00000000 00010000 0001 01   201 /run/a b.sock\n\
                 0000000000000000: 00000003 00000000 00000000 0001 03   202 /run/a b.sock\n\
                 0000000000000000: 00000003 00000000 00000000 0001 03   203\n\
                 0000000000000000: 00000002 00000000 00000000 0002 01   204 /run/log\n\
                 0000000000000000: 00000002 00000000 00000000 0002 01   205 @0000a\n\
                 0000000000000000: 00000002 00000000 00000000 0002 03   206 /run/client\n\
                 0000000000000000: 0000001A 00000000 00000000 0002 03   207 /run/busy\n",
            ),
        ]);
        let sockets = read(&tree.root, 7);
        let (server, client) = (
            "127.0.0.1:8080".parse().unwrap(),
            "127.0.0.1:50000".parse().unwrap(),
        );
        assert_eq!(sockets.other_end(server, client), Some(102));
        assert_eq!(sockets.other_end(client, server), Some(101));
        assert_eq!(sockets.other_end(client, client), None);
        let (queued, at) = (
            "127.0.0.1:50001".parse().unwrap(),
            "127.0.0.1:8081".parse().unwrap(),
        );
        assert_eq!(
            sockets.other_end(queued, at),
            Some(103),
            "nobody has accepted it yet"
        );
        assert!(sockets.tcp[0].listens && !sockets.tcp[1].listens);
        assert_eq!(sockets.tcp[3].waiting, 2);
        assert!(sockets.tcp[6].knocks && !sockets.tcp[5].knocks);
        let path = "/run/a b.sock".to_owned();
        assert_eq!(
            sockets.unix[&201],
            Unix {
                path: path.clone(),
                listens: true,
                may_take: false,
                waiting: None,
            }
        );
        let accepted = Unix {
            path,
            listens: false,
            may_take: false,
            waiting: None,
        };
        assert_eq!(sockets.unix[&202], accepted);
        assert!(sockets.unix[&206].may_take && !sockets.unix[&207].may_take);
        assert!(
            sockets.unix[&204].listens && sockets.unix[&207].listens,
            "take datagrams"
        );
        assert!(
            !sockets.unix[&205].listens && !sockets.unix[&206].listens,
            "clients"
        );
        assert_eq!(sockets.unix.len(), 6);
    }

    /// What a process's table tells with these lines below its heading.
    fn told(lines: &str) -> Sockets {
        let text = format!("Num       RefCount Protocol Flags    Type St Inode Path\n{lines}");
        let tree = Tree::new(&[("proc/7/net/unix", text.as_str())]);
        without_tcp(&tree.root, 7)
    }

    const VICTIM: &str = "0000000000000000: 00000003 00000000 00000000 0001 03   202 /run/a.sock\n";

    #[test]
    fn a_name_with_line_ends_tells_nothing_of_another_socket() {
        let forged = "0000000000000000: 00000002 00000000 00000000 0002 01   300 @x\n\
                      0000000000000000: 00000002 00000000 00010000 0001 01 202 /run/dbus\n";
        for lines in [format!("{VICTIM}{forged}"), format!("{forged}{VICTIM}")] {
            let sockets = told(&lines);
            assert!(!sockets.unix.contains_key(&202), "neither is believed");
            assert_eq!(sockets.unix[&300].path, "@x");
        }
        let third = "0000000000000000: 00000002 00000000 00010000 0001 01 202 /run/x\n";
        assert!(!told(&format!("{VICTIM}{forged}{third}")).knows(202));
    }

    #[test]
    fn a_forged_line_without_a_path_tells_nothing_either() {
        let unnamed = "0000000000000000: 00000002 00000000 00000000 0001 03 202\n";
        assert!(!told(&format!("{VICTIM}{unnamed}")).knows(202));
        assert!(told(unnamed).unnamed.contains(&202));
    }

    #[test]
    fn a_line_without_the_kernels_columns_is_none_of_the_table() {
        for line in [
            "x 2 0 10000 1 1 202 /run/dbus\n",
            "0: 00000002 00000000 00010000 1 01 202 /run/dbus\n",
            "00: +0000002 00000000 00010000 0001 01 202 /run/dbus\n",
            "0000000000000000  00000002 00000000 00010000 0001 01 202 /run/dbus\n",
        ] {
            let sockets = told(&format!("{line}{VICTIM}"));
            assert_eq!(sockets.unix[&202].path, "/run/a.sock", "{line}");
        }
    }

    #[test]
    fn the_kernels_own_answer_does_not_care_for_names() {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a\nb");
        let listener = UnixListener::bind(&path).unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        let inode = {
            use std::os::fd::AsRawFd;
            let link = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
            let text = link.to_string_lossy().into_owned();
            text.trim_matches(|c: char| !c.is_ascii_digit())
                .parse::<u64>()
                .unwrap()
        };
        let forged = format!("x\n0000000000000000: 00000002 00000000 00000000 0001 01 {inode} /run/dbus");
        let name = SocketAddr::from_abstract_name(forged).unwrap();
        let _forger = UnixDatagram::bind_addr(&name).unwrap();
        let sockets = without_tcp(&Root::system(), std::process::id());
        // Where the kernel has no such answers, nothing is said of the socket.
        if let Some(one) = sockets.unix.get(&inode) {
            assert_eq!((one.path.as_str(), one.listens), (path.to_str().unwrap(), true));
            assert_eq!(one.waiting, Some(1));
        }
    }

    #[test]
    fn overflows_are_found_by_their_name() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 42 43\nIpExt: ListenOverflows\nIpExt: 7\n";
        let tree = Tree::new(&[("proc/7/net/netstat", text)]);
        assert_eq!(overflows(&tree.root, 7), Some(42));
        assert_eq!(overflows(&tree.root, 8), None);
    }
}
