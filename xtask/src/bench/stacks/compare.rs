//! Two stacks of one thread, frame by frame. Pure.
//!
//! In: gdb's frames and holdup's. Out: how many of both agree, and the first that does not. Frames are aligned
//! before they are counted, so that one that is missing is one disagreement and not as many as there are below.
//!
//! Two frames agree when they are at the same place of the same module and both give a function or neither does.
//! Names of one function are many (`read`, `__read`, `__GI___libc_read`), so the distance from the function's
//! start decides where names differ. Inlined functions are not counted: who has more debug information installed
//! would win; nor are callers that a tail call has taken off the stack, which debug information lets gdb guess.

use serde::Deserialize;

/// A thread's stack by gdb.
#[derive(Debug, Deserialize)]
pub(super) struct GdbThread {
    /// Process id.
    pub(super) pid: u32,
    /// Thread id.
    pub(super) tid: u32,
    /// Innermost first.
    pub(super) frames: Vec<GdbFrame>,
}

/// A frame by gdb.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct GdbFrame {
    /// Instruction pointer; for a caller the return address.
    pub(super) pc: u64,
    /// The function by debug information, or else by symbol.
    pub(super) name: Option<String>,
    /// Whether it was inlined into the next frame.
    pub(super) inlined: bool,
    /// Whether code is mapped there; where not, gdb has lost its way.
    pub(super) code: bool,
    /// Base name of the file.
    pub(super) module: Option<String>,
    /// Address of `pc` by the file's own count.
    pub(super) address: u64,
    /// The symbol that covers it.
    pub(super) symbol: Option<String>,
    /// Bytes from the symbol's start.
    pub(super) offset: u64,
}

/// A frame of a report.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct OurFrame {
    /// The function.
    pub(super) symbol: Option<String>,
    /// Base name of the file.
    pub(super) module: Option<String>,
    /// Bytes from the function's start, or without one from the module's.
    pub(super) offset: u64,
    /// Whether it was inlined into the next frame.
    pub(super) inlined: bool,
}

/// How two stacks compare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Agreement {
    /// Frames of either, those that agree counted once.
    pub(super) frames: usize,
    /// Those that agree.
    pub(super) agree: usize,
    /// Those that agree and have a name.
    pub(super) named: usize,
    /// The first that does not, in words.
    pub(super) first: Option<String>,
}

/// Compares the stacks of one thread.
pub(super) fn compare(gdb: &[GdbFrame], ours: &[OurFrame]) -> Agreement {
    let on_stack: Vec<&GdbFrame> = gdb.iter().filter(|frame| !frame.inlined).collect();
    let gdb: Vec<&GdbFrame> = on_stack.iter().copied().take_while(|frame| frame.code).collect();
    // It guesses in code that no file describes, and where it leaves all code it has guessed wrong.
    let lost = gdb.len() < on_stack.len() || gdb.last().is_some_and(|last| last.module.is_none());
    let ours: Vec<&OurFrame> = ours.iter().filter(|frame| !frame.inlined).collect();
    let lengths = common(&gdb, &ours);
    let mut agreement = Agreement::default();
    let (mut left, mut right) = (0, 0);
    while left < gdb.len() || (right < ours.len() && !lost) {
        agreement.frames += 1;
        let (judge, judged) = (gdb.get(left), ours.get(right));
        if let (Some(judge), Some(judged)) = (judge, judged)
            && same(judge, judged)
        {
            agreement.agree += 1;
            agreement.named += usize::from(judged.symbol.is_some());
            (left, right) = (left + 1, right + 1);
            continue;
        }
        // Of two frames that differ and stand for each other, one difference is counted.
        let skip_judge =
            right == ours.len() || (left < gdb.len() && lengths[left + 1][right] == lengths[left][right]);
        let skip_judged =
            left == gdb.len() || (right < ours.len() && lengths[left][right + 1] == lengths[left][right]);
        let both =
            left < gdb.len() && right < ours.len() && lengths[left + 1][right + 1] == lengths[left][right];
        if agreement.first.is_none() {
            let nothing = "nothing".to_owned();
            agreement.first = Some(format!(
                "frame {}: gdb {}, holdup {}",
                left,
                judge
                    .filter(|_| skip_judge || both)
                    .map_or(nothing.clone(), |frame| shown_gdb(frame)),
                judged
                    .filter(|_| skip_judged || both)
                    .map_or(nothing, |frame| shown_ours(frame)),
            ));
        }
        if both || skip_judge {
            left += 1;
        }
        if both || !skip_judge {
            right += 1;
        }
    }
    agreement
}

/// For each pair of places how many frames from there on can agree in order.
fn common(gdb: &[&GdbFrame], ours: &[&OurFrame]) -> Vec<Vec<usize>> {
    let mut lengths = vec![vec![0; ours.len() + 1]; gdb.len() + 1];
    for left in (0..gdb.len()).rev() {
        for right in (0..ours.len()).rev() {
            lengths[left][right] = if same(gdb[left], ours[right]) {
                lengths[left + 1][right + 1] + 1
            } else {
                lengths[left + 1][right].max(lengths[left][right + 1])
            };
        }
    }
    lengths
}

