//! Stacks of artefacts as stacks of frames.
//!
//! In: frames as readers write them, `function (module)`, with the suffixes of profilers. Out: [`Frame`]s.

use holdup_evidence::observed::StackId;
use holdup_evidence::{Frame, Observed};

/// The frames of a stack, innermost first.
pub(super) fn frames(observed: &Observed, stack: StackId) -> Vec<Frame> {
    observed.stacks.frames(stack).map(frame).collect()
}

/// One frame.
pub(super) fn frame(text: &str) -> Frame {
    let (function, module) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        Some((function, module)) => (function, Some(module.to_owned())),
        None => (text, None),
    };
    let known = !function.is_empty() && function != "[unknown]";
    Frame {
        symbol: known.then(|| function.to_owned()),
        module,
        ..Frame::default()
    }
}
