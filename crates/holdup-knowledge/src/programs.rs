//! The program that a person knows a process by: of an interpreter, with what it interprets.
//!
//! In: the name that the kernel has of a process (`comm`), and its arguments. Out: `python3 app.py`, `java shop.jar`. Names and arguments
//! are anybody's: of the arguments only the place of the script is believed, and no more than its last part is kept, which holds no
//! passwords. What has no script (`sh -c`, a console) has the interpreter's name.

/// Characters of a script's name that are kept.
const MAX_SCRIPT_CHARS: usize = 48;

/// Where descriptors are files.
const DESCRIPTORS: [&str; 2] = ["/dev/fd/", "/proc/"];

/// How an interpreter reads its command line.
struct Interpreter {
    /// Its name without a version.
    name: &'static str,
    /// Options that have the next argument as their value.
    valued: &'static [&'static str],
    /// Options after which there is no script: the program follows, or is read from the terminal.
    inline: &'static [&'static str],
    /// Options whose value is what runs.
    runs: &'static [&'static str],
}

/// All that are known.
const INTERPRETERS: [Interpreter; 14] = [
    interpreter("python", &["-W", "-X", "-Q"], &["-c"], &["-m"]),
    interpreter("pypy", &["-W", "-X"], &["-c"], &["-m"]),
    interpreter("ruby", &["-I", "-r", "-C", "-E", "-F"], &["-e"], &[]),
    interpreter("perl", &["-I", "-M"], &["-e", "-E"], &[]),
    interpreter(
        "php",
        &["-d", "-c", "-z"],
        &["-r", "-S", "-a", "-B", "-R"],
        &["-f", "-F"],
    ),
    interpreter(
        "node",
        &[
            "-r",
            "--require",
            "--import",
            "--loader",
            "-C",
            "--conditions",
            "--env-file",
        ],
        &["-e", "--eval", "-p", "--print"],
        &[],
    ),
    interpreter(
        "nodejs",
        &["-r", "--require", "--import"],
        &["-e", "--eval", "-p", "--print"],
        &[],
    ),
    interpreter(
        "bash",
        &["-O", "+O", "-o", "+o", "--rcfile", "--init-file"],
        &["-c", "-s"],
        &[],
    ),
    interpreter("sh", &["-o", "+o"], &["-c", "-s"], &[]),
    interpreter("dash", &["-o", "+o"], &["-c", "-s"], &[]),
    interpreter("zsh", &["-o", "+o"], &["-c", "-s"], &[]),
    interpreter("ksh", &["-o", "+o"], &["-c", "-s"], &[]),
    interpreter("lua", &["-l"], &["-e"], &[]),
    interpreter(
        "java",
        &[
            "-cp",
            "-classpath",
            "--class-path",
            "-p",
            "--module-path",
            "--upgrade-module-path",
            "--add-modules",
            "--add-opens",
            "--add-exports",
            "--add-reads",
            "--limit-modules",
            "--source",
        ],
        &[],
        &["-jar", "-m", "--module"],
    ),
];

const fn interpreter(
    name: &'static str,
    valued: &'static [&'static str],
    inline: &'static [&'static str],
    runs: &'static [&'static str],
) -> Interpreter {
    Interpreter {
        name,
        valued,
        inline,
        runs,
    }
}

/// The interpreter of a program's name, which may have a version behind it (`python3.11`, `php8.2`).
fn known(program: &str) -> Option<&'static Interpreter> {
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    INTERPRETERS.iter().find(|one| one.name == plain)
}

/// Whether a process of this name may be an interpreter, so that its arguments say more.
#[must_use]
pub fn is_interpreter(comm: &str) -> bool {
    known(comm).is_some()
}

/// The name that a person knows a process by; `None` where its arguments say no more than `comm`.
#[must_use]
pub fn named<'a>(comm: &str, arguments: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let interpreter = known(comm)?;
    let mut arguments = arguments.into_iter().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            return shown(comm, "", arguments.next()?);
        }
        let first = argument.chars().next()?;
        // A shell's options may have a plus, and a console reads from `-`.
        if first != '-' && first != '+' {
            return shown(comm, "", argument);
        }
        if interpreter.runs.contains(&argument) {
            let option = if argument == "-m" && interpreter.name != "java" {
                "-m "
            } else {
                ""
            };
            return shown(comm, option, arguments.next()?);
        }
        let runs = |option: &&&str| argument.split_once('=').is_some_and(|(name, _)| name == **option);
        if interpreter.runs.iter().any(|option| runs(&option)) {
            return shown(comm, "", argument.split_once('=')?.1);
        }
        if interpreter.valued.contains(&argument) {
            arguments.next()?;
            continue;
        }
        // One-letter options may stand together: `bash -xc`, `perl -lane`.
        let together = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let has = |option: &&str| {
            let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
            letter.is_some_and(|letter| together.is_some_and(|rest| rest.ends_with(letter)))
        };
        let is_inline = interpreter.inline.contains(&argument) || interpreter.inline.iter().any(has);
        if argument == "-" || (is_inline && interpreter.name != "java") {
            return None;
        }
    }
    None
}

