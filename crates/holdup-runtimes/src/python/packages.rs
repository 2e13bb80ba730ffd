//! Whose a file of code is, where no name on its path says it.
//!
//! In: the path of a code object. Out: the package that an installer put there, by what it wrote into a folder above
//! ([`crate::memory::Source::installed_in`]). Folders are asked about once.

use crate::memory::{Memory, Source};
use std::collections::HashMap;
use std::sync::Arc;

/// Folders that are kept; then no more are asked about.
const FOLDERS_MAX: usize = 128;

/// Folders above a file that are asked about: packages within packages are rarely deeper.
const ABOVE_MAX: usize = 8;

/// What is known of folders: by the name of what lies there the package that it is of.
#[derive(Debug, Default)]
pub(super) struct Packages {
    folders: HashMap<String, HashMap<String, Arc<str>>>,
}

impl Packages {
    /// The package that a file belongs to; `None` where none is known.
    pub(super) fn of<S: Source>(&mut self, memory: &mut Memory<S>, file: &str) -> Option<Arc<str>> {
        if !file.starts_with('/') {
            return None;
        }
        let ends = file.rmatch_indices('/').map(|(at, _)| at);
        for end in ends.take_while(|end| *end > 0).take(ABOVE_MAX) {
            let (folder, within) = (&file[..end], &file[end + 1..]);
            let top = within.split('/').next().unwrap_or(within);
            if let Some(package) = self.in_folder(memory, folder)?.get(top) {
                return Some(Arc::clone(package));
            }
        }
        None
    }

    fn in_folder<S: Source>(
        &mut self,
        memory: &mut Memory<S>,
        folder: &str,
    ) -> Option<&HashMap<String, Arc<str>>> {
        if !self.folders.contains_key(folder) {
            if self.folders.len() >= FOLDERS_MAX {
                return None;
            }
            let installed = memory.installed_in(folder).into_iter();
            let installed = installed.map(|(top, package)| (top, Arc::from(package)));
            self.folders.insert(folder.to_owned(), installed.collect());
        }
        self.folders.get(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::Packages;
    use crate::memory::{Memory, PAGE, Source};

    /// A process in whose folder `/srv/app/lib` `httpx` was installed.
    #[derive(Debug, Default)]
    struct Process {
        asked: u32,
    }

    impl Source for Process {
        fn page(&mut self, _address: u64, _page: &mut [u8; PAGE]) -> bool {
            false
        }

        fn installed_in(&mut self, folder: &str) -> Vec<(String, String)> {
            self.asked += 1;
            assert!(self.asked <= 4, "{folder} is asked about again");
            match folder {
                "/srv/app/lib" => vec![("httpx".to_owned(), "httpx".to_owned())],
                _ => Vec::new(),
            }
        }
    }

    #[test]
    fn a_file_below_what_was_installed_is_of_that_package() {
        let mut memory = Memory::new(Process::default());
        let mut packages = Packages::default();
        let mut of = |file| packages.of(&mut memory, file);
        let client = "/srv/app/lib/httpx/_client.py";
        assert_eq!(of(client).as_deref(), Some("httpx"));
        assert_eq!(of(client).as_deref(), Some("httpx"));
        assert_eq!(of("/srv/app/lib/rates.py"), None);
        assert_eq!(of("lib/httpx/_client.py"), None);
        assert_eq!(of("<string>"), None);
    }
}
