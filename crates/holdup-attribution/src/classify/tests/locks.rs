//! Waits for locks in the kernel, recognised by the lock and by the stack.

use super::Case;
use holdup_evidence::Cause;

fn fault() -> Case {
    Case::new("none", [0; 4]).blocked(false)
}

#[test]
fn the_lock_of_an_address_space_is_known_whoever_takes_it() {
    let taken = || {
        Case::new("read", [3, 0, 1, 0])
            .blocked(false)
            .stack("rwsem_down_read_slowpath down_read some_driver")
    };
    assert_eq!(taken().cause(), Cause::LockKernel);
    assert_eq!(taken().locked(None).cause(), Cause::LockKernel);
    let locked = taken().locked(Some(7)).classify();
    assert_eq!(
        (
            locked.cause,
            locked.resource.detail.texts()["address_space_of"].as_str()
        ),
        (Cause::MemMmaplock, "7")
    );
}

#[test]
fn a_lock_stands_in_for_a_stack_that_is_missing_or_says_nothing() {
    assert_eq!(fault().cause(), Cause::Unknown);
    assert_eq!(fault().locked(Some(7)).cause(), Cause::MemMmaplock);
    assert_eq!(fault().locked(None).cause(), Cause::LockKernel);
    let unheard_of = fault().stack("holdup_has_never_heard_of_this do_syscall_64");
    assert_eq!(unheard_of.locked(None).cause(), Cause::LockKernel);
}

#[test]
fn a_lock_that_is_remembered_wrongly_does_not_beat_what_the_stack_shows() {
    let fuse = fault().stack("request_wait_answer fuse_simple_request");
    assert_eq!(fuse.locked(None).cause(), Cause::FsFuse);
    let disk = Case::new("read", [3, 0, 1, 0])
        .blocked(true)
        .on("file ext4 8:1 /data");
    assert_eq!(
        disk.stack("folio_wait_bit_common filemap_read")
            .locked(Some(7))
            .cause(),
        Cause::DiskRead
    );
    let futex =
        Case::new("futex", [0x1000, 128, 2, 0]).stack("futex_do_wait __futex_wait futex_wait do_futex");
    assert_eq!(futex.locked(Some(7)).cause(), Cause::LockFutex);
    let sync = Case::new("fsync", [3, 0, 0, 0])
        .blocked(false)
        .on("file ext4 8:1 /data");
    assert_eq!(sync.locked(None).cause(), Cause::DiskSync);
}
