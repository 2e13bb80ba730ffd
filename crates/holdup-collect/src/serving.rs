//! Which processes serve others: they have sockets that listen, or connections that were accepted.
//!
//! In: processes. Out: those that serve, and where, as the tables of sockets and the links in `/proc/PID/fd` show.

use super::moment::Moment;
use holdup_evidence::{NotMeasured, Serving, SocketAddress};
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::sockets::{Sockets, Unix};
use holdup_proc::{names, tasks};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

/// Processes beyond which nobody's children are looked at: who observes so many has asked for the workers, too.
const MAX_PROCESSES: usize = 64;

/// Sockets for datagrams whose peers are asked for in a network namespace, one question to the kernel each.
const PEERS_ASKED_MAX: usize = 64;

/// What of a network namespace matters here.
#[derive(Debug, Default)]
struct Namespace {
    /// Sockets that listen or were accepted, by inode.
    serving: HashSet<u64>,
}

/// Looks at these processes.
pub(super) fn look(pids: &[u32], moment: &mut Moment) -> Serving {
    let mut namespaces: HashMap<Option<String>, Namespace> = HashMap::new();
    let mut found = Serving::default();
    let all: BTreeSet<u32> = pids.iter().copied().collect();
    for pid in pids {
        let namespace = namespaces
            .entry(moment.namespace(*pid))
            .or_insert_with(|| namespace(&moment.sockets(*pid), &mut found.addresses));
        let its = moment.ends(*pid).map(|ends| &ends.sockets & &namespace.serving);
        let Some(its) = its.filter(|its| !its.is_empty()) else {
            continue;
        };
        found.processes.push(*pid);
        if its
            .iter()
            .any(|inode| !children_at(*pid, &all, *inode, moment).is_empty())
        {
            found.masters.push(*pid);
        }
    }
    found
}

/// The children of a process that run the same program and have this socket open, too, and are none of those that are observed.
/// Another program has inherited it by mistake.
pub(super) fn children_at(pid: u32, observed: &BTreeSet<u32>, inode: u64, moment: &mut Moment) -> Vec<u32> {
    if observed.len() > MAX_PROCESSES {
        return Vec::new();
    }
    let children = tasks::children(&moment.root, pid).into_iter();
    let others = children.filter(|child| !observed.contains(child));
    let name = names::comm(&moment.root, pid);
    let same = |child: &u32| names::comm(&moment.root, *child) == name;
    let others: Vec<u32> = others.filter(same).collect();
    let has_it = |child: &u32| {
        moment
            .ends(*child)
            .is_some_and(|ends| ends.sockets.contains(&inode))
    };
    others.into_iter().filter(has_it).collect()
}

/// What the children of a master do, who answer its clients and were not asked about: to be said, because the master rests.
pub(super) fn unwatched(masters: &[u32], observed: &[u32], moment: &Moment) -> Vec<NotMeasured> {
    let gap = |pid: &u32| {
        let name = names::comm(&moment.root, *pid)?;
        let same = |child: &u32| {
            !observed.contains(child) && names::comm(&moment.root, *child).as_ref() == Some(&name)
        };
        let children = tasks::children(&moment.root, *pid).into_iter().filter(same);
        let options: Vec<String> = children.map(|child| format!("-p {child}")).collect();
        Some(NotMeasured {
            what: format!("the worker processes of {name} (pid {pid})"),
            why: "they were not asked for".to_owned(),
            fix: format!("holdup attach {}", options.join(" ")),
        })
    };
    masters.iter().filter_map(gap).collect()
}

fn namespace(sockets: &Sockets, addresses: &mut Vec<SocketAddress>) -> Namespace {
    let listening = sockets.tcp.iter().filter(|socket| socket.listens);
    let listening: Vec<SocketAddr> = listening.map(|socket| socket.local).collect();
    let ports: HashSet<u16> = listening.iter().map(SocketAddr::port).collect();
    // Who connects to a socket for datagrams makes it look connected, too, also when it has gone again. A client's has a peer.
    let asked: HashSet<u64> = sockets
        .unix
        .iter()
        .filter(|(_, socket)| socket.may_take)
        .map(|(inode, _)| *inode)
        .take(PEERS_ASKED_MAX)
        .filter(|inode| unix_peers::of(*inode).is_none())
        .collect();
    let takes = |(inode, socket): &(&u64, &Unix)| socket.listens || asked.contains(*inode);
    let listening_paths = sockets.unix.iter().filter(takes).map(|(_, socket)| socket);
    // Where a tool may ask a Java virtual machine, nobody is served.
    let listening_paths = listening_paths.filter(|socket| !holdup_jvm::attach::is_for_tools(&socket.path));
    let paths: HashSet<&str> = listening_paths.map(|socket| socket.path.as_str()).collect();
    let tcp = sockets
        .tcp
        .iter()
        .filter(|socket| ports.contains(&socket.local.port()))
        .map(|socket| socket.inode);
    let unix = sockets
        .unix
        .iter()
        .filter(|(_, socket)| paths.contains(socket.path.as_str()))
        .map(|(inode, _)| *inode);
    let serving = tcp.chain(unix).filter(|inode| *inode != 0).collect();
    addresses.extend(listening.into_iter().map(SocketAddress::Inet));
    addresses.extend(paths.into_iter().map(|path| SocketAddress::Unix(path.to_owned())));
    Namespace { serving }
}

#[cfg(test)]
mod tests {
    use super::look;
    use holdup_evidence::SocketAddress;
    use std::net::TcpListener;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn a_listener_serves() {
        let own = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = SocketAddress::Inet(listener.local_addr().unwrap());
        let found = look(&[own], &mut super::Moment::now());
        assert_eq!(found.processes, [own]);
        assert!(found.addresses.contains(&address));
    }

    #[test]
    fn who_takes_datagrams_serves_also_when_his_client_has_gone_and_the_client_does_not() {
        let folder = std::env::temp_dir().join(format!("holdup-datagrams-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name);
        let server = UnixDatagram::bind(path("server")).unwrap();
        let client = UnixDatagram::bind(path("client")).unwrap();
        client.connect(path("server")).unwrap();
        let passing = UnixDatagram::unbound().unwrap();
        passing.connect(path("server")).unwrap();
        drop(passing);
        let found = look(&[std::process::id()], &mut super::Moment::now());
        let serves = |name: &str| {
            let path = path(name).to_string_lossy().into_owned();
            found.addresses.contains(&SocketAddress::Unix(path))
        };
        let found = (serves("server"), serves("client"));
        drop(server);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, (true, false));
    }
}
