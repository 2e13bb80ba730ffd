//! Names of the kernel's functions, as stacks need them.
//!
//! The problem: the kernel prints its whole table anew for whoever reads it, which takes 30 ms, and as long to take apart; it was half of a start, and of a
//! report's some hundred addresses most are in many stacks. The choice: the kernel is asked for each address once ([`KernelFunctions`]). Where
//! it lets no program answer, the table is read as observation begins. In: addresses. Out: names.

use holdup_bpf::KernelFunctions;
use holdup_evidence::NotMeasured;
use holdup_proc::Root;
use holdup_symbols::{KernelSymbols, kernel_function};
use std::collections::HashMap;

/// Most addresses of which the names are kept, some 4 MB: what comes beyond is asked for again.
const MOST_KNOWN: usize = 65_536;

/// Who knows them.
enum Source {
    Kernel(KernelFunctions),
    Table(KernelSymbols),
    /// Nobody, and why.
    Nobody(String),
}

/// Knows them.
pub(crate) struct KernelNames {
    source: Source,
    /// What the kernel said; `None`: no function that it knows.
    known: HashMap<u64, Option<Box<str>>>,
    /// The kernel did not answer.
    unanswered: bool,
}

impl KernelNames {
    /// By asking, where that can be done.
    pub(crate) fn new(functions: Option<KernelFunctions>) -> KernelNames {
        let source = match functions {
            Some(functions) => Source::Kernel(functions),
            None => read(&Root::system()).map_or_else(Source::Nobody, Source::Table),
        };
        KernelNames {
            source,
            known: HashMap::new(),
            unanswered: false,
        }
    }

    /// Of these addresses those that lie in a function whose name is known.
    pub(crate) fn of(&mut self, addresses: &[u64]) -> Vec<String> {
        match &self.source {
            Source::Kernel(functions) => {
                let missing = |address: &&u64| !self.known.contains_key(*address);
                let mut asked: Vec<u64> = addresses.iter().filter(missing).copied().collect();
                if self.known.len().saturating_add(asked.len()) > MOST_KNOWN {
                    self.known.clear();
                    asked = addresses.to_vec();
                }
                if !asked.is_empty() {
                    match functions.print(&asked) {
                        Some(printed) => {
                            let names = printed
                                .iter()
                                .map(|printed| kernel_function(printed).map(Box::from));
                            self.known.extend(asked.into_iter().zip(names));
                        }
                        None => self.unanswered = true,
                    }
                }
                let names = addresses
                    .iter()
                    .filter_map(|address| self.known.get(address)?.as_deref());
                names.map(str::to_owned).collect()
            }
            Source::Table(table) => {
                let names = addresses.iter().filter_map(|address| table.name(*address));
                names.map(str::to_owned).collect()
            }
            Source::Nobody(_) => Vec::new(),
        }
    }

    /// What could not be named. Without names no wait can be known by the function it sleeps in.
    pub(crate) fn not_measured(&self) -> Option<NotMeasured> {
        let why = match &self.source {
            Source::Nobody(why) => why.clone(),
            Source::Kernel(_) if self.unanswered => "the kernel did not answer when it was asked".to_owned(),
            Source::Kernel(_) | Source::Table(_) => return None,
        };
        Some(NotMeasured {
            what: "which kernel function a thread slept in".into(),
            why,
            fix: "sysctl kernel.kptr_restrict=1, and run as root".into(),
        })
    }
}

/// Why not, in words.
fn read(root: &Root) -> Result<KernelSymbols, String> {
    match KernelSymbols::load(root.proc.join("kallsyms")) {
        Ok(symbols) if !symbols.hidden() => Ok(symbols),
        Ok(_) => Err("the kernel hides its addresses (kernel.kptr_restrict)".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{KernelNames, MOST_KNOWN, Source};
    use holdup_bpf::{Options, Tracer};
    use holdup_symbols::KernelSymbols;
    use std::collections::{BTreeSet, HashMap};

    /// Functions of the kernel proper that have an address of their own: address and name as its table has them.
    fn functions() -> Vec<(u64, String)> {
        let text = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let mut at: HashMap<u64, Vec<(&str, &str)>> = HashMap::new();
        for line in text.lines().filter(|line| !line.contains('\t')) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let address = u64::from_str_radix(words[0], 16).unwrap();
            at.entry(address).or_default().push((words[1], words[2]));
        }
        let alone = at.into_iter().filter(|(_, names)| names.len() == 1);
        let mut functions: Vec<(u64, String)> = alone
            .filter(|(_, names)| matches!(names[0].0, "t" | "T") && !names[0].1.contains(['.', '$']))
            .map(|(address, names)| (address, names[0].1.to_owned()))
            .collect();
        functions.sort();
        functions
    }

    fn asking() -> KernelNames {
        let tracer =
            Tracer::load(Options::default()).expect("tracing works here (as root, see holdup doctor)");
        let names = KernelNames::new(tracer.kernel_functions());
        assert!(matches!(names.source, Source::Kernel(_)), "this kernel answers");
        names
    }

    #[test]
    fn the_kernel_names_its_functions_as_its_table_does() {
        let mut names = asking();
        let functions = functions();
        let some: Vec<&(u64, String)> = functions.iter().step_by(97).collect();
        assert!(some.len() > 100, "more than are asked for at once");
        let addresses: Vec<u64> = some.iter().map(|(address, _)| *address).collect();
        let expected: Vec<&str> = some.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names.of(&addresses), expected, "at the beginning of each");
        let inside: Vec<u64> = addresses.iter().map(|address| address + 1).collect();
        assert_eq!(names.of(&inside), expected, "and behind it");
        assert_eq!(names.of(&addresses), expected, "once more, as it was kept");
        assert!(names.not_measured().is_none());
        let table = KernelSymbols::load("/proc/kallsyms").unwrap();
        let told: Vec<&str> = addresses
            .iter()
            .filter_map(|address| table.name(*address))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_no_function_of_the_kernel_has_no_name() {
        let mut names = asking();
        let (address, name) = functions().swap_remove(1000);
        assert_eq!(
            names.of(&[0, 1, 4096, address, 0x7fff_0000_0000, u64::MAX]),
            [name]
        );
        assert!(names.of(&[]).is_empty());
        assert!(names.not_measured().is_none());
    }

    #[test]
    fn no_more_names_are_kept_than_there_is_room_for() {
        let mut names = asking();
        names.known = (0..MOST_KNOWN as u64).map(|address| (address, None)).collect();
        let (address, name) = functions().swap_remove(1000);
        assert_eq!(names.of(&[5, address]), [name]);
        let kept: BTreeSet<u64> = names.known.keys().copied().collect();
        assert_eq!(kept, BTreeSet::from([5, address]));
    }

    #[test]
    fn without_anybody_who_knows_it_is_said() {
        let mut names = KernelNames {
            source: Source::Nobody("they are hidden".to_owned()),
            known: HashMap::new(),
            unanswered: false,
        };
        assert!(names.of(&[4096]).is_empty());
        assert_eq!(names.not_measured().unwrap().why, "they are hidden");
    }
}
