//! `holdup record`: keeps looking, a segment a minute, for as long as it is let.
//!
//! In: what to watch, where to write, how much to keep. Out: a folder of recordings, each whole or not there. Each segment is
//! made by a process of its own ([`rounds`]): whatever goes wrong in one costs that one, and memory can't grow over months.

mod condition;
mod detail;
mod folder;
mod losses;
mod rounds;
mod textfile;

use crate::cli::RecordArgs;
use crate::output::say;
use crate::selection::Selection;
pub(crate) use condition::Condition;
use folder::Folder;
use rounds::Rounds;

/// Records until it is told to end.
///
/// # Errors
/// When the folder can't be written to, another recorder writes there, or nothing can be observed here.
pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<u8> {
    let selection = Selection::of_record(args)?;
    if let Some(path) = &args.prometheus {
        textfile::check(path)?;
    }
    let folder = Folder::open(&args.dir, args.keep, args.keep_size)?;
    let mut rounds = Rounds::new(args, &selection, &folder)?;
    say(&format!(
        "recording {} to {}, a segment every {}; {} to look back",
        selection.said(),
        args.dir.display(),
        crate::lengths::said(args.every),
        "holdup show"
    ));
    rounds.go()?;
    Ok(0)
}
