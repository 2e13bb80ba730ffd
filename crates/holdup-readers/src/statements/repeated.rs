//! How often an event came in which time, as Kubernetes writes it: `7m32s (x5 over 41m)`.

use crate::find::find;
use crate::numbers::whole;
use holdup_evidence::Ns;

/// What an event says of its repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repeated {
    pub(super) times: u64,
    /// From the first to the last.
    pub(super) over: Ns,
}

/// Parts of a length: `2d3h`.
const MAX_PARTS: usize = 4;

/// Of a line.
pub(super) fn of(line: &[u8]) -> Option<Repeated> {
    let rest = line.get(find(line, b" (x")? + 3..)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let times = whole(rest.get(..digits)?)?;
    let rest = rest.get(digits..)?.strip_prefix(b" over ")?;
    let mut rest = rest.get(..rest.iter().position(|byte| *byte == b')')?)?;
    let mut over: Ns = 0;
    for _ in 0..MAX_PARTS {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            break;
        }
        let count = whole(rest.get(..digits)?)?;
        let seconds = match rest.get(digits)? {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            _ => return None,
        };
        over = over.saturating_add(count.saturating_mul(seconds).saturating_mul(1_000_000_000));
        rest = rest.get(digits + 1..)?;
    }
    (rest.is_empty() && over > 0 && times > 0).then_some(Repeated { times, over })
}

#[cfg(test)]
mod tests {
    use super::{Repeated, of};

    #[test]
    fn events_of_kubernetes() {
        let minute = 60_000_000_000;
        for (line, times, over) in [
            (
                "Warning  FailedMount  16m (x4 over 43m)  kubelet  no",
                4,
                43 * minute,
            ),
            ("6s (x13 over 2d1h)", 13, 49 * 60 * minute),
        ] {
            assert_eq!(of(line.as_bytes()), Some(Repeated { times, over }), "{line}");
        }
        for line in [
            "",
            " (x",
            " (x4",
            " (x4 over )",
            " (x4 over 3y)",
            "5 (x over 3m)",
            "(x4 over 3m)",
        ] {
            assert_eq!(of(line.as_bytes()), None, "{line}");
        }
    }
}
