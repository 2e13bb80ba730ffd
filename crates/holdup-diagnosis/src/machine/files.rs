//! File systems that a process serves: who waits for files of one server, by whatever path and for whatever that waits in turn, is behind one
//! root.
//!
//! In: roots, and which lead beyond files. Out: the same, joined.

use super::ends::Key;
use super::roots::{Root, join};
use holdup_evidence::SystemFacts;
use std::collections::{BTreeMap, HashMap};

/// Joins roots that are about the same server's files. `beyond`: where ways go on behind files.
pub(super) fn join_of_one_server<'a>(
    facts: &SystemFacts,
    roots: &mut BTreeMap<Key, Root<'a>>,
    mut beyond: BTreeMap<Key, Key>,
) {
    files_over_links(roots);
    behind_frozen(facts, roots, &mut beyond);
    files_of_one(roots, beyond);
}

/// File systems whose server was seen to be connected, through others, with one who waits for a frozen file system.
fn behind_frozen(facts: &SystemFacts, roots: &BTreeMap<Key, Root<'_>>, beyond: &mut BTreeMap<Key, Key>) {
    for volume in &facts.frozen_volumes {
        let frozen = Key::Files(volume.mount.clone());
        let served = |root: &Root<'_>| {
            let server = root.server().map(|server| server.pid);
            server.is_some_and(|pid| volume.served_behind.contains(&pid))
        };
        let behind = roots.iter().filter(|(key, root)| **key != frozen && served(root));
        for (key, _) in behind.filter(|(key, _)| roots.contains_key(&frozen) && matches!(key, Key::Files(_)))
        {
            beyond.insert(key.clone(), frozen.clone());
        }
    }
}

/// Files that are known by a path alone, which leads over a link to a file system that the same process serves.
fn files_over_links(roots: &mut BTreeMap<Key, Root<'_>>) {
    let is_mount = |root: &Root<'_>| root.resource.is_some_and(|one| one.detail.mount.is_some());
    let served = |root: &Root<'_>| root.server().map(|server| server.pid);
    let of_files = |key: &Key| matches!(key, Key::Files(_));
    let mounts: HashMap<u32, Key> = (roots.iter())
        .filter(|(key, root)| of_files(key) && is_mount(root))
        .filter_map(|(key, root)| Some((served(root)?, key.clone())))
        .collect();
    let links: Vec<(Key, Key)> = (roots.iter())
        .filter(|(key, root)| of_files(key) && !is_mount(root))
        .filter_map(|(key, root)| Some((key.clone(), mounts.get(&served(root)?)?.clone())))
        .collect();
    for (link, mount) in links {
        if let (Some(from), Some(into)) = (roots.remove(&link), roots.get_mut(&mount)) {
            into.longest = into.longest.max(from.longest);
            into.open |= from.open;
            from.own.into_iter().for_each(|one| join(&mut into.own, one));
            from.behind
                .into_iter()
                .for_each(|one| join(&mut into.behind, one));
        }
    }
}

/// Who waits for files without its being known for what their server waits: behind the same root as others that wait for files there.
fn files_of_one<'a>(roots: &mut BTreeMap<Key, Root<'a>>, beyond: BTreeMap<Key, Key>) {
    for (files, end) in beyond {
        let long = roots.get(&files).map_or(0, |root| root.longest);
        let same = roots.get(&end).is_some_and(|root| root.longest >= long / 2);
        let from = if same { roots.remove(&files) } else { None };
        if let (Some(from), Some(into)) = (from, roots.get_mut(&end)) {
            for one in from.own.into_iter().chain(from.behind) {
                join(&mut into.behind, one);
            }
        }
    }
}
