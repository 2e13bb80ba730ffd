//! `cargo xtask gen`: the committed files that are made from others.
//!
//! First those that are made from the sources as they lie there (the list of rules is part of the program), then
//! those that holdup itself writes (man pages, completion scripts, the report's JSON schema). `--check` writes nothing and names
//! each file that is not what it would be.

mod index;
pub(crate) mod rules;

use crate::{process, setup, workspace};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders under the root that hold nothing but generated files, so that what is there and not made is stale.
const OWNED: &[&str] = &["man", COMPLETIONS];

/// The folder of completion scripts.
const COMPLETIONS: &str = "packaging/completions";

/// Shells, each with the name that its completion script has where the shell looks for it.
const SHELLS: [(&str, &str); 3] = [("bash", "holdup"), ("zsh", "_holdup"), ("fish", "holdup.fish")];

/// Builds holdup as `cargo test --workspace` does: other packages or targets would choose other features of dependencies, and everything
/// that depends on those would be compiled once more. `tidy` is a test; naming one makes cargo choose the features that tests have.
const BUILD: [&str; 7] = [
    "build",
    "--quiet",
    "--workspace",
    "--bin",
    "holdup",
    "--test",
    "tidy",
];

/// Generated files by their path under the root.
type Files = BTreeMap<PathBuf, String>;

/// Write or compare.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a file is not what it would be
    #[arg(long)]
    check: bool,
}

/// Writes the files, or compares them.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.check { check() } else { write() }
}

/// Compares; an error names every file that differs, and the command that makes them right.
pub(crate) fn check() -> anyhow::Result<()> {
    let root = workspace::root();
    rules::format(&root, &rules::find(&root)?, true)?;
    let mut wrong = differences(&root, &from_sources(&root)?)?;
    let made = from_holdup()?;
    wrong.extend(differences(&root, &made)?);
    wrong.extend(stale(&root, &made)?);
    if wrong.is_empty() {
        return Ok(());
    }
    for file in &wrong {
        eprintln!("not as generated: {}", file.display());
    }
    bail!(
        "{} generated files are out of date: run cargo xtask gen",
        wrong.len()
    );
}

/// Writes the files made from the sources alone; enough for holdup to compile.
pub(crate) fn write_from_sources() -> anyhow::Result<()> {
    let root = workspace::root();
    rules::format(&root, &rules::find(&root)?, false)?;
    write_files(&root, &from_sources(&root)?)
}

fn write() -> anyhow::Result<()> {
    write_from_sources()?;
    let root = workspace::root();
    let made = from_holdup()?;
    for file in stale(&root, &made)? {
        std::fs::remove_file(root.join(&file)).with_context(|| format!("remove {}", file.display()))?;
        println!("removed {}", file.display());
    }
    write_files(&root, &made)
}

fn from_sources(root: &Path) -> anyhow::Result<Files> {
    let rules = rules::find(root)?;
    Ok(Files::from([
        (PathBuf::from(rules::LIST), rules::list(&rules)),
        (PathBuf::from(rules::PAGES), rules::pages(root, &rules)?),
        (PathBuf::from(index::INDEX), index::text(root, &rules)?),
    ]))
}

/// What holdup writes about itself.
fn from_holdup() -> anyhow::Result<Files> {
    setup::install(&[setup::BUILD])?;
    process::run(workspace::cargo().args(BUILD))?;
    let binary = workspace::target()?.join("debug/holdup");
    let schema = process::output(Command::new(&binary).args(["generate", "schema"]))?;
    let mut files = Files::from([(PathBuf::from("schemas/holdup.report-1.schema.json"), schema)]);

    let pages = tempfile::tempdir().context("make a folder for man pages")?;
    process::run(Command::new(&binary).args(["generate", "man"]).arg(pages.path()))?;
    for entry in std::fs::read_dir(pages.path()).context("look at the man pages")? {
        let entry = entry.context("look at the man pages")?;
        let text = std::fs::read_to_string(entry.path()).context("read a man page")?;
        files.insert(Path::new("man").join(entry.file_name()), text);
    }
    for (shell, file) in SHELLS {
        let script = process::output(Command::new(&binary).args(["completions", shell]))?;
        files.insert(Path::new(COMPLETIONS).join(file), script);
    }
    Ok(files)
}

fn differences(root: &Path, files: &Files) -> anyhow::Result<Vec<PathBuf>> {
    let mut wrong = Vec::new();
    for (file, text) in files {
        if current(&root.join(file))?.as_ref() != Some(text) {
            wrong.push(file.clone());
        }
    }
    Ok(wrong)
}

fn stale(root: &Path, made: &Files) -> anyhow::Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    for folder in OWNED {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let file =
                Path::new(folder).join(entry.with_context(|| format!("look into {folder}"))?.file_name());
            if !made.contains_key(&file) {
                stale.push(file);
            }
        }
    }
    Ok(stale)
}

fn write_files(root: &Path, files: &Files) -> anyhow::Result<()> {
    for (file, text) in files {
        let path = root.join(file);
        if current(&path)?.as_ref() == Some(text) {
            continue;
        }
        let folder = path.parent().expect("a file under the root is in a folder");
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        println!("wrote {}", file.display());
    }
    Ok(())
}

/// The file as it is; `None` when it is not there.
fn current(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Files, differences, stale, write_files};
    use std::path::PathBuf;

    #[test]
    fn what_is_missing_changed_or_left_over_is_named_and_mended() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::from([
            (PathBuf::from("man/a.1"), "a".to_owned()),
            (PathBuf::from("man/b.1"), "b".to_owned()),
            (PathBuf::from("docs/c.md"), "c".to_owned()),
        ]);
        std::fs::create_dir(root.path().join("man")).unwrap();
        for (file, text) in [("man/a.1", "a"), ("man/b.1", "older"), ("man/gone.1", "x")] {
            std::fs::write(root.path().join(file), text).unwrap();
        }
        let named = |files: &[&str]| files.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            differences(root.path(), &files).unwrap(),
            named(&["docs/c.md", "man/b.1"])
        );
        assert_eq!(stale(root.path(), &files).unwrap(), named(&["man/gone.1"]));
        write_files(root.path(), &files).unwrap();
        assert_eq!(differences(root.path(), &files).unwrap(), named(&[]));
    }
}
