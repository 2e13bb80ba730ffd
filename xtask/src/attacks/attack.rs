//! What an attack says of itself: the file `attack.toml` in its folder.
//!
//! In: the folder `attacks/`. Out: every attack in it, by name.

use anyhow::{Context, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// An attack.
#[derive(Debug)]
pub(crate) struct Attack {
    /// The name of its folder.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// What its file says.
    pub(crate) about: About,
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    /// What it is, in a few words.
    pub(crate) title: String,
    /// What the hostile program does.
    pub(crate) tries: String,
    /// The promise of SECURITY.md that it attacks, by the name of its heading.
    #[expect(
        dead_code,
        reason = "read by the test that holds SECURITY.md against these files"
    )]
    pub(crate) promise: String,
    /// What must not happen.
    pub(crate) must_not_reach: String,
    /// The command lines of holdup that are run against it. Root runs them.
    #[expect(dead_code, reason = "for people; the commands themselves are in attack.sh")]
    pub(crate) commands: Vec<String>,
    /// Who the hostile program is: `ordinary` is a fresh uid without any capability.
    #[expect(dead_code, reason = "for people; who it is is in attack.sh")]
    pub(crate) hostile: String,
    /// Debian packages that it needs beside those of the stage.
    #[serde(default)]
    pub(crate) packages: Vec<String>,
    /// Whether a recorder beside it must write every segment; it runs alone then.
    #[serde(default)]
    pub(crate) beside: bool,
    /// Seconds after which the whole attack is ended, and has won.
    #[serde(default = "limit_seconds")]
    pub(crate) limit_seconds: u64,
}

/// Two runs of holdup at their own limits, and what it takes to set an attack up.
fn limit_seconds() -> u64 {
    120
}

/// Every attack under `folder`, or those named, sorted by name.
pub(crate) fn load(folder: &Path, names: &[String]) -> anyhow::Result<Vec<Attack>> {
    let mut attacks = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let folder = entry.context("read the folder of attacks")?.path();
        let file = folder.join("attack.toml");
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let (true, Some(name)) = (file.exists(), name) else {
            continue;
        };
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let about = toml::from_str(&text).with_context(|| format!("understand {}", file.display()))?;
        attacks.push(Attack { name, folder, about });
    }
    attacks.sort_by(|one, other| one.name.cmp(&other.name));
    if names.is_empty() {
        return Ok(attacks);
    }
    let known: Vec<String> = attacks.iter().map(|attack| attack.name.clone()).collect();
    for name in names {
        if !known.contains(name) {
            bail!("there is no attack {name}; there are {}", known.join(", "));
        }
    }
    attacks.retain(|attack| names.contains(&attack.name));
    Ok(attacks)
}
