//! `cargo xtask new`: what a new part begins with.
//!
//! `new rule AREA/NAME` writes the rule and its page, ready to compile, and enters it into the list. Its check
//! says "clear" until it is written; its page's tests fail until there are examples.

use crate::generate::{self, rules::RuleFiles};
use crate::workspace;
use anyhow::{Context, bail};

/// What to begin.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// A rule: its code, its page and its place in the list
    Rule {
        /// Area and name, `disk/small-synchronous-writes`; the name states the trouble, not the cure
        #[arg(value_name = "AREA/NAME", value_parser = parse)]
        rule: RuleFiles,
    },
}

/// The rule's code. It compiles as it is, in a test of the rules, so that it cannot fall behind what a rule looks like.
const CODE: &str = include_str!("new/rule.rs.txt");
/// The rule's page; `ID` is its id.
const PAGE: &str = include_str!("new/rule.md.txt");

/// Writes the files.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let What::Rule { rule } = &args.what;
    if generate::rules::here()?.iter().any(|there| there.id == rule.id) {
        bail!("there is a rule {} already; ids are never used twice", rule.id);
    }
    let root = workspace::root();
    for (extension, template) in [("rs", CODE), ("md", PAGE)] {
        let path = rule.path(extension);
        let file = root.join(&path);
        let folder = file.parent().expect("a rule is in its area's folder");
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        std::fs::write(&file, fill(template, rule)).with_context(|| format!("write {path}"))?;
        println!("wrote {path}");
    }
    generate::write_from_sources()?;
    println!(
        "next: write the check and the page with an example of each verdict, make the trouble for real in\n\
         scenarios/{}, run cargo test -p holdup-diagnosis, and then cargo xtask gen",
        rule.id
    );
    Ok(())
}

/// The id that the rule's code has until it has its own.
const ID_IN_TEMPLATE: &str = "RuleId::Deadlock";

fn fill(template: &str, rule: &RuleFiles) -> String {
    template
        .replace(ID_IN_TEMPLATE, &format!("RuleId::{}", rule.variant()))
        .replace("ID", &rule.id)
}

/// Reads `AREA/NAME`.
fn parse(text: &str) -> Result<RuleFiles, String> {
    let kebab = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && !word.ends_with('-')
            && !word.contains("--")
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    match text.split_once('/') {
        Some((area, id)) if kebab(area) && kebab(id) => Ok(RuleFiles {
            id: id.to_owned(),
            area: area.to_owned(),
        }),
        _ => Err(
            "an area and a name, both in lower case with dashes, as in disk/small-synchronous-writes"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{CODE, PAGE, fill, parse};

    #[test]
    fn names_that_are_no_module_are_refused() {
        for bad in [
            "disk",
            "disk/",
            "/slow",
            "Disk/slow",
            "disk/slow_disk",
            "disk/-slow",
            "a/b/c",
            "../x/y",
            "disk/1st",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            parse("disk/slow-2").unwrap().path("md"),
            "crates/holdup-diagnosis/src/rules/disk/slow-2.md"
        );
    }

    #[test]
    fn templates_are_filled() {
        let rule = parse("disk/slow-disk").unwrap();
        let code = fill(CODE, &rule);
        assert!(code.contains("RuleId::SlowDisk,"), "{code}");
        assert!(!fill(PAGE, &rule).contains("ID"));
    }
}
