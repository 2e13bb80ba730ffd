//! What the service manager says of its units, and services of themselves, in whichever log it stands.
//!
//! In: messages with the name of who wrote them. Out: unit events. A unit is called by its name where the line has it, and by
//! its description where only that is there (`Starting OpenBSD Secure Shell server...`).

use crate::find::find;
use crate::format::Understood;
use crate::formats::systemd;
use crate::gather::Out;
use crate::stamp::Stamp;
use holdup_evidence::observed::{SpanKind, UnitEvent, What};

/// Happenings of the usual course (started, reached) that are kept of one log between two boots: a machine that has been
/// up for long starts sessions and timers by the thousand.
const USUAL: u32 = 2_000;

/// The program that a boot waits with for its network, and what it says when its own limit is over, since 252 and before.
const NETWORK_WAITER: &[u8] = b"systemd-networkd-wait-online";
const NETWORK_NEVER_CAME: [&[u8]; 2] = [
    b"Timeout occurred while waiting for network connectivity",
    b"Event loop failed: Connection timed out",
];

/// One log's messages of units, as far as they have been read.
#[derive(Debug, Default)]
pub(crate) struct Manager {
    usual: u32,
}

impl Manager {
    /// Another boot begins.
    pub(crate) fn another_boot(&mut self) {
        self.usual = 0;
    }

    /// Takes a message of systemd's.
    pub(crate) fn message(
        &mut self,
        text: &[u8],
        stamp: Stamp,
        line: &[u8],
        out: &mut Out<'_>,
    ) -> Understood {
        self.message_of(None, text, stamp, line, out)
    }

    /// The same where the log names the unit that the message is about, beside the message.
    pub(crate) fn message_of(
        &mut self,
        unit: Option<&str>,
        text: &[u8],
        stamp: Stamp,
        line: &[u8],
        out: &mut Out<'_>,
    ) -> Understood {
        out.source().manager_lines += 1;
        if let Some(parts) = systemd::time::phases(text) {
            for (name, ns) in parts {
                out.span(systemd::length(SpanKind::BootPhase, name, ns, text, out));
            }
            return Understood::Evidence;
        }
        match of_systemd(text) {
            Some(event) => self.happened(named(event, unit), stamp, line, out),
            None => Understood::Ignorable,
        }
    }

    /// Takes a message of a service's.
    pub(crate) fn of_service(
        &mut self,
        process: &[u8],
        text: &[u8],
        stamp: Stamp,
        line: &[u8],
        out: &mut Out<'_>,
    ) -> Understood {
        let event = if let Some(on) = listening(text) {
            UnitEvent::Listening {
                process: owned(process),
                on: owned(on),
            }
        } else if process == NETWORK_WAITER && NETWORK_NEVER_CAME.iter().any(|said| text.starts_with(said)) {
            UnitEvent::TimedOut {
                unit: owned(process) + ".service",
                step: "wait for the network".to_owned(),
            }
        } else {
            return Understood::Ignorable;
        };
        self.happened(event, stamp, line, out)
    }

    fn happened(&mut self, event: UnitEvent, stamp: Stamp, line: &[u8], out: &mut Out<'_>) -> Understood {
        let usual = matches!(
            event,
            UnitEvent::Starting { .. }
                | UnitEvent::Started { .. }
                | UnitEvent::Listening { .. }
                | UnitEvent::DependencyFailed { .. }
        );
        if usual {
            self.usual = self.usual.saturating_add(1);
            if self.usual > USUAL {
                return Understood::Ignorable;
            }
        }
        out.happened(What::Unit(event), stamp.at, stamp.since_boot, line);
        Understood::Evidence
    }
}

/// `Server listening on 0.0.0.0 port 22.`
fn listening(text: &[u8]) -> Option<&[u8]> {
    let on = [&b"Server listening on "[..], b"Listening on ", b"listening on "]
        .iter()
        .find_map(|begin| text.strip_prefix(*begin))?;
    Some(on.strip_suffix(b".").unwrap_or(on))
}

fn of_systemd(text: &[u8]) -> Option<UnitEvent> {
    match text.first()? {
        b'A' | b'D' | b'E' | b'F' | b'M' | b'R' | b'S' | b'T' => usual(text).or_else(|| of_unit(text)),
        b's' if is_own_start(text) => Some(UnitEvent::ManagerStarted),
        _ => of_unit(text),
    }
}

