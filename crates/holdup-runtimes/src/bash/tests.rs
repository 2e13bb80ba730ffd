//! Shells that a test has written down, whole and damaged.

use super::{Interpreter, Place, Refused, evaluates, may_be_in};
use crate::damage::read_damaged;
use crate::interpreted::{Interpreted, Unread, shown};
use crate::memory::Written;

const SYMBOLS: u64 = 0x10_0000;
const SCOPE: u64 = 0x20_0000;
const CHAINS: u64 = 0x21_0000;
const NAMES: u64 = 0x22_0000;
const ARRAYS: u64 = 0x23_0000;
const COMMANDS: u64 = 0x24_0000;
const TEXTS: u64 = 0x26_0000;
/// Two pages of stack, and the environment on the upper one.
const STACK: u64 = 0x7f_f000_0000;
const ENVIRONMENT: u64 = STACK + 0x1800;
const MAIN: u32 = 4711;

const PLACE: Place = Place {
    variables: SYMBOLS,
    printed: SYMBOLS + 8,
    environment: SYMBOLS + 16,
};

/// Kinds of commands.
const WHILE: u32 = 2;
const SIMPLE: u32 = 4;
const CONNECTION: u32 = 6;
const GROUP: u32 = 9;

/// Where an array has the element before its first.
type Head = u64;

const OLD: Head = 24;
const NEW: Head = 16;

#[derive(Default)]
struct Shell {
    image: Written,
    texts: u64,
}

impl Shell {
    fn text(&mut self, text: &str) -> u64 {
        let at = TEXTS + self.texts * 0x100;
        self.texts += 1;
        self.image.put(at, text.as_bytes());
        self.image.put(at + text.len() as u64, &[0]);
        at
    }

    fn array(&mut self, number: u64, head: Head, texts: &[&str]) -> u64 {
        let at = ARRAYS + number * 0x1000;
        let element = |number: usize| at + 0x100 + number as u64 * 32;
        self.image.word(at + head, element(0));
        self.image.word(element(0), u64::MAX);
        for (number, text) in texts.iter().enumerate() {
            let text = self.text(text);
            self.image.word(element(number) + 16, element(number + 1));
            self.image.word(element(number + 1), number as u64);
            self.image.word(element(number + 1) + 8, text);
        }
        self.image.word(element(texts.len()) + 16, element(0));
        at
    }

    /// A variable in this chain, behind the ones that are there.
    fn variable(&mut self, number: u64, chain: u64, name: &str, value: u64) {
        let (entry, variable) = (NAMES + number * 0x100, NAMES + number * 0x100 + 0x80);
        let text = self.text(name);
        let first = match number {
            1 => NAMES,
            _ => 0,
        };
        self.image.word(entry, first);
        self.image.word(entry + 8, text);
        self.image.word(entry + 16, variable);
        self.image.word(variable, text);
        self.image.word(variable + 8, value);
        self.image.word(CHAINS + chain * 8, entry);
    }

    /// A simple command of this line.
    fn simple(&mut self, number: u64, line: u32, words: &[&str]) -> u64 {
        let (command, part) = (COMMANDS + number * 0x400, COMMANDS + number * 0x400 + 0x40);
        self.image.put(command, &SIMPLE.to_le_bytes());
        self.image.word(command + 24, part);
        self.image.put(part + 4, &line.to_le_bytes());
        let list = |number: u64| part + 0x20 + number * 32;
        self.image.word(part + 8, list(0));
        for (number, word) in (0..).zip(words) {
            let text = self.text(word);
            let next = if number + 1 < words.len() as u64 {
                list(number + 1)
            } else {
                0
            };
            self.image.word(list(number), next);
            self.image.word(list(number) + 8, list(number) + 16);
            self.image.word(list(number) + 16, text);
        }
        command
    }

    /// One with others within it, at these places of its part.
    fn compound(&mut self, number: u64, kind: u32, within: &[(u64, u64)]) -> u64 {
        let (command, part) = (COMMANDS + number * 0x400, COMMANDS + number * 0x400 + 0x40);
        self.image.put(command, &kind.to_le_bytes());
        self.image.word(command + 24, part);
        for (offset, one) in within {
            self.image.word(part + offset, *one);
        }
        command
    }

    fn on_stack(&mut self, number: u64, word: u64) {
        self.image.word(STACK + number * 8, word);
    }

    fn runs(&mut self, text: &str) {
        let text = self.text(text);
        self.image.word(SYMBOLS + 8, text);
    }
}

/// `upload`, which `main` of another file has called on line 9, in a loop.
fn shell(head: Head) -> Shell {
    let mut shell = Shell::default();
    shell.image.word(SYMBOLS, SCOPE);
    shell.image.word(SYMBOLS + 16, ENVIRONMENT);
    shell.image.put(STACK, &[0; 0x2000]);
    shell.image.word(SCOPE + 32, SCOPE + 0x100);
    shell.image.word(SCOPE + 0x100, CHAINS);
    shell.image.put(SCOPE + 0x108, &8_u32.to_le_bytes());
    let functions = shell.array(0, head, &["upload", "main"]);
    let files = shell.array(1, head, &["/srv/lib.sh", "/srv/backup.sh"]);
    let lines = shell.array(2, head, &["9", "0"]);
    // Two in one chain.
    shell.variable(0, 3, "FUNCNAME", functions);
    shell.variable(1, 3, "BASH_SOURCE", files);
    shell.variable(2, 5, "BASH_LINENO", lines);
    let first = shell.simple(0, 3, &["cd", "/srv"]);
    let second = shell.simple(1, 4, &["curl", "-T", "$1"]);
    let both = shell.compound(2, CONNECTION, &[(8, first), (16, second)]);
    let group = shell.compound(3, GROUP, &[(8, both)]);
    shell.on_stack(7, group);
    shell.runs("curl -T $1 > /dev/null 2>&1");
    shell
}

