//! The queues of this network namespace's devices: what stands in them, which no file of `/proc` tells.
//!
//! In: nothing. Out: the root queue of each device, as the kernel lists them (`rtnetlink(7)`); none where it refuses. It answers before the
//! answer is read, so nothing here waits.

use crate::listen_queues::{HEADER, list, word};
use std::collections::HashMap;
use std::net::IpAddr;

/// `RTM_GETQDISC`, `RTM_GETADDR` and `RTM_GETLINK` (linux/rtnetlink.h).
const GET_QUEUES: u16 = 38;
const GET_ADDRESSES: u16 = 22;
const GET_LINKS: u16 = 18;

/// Bytes of `struct ifinfomsg`, and the attribute with the name.
const LINK_HEAD: usize = 16;
const NAME: u16 = 3;

/// Bytes of `struct tcmsg`, where it has the device, and the parent; that of a root (`TC_H_ROOT`).
const QUEUE_HEAD: usize = 20;
const DEVICE: usize = 4;
const PARENT: usize = 12;
const ROOT_PARENT: u32 = u32::MAX;

/// Attributes: kind, options, statistics; in these bytes and what stands there; of `tbf` its parameters, with the place of its rate.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const STATISTICS: u16 = 7;
const BASIC: u16 = 1;
const QUEUED: u16 = 3;
const TBF_PARAMETERS: u16 = 1;
const TBF_RATE: usize = 8;

/// `struct tc_stats_queue`: packets, then bytes.
const BACKLOG: usize = 4;

/// Bytes of `struct ifaddrmsg`, where it has the device, and the attribute with the own address.
const ADDRESS_HEAD: usize = 8;
const LOCAL: u16 = 2;
const ADDRESS: u16 = 1;

/// A device's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceQueue {
    /// The device's name.
    pub device: String,
    /// The kind of queue.
    pub kind: String,
    /// Bytes that stand in it.
    pub backlog: u64,
    /// Bytes that have left it so far.
    pub sent: u64,
    /// Bytes that may leave it in a second, where it has such a limit.
    pub limit: Option<u64>,
}

/// The root queues of all devices now.
#[must_use]
pub fn read() -> Vec<DeviceQueue> {
    let mut found = Vec::new();
    list(
        libc::NETLINK_ROUTE,
        &request(GET_QUEUES, QUEUE_HEAD),
        &mut |message| {
            found.extend(message.get(HEADER..).and_then(queue));
        },
    );
    if found
        .iter()
        .all(|(_, queue): &(u32, DeviceQueue)| queue.backlog == 0)
    {
        return Vec::new();
    }
    let names = names();
    let named = found.into_iter().filter_map(|(device, queue)| {
        let device = names.get(&device)?.clone();
        Some(DeviceQueue { device, ..queue })
    });
    named.collect()
}

/// The addresses of this machine, each with its device.
#[must_use]
pub fn addresses() -> Vec<(IpAddr, String)> {
    let names = names();
    let mut found = Vec::new();
    list(
        libc::NETLINK_ROUTE,
        &request(GET_ADDRESSES, ADDRESS_HEAD),
        &mut |message| {
            found.extend(message.get(HEADER..).and_then(address));
        },
    );
    found
        .into_iter()
        .filter_map(|(device, ip): (u32, IpAddr)| Some((ip, names.get(&device)?.clone())))
        .collect()
}

/// Names of devices by their numbers. Not from `/sys`: that is of the network namespace of whoever mounted it.
fn names() -> HashMap<u32, String> {
    let mut found = HashMap::new();
    list(
        libc::NETLINK_ROUTE,
        &request(GET_LINKS, LINK_HEAD),
        &mut |message| {
            found.extend(message.get(HEADER..).and_then(link));
        },
    );
    found
}

fn link(body: &[u8]) -> Option<(u32, String)> {
    let name = attribute(body.get(LINK_HEAD..)?, NAME)?;
    let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
    Some((word(body, DEVICE)?, name))
}