fn usual(text: &[u8]) -> Option<UnitEvent> {
    let named = |begin: &[u8], end: &[u8]| {
        let rest = text.strip_prefix(begin)?;
        Some(unit(rest.strip_suffix(end).unwrap_or(rest)))
    };
    for begin in [
        &b"Starting "[..],
        b"Expecting device ",
        b"Mounting ",
        b"Activating swap ",
    ] {
        if let Some(unit) = named(begin, b"...") {
            return Some(UnitEvent::Starting { unit });
        }
    }
    for begin in [
        &b"Started "[..],
        b"Finished ",
        b"Reached target ",
        b"Found device ",
        b"Mounted ",
        b"Activated swap ",
    ] {
        if let Some(unit) = named(begin, b".") {
            return Some(UnitEvent::Started { unit });
        }
    }
    for begin in [
        &b"Failed to start "[..],
        b"Failed to mount ",
        b"Failed to activate swap ",
    ] {
        if let Some(unit) = named(begin, b".") {
            return Some(UnitEvent::Failed { unit });
        }
    }
    if let Some(unit) = named(b"Dependency failed for ", b".") {
        return Some(UnitEvent::DependencyFailed { unit });
    }
    let unit = named(b"Timed out waiting for device ", b".")?;
    Some(UnitEvent::TimedOut {
        unit,
        step: "wait for the device".to_owned(),
    })
}

/// `systemd 252.38-1~deb12u1 running in system mode (+PAM …)`.
fn is_own_start(text: &[u8]) -> bool {
    text.starts_with(b"systemd ") && find(text, b" running in system mode").is_some()
}

/// The event with the unit's name instead of its description, where the log has it.
fn named(mut event: UnitEvent, name: Option<&str>) -> UnitEvent {
    let Some(name) = name.filter(|name| is_unit(name.as_bytes())) else {
        return event;
    };
    match &mut event {
        UnitEvent::Starting { unit }
        | UnitEvent::Started { unit }
        | UnitEvent::TimedOut { unit, .. }
        | UnitEvent::Failed { unit }
        | UnitEvent::DependencyFailed { unit }
        | UnitEvent::Restarting { unit, .. } => *unit = owned(name.as_bytes()),
        UnitEvent::Listening { .. } | UnitEvent::ManagerStarted => {}
    }
    event
}

/// The unit of `ssh.service - OpenBSD Secure Shell server`, as systemd has it since 249; else the description.
fn unit(named: &[u8]) -> String {
    let name = find(named, b" - ").and_then(|at| named.get(..at));
    match name.filter(|name| is_unit(name)) {
        Some(name) => owned(name),
        None => owned(named),
    }
}

/// `ssh.service: Start-pre operation timed out. Terminating.` and what else begins with a unit's name.
fn of_unit(text: &[u8]) -> Option<UnitEvent> {
    let end = text.iter().position(|byte| *byte == b' ')?;
    let word = text.get(..end)?;
    let name = word.strip_suffix(b":").unwrap_or(word);
    if !is_unit(name) {
        return None;
    }
    let said = text.get(end + 1..)?;
    let has = |part: &[u8]| find(said, part).is_some();
    let unit = owned(name);
    if let Some(at) = find(said, b"timed out") {
        // A device's job and its "Timed out waiting" are two lines about one thing; so are a job and its unit's.
        if said.starts_with(b"Job ") {
            let job = said.get(b"Job ".len()..at)?.trim_ascii();
            return Some(UnitEvent::TimedOut {
                unit,
                step: owned(job.rsplit(|byte| *byte == b'/').next().unwrap_or_default()),
            });
        }
        return Some(UnitEvent::TimedOut {
            unit,
            step: step(said.get(..at)?),
        });
    }
    if has(b"Failed with result") || has(b"entered failed state") {
        return Some(UnitEvent::Failed { unit });
    }
    if has(b"Scheduled restart job") {
        const COUNTER: &[u8] = b"restart counter is at ";
        let times = find(said, COUNTER).and_then(|at| {
            let digits = said.get(at + COUNTER.len()..)?;
            let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            crate::numbers::whole(digits.get(..count)?)
        });
        return Some(UnitEvent::Restarting {
            unit,
            times: times.and_then(|times| u32::try_from(times).ok()),
        });
    }
    // Up to 235; later ones say both, and count.
    has(b"hold-off time over, scheduling restart").then_some(UnitEvent::Restarting { unit, times: None })
}

