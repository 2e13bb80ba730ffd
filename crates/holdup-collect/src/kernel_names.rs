//! Names of the kernel's functions, as stacks need them.
//!
//! The problem: the kernel prints its whole table anew for whoever reads it, which takes 30 ms, and as long to take apart; it was half of a start, and of a
//! report's some hundred addresses most are in many stacks. The choice: the kernel is asked for each address once ([`KernelFunctions`]). Where
//! it lets no program answer, the table is read as observation begins; where it stops answering, then. In: addresses. Out: names.

use holdup_bpf::KernelFunctions;
use holdup_evidence::NotMeasured;
use holdup_proc::Root;
use holdup_symbols::{KernelSymbols, kernel_function};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

/// Most addresses of which the names are kept, some 4 MB: what comes beyond is asked for again.
const MOST_KNOWN: usize = 65_536;

/// Bytes of the table in which a function is looked for to ask the kernel for: it prints no more of it than is read.
const PROBED_BYTES: u64 = 65_536;

/// What the kernel prints for each of some addresses; `None`: it did not answer.
type Ask = Box<dyn Fn(&[u64]) -> Option<Vec<String>>>;

/// Who knows them.
enum Source {
    Kernel(Ask),
    Table(KernelSymbols),
    /// Nobody, and why.
    Nobody(String),
}

/// Knows them.
pub(crate) struct KernelNames {
    source: Source,
    /// What the kernel said; `None`: no function that it knows.
    known: HashMap<u64, Option<Box<str>>>,
}

impl KernelNames {
    /// By asking, where that can be done.
    pub(crate) fn new(functions: Option<KernelFunctions>) -> KernelNames {
        let root = Root::system();
        let ask = functions.map(|functions| -> Ask { Box::new(move |asked| functions.print(asked)) });
        let source = match ask.filter(|ask| names_functions(ask, a_function(&root))) {
            Some(ask) => Source::Kernel(ask),
            None => by_table(&root),
        };
        KernelNames {
            source,
            known: HashMap::new(),
        }
    }

    /// Of these addresses those that lie in a function whose name is known.
    pub(crate) fn of(&mut self, addresses: &[u64]) -> Vec<String> {
        if let Source::Kernel(ask) = &self.source
            && !learn(ask, &mut self.known, addresses)
        {
            // Whoever asks now keeps the answer.
            self.source = by_table(&Root::system());
        }
        if let Source::Table(table) = &self.source {
            let names = addresses.iter().filter_map(|address| table.name(*address));
            return names.map(str::to_owned).collect();
        }
        let names = addresses
            .iter()
            .filter_map(|address| self.known.get(address)?.as_deref());
        names.map(str::to_owned).collect()
    }

    /// What could not be named. Without names no wait can be known by the function it sleeps in.
    pub(crate) fn not_measured(&self) -> Option<NotMeasured> {
        let Source::Nobody(why) = &self.source else {
            return None;
        };
        Some(NotMeasured {
            what: "which kernel function a thread slept in".into(),
            why: why.clone(),
            fix: "sysctl kernel.kptr_restrict=1, and run as root".into(),
        })
    }
}

/// Asks for those of the addresses that are not known. `false`: there was no answer.
fn learn(ask: &Ask, known: &mut HashMap<u64, Option<Box<str>>>, addresses: &[u64]) -> bool {
    let missing = |address: &&u64| !known.contains_key(*address);
    let mut asked: Vec<u64> = addresses.iter().filter(missing).copied().collect();
    if known.len().saturating_add(asked.len()) > MOST_KNOWN {
        known.clear();
        asked = addresses.to_vec();
    }
    if asked.is_empty() {
        return true;
    }
    let Some(printed) = ask(&asked) else {
        return false;
    };
    let names = printed
        .iter()
        .map(|printed| kernel_function(printed).map(Box::from));
    known.extend(asked.into_iter().zip(names));
    true
}

/// Whether the kernel, asked for a function that is there, has a name for it. Where none is known to be there nothing is known against it.
fn names_functions(ask: &Ask, function: Option<u64>) -> bool {
    let Some(function) = function else { return true };
    let printed = ask(&[function]).unwrap_or_default();
    printed.iter().any(|printed| kernel_function(printed).is_some())
}

/// The address of a function of the kernel, where it shows any. The last of those that are read: before the first ones lies what is no code.
fn a_function(root: &Root) -> Option<u64> {
    let mut text = Vec::new();
    let table = File::open(root.proc.join("kallsyms")).ok()?;
    table.take(PROBED_BYTES).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The last line may be cut short.
    let (whole, _) = text.rsplit_once('\n')?;
    whole.lines().rev().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = matches!(words.next()?, "t" | "T");
        (is_code && address != 0).then_some(address)
    })
}

fn by_table(root: &Root) -> Source {
    read(root).map_or_else(Source::Nobody, Source::Table)
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
    use super::{Ask, KernelNames, MOST_KNOWN, Source, a_function, names_functions};
    use holdup_bpf::{Options, Tracer};
    use holdup_proc::Root;
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
    fn one_question_without_an_answer_loses_no_name() {
        let (address, name) = functions().swap_remove(1000);
        let mut names = KernelNames {
            source: Source::Kernel(Box::new(|_| None)),
            known: HashMap::new(),
        };
        assert_eq!(names.of(&[4096, address]), [name.as_str()], "the table knows it");
        assert!(matches!(names.source, Source::Table(_)));
        assert_eq!(names.of(&[address]), [name]);
        assert!(names.not_measured().is_none(), "nothing was lost");
    }

    #[test]
    fn a_kernel_that_answers_with_numbers_is_not_asked() {
        let numbers: Ask =
            Box::new(|asked| Some(asked.iter().map(|address| format!("{address:#x}")).collect()));
        assert!(!names_functions(&numbers, Some(4096)));
        assert!(names_functions(&numbers, None), "its table is hidden, too");
        let silent: Ask = Box::new(|_| None);
        assert!(!names_functions(&silent, Some(4096)));
        let names: Ask = Box::new(|_| Some(vec!["schedule+0x0/0x110".to_owned()]));
        assert!(names_functions(&names, Some(4096)));
    }

    #[test]
    fn a_function_is_found_where_addresses_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let told = |text: &str| {
            std::fs::write(folder.path().join("proc/kallsyms"), text).unwrap();
            a_function(&Root::below(folder.path()))
        };
        assert_eq!(
            told("0000000000001000 A cpu\nffff80 T _text\nffff90 t schedule\nffffa0 d table\nffffb0 T cut"),
            Some(0xffff90)
        );
        assert_eq!(
            told("0000000000000000 T _text\n0000000000000000 t schedule\n"),
            None
        );
        assert_eq!(told(""), None);
        assert!(
            functions()
                .iter()
                .any(|(address, _)| Some(*address) >= a_function(&Root::system()))
        );
    }

    #[test]
    fn without_anybody_who_knows_it_is_said() {
        let mut names = KernelNames {
            source: Source::Nobody("they are hidden".to_owned()),
            known: HashMap::new(),
        };
        assert!(names.of(&[4096]).is_empty());
        assert_eq!(names.not_measured().unwrap().why, "they are hidden");
    }
}
