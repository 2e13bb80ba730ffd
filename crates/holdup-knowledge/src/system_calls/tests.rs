//! Questions to the table, and what it must never have.

use super::{
    Child, Kind, Path, SYSTEM_CALLS, awaited_child, is, is_named, milliseconds, named, waits_forever,
};
use holdup_evidence::Call;
use std::collections::BTreeSet;

fn call(name: &str, args: [u64; 4]) -> Call {
    Call {
        args,
        ..Call::named(name)
    }
}

#[test]
fn every_call_has_one_row() {
    let numbers: BTreeSet<i32> = SYSTEM_CALLS.iter().map(super::SystemCall::number).collect();
    assert_eq!(numbers.len(), SYSTEM_CALLS.len());
    let operations: Vec<u8> = SYSTEM_CALLS.iter().filter_map(|call| call.operation).collect();
    assert_eq!(operations.iter().collect::<BTreeSet<_>>().len(), operations.len());
    let of_32_bit: Vec<u16> = SYSTEM_CALLS
        .iter()
        .flat_map(|call| call.of_32_bit)
        .copied()
        .collect();
    assert_eq!(of_32_bit.iter().collect::<BTreeSet<_>>().len(), of_32_bit.len());
}

#[test]
fn no_call_works_on_a_descriptor_and_looks_up_a_path() {
    let both = |call: &&super::SystemCall| call.descriptor.is_some() && call.path.is_some();
    assert_eq!(SYSTEM_CALLS.iter().find(both).map(super::SystemCall::name), None);
}

#[test]
fn a_symbolic_link_is_looked_up_and_its_target_is_not() {
    let path = |name| named(name).and_then(|call| call.path);
    let expected = |argument, directory| {
        Some(Path {
            argument,
            directory,
            one_of_two: false,
        })
    };
    assert_eq!(path("symlink"), expected(1, None));
    assert_eq!(path("symlinkat"), expected(2, Some(1)));
    assert!(path("linkat").is_some_and(|path| path.one_of_two));
}

#[test]
fn a_call_can_be_of_several_kinds_and_an_unknown_one_is_of_none() {
    for kind in [Kind::Exits, Kind::Closes, Kind::ProcessLife] {
        assert!(is_named(Some("exit_group"), kind), "{kind:?}");
    }
    assert!(is_named(Some("writev"), Kind::Sends | Kind::Writes));
    assert!(!is_named(Some("writev"), Kind::Sends | Kind::Reads | Kind::Polls));
    assert!(!is_named(Some("getppid"), Kind::Reads));
    assert!(!is_named(Some("no_such_call"), Kind::Reads));
    assert!(!is_named(None, Kind::Reads));
    assert!(!is(&Call::none(), Kind::Reads) && !is(&Call::untold(), Kind::Reads));
}

#[test]
fn a_call_without_a_time_limit_waits_forever() {
    let minus_one = u64::from(u32::MAX);
    assert_eq!(waits_forever(&call("poll", [1, 1, minus_one, 0])), Some(true));
    assert_eq!(waits_forever(&call("poll", [1, 1, 50, 0])), Some(false));
    assert_eq!(waits_forever(&call("epoll_pwait2", [1, 1, 1, 0])), Some(true));
    assert_eq!(waits_forever(&call("epoll_pwait2", [1, 1, 1, 77])), Some(false));
    // The limit is the fifth argument, which is not known.
    assert_eq!(waits_forever(&call("select", [0; 4])), None);
    assert_eq!(milliseconds(&call("epoll_wait", [1, 1, 1, 50])), Some(Some(50)));
    assert_eq!(
        milliseconds(&call("epoll_wait", [1, 1, 1, minus_one])),
        Some(None)
    );
    assert_eq!(milliseconds(&call("ppoll", [1, 1, 50, 0])), None);
}

#[test]
fn a_child_is_named_by_its_id() {
    let minus_one = u64::from(u32::MAX);
    assert_eq!(
        awaited_child(&call("wait4", [42, 0, 0, 0])),
        Some(Child::Process(42))
    );
    assert_eq!(
        awaited_child(&call("wait4", [minus_one, 0, 0, 0])),
        Some(Child::Any)
    );
    assert_eq!(
        awaited_child(&call("waitid", [1, 42, 0, 0])),
        Some(Child::Process(42))
    );
    // By a descriptor.
    assert_eq!(awaited_child(&call("waitid", [3, 42, 0, 0])), Some(Child::Any));
    assert_eq!(awaited_child(&call("read", [42, 0, 0, 0])), None);
}