/// `Start-pre operation ` and `State 'stop-sigterm' ` as `start-pre` and `stop-sigterm`.
fn step(said: &[u8]) -> String {
    let said = owned(said.trim_ascii()).to_ascii_lowercase();
    let said = said.strip_prefix("state ").unwrap_or(&said);
    let said = said.strip_suffix(" operation").unwrap_or(said);
    said.trim_matches('\'').to_owned()
}

/// Whether the word is a unit's name: `ssh.service`, `-.mount`.
pub(crate) fn is_unit(name: &[u8]) -> bool {
    const KINDS: [&[u8]; 11] = [
        b"automount",
        b"device",
        b"mount",
        b"path",
        b"scope",
        b"service",
        b"slice",
        b"socket",
        b"swap",
        b"target",
        b"timer",
    ];
    let Some(dot) = memchr::memrchr(b'.', name) else {
        return false;
    };
    let kind = name.get(dot + 1..).unwrap_or_default();
    dot > 0 && KINDS.contains(&kind) && !name.contains(&b' ')
}

fn owned(text: &[u8]) -> String {
    const MAX_BYTES: usize = 200;
    String::from_utf8_lossy(text.get(..MAX_BYTES).unwrap_or(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{is_unit, of_systemd};
    use holdup_evidence::observed::UnitEvent;

    fn timed_out(text: &str) -> (String, String) {
        match of_systemd(text.as_bytes()) {
            Some(UnitEvent::TimedOut { unit, step }) => (unit, step),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn time_outs_in_all_their_words() {
        for (text, unit, step) in [
            (
                "ssh.service: Start-pre operation timed out. Terminating.",
                "ssh.service",
                "start-pre",
            ),
            (
                "ssh.service: start-pre operation timed out. Terminating.",
                "ssh.service",
                "start-pre",
            ),
            (
                "ssh.service start operation timed out. Terminating.",
                "ssh.service",
                "start",
            ),
            (
                "x.service: State 'stop-sigterm' timed out. Killing.",
                "x.service",
                "stop-sigterm",
            ),
            (
                "dev-sdb1.device: Job dev-sdb1.device/start timed out.",
                "dev-sdb1.device",
                "start",
            ),
            (
                "Timed out waiting for device /dev/sdb1.",
                "/dev/sdb1",
                "wait for the device",
            ),
        ] {
            assert_eq!(timed_out(text), (unit.to_owned(), step.to_owned()), "{text}");
        }
    }

    #[test]
    fn names_and_descriptions() {
        let starting = |text: &str| match of_systemd(text.as_bytes()) {
            Some(UnitEvent::Starting { unit }) => unit,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            starting("Starting OpenBSD Secure Shell server..."),
            "OpenBSD Secure Shell server"
        );
        assert_eq!(
            starting("Starting ssh.service - OpenBSD Secure Shell server..."),
            "ssh.service"
        );
        let restarting = "ssh.service: Scheduled restart job, restart counter is at 3.";
        let expected = UnitEvent::Restarting {
            unit: "ssh.service".to_owned(),
            times: Some(3),
        };
        assert_eq!(of_systemd(restarting.as_bytes()), Some(expected));
        for (text, event) in [
            (
                "Expecting device dev-sdb1.device - /dev/sdb1...",
                UnitEvent::Starting {
                    unit: "dev-sdb1.device".to_owned(),
                },
            ),
            (
                "Mounted data.mount - /data.",
                UnitEvent::Started {
                    unit: "data.mount".to_owned(),
                },
            ),
            (
                "Dependency failed for Local File Systems.",
                UnitEvent::DependencyFailed {
                    unit: "Local File Systems".to_owned(),
                },
            ),
            (
                "systemd 252.38-1~deb12u1 running in system mode (+PAM +AUDIT)",
                UnitEvent::ManagerStarted,
            ),
        ] {
            assert_eq!(of_systemd(text.as_bytes()), Some(event), "{text}");
        }
        for nothing in [
            "",
            " ",
            "ssh.service:",
            "Unmounted /x.",
            "timed out",
            "a b.service timed out",
        ] {
            assert_eq!(of_systemd(nothing.as_bytes()), None, "{nothing}");
        }
    }

    #[test]
    fn names_of_units() {
        for name in ["ssh.service", "-.mount", "a@b.c.socket", "system.slice"] {
            assert!(is_unit(name.as_bytes()), "{name}");
        }
        for name in ["", ".service", "service", "x.servic", "a b.service", "x."] {
            assert!(!is_unit(name.as_bytes()), "{name}");
        }
    }
}
