//! Names of kernel functions.
//!
//! In comes the text of `/proc/kallsyms` (`address type name [module]`), out comes the function that an
//! address belongs to. Without the privilege to see them the kernel prints every address as zero.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// How far, in bytes, an address may lie behind the last symbol before it and still belong to it. kallsyms
/// has no sizes; the largest kernel functions are tens of kilobytes, the gaps between modules are megabytes.
const FUNCTION_BYTES_MAX: u64 = 256 * 1024;

/// Most symbols that are kept. Large kernels with all modules loaded have about 300,000.
const SYMBOLS_MAX: usize = 4_000_000;

/// The kernel's function names, by address.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    /// All names, each followed by a newline: one allocation for hundreds of thousands of names.
    names: String,
    /// Start address and offset into `names`, sorted by address, one per address.
    symbols: Vec<(u64, u32)>,
}

impl KernelSymbols {
    /// Reads a file in the format of `/proc/kallsyms`.
    ///
    /// # Errors
    /// When the file cannot be opened or read. Lines that make no sense are left out.
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::read(BufReader::new(File::open(path)?))
    }

    fn read(mut text: impl BufRead) -> io::Result<Self> {
        let mut found: Vec<Found> = Vec::new();
        let mut names = String::new();
        let mut line = Vec::new();
        while found.len() < SYMBOLS_MAX {
            line.clear();
            if text.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let Some((address, rank, name)) = parse(&line) else {
                continue;
            };
            let Ok(offset) = u32::try_from(names.len()) else {
                break;
            };
            names.push_str(name);
            names.push('\n');
            found.push((address, rank, offset));
        }
        // Modules follow the kernel proper in no order, and one address can have several names: the sort is
        // stable, so that the best rank that was listed first wins.
        found.sort_by_key(|&(address, rank, _)| (address, rank));
        found.dedup_by_key(|&mut (address, ..)| address);
        // A copy: what is made in place would keep the room of what was found.
        let symbols = found
            .iter()
            .map(|&(address, _, offset)| (address, offset))
            .collect();
        names.shrink_to_fit();
        Ok(Self { names, symbols })
    }

    /// The function at `address`, without the suffixes that compilers add to copies and parts of a function.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&str> {
        let index = self
            .symbols
            .partition_point(|&(start, _)| start <= address)
            .checked_sub(1)?;
        let (start, offset) = self.symbols[index];
        if address - start >= FUNCTION_BYTES_MAX {
            return None;
        }
        self.names[offset as usize..].lines().next()
    }

    /// Whether the kernel hides its addresses from us (`kptr_restrict`, or no privilege).
    #[must_use]
    pub fn hidden(&self) -> bool {
        self.symbols.is_empty()
    }
}

/// Address, rank among the names of one address (lower is better), offset of the name.
type Found = (u64, u8, u32);

/// One line's address, rank and bare name, if it is a function of which the address is shown.
fn parse(line: &[u8]) -> Option<(u64, u8, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16)
        .ok()
        .filter(|&address| address != 0)?;
    let rank = match words.next()? {
        "T" => 0,
        "t" => 1,
        "W" | "w" => 2,
        _ => return None,
    };
    let name = bare(words.next()?);
    // Assemblers' mapping symbols and local labels are no functions.
    (!name.starts_with(['$', '.'])).then_some((address, rank, name))
}

/// The function's name in what the kernel prints for an address: `schedule_timeout.isra.0+0x22/0x110 [module]`; `None`: it knows none, and prints
/// a number.
#[must_use]
pub fn kernel_function(printed: &str) -> Option<&str> {
    let (name, _) = printed.split_once("+0x")?;
    Some(bare(name)).filter(|name| !name.is_empty())
}

/// Cuts `.isra.0`, `.constprop.3`, `.part.1`, `.cold`, `.llvm.81234` and plain numbers: a C name has no dot
/// of its own.
fn bare(name: &str) -> &str {
    match name.find('.') {
        None | Some(0) => name,
        Some(dot) => &name[..dot],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(text: &str) -> KernelSymbols {
        KernelSymbols::read(text.as_bytes()).unwrap()
    }

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000100 t do_nanosleep.isra.0
ffffffff81000200 W weak_alias
ffffffff81000200 T futex_wait
ffffffff81000300 d some_data
ffffffff81000400 t io_schedule.constprop.0.cold
ffffffff81000500 t helper.llvm.8123456
ffffffff81000600 t counted.42
nonsense
ffffffffc0001000 t ext4_sync_file\t[ext4]
ffffffffc0000500 t jbd2_log_wait_commit.part.3 [jbd2]
";

    #[test]
    fn an_address_belongs_to_the_last_function_before_it() {
        let symbols = symbols(TEXT);
        assert!(!symbols.hidden());
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), Some("_stext"));
        assert_eq!(symbols.name(0xffff_ffff_8100_00ff), Some("_stext"));
        assert_eq!(symbols.name(0xffff_ffff_80ff_ffff), None);
        // Data in between does not cut a function short.
        assert_eq!(symbols.name(0xffff_ffff_8100_0350), Some("futex_wait"));
    }

    #[test]
    fn suffixes_of_the_compiler_are_cut() {
        let symbols = symbols(TEXT);
        for (address, name) in [
            (0xffff_ffff_8100_0104, "do_nanosleep"),
            (0xffff_ffff_8100_0404, "io_schedule"),
            (0xffff_ffff_8100_0504, "helper"),
            (0xffff_ffff_8100_0604, "counted"),
            (0xffff_ffff_c000_0504, "jbd2_log_wait_commit"),
        ] {
            assert_eq!(symbols.name(address), Some(name));
        }
    }

    #[test]
    fn modules_count_and_are_sorted_in() {
        let symbols = symbols(TEXT);
        assert_eq!(symbols.name(0xffff_ffff_c000_1010), Some("ext4_sync_file"));
    }

    #[test]
    fn a_global_name_beats_a_weak_one_of_the_same_address() {
        assert_eq!(symbols(TEXT).name(0xffff_ffff_8100_0200), Some("futex_wait"));
    }

    #[test]
    fn an_address_far_from_any_symbol_has_no_name() {
        let symbols = symbols(TEXT);
        assert_eq!(symbols.name(0xffff_ffff_8100_0600 + FUNCTION_BYTES_MAX), None);
        assert_eq!(symbols.name(u64::MAX), None);
    }

    #[test]
    fn zeroed_addresses_are_hidden_ones() {
        let symbols = symbols("0000000000000000 T _stext\n0000000000000000 t do_nanosleep\n");
        assert!(symbols.hidden());
        assert_eq!(symbols.name(0), None);
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), None);
    }

    #[test]
    fn what_the_kernel_prints_for_an_address_has_the_function() {
        for (printed, name) in [
            ("schedule+0x22/0x110", Some("schedule")),
            ("io_schedule.constprop.0.cold+0x1/0x2", Some("io_schedule")),
            ("ext4_sync_file+0x9a/0x2f0 [ext4]", Some("ext4_sync_file")),
            ("0xffffffffc0001000", None),
            ("+0x1/0x2", None),
            ("", None),
        ] {
            assert_eq!(kernel_function(printed), name, "{printed}");
        }
    }

    #[test]
    fn a_missing_file_is_an_error() {
        assert!(KernelSymbols::load("/nonexistent/kallsyms").is_err());
    }
}
