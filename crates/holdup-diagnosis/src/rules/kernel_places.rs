//! Where in the kernel something waits or stays: the function of a stack that says what for.

use holdup_evidence::Observed;
use holdup_evidence::observed::SeenThread;
use holdup_knowledge::functions::{self, Meaning};
use holdup_knowledge::kernel_waits;

/// Functions of the kernel in which anything at all is waited for, by how they begin: who called them says what. Of Linux 4.4 to 6.18.
const GENERIC_WAITS: [&str; 15] = [
    "__wait_for_common",
    "__wait_on_bit",
    "bit_wait",
    "do_wait_for_common",
    "out_of_line_wait_on_bit",
    "_raw_",
    "folio_wait_bit",
    "native_queued_spin_lock",
    "pv_queued_spin_lock",
    "queued_",
    "swait_",
    "wait_for_common",
    "wait_for_completion",
    "wait_on_page_bit",
    "wait_on_page_writeback",
];

/// `, in ublk_ctrl_del_dev`: the innermost function that says what is waited for. Where it waits by means of a general one, that follows in
/// brackets. Nothing where no frame says anything.
pub(super) fn place(frames: &[String]) -> String {
    let mut names = frames_that_say(frames);
    let Some(innermost) = names.next() else {
        return String::new();
    };
    let generic = |name: &str| {
        functions::meaning(functions::plain(name)) == Some(Meaning::Lock)
            || GENERIC_WAITS.iter().any(|wait| name.starts_with(wait))
    };
    if !generic(innermost) {
        return format!(", in {innermost}");
    }
    match names.find(|name| !generic(name)) {
        Some(caller) => format!(", in {caller} ({innermost})"),
        None => format!(", in {innermost}"),
    }
}

/// The frames without those of every wait.
pub(super) fn frames_that_say(frames: &[String]) -> impl Iterator<Item = &str> {
    frames
        .iter()
        .map(String::as_str)
        .filter(|frame| functions::meaning(functions::plain(frame)) != Some(Meaning::Sleep))
}

/// What the frames say of the task, as a sentence that begins with a verb: `waits for a directory's lock (a mutex) that another task holds,
/// while it opens a file`.
pub(crate) fn told<'a>(frames: impl IntoIterator<Item = &'a str>) -> Option<String> {
    kernel_waits::told(frames)
}

/// The same of a task that does not give its CPU back.
pub(super) fn told_on_cpu(frames: &[String]) -> Option<String> {
    kernel_waits::told_on_cpu(frames.iter().map(String::as_str))
}

/// The same of tasks of a list that stand in one place, to be put behind what else is said of them.
pub(crate) fn of_tasks(observed: &Observed, first: &SeenThread, tasks: usize) -> String {
    // Without a stack the function alone that it sleeps in.
    let said = match (first.kernel_stack, &first.kernel_function) {
        (Some(stack), _) => told(observed.stacks.frames(stack)),
        (None, Some(function)) => told([function.as_str()]),
        (None, None) => None,
    };
    let who = match tasks {
        1 => "it",
        _ => "each",
    };
    match said {
        Some(told) => format!("; {who} {told}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn a_stack_is_told_as_a_sentence() {
        let frames = ["schedule", "mutex_lock", "do_unlinkat", "sys_unlink"];
        assert_eq!(
            told(frames).as_deref(),
            Some("waits for a directory's lock (a mutex) that another task holds, while it removes a file")
        );
    }
}
