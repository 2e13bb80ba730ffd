//! Asks for names once more, between two runs, as the programs of this machine do: by the C library.
//!
//! In: names from the first run. Out: what came of each. A look-up may hang for as long as a server is silent, so each is made by a
//! thread of its own. It holds nothing, and waits for sockets only: it ends with its process.

use super::table::{Answer, is_host_name, reversed};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Questions under way at once.
const ASKERS: usize = 8;

/// Addresses of a name that are taken.
const MOST_ADDRESSES: usize = 64;

/// Families of addresses, as structs have them.
const AF_INET: libc::sa_family_t = libc::AF_INET as libc::sa_family_t;
const AF_INET6: libc::sa_family_t = libc::AF_INET6 as libc::sa_family_t;

/// After which time without news it is looked at whether to go on.
const PERIOD: Duration = Duration::from_millis(20);

/// Asks for all of these; what has no answer when it is to be gone on no more has none.
pub(super) fn ask<'a>(
    names: impl Iterator<Item = &'a str>,
    limit: Duration,
    mut go_on: impl FnMut() -> bool,
) -> BTreeMap<String, Answer> {
    let names: Vec<String> = names.map(str::to_owned).collect();
    let mut answers: BTreeMap<String, Answer> =
        names.iter().map(|name| (name.clone(), Answer::Nothing)).collect();
    let mut open = names.len();
    let names = Arc::new(Mutex::new(names.into_iter()));
    let (tell, found) = channel();
    for _ in 0..ASKERS.min(open) {
        let (names, tell) = (Arc::clone(&names), tell.clone());
        let asker = std::thread::Builder::new().spawn(move || {
            let next = || names.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some(name) = next() {
                let answer = answer(&name);
                if tell.send((name, answer)).is_err() {
                    return;
                }
            }
        });
        drop(asker);
    }
    drop(tell);
    let began = Instant::now();
    while open > 0 && began.elapsed() < limit && go_on() {
        match found.recv_timeout(PERIOD) {
            Ok((name, answer)) => {
                answers.insert(name, answer);
                open -= 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    answers
}

fn answer(name: &str) -> Answer {
    if !is_host_name(name) {
        return Answer::Nothing;
    }
    if let Some(address) = reversed(name) {
        return name_of(address).map_or(Answer::Nothing, |name| Answer::Name(address, name));
    }
    // With a dot at its end it is asked for as it is, whatever the search list.
    let Ok(found) = (format!("{name}."), 0).to_socket_addrs() else {
        return Answer::Nothing;
    };
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found.map(|found| found.ip()).take(MOST_ADDRESSES) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    match addresses.is_empty() {
        true => Answer::Nothing,
        false => Answer::Addresses(addresses),
    }
}

/// The name of an address; `None` where it has none, or one that is no host name.
fn name_of(address: IpAddr) -> Option<String> {
    match address {
        IpAddr::V4(address) => name_at(&libc::sockaddr_in {
            sin_family: AF_INET,
            sin_port: 0,
            sin_addr: libc::in_addr {
                s_addr: u32::from(address).to_be(),
            },
            sin_zero: [0; 8],
        }),
        IpAddr::V6(address) => name_at(&libc::sockaddr_in6 {
            sin6_family: AF_INET6,
            sin6_port: 0,
            sin6_flowinfo: 0,
            sin6_addr: libc::in6_addr {
                s6_addr: address.octets(),
            },
            sin6_scope_id: 0,
        }),
    }
}

/// `address` is one of the structs that begin with a family.
fn name_at<A>(address: &A) -> Option<String> {
    let mut name = [0_u8; libc::NI_MAXHOST as usize];
    let length = libc::socklen_t::try_from(size_of::<A>()).ok()?;
    // SAFETY: an address with its length, and a buffer with its length; no service is asked for.
    let failed = unsafe {
        libc::getnameinfo(
            (&raw const *address).cast(),
            length,
            name.as_mut_ptr().cast(),
            libc::NI_MAXHOST,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    let name = CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?;
    (failed == 0 && is_host_name(name)).then(|| name.to_owned())
}