/// `python3 app.py`: the last part of a script's path, cut to a bearable length, without what is not printable.
fn shown(comm: &str, option: &str, script: &str) -> Option<String> {
    // What came by a descriptor has no name.
    if DESCRIPTORS.iter().any(|folder| script.starts_with(folder)) {
        return None;
    }
    let last = script.trim_end_matches('/').rsplit('/').next()?;
    let plain: String = last
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_SCRIPT_CHARS)
        .collect();
    (!plain.is_empty()).then(|| format!("{comm} {option}{plain}"))
}

/// Programs that hand the connections of a database on from one client to the next, and whose memory is understood.
const POOLERS: [&str; 1] = ["pgbouncer"];

/// Whether a process of this name is one of those.
#[must_use]
pub fn is_pooler(process: &str) -> bool {
    POOLERS.contains(&process)
}

#[cfg(test)]
mod tests {
    use super::{is_interpreter, named};

    fn of(comm: &str, line: &str) -> Option<String> {
        named(comm, line.split(' '))
    }

    #[test]
    fn the_script_is_what_a_person_knows() {
        for (comm, line, name) in [
            (
                "python3",
                "/usr/bin/python3 -u /srv/app.py --port 80",
                "python3 app.py",
            ),
            (
                "python3.11",
                "python3.11 -X dev -W error -m http.server 80",
                "python3.11 -m http.server",
            ),
            ("python3", "python3 -- -odd.py", "python3 -odd.py"),
            (
                "bash",
                "bash -x -o pipefail /etc/cron.daily/backup now",
                "bash backup",
            ),
            ("sh", "sh ./load.sh http://user:secret@host/ 0.3", "sh load.sh"),
            ("ruby", "ruby -I lib bin/rails server", "ruby rails"),
            ("perl", "perl -w -I lib tool.pl", "perl tool.pl"),
            (
                "php8.2",
                "php8.2 -d memory_limit=1G artisan queue:work",
                "php8.2 artisan",
            ),
            (
                "node",
                "node --max-old-space-size=99 -r dotenv/config server.js",
                "node server.js",
            ),
            (
                "java",
                "java -Xmx1g -cp a.jar:b.jar -Dkey=secret com.example.Main x",
                "java com.example.Main",
            ),
            ("java", "java -jar /opt/shop.jar --password=x", "java shop.jar"),
            (
                "java",
                "java --module-path mods --module shop/com.example.Main",
                "java com.example.Main",
            ),
        ] {
            assert_eq!(of(comm, line).as_deref(), Some(name), "{line}");
        }
    }

    #[test]
    fn without_a_script_the_name_stays() {
        for (comm, line) in [
            ("bash", "-bash"),
            ("bash", "bash -xc sleep"),
            ("sh", "sh -c secret"),
            ("python3", "python3 -c code"),
            ("python3", "python3 -"),
            ("perl", "perl -lne code file"),
            ("node", "node"),
            ("nginx", "nginx: master process /usr/sbin/nginx"),
            ("java", "java -version"),
            ("python3", "python3 -W"),
            ("bash", "bash /dev/fd/3"),
        ] {
            assert_eq!(of(comm, line), None, "{line}");
        }
        assert!(is_interpreter("python3.11") && !is_interpreter("pythonic") && !is_interpreter("shop"));
    }

    #[test]
    fn what_is_hostile_is_bounded() {
        let long = format!("python3 /tmp/a\u{1b}[31m\n{}", "x".repeat(5000));
        let name = of("python3", &long).unwrap();
        assert!(
            name.len() < 64 && !name.contains('\u{1b}') && !name.contains('\n'),
            "{name:?}"
        );
        assert_eq!(named("python3", []), None);
        assert_eq!(of("python3", "python3 ///"), None);
    }
}
