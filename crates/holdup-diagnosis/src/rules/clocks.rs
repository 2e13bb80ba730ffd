//! The length of a wait names its clock: time-outs and retransmissions have round lengths of their own.
//!
//! In: a length, the wait it belongs to, the machine's settings. Out: words that complete "which is …". A clock is
//! named only for the kind of wait that it belongs to: 5 s in a poll on a name server is the resolver's, 5 s of
//! sleep is nobody's but the program's.

use holdup_evidence::{Cause, Ns, SystemFacts};
use holdup_model::attributed::AttributedWait;

const MS: Ns = 1_000_000;
const SECOND: Ns = 1_000 * MS;

/// How much longer than its clock a wait may be, as one part in so many: retransmissions of connection requests were
/// measured up to 6 % late (1.06, 2.08, 3.11 … 7.18 s on Linux 6.18).
const LATE: Ns = 15;

/// How much shorter, as one part in so many: a timer never fires early, but the wait may begin a little after it.
const EARLY: Ns = 100;

/// Default time-out of one question to a name server, seconds: `RES_TIMEOUT` of the C library.
const RESOLVER_TIMEOUT: Ns = 5;

/// Instants at which an unanswered connection request has been repeated, seconds: 1 s doubling before Linux 6.5; four
/// more at equal distance before the doubling since.
const SYN_REPEATED: [Ns; 13] = [1, 2, 3, 4, 5, 7, 11, 15, 19, 31, 35, 63, 67];

/// When the kernel gives up connecting with the default number of repetitions, seconds: before and since Linux 6.5.
const SYN_GIVEN_UP: [Ns; 2] = [127, 131];

/// Range of the delayed acknowledgement, measured on Linux 6.18 with write-write-read and without TCP_NODELAY.
const DELAYED_ACK: std::ops::RangeInclusive<Ns> = 40 * MS..=45 * MS;

/// Default time-out of a method call on D-Bus, seconds.
const DBUS_CALL: Ns = 25;

/// Time that the C library gives the name service cache, seconds.
const NSCD_ANSWER: Ns = 5;

/// Default time-out of a SCSI disk command, seconds.
const SCSI_COMMAND: Ns = 30;

/// The clock that a wait of this length follows, if one fits the kind of wait. Completes "which is …".
#[must_use]
pub fn clock_of(length: Ns, wait: &AttributedWait, facts: &SystemFacts) -> Option<&'static str> {
    let is = |seconds: Ns| {
        let clock = seconds * SECOND;
        length >= clock - clock / EARLY && length <= clock + clock / LATE
    };
    let name = wait.resource.name.as_str();
    match wait.cause {
        Cause::NetDns if is(resolver_timeout(facts)) => {
            Some("the timeout of the resolver for one query to one name server")
        }
        Cause::NetConnect if SYN_GIVEN_UP.iter().any(|&seconds| is(seconds)) => {
            Some("the connect timeout of the kernel")
        }
        Cause::NetConnect if SYN_REPEATED.iter().any(|&seconds| is(seconds)) => {
            Some("the interval at which the kernel repeats an unanswered connection request")
        }
        Cause::NetReceive if DELAYED_ACK.contains(&length) => {
            Some("the timeout of the delayed acknowledgement: the sender holds small packets until then")
        }
        Cause::IpcUnix if name.contains("dbus") && is(DBUS_CALL) => Some("the timeout of a D-Bus call"),
        Cause::IpcUnix if name.contains("nscd") && is(NSCD_ANSWER) => {
            Some("the timeout of the C library for the name service cache")
        }
        Cause::DiskRead | Cause::DiskWrite | Cause::DiskSync if is(SCSI_COMMAND) => {
            Some("the timeout of the SCSI layer for one command")
        }
        _ => None,
    }
}

/// Seconds that the resolver gives one question: `options timeout:N` of `/etc/resolv.conf`, or the default.
fn resolver_timeout(facts: &SystemFacts) -> Ns {
    let options = facts.resolver.iter().flat_map(|resolver| &resolver.options);
    let given = options
        .filter_map(|option| option.strip_prefix("timeout:")?.parse::<u32>().ok())
        .next_back();
    given.map_or(RESOLVER_TIMEOUT, Ns::from)
}

#[cfg(test)]
mod tests {
    use super::{MS, SECOND, clock_of};
    use holdup_evidence::facts::ResolverFacts;
    use holdup_evidence::{Cause, SystemFacts};
    use holdup_model::attributed::AttributedWait;

    fn wait(cause: Cause, name: &str) -> AttributedWait {
        let mut wait: AttributedWait =
            serde_json::from_value(serde_json::json!({ "cause": cause })).expect("a cause is enough");
        wait.resource.name = name.into();
        wait
    }

    #[test]
    fn a_length_is_named_only_for_the_kind_of_wait_it_fits() {
        let facts = SystemFacts::default();
        let five = 5 * SECOND + 5 * MS;
        assert!(clock_of(five, &wait(Cause::NetDns, "192.0.2.1:53"), &facts).is_some());
        assert_eq!(clock_of(five, &wait(Cause::TimerSleep, ""), &facts), None);
        assert_eq!(
            clock_of(4 * SECOND, &wait(Cause::NetDns, "192.0.2.1:53"), &facts),
            None
        );
        assert_eq!(
            clock_of(25 * SECOND, &wait(Cause::IpcUnix, "/run/other.sock"), &facts),
            None
        );
        assert!(
            clock_of(
                25 * SECOND,
                &wait(Cause::IpcUnix, "/run/dbus/system_bus_socket"),
                &facts
            )
            .is_some()
        );
        assert!(clock_of(41 * MS, &wait(Cause::NetReceive, "192.0.2.1:80"), &facts).is_some());
    }

    #[test]
    fn measured_repetitions_of_a_connection_request_are_recognised() {
        let facts = SystemFacts::default();
        let connect = wait(Cause::NetConnect, "192.0.2.1:80");
        for measured in [1_060, 2_080, 3_110, 4_130, 5_160, 7_180] {
            assert!(
                clock_of(measured * MS, &connect, &facts).is_some(),
                "{measured} ms"
            );
        }
        assert_eq!(clock_of(1_500 * MS, &connect, &facts), None);
    }

    #[test]
    fn the_resolvers_own_option_sets_its_clock() {
        let resolver = ResolverFacts {
            servers: vec![],
            options: vec!["rotate".into(), "timeout:1".into()],
            ..ResolverFacts::default()
        };
        let facts = SystemFacts {
            resolver: Some(resolver),
            ..SystemFacts::default()
        };
        let dns = wait(Cause::NetDns, "192.0.2.1:53");
        assert!(clock_of(SECOND + MS, &dns, &facts).is_some());
        assert_eq!(clock_of(5 * SECOND, &dns, &facts), None);
    }
}
