//! What an incident says of itself: the file `incident.toml` in its folder.
//!
//! In: the folder `incidents/`. Out: every incident in it, by name. [`incidents/README.md`](../../../incidents/README.md) has the fields.

use anyhow::{Context, bail};
use regex_lite::{Regex, RegexBuilder};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The file that makes a folder an incident.
const FILE: &str = "incident.toml";

/// An incident.
#[derive(Debug)]
pub(crate) struct Incident {
    /// The name of its folder.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// What its file says.
    pub(crate) about: About,
    /// What its first sentence must say, compiled.
    pub(crate) truth: Truth,
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    /// Language or service, for the table.
    pub(crate) subject: String,
    /// The mechanism, in a line.
    pub(crate) mechanism: String,
    /// Where such an incident was reported.
    #[expect(
        dead_code,
        reason = "for people; a test insists on it by the field being there"
    )]
    pub(crate) source: String,
    /// What a colleague would say.
    #[cfg_attr(not(test), expect(dead_code, reason = "for people; a test insists on it"))]
    pub(crate) sentence: String,
    /// Whether nothing is wrong.
    #[serde(default)]
    pub(crate) healthy: bool,
    /// How holdup is asked; `{pid}` is the process of the file `pid`.
    #[serde(default = "attach")]
    pub(crate) ask: Vec<String>,
    /// Debian packages that it needs.
    #[serde(default)]
    pub(crate) packages: Vec<String>,
    /// A shell command that builds what it runs into `$BUILT`.
    #[serde(default)]
    pub(crate) build: Option<String>,
    /// What the title of the first finding must match, all of it.
    #[serde(default)]
    names: Vec<String>,
    /// What that title must not match: a false accusation.
    #[serde(default)]
    accuses: Vec<String>,
    /// The application's function that asked.
    #[serde(default)]
    function: Option<String>,
    /// Where it stands: `file:line` or `file:first-last`.
    #[serde(default)]
    line: Option<String>,
    /// Who is in the way.
    #[serde(default)]
    holder: Option<String>,
    /// What holdup does not say yet. Such a row is printed as loose.
    #[serde(default)]
    pub(crate) not_yet: Vec<Column>,
}

/// What is judged of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Column {
    /// What is waited for.
    Thing,
    /// Who asked.
    Function,
    /// Where.
    Line,
    /// Who is in the way.
    Holder,
    /// Nothing, on a healthy one.
    Quiet,
    /// Nobody is accused who is not guilty.
    Innocent,
}

/// The truth.
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) names: Vec<Regex>,
    pub(crate) accuses: Vec<Regex>,
    pub(crate) function: Option<Regex>,
    /// One alternative of `file:line` each.
    pub(crate) line: Vec<Regex>,
    pub(crate) holder: Option<Regex>,
}

/// As a person on call asks first.
fn attach() -> Vec<String> {
    ["attach", "--pid", "{pid}", "--duration", "4"]
        .map(str::to_owned)
        .to_vec()
}

impl Incident {
    /// Whether it is about a whole machine: such a one shares it with no other.
    pub(crate) fn of_machine(&self) -> bool {
        self.about.ask.first().is_some_and(|verb| verb == "host")
    }
}

impl Truth {
    fn of(about: &About) -> anyhow::Result<Truth> {
        let all = |patterns: &[String]| {
            patterns
                .iter()
                .map(|one| pattern(one))
                .collect::<anyhow::Result<_>>()
        };
        let one = |text: &Option<String>| text.as_deref().map(pattern).transpose();
        if about.names.is_empty() != about.healthy {
            bail!("a healthy incident names nothing, and any other names what is waited for");
        }
        Ok(Truth {
            names: all(&about.names)?,
            accuses: all(&about.accuses)?,
            function: one(&about.function)?,
            line: about.line.as_deref().map(lines).transpose()?.unwrap_or_default(),
            holder: one(&about.holder)?,
        })
    }
}

/// Whatever the case of letters: a sentence begins with a capital.
fn pattern(text: &str) -> anyhow::Result<Regex> {
    RegexBuilder::new(text)
        .case_insensitive(true)
        .build()
        .with_context(|| format!("the pattern {text}"))
}

/// `file:12` or `file:12-14`, each line as a pattern.
fn lines(text: &str) -> anyhow::Result<Vec<Regex>> {
    let (file, range) = text
        .rsplit_once(':')
        .with_context(|| format!("{text} is no file and line"))?;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    // A report has the file's name.
    let file = file.rsplit('/').next().unwrap_or(file);
    let first: u32 = first.parse().with_context(|| format!("the line of {text}"))?;
    let last: u32 = last.parse().with_context(|| format!("the line of {text}"))?;
    (first..=last)
        .map(|line| pattern(&format!(r"{}:{line}\b", regex_lite::escape(file))))
        .collect()
}

/// Every incident under `folder`, or those named, sorted by name.
pub(crate) fn load(folder: &Path, names: &[String]) -> anyhow::Result<Vec<Incident>> {
    let mut incidents = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let folder = entry.context("read the folder of incidents")?.path();
        let file = folder.join(FILE);
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let (true, Some(name)) = (file.exists(), name) else {
            continue;
        };
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let about: About = toml::from_str(&text).with_context(|| format!("understand {}", file.display()))?;
        let truth = Truth::of(&about).with_context(|| format!("understand {}", file.display()))?;
        incidents.push(Incident {
            name,
            folder,
            about,
            truth,
        });
    }
    incidents.sort_by(|one, other| one.name.cmp(&other.name));
    for name in names {
        if !incidents.iter().any(|incident| incident.name == *name) {
            bail!("there is no incident {name}: see --list");
        }
    }
    if !names.is_empty() {
        incidents.retain(|incident| names.contains(&incident.name));
    }
    Ok(incidents)
}

#[cfg(test)]
mod tests {
    use super::{lines, load};
    use crate::workspace;

    #[test]
    fn every_incident_of_this_checkout_is_understood() {
        let all = load(&workspace::root().join("incidents"), &[]).unwrap();
        assert!(!all.is_empty());
        for incident in all {
            assert!(incident.folder.join("start.sh").exists(), "{}", incident.name);
            assert!(!incident.about.sentence.is_empty(), "{}", incident.name);
        }
    }

    #[test]
    fn a_range_of_lines_is_each_of_them() {
        let range = lines("app.py:9-11").unwrap();
        assert!(range.iter().any(|line| line.is_match("(app.py:10)")));
        assert!(!range.iter().any(|line| line.is_match("(app.py:100)")));
        assert!(lines("app.py").is_err());
    }
}
