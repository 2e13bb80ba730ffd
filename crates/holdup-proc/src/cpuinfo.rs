//! `/proc/cpuinfo`: whether the CPU makes random numbers, and whether it is a virtual one;
//! `/sys/devices/system/cpu/online`: how many there are.

use crate::root::{Problem, Root, note, text, text_if_there, word};

/// What the CPU's flags say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// It has RDRAND or RDSEED (x86) or RNDR (arm64).
    pub random_instruction: Option<bool>,
    /// It is a virtual machine's; only x86 says so.
    pub hypervisor: Option<bool>,
}

/// The flags of the first CPU.
pub fn flags(root: &Root, problems: &mut Vec<Problem>) -> Flags {
    let Some(text) = text(&root.proc.join("cpuinfo"), problems) else {
        return Flags::default();
    };
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let has = |name: &str| value.split_whitespace().any(|flag| flag == name);
        match key.trim() {
            "flags" => {
                return Flags {
                    random_instruction: Some(has("rdrand") || has("rdseed")),
                    hypervisor: Some(has("hypervisor")),
                };
            }
            "Features" => {
                return Flags {
                    random_instruction: Some(has("rng")),
                    hypervisor: None,
                };
            }
            _ => {}
        }
    }
    Flags::default()
}

/// The names of the first CPU's instructions for random numbers; `None` where its flags are not known.
pub fn random_instructions(root: &Root, problems: &mut Vec<Problem>) -> Option<Vec<String>> {
    const NAMES: [(&str, &str, &str); 3] = [
        ("flags", "rdrand", "RDRAND"),
        ("flags", "rdseed", "RDSEED"),
        ("Features", "rng", "RNDR"),
    ];
    let text = text(&root.proc.join("cpuinfo"), problems)?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (key, flags) = lines.find(|(key, _)| matches!(key.trim(), "flags" | "Features"))?;
    let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    let names = NAMES
        .iter()
        .filter(|(of, flag, _)| *of == key.trim() && has(flag));
    Some(names.map(|(_, _, name)| (*name).to_owned()).collect())
}

/// How many CPUs are online.
pub fn online(root: &Root, problems: &mut Vec<Problem>) -> Option<u32> {
    let file = root.sys.join("devices/system/cpu/online");
    let list = word(&file, problems)?;
    let count = count(&list);
    if count.is_none() {
        note(
            problems,
            &file,
            Some(1),
            format!("a list of CPUs such as 0-3,5 expected, found {list:?}"),
        );
    }
    count
}

/// Which CPUs are online; none where that can't be read.
#[must_use]
pub fn which_online(root: &Root) -> Vec<u32> {
    /// More than any machine has: a list that says so is wrong.
    const MAX_CPUS: u32 = 1 << 16;
    let file = root.sys.join("devices/system/cpu/online");
    let Some(list) = word(&file, &mut Vec::new()) else {
        return in_stat(root);
    };
    if count(&list).is_none_or(|count| count > MAX_CPUS) {
        return Vec::new();
    }
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}

/// The same by `/proc/stat`, which has a line of each, for where there is no `/sys`.
fn in_stat(root: &Root) -> Vec<u32> {
    let text = text_if_there(&root.proc.join("stat")).unwrap_or_default();
    let number = |line: &str| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok();
    text.lines().filter_map(number).collect()
}

fn count(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?)?.checked_add(1)
    })
}

#[cfg(test)]
mod tests {
    use super::{Flags, count, flags, which_online};
    use crate::root::Tree;

    fn flags_of(cpuinfo: &str) -> Flags {
        flags(&Tree::new(&[("proc/cpuinfo", cpuinfo)]).root, &mut Vec::new())
    }

    #[test]
    fn flags_are_whole_words() {
        let flags = flags_of("processor\t: 0\nflags\t\t: fpu rdrand_not hypervisor sse\n");
        assert_eq!(flags.random_instruction, Some(false));
        assert_eq!(flags.hypervisor, Some(true));
        assert_eq!(flags_of("flags : fpu rdseed\n").random_instruction, Some(true));
    }

    #[test]
    fn arm_has_its_own_words_and_others_are_not_measured() {
        assert_eq!(
            flags_of("Features\t: fp asimd rng\n").random_instruction,
            Some(true)
        );
        assert_eq!(flags_of("Features\t: fp asimd\n").random_instruction, Some(false));
        assert_eq!(flags_of("isa : rv64\n"), Flags::default());
    }

    #[test]
    fn cpus_are_counted() {
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-3,8,10-11"), Some(7));
        assert_eq!(count(""), None);
        assert_eq!(count("3-1"), None);
        assert_eq!(count("0-4294967294,7"), None);
        let which = |list: &str| which_online(&Tree::new(&[("sys/devices/system/cpu/online", list)]).root);
        assert_eq!(which("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(which("0-4294967290\n"), [0_u32; 0]);
        assert_eq!(which("x\n"), [0_u32; 0]);
        let stat = "cpu  9 9 9\ncpu0 1 2 3\ncpu3 1 2 3\nintr 7\n";
        let without_sys = Tree::new(&[("proc/stat", stat)]);
        assert_eq!(which_online(&without_sys.root), [0, 3]);
    }
}
