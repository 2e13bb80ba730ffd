//! By which device packets leave this machine, and whether its queue paces them.
//!
//! In: an address. Out: a [`Device`], by the kernel's own answers about routes and queues (`rtnetlink`), which anybody may ask for in his
//! own network namespace.

use super::diag::{self, Diag, HEADER};
use crate::root::{Root, text_if_there};
use std::net::{IpAddr, SocketAddr};

/// `RTM_NEWROUTE`, `RTM_GETROUTE`, `RTA_DST`, `RTA_OIF` (linux/rtnetlink.h), and bytes of `struct rtmsg`.
const ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const TO: u16 = 1;
const OUT_BY: u16 = 4;
const ROUTE_MESSAGE: usize = 12;

/// `RTM_NEWQDISC`, `RTM_GETQDISC`, `TCA_KIND`, `TC_H_ROOT`, and bytes of `struct tcmsg`.
const QUEUE: u16 = 36;
const GET_QUEUE: u16 = 38;
const KIND: u16 = 1;
const AT_ROOT: u32 = u32::MAX;
const QUEUE_MESSAGE: usize = 20;

/// `RTM_NEWLINK`, `RTM_GETLINK`, `IFLA_IFNAME`, and bytes of `struct ifinfomsg`.
const LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NAME: u16 = 3;
const LINK_MESSAGE: usize = 16;

/// The queue that holds each packet until its time has come.
const PACES: &str = "fq";

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Whether its queue sends each packet at its own time: what stands there is not held up by the device.
    pub paces: bool,
}

/// The device by which packets to an address leave, by the kernel's own choice of route.
pub(in crate::sampling) fn device(to: SocketAddr) -> Option<Device> {
    let diag = Diag::open(libc::NETLINK_ROUTE)?;
    let answer = diag.ask(GET_ROUTE, &route_request(to.ip().to_canonical())?)?;
    if diag::kind(&answer)? != ROUTE {
        return None;
    }
    let index = diag::word(diag::attribute(&answer, HEADER + ROUTE_MESSAGE, OUT_BY)?, 0)?;
    Some(Device {
        name: name(&diag, index)?,
        paces: paces(&diag, index),
    })
}

fn route_request(to: IpAddr) -> Option<Vec<u8>> {
    let (family, address) = match to {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let bits = u8::try_from(address.len() * 8).ok()?;
    let mut request = vec![family as u8, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    request.extend(u16::try_from(4 + address.len()).ok()?.to_ne_bytes());
    request.extend(TO.to_ne_bytes());
    request.extend(address);
    Some(request)
}

/// Whether a device's queue paces; of one with a queue for each CPU the ordinary kind of queue decides. A device without a queue has
/// none to tell of.
fn paces(diag: &Diag, index: u32) -> bool {
    let mut request = vec![0; 4];
    for word in [index, 0, AT_ROOT, 0] {
        request.extend(word.to_ne_bytes());
    }
    let answer = diag.ask(GET_QUEUE, &request).unwrap_or_default();
    if diag::kind(&answer) != Some(QUEUE) {
        return false;
    }
    let kind = diag::attribute(&answer, HEADER + QUEUE_MESSAGE, KIND).unwrap_or_default();
    let kind = kind.split(|byte| *byte == 0).next().unwrap_or_default();
    match std::str::from_utf8(kind) {
        Ok("mq" | "mqprio") => {
            let usual = text_if_there(&Root::system().proc.join("sys/net/core/default_qdisc"));
            usual.is_some_and(|usual| usual.trim() == PACES)
        }
        kind => kind == Ok(PACES),
    }
}

/// A device's name, asked for by the same way: a reader may make no other socket.
fn name(diag: &Diag, index: u32) -> Option<String> {
    let mut request = vec![0; 4];
    for word in [index, 0, 0] {
        request.extend(word.to_ne_bytes());
    }
    let answer = diag.ask(GET_LINK, &request)?;
    if diag::kind(&answer)? != LINK {
        return None;
    }
    let name = diag::attribute(&answer, HEADER + LINK_MESSAGE, NAME)?;
    let end = name.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::device;

    #[test]
    fn what_this_machine_sends_to_itself_leaves_by_its_loopback() {
        for own in ["127.0.0.1:1", "[::ffff:127.0.0.1]:1"] {
            let lo = device(own.parse().unwrap()).unwrap();
            assert_eq!((lo.name.as_str(), lo.paces), ("lo", false));
        }
    }
}
