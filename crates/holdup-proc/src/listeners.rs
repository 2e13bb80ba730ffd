//! `/proc/net/tcp` and `tcp6`: who listens in a network namespace, and how many clients wait there to be accepted.
//!
//! The kernel lists listeners before connections, of which there may be a million: reading ends at the first line
//! that is no listener's.

use crate::root::Root;
use holdup_evidence::facts::Listener;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The state `LISTEN`, as the file has it.
const LISTEN: &str = "0A";

/// Most that is read of one file, bytes: some ten thousand listeners.
const MAX_BYTES: u64 = 2 << 20;

/// All listeners of the reader's own network namespace; what cannot be read or understood is left out.
pub fn read(root: &Root) -> Vec<Listener> {
    below(&root.proc)
}

/// The same of the network namespace that a process is in.
#[must_use]
pub fn of_process(root: &Root, pid: u32) -> Vec<Listener> {
    below(&root.proc.join(pid.to_string()))
}

fn below(folder: &Path) -> Vec<Listener> {
    let mut listeners = Vec::new();
    for file in ["net/tcp", "net/tcp6"] {
        let Ok(file) = File::open(folder.join(file)) else {
            continue;
        };
        let lines = BufReader::new(file.take(MAX_BYTES)).lines().skip(1);
        listeners.extend(lines.map_while(|line| listener(&line.ok()?)));
    }
    listeners
}

/// `  0: 0100007F:2328 00000000:0000 0A 00000000:00000001 …`: number, own address, peer, state, queues.
fn listener(line: &str) -> Option<Listener> {
    let mut words = line.split_ascii_whitespace();
    let (_, local, _) = (words.next()?, words.next()?, words.next()?);
    if words.next()? != LISTEN {
        return None;
    }
    let (_, waiting) = words.next()?.split_once(':')?;
    Some(Listener {
        address: address(local)?,
        waiting: u32::from_str_radix(waiting, 16).ok()?,
        ..Listener::default()
    })
}

/// `0100007F:2328`, an address and a port as these tables have them.
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    // Each group of eight digits is a number in this machine's byte order.
    let group = |at: usize| -> Option<[u8; 4]> {
        let digits = ip.get(at..at + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(group(0)?).into(),
        32 => {
            let bytes = [group(0)?, group(8)?, group(16)?, group(24)?].concat();
            Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::root::Tree;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    #[test]
    fn listeners_come_first_and_reading_ends_with_them() {
        let four = format!(
            "{HEAD}   0: 0100007F:2328 00000000:0000 0A 00000000:00000002 00:00000000 00000000     0        0 77 2\n   \
             1: 0100007F:8D46 0100007F:2328 01 00000000:00000000 00:00000000 00000000     0        0 78 1\n   \
             2: 0100007F:2329 00000000:0000 0A 00000000:00000009 00:00000000 00000000     0        0 79 2\n"
        );
        let six = format!(
            "{HEAD}   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:0000000A 00:0 0 0 0 5 2\n"
        );
        let tree = Tree::new(&[("proc/net/tcp", &four), ("proc/net/tcp6", &six)]);
        let found: Vec<(String, u32)> = read(&tree.root)
            .into_iter()
            .map(|listener| (listener.address.to_string(), listener.waiting))
            .collect();
        let expected = [("127.0.0.1:9000".to_owned(), 2), ("[::1]:80".to_owned(), 10)];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        for line in [
            "",
            "x",
            "0: 0100007F 0 0A 0:0",
            "0: 01:1 0 0A 0:0",
            "0: é0000000:1 0 0A 0:0",
            "0: 0100007F:2328 0:0 0A 0",
        ] {
            let tree = Tree::new(&[("proc/net/tcp", &format!("{HEAD}{line}\n"))]);
            assert_eq!(read(&tree.root), [], "{line}");
        }
        assert_eq!(read(&Tree::new(&[]).root), []);
    }
}
