//! Which files a set of Debian's packages, and all that they depend on, put on this machine.

use super::image;
use crate::process;
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Packages whose files only compile something; what they depend on may still be run.
const COMPILES: &str = "-dev";
/// Compilers, which with all they depend on stay out.
const COMPILERS: [&str; 6] = ["binutils", "clang", "cpp", "gcc", "pkg-config", "pkgconf"];

/// What dpkg knows of a package.
struct Known {
    /// For each dependency the packages that would do.
    needs: Vec<Vec<String>>,
}

/// The files of these packages and of what they depend on.
pub(super) fn files(names: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let listing = process::output(Command::new("dpkg-query").args([
        "--show",
        "--showformat=${db:Status-Status}\t${Package}\t${Pre-Depends}, ${Depends}\t${Provides}\n",
    ]))?;
    let chosen = closure(&listing, names)?;
    let chosen = chosen.iter().filter(|name| !name.ends_with(COMPILES));
    let listing = process::output(Command::new("dpkg-query").arg("--listfiles").args(chosen))?;
    Ok(listing
        .lines()
        .filter(|line| line.starts_with('/') && image::wanted(line))
        .map(str::to_owned)
        .collect())
}

/// The packages and, transitively, every installed one that satisfies a dependency.
fn closure(listing: &str, names: &BTreeSet<String>) -> anyhow::Result<BTreeSet<String>> {
    let mut known: BTreeMap<&str, Known> = BTreeMap::new();
    let mut provided: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for line in listing.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let &["installed", name, needs, provides] = fields.as_slice() else {
            continue;
        };
        let needs = needs.split(", ").map(alternatives).collect();
        known.insert(name, Known { needs });
        for what in provides.split(", ").flat_map(alternatives) {
            provided.entry(what).or_default().push(name);
        }
    }
    let mut chosen = BTreeSet::new();
    let mut left: Vec<String> = names.iter().filter(|name| !compiles(name)).cloned().collect();
    if let Some(missing) = left.iter().find(|name| !known.contains_key(name.as_str())) {
        bail!("the package {missing} is not installed on this machine");
    }
    while let Some(name) = left.pop() {
        if !chosen.insert(name.clone()) {
            continue;
        }
        let needs = known.get(name.as_str()).map_or(&[][..], |known| &known.needs);
        for need in needs.iter().flatten() {
            let real = known.contains_key(need.as_str()).then_some(need.as_str());
            let stand_ins = provided.get(need).into_iter().flatten().copied();
            left.extend(
                real.into_iter()
                    .chain(stand_ins)
                    .filter(|name| !compiles(name) && !chosen.contains(*name))
                    .map(str::to_owned),
            );
        }
    }
    Ok(chosen)
}

/// The names in `a (>= 1) | b:any`.
fn alternatives(need: &str) -> Vec<String> {
    need.split('|')
        .map(|one| one.trim().split([' ', ':']).next().unwrap_or_default().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

fn compiles(name: &str) -> bool {
    COMPILERS.iter().any(|compiler| {
        name == *compiler
            || name
                .strip_prefix(compiler)
                .is_some_and(|rest| rest.starts_with('-'))
    })
}

#[cfg(test)]
mod tests {
    use super::closure;
    use std::collections::BTreeSet;

    const LISTING: &str = "installed\tgit\tlibc6 (>= 2.34), perl | perl-base, gcc\t\n\
                           installed\tlibc6\tlibgcc-s1\t\n\
                           installed\tlibgcc-s1\t\t\ninstalled\tmawk\t\tawk\ninstalled\tgcc\tcpp\t\n\
                           config-files\tperl\t\t\ninstalled\tperl-base\tawk:any\t\n";

    fn of(name: &str) -> anyhow::Result<Vec<String>> {
        closure(LISTING, &BTreeSet::from([name.to_owned()])).map(|chosen| chosen.into_iter().collect())
    }

    #[test]
    fn what_is_installed_and_needed_is_chosen_and_no_compiler() {
        assert_eq!(
            of("git").unwrap(),
            ["git", "libc6", "libgcc-s1", "mawk", "perl-base"]
        );
        assert_eq!(of("gcc").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_package_that_is_not_there_is_named() {
        assert!(of("perl").unwrap_err().to_string().contains("perl"));
    }
}
