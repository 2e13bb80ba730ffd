//! What holdup is made of: every crate that is compiled into it, with version and license, and the C libraries (CycloneDX 1.5, JSON).
//!
//! In: cargo's own account of what it resolves. Crates that are needed for building or testing only are not in the binary, and not in the list.

use super::Release;
use crate::{process, workspace};
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// C libraries within the static binary, by Debian's package that they come from.
const LIBRARIES: [(&str, &str); 3] = [
    ("libc6-dev", "LGPL-2.1-or-later"),
    ("libelf-dev", "LGPL-3.0-or-later OR GPL-2.0-or-later"),
    ("zlib1g-dev", "Zlib"),
];

/// The programs of a release.
const PROGRAMS: [&str; 2] = ["holdup", "holdup-fleet"];

/// `holdup-0.1.0.cdx.json`.
pub(super) fn make(release: &Release) -> anyhow::Result<PathBuf> {
    let mut cargo = workspace::cargo();
    cargo.args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform=x86_64-unknown-linux-gnu",
    ]);
    let text = process::output(&mut cargo)?;
    let metadata: Value = serde_json::from_str(&text).context("understand what cargo resolves")?;
    let mut components = crates(&metadata).context("cargo's account has no holdup")?;
    for (package, license) in LIBRARIES {
        let mut dpkg = std::process::Command::new("dpkg-query");
        dpkg.args(["--show", "--showformat=${Version}", package]);
        let version = process::output(&mut dpkg)?;
        components.push(json!({
            "type": "library", "name": package, "version": version.trim(),
            "purl": format!("pkg:deb/debian/{package}@{}", version.trim()),
            "licenses": [{"expression": license}],
        }));
    }
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "holdup", "version": release.version}},
        "components": components,
    });
    let file = release.to.join(format!("holdup-{}.cdx.json", release.version));
    let text = serde_json::to_string_pretty(&list).context("write the list")?;
    std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    Ok(file)
}

/// Crates that the programs are linked with, from cargo's account of the workspace.
fn crates(metadata: &Value) -> Option<Vec<Value>> {
    let packages: BTreeMap<&str, &Value> = metadata["packages"]
        .as_array()?
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()?
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let programs: Vec<&str> = packages
        .iter()
        .filter(|(_, package)| PROGRAMS.iter().any(|name| package["name"] == *name))
        .map(|(id, _)| *id)
        .collect();
    let mut left = programs.clone();
    if left.is_empty() {
        return None;
    }
    let mut met = BTreeSet::new();
    while let Some(id) = left.pop() {
        if !met.insert(id) {
            continue;
        }
        let linked = |one: &&Value| {
            let kinds = one["dep_kinds"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        let all = nodes.get(id)?["deps"].as_array()?;
        left.extend(all.iter().filter(linked).filter_map(|one| one["pkg"].as_str()));
    }
    let component = |id: &str| {
        let package = packages.get(id)?;
        let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
        Some(json!({
            "type": "library", "name": name, "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
            "licenses": [{"expression": package["license"].as_str().unwrap_or("NOASSERTION")}],
        }))
    };
    Some(
        met.into_iter()
            .filter(|id| !programs.contains(id))
            .filter_map(component)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::crates;
    use serde_json::{Value, json};

    #[test]
    fn what_is_linked_is_in_the_list_and_what_builds_it_is_not() {
        let package = |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT"});
        let on = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("holdup"), package("near"), package("far"), package("build"), package("other")],
            "resolve": {"nodes": [
                {"id": "holdup", "deps": [on("near", Value::Null), on("build", json!("build"))]},
                {"id": "near", "deps": [on("far", Value::Null)]},
                {"id": "far", "deps": [on("near", Value::Null)]},
                {"id": "build", "deps": []},
                {"id": "other", "deps": []},
            ]},
        });
        let found = crates(&metadata).unwrap();
        let names: Vec<_> = found.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["far", "near"]);
        assert_eq!(found[0]["purl"], "pkg:cargo/far@1.0.0");
    }
}
