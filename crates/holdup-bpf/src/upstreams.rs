//! Servers that were asked for requests: how often, and how long their answers took.
//!
//! In: what the programs keep of each server (`bpf/requests.h`). Out: the same, with what is not answered yet until now.

use crate::entry;
use crate::skeleton::types::{upstream, upstream_key};
use holdup_evidence::{Ns, Upstream};
use libbpf_rs::{MapCore, MapFlags};
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// All of them, until `at`.
pub(crate) fn read(table: &impl MapCore, at: Ns) -> Vec<Upstream> {
    let entries = table.keys().filter_map(|key| {
        let value = table.lookup(&key, MapFlags::ANY).ok().flatten()?;
        of_entry(&key, &value, at)
    });
    let mut all: Vec<Upstream> = entries.collect();
    all.sort_by_key(|one| (one.server, one.pid));
    all
}

fn of_entry(key: &[u8], value: &[u8], at: Ns) -> Option<Upstream> {
    let word = |place: usize| entry::word(value, place);
    let long = |place: usize| entry::long(value, place);
    let in_flight = u64::from(word(offset_of!(upstream, in_flight))?);
    // The sum of many times is more than a time has bits; the difference is not.
    let begins = long(offset_of!(upstream, begins))?;
    let open = in_flight.wrapping_mul(at).wrapping_sub(begins);
    let ns = long(offset_of!(upstream, ns))?;
    let asked = u64::from(word(offset_of!(upstream, asked))?);
    let since = long(offset_of!(upstream, since))?;
    // A question that is counted on another CPU in this instant may have a begin and no place yet.
    let possible = in_flight.saturating_mul(at.saturating_sub(since));
    Some(Upstream {
        server: server(key)?,
        pid: word(offset_of!(upstream, pid))?,
        asked,
        ns: ns.saturating_add(open.min(possible)),
        most: u64::from(word(offset_of!(upstream, most))?),
        since,
    })
}

/// Where it is; nothing for a key that is cut short.
pub(crate) fn server(key: &[u8]) -> Option<Option<SocketAddr>> {
    let short = |place: usize| entry::short(key, place);
    let port = short(offset_of!(upstream_key, port))?;
    let address = key.get(offset_of!(upstream_key, address)..)?;
    let ip: Option<IpAddr> = match short(offset_of!(upstream_key, family))? {
        AF_INET => Some(Ipv4Addr::from(*address.first_chunk::<4>()?).into()),
        AF_INET6 => {
            let address = Ipv6Addr::from(*address.first_chunk::<16>()?);
            Some(address.to_ipv4_mapped().map_or(address.into(), IpAddr::V4))
        }
        _ => None,
    };
    Some(ip.map(|ip| SocketAddr::new(ip, port)))
}

#[cfg(test)]
mod tests {
    use super::of_entry;
    use crate::entry::bytes;
    use crate::skeleton::types::{upstream, upstream_key};

    #[test]
    fn what_is_not_answered_counts_until_the_end() {
        let mut key = upstream_key {
            family: 2,
            port: 5432,
            ..upstream_key::default()
        };
        key.address[..4].copy_from_slice(&[10, 0, 0, 7]);
        let value = upstream {
            ns: 100,
            asked: 9,
            in_flight: 2,
            most: 3,
            pid: 4,
            since: 500,
            begins: 900 + 950,
        };
        let found = of_entry(&bytes(&key), &bytes(&value), 1_000).unwrap();
        assert_eq!(found.server, Some("10.0.0.7:5432".parse().unwrap()));
        assert_eq!(
            (found.ns, found.asked, found.most, found.pid),
            (100 + 150, 9, 3, 4)
        );
        let torn = upstream { begins: 0, ..value };
        let found = of_entry(&bytes(&key), &bytes(&torn), 1_000).unwrap();
        assert_eq!(found.ns, 100 + 2 * 500, "never more than there was time");
        assert_eq!(of_entry(&bytes(&key), &[0; 9], 1_000), None, "cut short");
        key.family = 1;
        let unix = of_entry(&bytes(&key), &bytes(&value), 1_000).unwrap();
        assert_eq!(unix.server, None);
    }
}
