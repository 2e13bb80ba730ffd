//! `holdup record`: keeps looking, a segment a minute, for as long as it is let.
//!
//! In: what to watch, where to write, how much to keep. Out: a folder of recordings, each whole or not there. Each segment is
//! made by a process of its own ([`rounds`]): whatever goes wrong in one costs that one, and memory can't grow over months.

mod age;
mod condition;
mod detail;
mod folder;
mod losses;
mod observer;
mod rounds;
mod textfile;
mod uploader;

use crate::cli::RecordArgs;
pub(crate) use condition::Condition;
use folder::{Folder, Limits, Upload};
use holdup_collect::selection::Selection;
use rounds::Rounds;
use uploader::Uploader;

/// Records until it is told to end.
///
/// # Errors
/// When the folder can't be written to, another recorder writes there, or nothing can be observed here.
pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<u8> {
    let selection = Selection::of_record(&args.unit, &args.cgroup)?;
    if let Some(path) = &args.prometheus {
        textfile::check(path)?;
    }
    let limits = Limits {
        keep: args.keep,
        bytes: args.keep_size,
        upload: match (&args.to, &args.dir) {
            (None, _) => Upload::No,
            (Some(_), Some(_)) => Upload::AndKeep,
            (Some(_), None) => Upload::Only,
        },
    };
    let directory = args.directory();
    let uploader = args
        .to
        .as_deref()
        .map(|url| Uploader::new(&directory, url))
        .transpose()?;
    let folder = Folder::open(&directory, limits)?;
    give_memory_back();
    Rounds::new(args, &selection, &folder, uploader)?.go()?;
    Ok(0)
}

/// Blocks of this size and more go back to the kernel as they are freed, bytes.
const LARGE_BLOCK: libc::c_int = 64 << 10;

/// Keeps the C library from raising that bound, as it does by itself: the tables of observed programs come and go, and what they leave
/// behind would be the recorder's for good.
fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two numbers of this process's allocator; nothing is allocated by them.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE_BLOCK);
    }
}
