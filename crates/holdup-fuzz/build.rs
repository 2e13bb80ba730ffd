//! Finds the targets: each `targets/NAME.rs` has a `run(&[u8])`, and its corpus is `corpus/NAME/`. A
//! target that has `SEEDS` takes the files of that folder too.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder of targets is part of the crate")
        .map(|entry| {
            let name = entry.expect("the folder can be listed").file_name();
            name.to_string_lossy().into_owned()
        })
        .filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned()))
        .collect();
    names.sort();

    let mut code = String::new();
    for name in &names {
        let file = folder.join(format!("{name}.rs"));
        writeln!(code, "#[path = {file:?}]\nmod {name};").expect("a string can be written to");
    }
    code.push_str("/// Every target, by name.\npub const TARGETS: &[Target] = &[\n");
    for name in &names {
        let text = std::fs::read_to_string(folder.join(format!("{name}.rs"))).expect("a target can be read");
        let seeds = match text.contains("pub(crate) const SEEDS") {
            true => format!("Some({name}::SEEDS)"),
            false => "None".to_owned(),
        };
        writeln!(
            code,
            "    Target {{ name: {name:?}, run: {name}::run, mutations: {name}::MUTATIONS, seeds: {seeds} }},"
        )
        .expect("a string can be written to");
    }
    code.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("targets.rs");
    std::fs::write(out, code).expect("the build directory can be written to");
}
