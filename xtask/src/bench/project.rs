//! A C project of many small files, as `make -j2` sees it.

use crate::process;
use anyhow::Context;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many C files the project has.
pub(super) const FILES: usize = 200;

/// How many functions a file has: enough that the compiler works for some hundredths of a second on each.
const FUNCTIONS: usize = 4;

/// Writes the project.
pub(super) fn generate(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let mut objects = String::new();
    for file in 0..FILES {
        let mut code = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
        for function in 0..FUNCTIONS {
            writeln!(
                code,
                "int f{file}_{function}(int n) {{ char b[64]; int s = 0; for (int i = 0; i < n; i++) {{ \
                 snprintf(b, sizeof(b), \"%d\", i * {function}); s += strlen(b) + atoi(b); }} return s; }}"
            )?;
        }
        fs::write(folder.join(format!("{file}.c")), code)?;
        write!(objects, " {file}.o")?;
    }
    fs::write(folder.join("main.c"), "int main(void) { return 0; }\n")?;
    let rules = format!("CFLAGS = -O1\nprogram: main.o{objects}\n\tcc -o $@ $^\n");
    fs::write(folder.join("Makefile"), rules).context("write the makefile")
}

/// Builds it anew with two jobs; how long that took.
pub(super) fn build(folder: &Path) -> anyhow::Result<Duration> {
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "o") || path.ends_with("program") {
            fs::remove_file(path)?;
        }
    }
    let began = Instant::now();
    process::run(
        Command::new("make")
            .args(["-j2", "-s"])
            .current_dir(folder)
            .stdout(Stdio::null()),
    )?;
    Ok(began.elapsed())
}
