//! Waits for somebody outside to decide: which program it is that decides, by the kernel's function that asks it.
//!
//! In: waits of `security.decision`. Out: those that one kind of decider was asked about, where they matter.

use super::{MATTERS, Run, Waits};
use holdup_model::finding::Verdict;

/// Those of the waits in which the kernel's asking function satisfies `asks`; where they are too little to matter, the
/// verdict that clears the rule. `what` names the way of asking.
pub(super) fn asked<'a>(
    run: &Run<'a>,
    waits: &Waits<'a>,
    what: &str,
    asks: fn(&str) -> bool,
) -> Result<Waits<'a>, Verdict> {
    let asked = waits.only(|wait| {
        let function = wait.resource.detail.function.as_ref();
        function.is_some_and(|name| asks(name))
    });
    let asked = asked.filter(|waits| run.matters(waits.cost(), MATTERS));
    asked.ok_or_else(|| Verdict::Clear(format!("{what} took less than 10 % of the elapsed time")))
}