fn same(gdb: &GdbFrame, ours: &OurFrame) -> bool {
    if gdb.module != ours.module {
        return false;
    }
    match (&gdb.symbol, &ours.symbol) {
        // Anonymous code has no addresses outside its process.
        (None, None) if gdb.module.is_none() => true,
        (None, None) => gdb.address == ours.offset,
        (Some(theirs), Some(name)) => {
            gdb.offset == ours.offset
                || plain(theirs) == plain(name)
                || gdb.name.as_deref().map(plain) == Some(plain(name))
        }
        // Debug information may name what no symbol covers.
        (None, Some(name)) => gdb.name.as_deref().map(plain) == Some(plain(name)),
        (Some(_), None) => false,
    }
}

/// A name without its arguments and without the version of its symbol.
fn plain(name: &str) -> &str {
    name.split(['(', '@']).next().unwrap_or(name)
}

fn shown_gdb(frame: &GdbFrame) -> String {
    shown(
        frame.symbol.as_deref().or(frame.name.as_deref()),
        frame.module.as_deref(),
        if frame.symbol.is_some() {
            frame.offset
        } else {
            frame.address
        },
    )
}

fn shown_ours(frame: &OurFrame) -> String {
    shown(frame.symbol.as_deref(), frame.module.as_deref(), frame.offset)
}

fn shown(name: Option<&str>, module: Option<&str>, offset: u64) -> String {
    let module = module.unwrap_or("anonymous code");
    match name {
        Some(name) => format!("{name}+{offset:#x} in {module}"),
        None => format!("{module}+{offset:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Agreement, GdbFrame, OurFrame, compare};

    fn judge(symbol: &str, offset: u64) -> GdbFrame {
        GdbFrame {
            name: Some(symbol.to_owned()),
            code: true,
            module: Some("m".to_owned()),
            address: 0x1000 + offset,
            symbol: Some(symbol.to_owned()),
            offset,
            ..GdbFrame::default()
        }
    }

    fn ours(symbol: Option<&str>, offset: u64) -> OurFrame {
        OurFrame {
            symbol: symbol.map(str::to_owned),
            module: Some("m".to_owned()),
            offset,
            inlined: false,
        }
    }

    fn counts(agreement: &Agreement) -> (usize, usize, usize) {
        (agreement.frames, agreement.agree, agreement.named)
    }

    #[test]
    fn another_name_of_the_same_function_agrees() {
        let agreement = compare(
            &[judge("__GI___read", 4), judge("main", 9)],
            &[ours(Some("read"), 4), ours(Some("main"), 9)],
        );
        assert_eq!((counts(&agreement), agreement.first), ((2, 2, 2), None));
    }

    #[test]
    fn another_place_or_a_name_that_one_has_does_not() {
        let agreement = compare(
            &[judge("a", 4), judge("main", 9)],
            &[ours(Some("b"), 5), ours(None, 9)],
        );
        assert_eq!(counts(&agreement), (2, 0, 0));
        assert_eq!(
            agreement.first.unwrap(),
            "frame 0: gdb a+0x4 in m, holdup b+0x5 in m"
        );
    }

    #[test]
    fn a_missing_frame_is_one_difference() {
        let all = [judge("a", 1), judge("b", 2), judge("c", 3)];
        let agreement = compare(&all, &[ours(Some("a"), 1), ours(Some("c"), 3)]);
        assert_eq!(counts(&agreement), (3, 2, 2));
        assert_eq!(
            agreement.first.unwrap(),
            "frame 1: gdb b+0x2 in m, holdup nothing"
        );
        let agreement = compare(&all[..1], &[ours(Some("a"), 1), ours(Some("c"), 3)]);
        assert_eq!(counts(&agreement), (2, 1, 1));
    }

    #[test]
    fn unnamed_code_is_compared_by_its_address_and_a_lost_gdb_is_no_judge() {
        let unnamed = GdbFrame {
            symbol: None,
            name: None,
            ..judge("a", 1)
        };
        let lost = GdbFrame {
            code: false,
            ..judge("b", 1)
        };
        let stack = [ours(None, 0x1001), ours(Some("main"), 7)];
        let agreement = compare(&[unnamed.clone(), lost], &stack);
        assert_eq!(counts(&agreement), (1, 1, 0));
        let agreement = compare(&[unnamed], &stack);
        assert_eq!(counts(&agreement), (2, 1, 0));
    }

    #[test]
    fn inlined_functions_do_not_count() {
        let inlined = GdbFrame {
            inlined: true,
            ..judge("i", 1)
        };
        let agreement = compare(&[inlined, judge("a", 1)], &[ours(Some("a"), 1)]);
        assert_eq!(counts(&agreement), (1, 1, 1));
    }
}
