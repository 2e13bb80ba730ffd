//! `cargo xtask pages`: opens pages that holdup wrote in a real browser and uses everything in them.
//!
//! In: reports that are committed, made up or taken now, hostile ones among them. Out: what of each page failed (an error in
//! the console, a request that left, a control that did not do what it says, a line wider than the window), and the counts.

mod browser;
mod reports;

use crate::setup::{self, Packages};
use crate::tally::Tally;
use crate::{process, workspace};
use anyhow::{Context, bail};
use browser::{Browser, Page};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What opens pages.
pub(crate) const PACKAGES: Packages = Packages {
    purpose: "open pages",
    names: &["chromium", "fonts-dejavu-core"],
};

/// What to open, and by what holdup.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
    /// Only pages whose name contains one of these
    names: Vec<String>,
}

/// Bytes of a page: what people can send.
const LARGEST: u64 = 5_000_000;

/// Widths of windows in which no line may be wider than the window: a large screen, a tablet, a telephone.
const WIDTHS: [u32; 3] = [1440, 1024, 390];

/// Uses everything in a page; its value is a list of what failed.
const DRIVE: &str = include_str!("drive.js");

/// Opens all of them.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    setup::install(&[PACKAGES])?;
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let folder = workspace::scratch("pages")?;
    let wanted =
        |name: &str| args.names.is_empty() || args.names.iter().any(|part| name.contains(part.as_str()));
    let pages = write_pages(&holdup, &folder, wanted)?;
    if pages.is_empty() {
        bail!("no page has such a name");
    }
    let mut browser = Browser::start(&folder)?;
    let mut tally = Tally::default();
    for (name, file) in &pages {
        let judged = judge(&mut browser, file).with_context(|| format!("open {}", file.display()))?;
        let failures = &judged.failures;
        let opened = judged
            .opened_ms
            .map_or("unknown".to_owned(), |ms| format!("{:.2} s", ms / 1e3));
        println!(
            "{:<10} {name:<20} {:>6.2} MB, open after {opened}",
            if failures.is_empty() { "ok" } else { "FAILED" },
            judged.bytes as f64 / 1e6
        );
        for failure in failures {
            println!("           {failure}");
        }
        tally += Tally::one(failures.is_empty());
    }
    browser.close()?;
    println!("{tally}");
    if tally.failed > 0 {
        bail!("the pages are in {}", folder.display());
    }
    Ok(())
}

/// Writes the pages; by name.
fn write_pages(
    holdup: &Path,
    folder: &Path,
    wanted: impl Fn(&str) -> bool,
) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut pages = Vec::new();
    for (name, report) in reports::all()? {
        if !wanted(&name) {
            continue;
        }
        let from = folder.join(format!("{name}.json"));
        let to = folder.join(format!("{name}.html"));
        std::fs::write(&from, report.to_string()).with_context(|| format!("write {}", from.display()))?;
        let page = process::output(Command::new(holdup).args(["generate", "page"]).arg(&from))?;
        std::fs::write(&to, page).with_context(|| format!("write {}", to.display()))?;
        pages.push((name, to));
    }
    // What commands write themselves.
    let sample = |path: &str| workspace::root().join("crates/holdup/tests/samples").join(path);
    let side = |name: &str| workspace::root().join("crates/holdup/tests/diff").join(name);
    let taken: [(&str, Vec<PathBuf>); 5] = [
        ("host", vec!["host".into(), "-d".into(), "0.2".into()]),
        ("read", vec!["read".into(), sample("thread-dump")]),
        (
            "boot",
            vec!["boot".into(), "--kernel-log".into(), sample("dmesg/boot-6.1.txt")],
        ),
        ("diff", vec!["diff".into(), side("before"), side("after")]),
        (
            "diff-profiles",
            vec![
                "diff".into(),
                sample("collapsed/wall-java.txt"),
                sample("collapsed/contended.txt"),
            ],
        ),
    ];
    for (name, arguments) in taken {
        if !wanted(name) {
            continue;
        }
        let to = folder.join(format!("{name}.html"));
        let mut command = Command::new(holdup);
        command.args(arguments).arg("--html").arg(&to);
        process::output(&mut command)?;
        pages.push((name.to_owned(), to));
    }
    Ok(pages)
}

/// What is known of a page that was opened.
struct Judged {
    failures: Vec<String>,
    bytes: u64,
    /// From the begin of its loading until it had run its script and drawn itself, ms; none where the browser does not tell.
    opened_ms: Option<f64>,
}

/// Opens a page, uses it, and says what failed.
fn judge(browser: &mut Browser, file: &Path) -> anyhow::Result<Judged> {
    let mut failures = Vec::new();
    let size = std::fs::metadata(file)
        .with_context(|| format!("look at {}", file.display()))?
        .len();
    if size > LARGEST {
        failures.push(format!("it has {size} bytes, at most {LARGEST}"));
    }
    let url = format!("file://{}", file.display());
    let mut page = browser.open(&url)?;
    let opened_ms = page.evaluate(OPENED)?.as_f64();
    for (width, scheme) in WIDTHS.into_iter().zip(["light", "dark", "light"]) {
        page.look_like(width, scheme)?;
        let overflow = page.evaluate(FITS)?;
        if overflow != "" {
            failures.push(format!("{width} wide, {scheme}: {overflow}"));
        }
    }
    page.look_like(WIDTHS[0], "dark")?;
    match page.evaluate(DRIVE) {
        Ok(troubles) => failures.extend(texts(&troubles)),
        // What it stumbled over is among the page's own troubles.
        Err(error) => failures.push(format!("{error:#}")),
    }
    failures.extend(page.troubles(&url));
    close(page)?;
    Ok(Judged {
        failures,
        bytes: size,
        opened_ms,
    })
}

/// How long a page took until everything of it stood there and was painted once. Printed, and judged by nobody: machines differ.
const OPENED: &str = r#"new Promise((done) => requestAnimationFrame(() => setTimeout(() => {
    const [loaded] = performance.getEntriesByType("navigation");
    const painted = performance.getEntriesByType("paint").map((one) => one.startTime);
    done(loaded ? Math.max(loaded.loadEventEnd, ...painted) : null);
})))"#;

/// What is wider than the window, or shows another theme than the window has.
const FITS: &str = r#"(() => {
    const root = document.documentElement;
    if (root.dataset.ready !== "yes") return "the page did not start";
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    if ((root.dataset.theme === "dark") !== dark) return "the colours are not those of the system";
    if (root.scrollWidth <= innerWidth) return "";
    const wide = [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1
        && !one.closest(".scroll, .way, .piece, .stack"));
    return `${root.scrollWidth} wide where ${innerWidth} is: ` + wide.slice(0, 3).map((one) => one.tagName + "." + one.className).join(", ");
})()"#;

fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.map(|one| one.as_str().unwrap_or("a failure without words").to_owned())
        .collect()
}

fn close(page: Page<'_>) -> anyhow::Result<()> {
    page.close()
}
