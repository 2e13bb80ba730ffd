//! A frozen file system, where only the innermost function of the kernel is known.
//!
//! The problem: the lock that is held against writers of a frozen file system is of a kind that others use, too, and who takes it shows only
//! in a stack. The choice: a call that writes to a file on a file system with a disk, or opens one there, takes no other lock of that kind.
//! In: a wait whose kernel stack is a name. Out: what it was for, if that is it.

use super::about::resource_for;
use super::{Found, Site, objects};
use holdup_evidence::{Cause, Object, ObjectKind};
use holdup_knowledge::calls::Kind;
use holdup_knowledge::functions::locks;

/// What such a wait was for.
pub(super) fn by_name(site: &Site, kind: Kind) -> Option<Found> {
    let [only] = site.kernel_stack? else {
        return None;
    };
    let writes = matches!(kind, Kind::Write | Kind::Open);
    let frozen = writes && locks::listed(locks::PERCPU_READERS, only) && site.object.is_some_and(on_disk);
    let found = || Found::new(Cause::FsFrozen, resource_for(site, Cause::FsFrozen, None, kind));
    frozen.then(found)?
}

fn on_disk(object: &Object) -> bool {
    let named = matches!(object.kind, ObjectKind::File | ObjectKind::Directory);
    named && !object.file_system.is_empty() && !objects::is_virtual(&object.file_system)
}
