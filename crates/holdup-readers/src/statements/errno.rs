//! Errors by their number, as the kernel and many programs print them: `failed: error = -28`, `ret -110`.

use super::kinds::Found;
use holdup_evidence::observed::StatementKind;

/// Words before the number.
const NAMES: [&[u8]; 8] = [
    b"error", b"err", b"errno", b"ret", b"rc", b"status", b"result", b"code",
];

/// Bytes of a line that are looked at.
const SCANNED: usize = 400;

/// Numbers of Linux's errno on x86 and Arm (asm-generic/errno.h) that say more than that something failed.
fn kind(number: &[u8]) -> Option<StatementKind> {
    Some(match number {
        // ENOMEM, ENFILE, EMFILE, ENOSPC, ENOBUFS, EDQUOT.
        b"12" | b"23" | b"24" | b"28" | b"105" | b"122" => StatementKind::Exhausted,
        // ETIMEDOUT.
        b"110" => StatementKind::TimedOut,
        // EPIPE, ENETDOWN, ENETUNREACH, ECONNRESET, ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH.
        b"32" | b"100" | b"101" | b"104" | b"111" | b"112" | b"113" => StatementKind::Unreachable,
        _ => return None,
    })
}

/// The gravest kind that a line states by the number of an error, where that is graver than what it says in words.
pub(super) fn of(line: &[u8], words: StatementKind) -> Option<Found> {
    let line = line.get(..SCANNED).unwrap_or(line);
    memchr::memchr_iter(b'-', line).find_map(|at| {
        let behind = line.get(at + 1..)?;
        let digits = behind
            .iter()
            .take(4)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let ends = behind.get(digits).is_none_or(|next| {
            !next.is_ascii_alphanumeric() && !matches!(next, b'-' | b'.' | b':' | b'_' | b'%')
        });
        let kind = kind(behind.get(..digits)?).filter(|kind| ends && *kind < words)?;
        let before = line.get(..at)?.trim_ascii_end();
        let before = before
            .strip_suffix(b"(")
            .or_else(|| before.strip_suffix(b"="))
            .unwrap_or(before);
        let before = before.strip_suffix(b":").unwrap_or(before).trim_ascii_end();
        let named = NAMES.iter().any(|name| {
            let from = before.len().checked_sub(name.len());
            from.and_then(|from| before.get(from..))
                .is_some_and(|end| end.eq_ignore_ascii_case(name))
        });
        named.then_some(Found { kind, at })
    })
}

#[cfg(test)]
mod tests {
    use crate::statements::kinds;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn an_error_by_its_number() {
        let kind = |line: &str| kinds::of(line.as_bytes()).map(|found| found.kind);
        for (line, said) in [
            (
                "thin: metadata operation failed: error = -28",
                StatementKind::Exhausted,
            ),
            (
                "usb 1-1: device descriptor read failed, error -110",
                StatementKind::TimedOut,
            ),
            ("rpc failed (rc=-111)", StatementKind::Unreachable),
            ("probe failed with error -22", StatementKind::Failed),
            ("error on page 5-28", StatementKind::Failed),
            ("error -28.5 degrees", StatementKind::Failed),
        ] {
            assert_eq!(kind(line), Some(said), "{line}");
        }
        assert_eq!(kind("temperature: -28"), None);
    }

    #[test]
    fn conditions_abilities_and_settings_state_nothing() {
        for line in [
            "Unless rcu_sched kthread gets sufficient CPU time, OOM is now expected behavior.",
            "DevCap2: Completion Timeout: Range ABCD, TimeoutDis+",
            "active_file:23 inactive_file:30",
            r#"level=info msg="GRPC request: {\"staleReplicaTimeout\":\"30\"}""#,
        ] {
            assert_eq!(kinds::of(line.as_bytes()).map(|found| found.kind), None, "{line}");
        }
        let down = kinds::of(b"LnkSta: Speed unknown (downgraded), Width x0 (downgraded)");
        assert_eq!(down.map(|found| found.kind), Some(StatementKind::Stalled));
    }
}