/// A request for a list, with an empty head of so many bytes.
fn request(kind: u16, head: usize) -> Vec<u8> {
    /// `NLM_F_REQUEST | NLM_F_DUMP`.
    const LIST: u16 = 0x301;
    let mut bytes = Vec::with_capacity(HEADER + head);
    bytes.extend(((HEADER + head) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(LIST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.resize(HEADER + head, 0);
    bytes
}

fn queue(body: &[u8]) -> Option<(u32, DeviceQueue)> {
    if word(body, PARENT)? != ROOT_PARENT {
        return None;
    }
    let rest = body.get(QUEUE_HEAD..)?;
    let kind = attribute(rest, KIND)?;
    let kind = String::from_utf8_lossy(kind).trim_end_matches('\0').to_owned();
    let statistics = attribute(rest, STATISTICS)?;
    let basic = attribute(statistics, BASIC)?;
    let parameters = attribute(rest, OPTIONS).and_then(|options| attribute(options, TBF_PARAMETERS));
    let limit = parameters
        .filter(|_| kind == "tbf")
        .and_then(|bytes| word(bytes, TBF_RATE));
    let queue = DeviceQueue {
        device: String::new(),
        kind,
        backlog: u64::from(word(attribute(statistics, QUEUED)?, BACKLOG)?),
        sent: u64::from_ne_bytes(basic.get(..8)?.try_into().ok()?),
        limit: limit.filter(|rate| *rate > 0).map(u64::from),
    };
    Some((word(body, DEVICE)?, queue))
}

fn address(body: &[u8]) -> Option<(u32, IpAddr)> {
    let rest = body.get(ADDRESS_HEAD..)?;
    let bytes = attribute(rest, LOCAL).or_else(|| attribute(rest, ADDRESS))?;
    let ip: IpAddr = match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok()?.into(),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
        _ => return None,
    };
    Some((word(body, DEVICE)?, ip))
}

/// What the attribute of this type holds.
fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    /// Bits of a type that say how its bytes are to be read.
    const FLAGS: u16 = 0xc000;
    loop {
        let half = |at: usize| Some(u16::from_ne_bytes(rest.get(at..at + 2)?.try_into().ok()?));
        let length = usize::from(half(0)?);
        if length < 4 {
            return None;
        }
        if half(2)? & !FLAGS == wanted {
            return rest.get(4..length);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ADDRESS_HEAD, BASIC, DEVICE, DeviceQueue, KIND, LOCAL, OPTIONS, PARENT, QUEUE_HEAD, QUEUED,
        ROOT_PARENT, STATISTICS, TBF_PARAMETERS, address, addresses, queue, read,
    };
    use std::net::{IpAddr, Ipv4Addr};

    fn attribute(kind: u16, bytes: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        all.extend(((bytes.len() + 4) as u16).to_ne_bytes());
        all.extend(kind.to_ne_bytes());
        all.extend(bytes);
        all.resize(all.len().next_multiple_of(4), 0);
        all
    }

    fn message(kind: &str, parent: u32) -> Vec<u8> {
        let mut bytes = vec![0; QUEUE_HEAD];
        bytes[DEVICE..DEVICE + 4].copy_from_slice(&7u32.to_ne_bytes());
        bytes[PARENT..PARENT + 4].copy_from_slice(&parent.to_ne_bytes());
        bytes.extend(attribute(KIND, format!("{kind}\0").as_bytes()));
        let mut parameters = vec![0; 36];
        parameters[8..12].copy_from_slice(&62_500u32.to_ne_bytes());
        bytes.extend(attribute(OPTIONS, &attribute(TBF_PARAMETERS, &parameters)));
        let basic = attribute(BASIC, &[9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        let mut queued = vec![0; 20];
        queued[4..8].copy_from_slice(&186_459u32.to_ne_bytes());
        bytes.extend(attribute(
            STATISTICS,
            &[basic, attribute(QUEUED, &queued)].concat(),
        ));
        bytes
    }

    #[test]
    fn the_queue_of_a_device_is_taken_apart() {
        let expected = DeviceQueue {
            device: String::new(),
            kind: "tbf".to_owned(),
            backlog: 186_459,
            sent: 9,
            limit: Some(62_500),
        };
        assert_eq!(queue(&message("tbf", ROOT_PARENT)), Some((7, expected)));
        assert_eq!(queue(&message("fq", ROOT_PARENT)).unwrap().1.limit, None);
        assert_eq!(queue(&message("tbf", 1)), None, "a part of another one");
    }

    #[test]
    fn addresses_have_their_devices_and_whatever_is_cut_is_left_out() {
        let mut bytes = vec![0; ADDRESS_HEAD];
        bytes[DEVICE..DEVICE + 4].copy_from_slice(&7u32.to_ne_bytes());
        bytes.extend(attribute(LOCAL, &[10, 0, 0, 9]));
        assert_eq!(address(&bytes), Some((7, Ipv4Addr::new(10, 0, 0, 9).into())));
        let all = message("tbf", ROOT_PARENT);
        for length in 0..all.len() {
            let _ = queue(&all[..length]);
        }
        assert_eq!(address(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn this_machine_answers() {
        let own = addresses();
        assert!(
            own.iter()
                .any(|(ip, device)| *ip == IpAddr::from(Ipv4Addr::LOCALHOST) && device == "lo")
        );
        for queue in read() {
            assert!(!queue.device.is_empty() && !queue.kind.is_empty());
        }
    }
}
