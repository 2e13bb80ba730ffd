//! Without `net.dns`: names are answered from a table, taken when the first run has shown which are asked for.
//!
//! The table is `/etc/hosts` with more lines, in its place for CMD alone; where `/etc/nsswitch.conf` has something else asked before
//! files, it says files first. The C libraries read both, and so does the resolver that Go links into static programs. The network
//! stays as it is: a name that is not in the table is asked for as ever. A name server of holdup's own would need a network namespace to
//! listen in, and CMD would lose the network with which it does its work.
//!
//! The names are those of the questions that were sent, so it takes tracing; what is asked over TCP or TLS, or of a cache on this
//! machine, shows no name.

use super::{Means, Way};
use holdup_evidence::units::share as percent;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;

/// Of all waiting for names: what may have been for names that were not seen. As much may be left of a wait that was taken away.
const MOST_UNSEEN: f64 = 0.10;

pub(super) const WAY: Way = Way {
    name: "net.dns",
    causes: &[Cause::NetDns],
    means: Means::Names,
    how: "/etc/hosts has the addresses of the names that the first run looked up, and programs read it before they query a name \
          server; holdup looks up each name once more to get its address",
    risk: "freshness: /etc/hosts keeps the old address when a name gets another one, and then CMD connects to the old server; load that \
           a name spreads over several addresses may go to one of them",
    escapes: "programs that query name servers themselves (dig, nginx, dns.resolve of Node.js), queries for other records than addresses \
              (MX, SRV, TXT), and names that the first run did not look up",
    settles: false,
    refuses,
};

/// Why what this run waited for can't be answered from a table; `None` if it can.
fn refuses(as_is: &Attributed) -> Option<String> {
    let waits = || as_is.waits.iter().filter(|wait| wait.cause == Cause::NetDns);
    let unseen = || waits().filter(|wait| wait.resource.detail.name.is_none());
    let all: Ns = waits().map(|wait| wait.ns).sum();
    let share = unseen().map(|wait| wait.ns).sum::<Ns>() as f64 / (all as f64).max(1.0);
    let most = unseen().max_by_key(|wait| wait.ns)?;
    (share > MOST_UNSEEN).then(|| {
        format!(
            "{} of the time in name lookups was at {:?}, where holdup cannot observe the names: a cache on this machine (nscd and \
             others also answer for users and groups), or a name server over TCP or TLS; `holdup run --predict` estimates the effect of \
             faster answers",
            percent(share),
            most.resource.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::refuses;
    use holdup_evidence::Ns;
    use holdup_model::attributed::Attributed;
    use serde_json::json;

    fn waited(of: &[(&str, Option<&str>, Ns)]) -> Attributed {
        let waits = of.iter().map(|(at, name, ns)| {
            let detail = name.map_or(json!({}), |name| json!({"name": name}));
            let resource = json!({"kind": "socket", "name": at, "detail": detail});
            serde_json::from_value(json!({"cause": "net.dns", "ns": ns, "resource": resource})).unwrap()
        });
        Attributed {
            waits: waits.collect(),
            ..Attributed::default()
        }
    }

    #[test]
    fn names_that_were_not_seen_are_refused_with_who_was_asked() {
        let server = ("127.0.0.53:53", Some("db.shop.test"), 91);
        assert_eq!(refuses(&waited(&[server])), None);
        assert_eq!(refuses(&waited(&[server, ("/run/nscd/socket", None, 9)])), None);
        let why = refuses(&waited(&[server, ("/run/nscd/socket", None, 20)])).unwrap();
        assert!(why.starts_with("18") && why.contains("/run/nscd/socket"), "{why}");
        assert_eq!(refuses(&waited(&[])), None);
    }
}
