//! The JDKs of this machine, for scenarios about Java: each is made on one of the versions that it names and that are here, in
//! turn, or on every one.
//!
//! In: where distributions put JDKs, and scenarios. Out: the scenarios, one for each JDK, named `NAME-17`.

use super::scenario::Scenario;
use anyhow::bail;
use std::path::{Path, PathBuf};

/// Where Debian, and who makes packages for it, puts them.
const FOLDER: &str = "/usr/lib/jvm";

/// A JDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Jdk {
    /// Its version's first number.
    pub(crate) version: u32,
    /// Where it is.
    pub(crate) home: PathBuf,
}

/// Those that are in this folder, one of each version: links to the same are left out.
pub(crate) fn installed_in(folder: &Path) -> Vec<Jdk> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut homes: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    homes.sort();
    let mut jdks: Vec<Jdk> = homes
        .into_iter()
        .filter(|home| home.join("bin/javac").exists())
        .filter_map(|home| {
            let release = std::fs::read_to_string(home.join("release")).ok()?;
            let version = version(&release)?;
            Some(Jdk { version, home })
        })
        .collect();
    jdks.sort_by_key(|jdk| jdk.version);
    jdks.dedup_by_key(|jdk| jdk.version);
    jdks
}

/// Those of this machine.
pub(crate) fn installed() -> Vec<Jdk> {
    installed_in(Path::new(FOLDER))
}

/// The version in the file `release` of a JDK: 17 of `"17.0.15"`, 8 of `"1.8.0_452"`.
fn version(release: &str) -> Option<u32> {
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    let text = line.trim_matches('"');
    let text = text.strip_prefix("1.").unwrap_or(text);
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Each scenario about Java on JDKs that it names and that are here, on `every` or on one: they take turns, so that each has
/// its part of them. The others as they are.
pub(crate) fn each(scenarios: Vec<Scenario>, jdks: &[Jdk], every: bool) -> anyhow::Result<Vec<Scenario>> {
    let mut all = Vec::new();
    let mut turn = 0;
    for scenario in scenarios {
        if scenario.about.jdks.is_empty() {
            all.push(scenario);
            continue;
        }
        let (here, missing): (Vec<u32>, Vec<u32>) = scenario
            .about
            .jdks
            .iter()
            .partition(|version| jdks.iter().any(|jdk| jdk.version == **version));
        if here.is_empty() {
            bail!(
                "{} wants a JDK of version {missing:?} below {FOLDER}",
                scenario.name
            );
        }
        for version in missing {
            eprintln!(
                "scenario {}: there is no JDK {version} below {FOLDER}, so not on that",
                scenario.name
            );
        }
        let chosen = match every {
            true => here,
            false => vec![here[turn % here.len()]],
        };
        turn += 1;
        for jdk in jdks.iter().filter(|jdk| chosen.contains(&jdk.version)) {
            all.push(Scenario {
                name: format!("{}-{}", scenario.name, jdk.version),
                folder: scenario.folder.clone(),
                about: scenario.about.clone(),
                jdk: Some(jdk.clone()),
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{Jdk, each, installed_in, version};
    use crate::scenarios::scenario::Scenario;

    fn scenario(name: &str, jdks: &str) -> Scenario {
        let about = format!(
            "shows = ''\npackages = []\njdks = {jdks}\n[expect]\ncause = ''\nresource = []\nasker = []\nfindings = []"
        );
        Scenario {
            name: name.to_owned(),
            folder: "/scenarios".into(),
            about: toml::from_str(&about).unwrap(),
            jdk: None,
        }
    }

    fn jdk(version: u32) -> Jdk {
        Jdk {
            version,
            home: format!("/jdk-{version}").into(),
        }
    }

    #[test]
    fn versions_of_old_and_new_are_read() {
        assert_eq!(version("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n"), Some(17));
        assert_eq!(version("JAVA_VERSION=\"1.8.0_452\""), Some(8));
        assert_eq!(version("JAVA_VERSION=\"25\""), Some(25));
        assert_eq!(version("IMPLEMENTOR=\"x\""), None);
    }

    #[test]
    fn a_folder_has_one_of_each_version_and_links_are_not_counted_twice() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("java-17-openjdk");
        std::fs::create_dir_all(home.join("bin")).unwrap();
        std::fs::write(home.join("bin/javac"), "").unwrap();
        std::fs::write(home.join("release"), "JAVA_VERSION=\"17.0.1\"").unwrap();
        std::os::unix::fs::symlink(&home, folder.path().join("default-java")).unwrap();
        std::fs::create_dir(folder.path().join("not-one")).unwrap();
        assert_eq!(installed_in(folder.path()), [Jdk { version: 17, home }]);
        assert_eq!(installed_in(&folder.path().join("nowhere")), []);
    }

    #[test]
    fn versions_take_turns() {
        let scenarios = ["a", "b", "c"].map(|name| scenario(name, "[17, 25]"));
        let all = each(scenarios.into(), &[jdk(17), jdk(25)], false).unwrap();
        let names: Vec<String> = all.into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["a-17", "b-25", "c-17"]);
    }

    #[test]
    fn what_is_about_java_is_made_on_each_version_that_is_here() {
        let names = |jdks: &[Jdk]| {
            let all = each(vec![scenario("a", "[17, 25]"), scenario("b", "[]")], jdks, true);
            all.map(|all| all.into_iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(
            names(&[jdk(17), jdk(21), jdk(25)]).unwrap(),
            ["a-17", "a-25", "b"]
        );
        assert_eq!(names(&[jdk(17)]).unwrap(), ["a-17", "b"]);
        assert!(
            names(&[jdk(8)])
                .unwrap_err()
                .to_string()
                .contains("a wants a JDK")
        );
    }
}
