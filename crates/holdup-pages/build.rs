//! Puts the pages as they are printed into the build's folder: without the evidence of their examples, which is for tests and more than half
//! of the text.
//!
//! In: `../holdup-diagnosis/src/rules/AREA/ID.md` and `../holdup-diagnosis/causes/ID.md`. Out: `rules/AREA/ID.md` and `causes/ID.md`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What begins an example's evidence, and what ends it. What stands behind the first on its line is its verdict, which is printed.
const BEGIN: &str = "```toml";
const END: &str = "```";

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo says where to"));
    let from = Path::new("../holdup-diagnosis");
    let mut folders = vec![(from.join("causes"), out.join("causes"))];
    for area in fs::read_dir(from.join("src/rules"))? {
        let area = area?;
        if area.file_type()?.is_dir() {
            folders.push((area.path(), out.join("rules").join(area.file_name())));
        }
    }
    for (folder, to) in folders {
        println!("cargo::rerun-if-changed={}", folder.display());
        fs::create_dir_all(&to)?;
        for file in fs::read_dir(&folder)? {
            let file = file?.path();
            if let (Some("md"), Some(name)) = (file.extension().and_then(|it| it.to_str()), file.file_name())
            {
                fs::write(to.join(name), printed(&fs::read_to_string(&file)?))?;
            }
        }
    }
    Ok(())
}

/// A page without the evidence of its examples.
fn printed(page: &str) -> String {
    let mut within = false;
    let mut kept = String::new();
    for line in page.lines() {
        within &= line != END;
        if !within {
            kept.push_str(line);
            kept.push('\n');
        }
        within |= line.starts_with(BEGIN);
    }
    kept
}