const EXPECTED: [(&str, Option<u32>, bool); 2] = [("upload", Some(4), false), ("main", Some(9), true)];

fn read(image: Written) -> Result<Vec<Interpreted>, Unread> {
    Interpreter::find(image, PLACE, MAIN).unwrap().frames(MAIN)
}

fn line(shell: Shell) -> Option<u32> {
    read(shell.image).unwrap()[0].frame.line
}

#[test]
fn functions_have_their_files_and_lines() {
    for head in [OLD, NEW] {
        let frames = read(shell(head).image).unwrap();
        assert_eq!(shown(&frames), EXPECTED);
        let files: Vec<_> = frames
            .iter()
            .map(|one| one.frame.file.as_deref().unwrap())
            .collect();
        assert_eq!(files, ["/srv/lib.sh", "/srv/backup.sh"]);
    }
}

#[test]
fn a_command_that_stands_on_several_lines_has_none_but_where_the_stack_refers_to_one() {
    let twice = || {
        let mut shell = shell(NEW);
        let again = shell.simple(5, 8, &["curl", "-T", "$1"]);
        let first = COMMANDS + 0x400;
        let both = shell.compound(6, WHILE, &[(8, first), (16, again)]);
        shell.on_stack(9, both);
        (shell, again)
    };
    assert_eq!(line(twice().0), None);
    let (mut direct, again) = twice();
    direct.on_stack(2, again);
    assert_eq!(line(direct), Some(8));
}

#[test]
fn the_longest_command_that_fits_is_it() {
    let mut shell = shell(NEW);
    let other = shell.simple(5, 8, &["curl"]);
    shell.on_stack(2, other);
    assert_eq!(line(shell), Some(4));
}

#[test]
fn another_text_is_another_command() {
    for text in ["curl -T $10", "curl -T", "wget", "", "xcurl -T $1"] {
        let mut shell = shell(NEW);
        shell.runs(text);
        assert_eq!(line(shell), None, "{text}");
    }
}

#[test]
fn a_shell_outside_of_scripts_has_no_frames() {
    let mut shell = shell(NEW);
    for number in 0..3 {
        shell.array(number, NEW, &[]);
    }
    assert_eq!(read(shell.image), Ok(Vec::new()));
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let find = |image| Interpreter::find(image, PLACE, MAIN).map(|_| ()).unwrap_err();
    let mut starting = shell(NEW);
    starting.image.word(SYMBOLS, 0);
    assert_eq!(find(starting.image), Refused::NoVariables);
    let mut odd = shell(NEW);
    odd.image.put(SCOPE + 0x108, &0_u32.to_le_bytes());
    assert_eq!(find(odd.image), Refused::Unsupported);
    // One array has grown already, the others have not.
    let mut torn = shell(NEW);
    torn.array(2, NEW, &["9"]);
    assert_eq!(find(torn.image), Refused::Unsupported);
    assert_eq!(find(Written::default()), Refused::Memory);
    assert_eq!(Place::of(&[Some(1), None, Some(2)]), None);
    let mut interpreter = Interpreter::find(shell(NEW).image, PLACE, MAIN).unwrap();
    assert_eq!(interpreter.frames(MAIN + 1), Err(Unread::NoThread));
}

#[test]
fn circles_end() {
    let mut shell = shell(NEW);
    // A group within itself, a list of words and an array that come round.
    let group = COMMANDS + 3 * 0x400;
    shell.image.word(group + 0x40 + 8, group);
    let list = COMMANDS + 0x400 + 0x60;
    shell.image.word(list, list);
    let element = ARRAYS + 0x100 + 32;
    shell.image.word(element + 16, element);
    assert!(Interpreter::find(shell.image, PLACE, MAIN).is_err());
}

/// Damage of all kinds: whatever is read, it ends, and no frame is without a name.
#[test]
fn damaged_memory_is_no_panic_and_ends() {
    read_damaged(&[shell(OLD).image, shell(NEW).image], 3, |image, _| {
        let found = Interpreter::find(image, PLACE, MAIN);
        let Ok(Ok(frames)) = found.map(|mut interpreter| interpreter.frames(MAIN)) else {
            return false;
        };
        assert!(frames.len() <= 512 && frames.iter().all(|one| one.frame.symbol.is_some()));
        true
    });
}

#[test]
fn files_and_the_function_that_runs_commands_are_known_by_name() {
    for file in ["bash", "bash-static", "bash5.2"] {
        assert!(may_be_in(file), "{file}");
    }
    assert!(!may_be_in("bashtop") && !may_be_in("dash") && !may_be_in("libbash.so"));
    assert!(evaluates("execute_command") && !evaluates("execute_command_internal"));
}
