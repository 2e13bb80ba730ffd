//! How the subject finds names, where it has files of its own: processes in containers ask other name servers than the machine.
//!
//! In: processes. Out: their resolver's configuration, where it is not the machine's. A file of theirs is read by a child that can be
//! left behind ([`super::behind`]): their file system may not answer.

use super::behind::Readers;
use holdup_evidence::facts::ResolverFacts;
use holdup_proc::{Root, names, resolver};
use std::collections::BTreeSet;

/// Mount namespaces and roots whose configuration is read: a report tells one.
const MAX_PLACES: usize = 8;

/// What was found out.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Resolver {
    /// They have the machine's files.
    OfMachine,
    /// They have their own; `None` where it is not known, or they have several.
    Own(Option<ResolverFacts>),
}

impl Resolver {
    /// Puts it in the place of the machine's.
    pub(super) fn tell(self, facts: &mut Option<ResolverFacts>) {
        if let Resolver::Own(own) = self {
            *facts = own;
        }
    }
}

/// Looks at these processes.
pub(super) fn look(pids: &[u32]) -> Resolver {
    let root = Root::system();
    let ours = names::place(&root, std::process::id());
    let mut seen = BTreeSet::new();
    let mut readers: Readers<u32, Option<ResolverFacts>> =
        Readers::new(|| Box::new(|pid| resolver::of_process(&Root::system(), pid)));
    let mut found: Vec<Option<ResolverFacts>> = Vec::new();
    for pid in pids {
        let theirs = names::place(&root, *pid);
        if theirs.is_none() || ours.is_none() || seen.len() >= MAX_PLACES || !seen.insert(theirs.clone()) {
            continue;
        }
        if theirs != ours {
            found.push(readers.ask(*pid, *pid).flatten());
        }
    }
    let some_of_machine = seen.contains(&ours);
    match found.as_slice() {
        [] => Resolver::OfMachine,
        [first, others @ ..] if !some_of_machine && others.iter().all(|other| other == first) => {
            Resolver::Own(first.clone())
        }
        _ => Resolver::Own(None),
    }
}

#[cfg(test)]
mod tests {
    use super::{Resolver, look};
    use holdup_evidence::facts::ResolverFacts;

    #[test]
    fn a_process_beside_this_one_has_the_machines() {
        assert_eq!(look(&[std::process::id()]), Resolver::OfMachine);
        assert_eq!(look(&[u32::MAX]), Resolver::OfMachine, "it is gone");
    }

    #[test]
    fn what_is_not_known_of_others_is_not_taken_from_the_machine() {
        let machine = Some(ResolverFacts::default());
        let mut facts = machine.clone();
        Resolver::OfMachine.tell(&mut facts);
        assert_eq!(facts, machine);
        Resolver::Own(None).tell(&mut facts);
        assert_eq!(facts, None);
    }
}
