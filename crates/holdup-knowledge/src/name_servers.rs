//! Name servers that pass questions on, and to whom, as their own arguments say.
//!
//! In: the name of a process and its arguments. Out: the servers that it was started to ask. A server that sends questions from sockets
//! without a peer shows nobody whom it asks; one that was reported so when it was started does.

use std::net::{IpAddr, SocketAddr};

/// dnsmasq, and its options that name a server to ask: `--server=[/domain/]ADDRESS[#PORT]`.
const DNSMASQ: &str = "dnsmasq";
const LONG: &str = "--server";
const SHORT: &str = "-S";

/// The port of name servers.
const PORT: u16 = 53;

/// Servers that are kept.
const MAX_SERVERS: usize = 8;

/// Whom it asks.
#[must_use]
pub fn forwards_to<'a>(name: &str, arguments: impl IntoIterator<Item = &'a str>) -> Vec<SocketAddr> {
    if name != DNSMASQ {
        return Vec::new();
    }
    let mut servers = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let value = match argument {
            LONG | SHORT => arguments.next(),
            other => other
                .strip_prefix(LONG)
                .and_then(|rest| rest.strip_prefix('='))
                .or_else(|| other.strip_prefix(SHORT)),
        };
        if servers.len() < MAX_SERVERS {
            servers.extend(value.and_then(server));
        }
    }
    servers
}

/// `[/domain/]ADDRESS[#PORT][@interface]`.
fn server(value: &str) -> Option<SocketAddr> {
    let value = value.rsplit('/').next()?;
    let value = value.split('@').next()?;
    let (address, port) = match value.split_once('#') {
        Some((address, port)) => (address, port.parse().ok()?),
        None => (value, PORT),
    };
    let address: IpAddr = address.parse().ok()?;
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::forwards_to;

    fn asked(name: &str, arguments: &[&str]) -> Vec<String> {
        let servers = forwards_to(name, arguments.iter().copied());
        servers.into_iter().map(|server| server.to_string()).collect()
    }

    #[test]
    fn dnsmasq_says_whom_it_asks() {
        let arguments = [
            "dnsmasq",
            "-k",
            "--server=127.0.0.1#5353",
            "-S",
            "/lan/192.0.2.1",
            "-S2001:db8::1@eth0",
        ];
        assert_eq!(
            asked("dnsmasq", &arguments),
            ["127.0.0.1:5353", "192.0.2.1:53", "[2001:db8::1]:53"]
        );
    }

    #[test]
    fn others_and_what_is_no_address_say_nothing() {
        assert!(asked("named", &["--server=127.0.0.1"]).is_empty());
        assert!(asked("dnsmasq", &["--server=/lan/", "--server", "--server=x#y", "-S"]).is_empty());
    }
}
