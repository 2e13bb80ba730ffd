//! What a line says apart from its time: who logged it, which of its kind it is, whether something begins.

/// How far after the time the name of a thread or process is looked for.
const WITHIN: usize = 96;

/// The longest name.
const NAME: usize = 48;

/// Bytes of a message that tell its kind.
const TEMPLATE: usize = 48;

/// Words in a line that say that something begins; so what follows is the rest of it.
const BEGINS: &[&str] = &[
    "start",
    "starting",
    "begin",
    "beginning",
    "begins",
    "init",
    "initializing",
    "initialising",
    "initialize",
    "loading",
    "connecting",
    "opening",
    "invoking",
    "calling",
    "sending",
    "requesting",
    "waiting",
    "fetching",
    "reading",
    "writing",
    "executing",
    "running",
    "acquiring",
    "resolving",
    "checking",
    "trying",
    "creating",
    "processing",
    "deploying",
    "downloading",
    "uploading",
    "preparing",
    "launching",
    "entering",
    "querying",
    "retrying",
    "scanning",
    "syncing",
    "flushing",
    "generating",
    "compiling",
    "building",
    "installing",
    "importing",
    "exporting",
    "migrating",
    "stopping",
    "closing",
    "shutting",
    "authenticating",
    "handling",
];

/// Words that say that it is over, whatever else the line says.
const ENDS: &[&str] = &[
    "done",
    "finished",
    "complete",
    "completed",
    "started",
    "stopped",
    "ready",
    "closed",
    "ended",
    "exiting",
    "success",
    "succeeded",
    "failed",
    "idle",
];

/// Levels are in brackets too, and no thread.
const LEVELS: &[&[u8]] = &[
    b"TRACE",
    b"DEBUG",
    b"INFO",
    b"NOTICE",
    b"WARN",
    b"WARNING",
    b"ERROR",
    b"FATAL",
    b"SEVERE",
    b"CRITICAL",
    b"CONFIG",
    b"FINE",
    b"FINER",
    b"FINEST",
    b"CRIT",
    b"EMERG",
    b"ALERT",
    b"ERR",
];

/// The thread, request or process of a line, from the first brackets after its time that hold a name, and where what
/// follows begins.
#[inline]
pub(super) fn who(line: &[u8], after: usize) -> Option<(&[u8], usize)> {
    let mut from = after;
    let end = line.len().min(after + WITHIN);
    // A level, and what comes behind it.
    for _ in 0..3 {
        let open = from + memchr::memchr(b'[', line.get(from..end)?)?;
        let inner = line.get(open + 1..line.len().min(open + 1 + NAME))?;
        let close = memchr::memchr(b']', inner)?;
        let name = inner.get(..close)?.trim_ascii();
        from = open + close + 2;
        if name.is_empty() || LEVELS.iter().any(|level| level.eq_ignore_ascii_case(name)) {
            continue;
        }
        // `sshd[123]`: the process's name belongs to it.
        let word = line.get(after..open)?;
        let start = word
            .iter()
            .rposition(|byte| !byte.is_ascii_alphanumeric() && !b"-_./".contains(byte));
        let start = after + start.map_or(0, |at| at + 1);
        return match start < open {
            true => Some((line.get(start..open + close + 2)?, from)),
            false => Some((name, from)),
        };
    }
    None
}

/// A number for all lines that differ in words with digits only.
#[inline]
pub(super) fn template(line: &[u8], from: usize) -> u32 {
    let end = line.len().min(from + TEMPLATE);
    let mut hash: u32 = 0x811c_9dc5;
    let mut word: u32 = 0;
    let mut digits = false;
    for &byte in line.get(from..end).unwrap_or_default() {
        match byte {
            b'0'..=b'9' => digits = true,
            b'a'..=b'z' | b'A'..=b'Z' | 128.. => word = word.wrapping_mul(31).wrapping_add(u32::from(byte)),
            _ => {
                if !digits {
                    hash = (hash ^ word).wrapping_mul(0x0100_0193);
                }
                word = 0;
                digits = false;
            }
        }
    }
    // A word that is cut here counts, or lines of one long word would all be the same.
    if !digits {
        hash = (hash ^ word).wrapping_mul(0x0100_0193);
    }
    hash
}

/// What a line says, without level and logger: behind the last ` : ` or ` - ` of its beginning.
pub(super) fn text(line: &[u8], from: usize) -> String {
    let rest = line.get(from..).unwrap_or_default();
    let head = rest.get(..80).unwrap_or(rest);
    let at = [&b" : "[..], b" - ", b": "]
        .iter()
        .find_map(|mark| memchr::memmem::find(head, mark).map(|at| at + mark.len()));
    // `Servlet: init` is a message; `Logger : message` has a logger.
    let behind_logger = at.filter(|at| head.get(at.saturating_sub(3)) == Some(&b' '));
    let message = rest
        .get(behind_logger.unwrap_or(0)..)
        .unwrap_or_default()
        .trim_ascii();
    let message = message.get(..60).unwrap_or(message);
    String::from_utf8_lossy(message).trim_end().to_owned()
}

/// Whether a message says that something begins and not that it is over.
pub(super) fn begins(message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    let words = || {
        lower
            .split(|c: char| !c.is_ascii_alphabetic())
            .filter(|word| !word.is_empty())
    };
    !words().any(|word| ENDS.contains(&word))
        && (lower.trim_end().ends_with("...") || words().any(|word| BEGINS.contains(&word)))
}

#[cfg(test)]
mod tests {
    use super::{begins, template, text, who};

    #[test]
    fn threads_requests_and_processes() {
        let name = |line: &'static str| {
            who(line.as_bytes(), 0).map(|(name, _)| String::from_utf8_lossy(name).into_owned())
        };
        assert_eq!(
            name(" INFO 1 --- [nio-8443-exec-3] a.B : x").as_deref(),
            Some("nio-8443-exec-3")
        );
        assert_eq!(name(" [INFO] [main] x").as_deref(), Some("main"));
        assert_eq!(name(" host sshd[12]: x").as_deref(), Some("sshd[12]"));
        for none in ["", " x", " [", " [INFO] x", " []", " [a"] {
            assert_eq!(name(none), None, "{none}");
        }
    }

    #[test]
    fn lines_of_a_kind() {
        let of = |line: &str| template(line.as_bytes(), 0);
        assert_eq!(of("took 12 ms for order a12"), of("took 345 ms for order b7"));
        assert_ne!(of("took 12 ms"), of("lost 12 ms"));
        assert_ne!(of("startup"), of("shutdown"));
    }

    #[test]
    fn what_begins() {
        for yes in [
            "Starting sql...",
            "MessageBrokerServlet: init",
            "Invoking WS",
            "opening index 7",
        ] {
            assert!(begins(yes), "{yes}");
        }
        for no in [
            "WS Invoked",
            "Server started",
            "initializing done",
            "Pool Manager Started",
            "",
            "x",
        ] {
            assert!(!begins(no), "{no}");
        }
        assert_eq!(text(b"  pl.ks.ClientController  : Invoking WS", 0), "Invoking WS");
        assert_eq!(
            text(b" user MessageBrokerServlet: init", 0),
            "user MessageBrokerServlet: init"
        );
        assert_eq!(text(b" - Starting sql...", 0), "Starting sql...");
    }
}
