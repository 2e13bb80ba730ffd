//! What copying does to an output does not change what is read of it: a sample of each format, damaged in each way.

use holdup_readers::read_text;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a sample: a larger one shows nothing more.
const LARGEST: u64 = 12 << 10;

/// Formats that are documents, or the lines of any program: what stands in front of those may be theirs. A line of bare numbers
/// (`loadavg`) is known by the command in front of it alone.
const OTHERS: &[&str] = &[
    "collapsed",
    "dmesg-json",
    "jfr-print",
    "journal",
    "journal-json",
    "loadavg",
    "log",
    "lsblk",
    "pprof",
    "seeds.toml",
    "sysstat-json",
    "systemd-plot",
    "text",
    "thread-dump-json",
    "kernel-files",
    "time",
    "uname",
];

/// What is done to a text.
type Damage = (&'static str, fn(&str) -> String);

fn in_front(text: &str, front: &str) -> String {
    text.lines().map(|line| format!("{front}{line}\n")).collect()
}

const DAMAGES: &[Damage] = &[
    ("no-break spaces", |text| text.replace(' ', "\u{a0}")),
    ("quotation", |text| in_front(text, "> ")),
    ("fence", |text| {
        format!("Here is what I got:\n\n```\n{text}\n```\n\nAny idea?\n")
    }),
    ("fence with a language", |text| {
        format!("```console\n{text}\n```\n")
    }),
    ("prompts", |text| {
        format!("root@box:~# true\n{text}\nroot@box:~# \n")
    }),
    ("colours", |text| {
        text.lines()
            .map(|line| format!("\u{1b}[32m{line}\u{1b}[0m\n"))
            .collect()
    }),
    ("ends of lines", |text| text.replace('\n', "\r\n")),
    ("container", |text| {
        in_front(text, "2026-03-03T10:00:00.123456789Z ")
    }),
    ("pod", |text| {
        in_front(text, "2026-03-03T10:00:00.123456789Z stdout F ")
    }),
    ("composed", |text| in_front(text, "app-1  | ")),
    ("journal", |text| in_front(text, "Mar 03 10:00:00 box app[812]: ")),
    ("of a host", |text| in_front(text, "node008: ")),
    ("more text around", |text| {
        format!(
            "Hello,\n\nwe see this since the update:\n\n{text}\n\nThe same on another machine.\n\n-- \nRegards\n"
        )
    }),
    ("left out", |text| format!("[...]\n{text}\n[...]\n")),
    ("indented", |text| in_front(text, "    ")),
    ("wide signs", |text| {
        text.replace(':', "\u{ff1a}")
            .replace('(', "\u{ff08}")
            .replace(')', "\u{ff09}")
            .replace('%', "\u{ff05}")
    }),
    ("quotation marks of a word processor", |text| {
        text.replace('"', "\u{201c}").replace('\'', "\u{2019}")
    }),
    ("marked one by one", |text| {
        text.lines().map(|line| format!("`{line}`\n")).collect()
    }),
    ("blanks at the ends", |text| {
        text.lines().map(|line| format!("{line}  \n")).collect()
    }),
];

/// Tools that write tables, whose columns, numbers and clocks change with the terminal and the locale.
const TABLES: &[&str] = &[
    "df",
    "free",
    "iostat",
    "iotop",
    "lsblk",
    "mpstat",
    "netstat",
    "nfsiostat",
    "pidstat",
    "ps",
    "sar",
    "slabtop",
    "ss",
    "swaps",
    "top",
    "vmstat",
];

/// Of those, the ones that write fractions in the locale's way; the others have names with dots in them.
const LOCALES: &[&str] = &["free", "iostat", "mpstat", "pidstat", "sar", "vmstat"];

/// Of those, the ones whose reports have a time of the day.
const CLOCKS: &[&str] = &["mpstat", "pidstat", "sar"];

/// What is done to tables, and to which tools' tables it happens.
type TableDamage = (&'static str, &'static [&'static str], fn(&str) -> String);

const TABLE_DAMAGES: &[TableDamage] = &[
    ("tabs for columns", TABLES, tabs),
    ("decimal commas", LOCALES, decimal_commas),
    ("twelve-hour clocks", CLOCKS, twelve_hours),
];

/// Two blanks or more are a tab, as a spreadsheet or a page has them.
fn tabs(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut blanks = 0;
        for char in line.chars() {
            match char {
                ' ' => blanks += 1,
                _ => {
                    out.push_str(match blanks {
                        0 => "",
                        1 => " ",
                        _ => "\t",
                    });
                    blanks = 0;
                    out.push(char);
                }
            }
        }
        out.push('\n');
    }
    out
}

/// A dot between digits is a comma, but for those of versions and addresses.
fn decimal_commas(text: &str) -> String {
    let words = |line: &str| {
        let comma = |word: &str| {
            let bare = word.trim_end_matches(['%', ',', 'K', 'M', 'G', 'i', 'B']);
            let number = bare.matches('.').count() == 1 && bare.parse::<f64>().is_ok();
            if number {
                word.replace('.', ",")
            } else {
                word.to_owned()
            }
        };
        line.split(' ').map(comma).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(|line| words(line) + "\n").collect()
}

/// `14:05:09` at the beginning of a line is `02:05:09 PM`.
fn twelve_hours(text: &str) -> String {
    let twelve = |line: &str| {
        let clock = line.get(..8).filter(|clock| {
            clock.bytes().enumerate().all(|(at, byte)| match at {
                2 | 5 => byte == b':',
                _ => byte.is_ascii_digit(),
            })
        });
        let suffixed = line.get(8..11).is_some_and(|rest| rest == " AM" || rest == " PM");
        let hour: Option<u32> = clock
            .filter(|_| !suffixed)
            .and_then(|clock| clock[..2].parse().ok());
        match hour {
            Some(hour) => {
                let (of_twelve, half) = ((hour + 11) % 12 + 1, if hour < 12 { "AM" } else { "PM" });
                format!("{of_twelve:02}{} {half}{}", &line[2..8], &line[8..])
            }
            None => line.to_owned(),
        }
    };
    text.lines().map(|line| twelve(line) + "\n").collect()
}

/// How much was read: figures, spans, threads, calls, samples, devices, sockets and file systems.
fn read(text: &str) -> [u64; 7] {
    let observed = read_text("sample", text.as_bytes()).observed;
    let threads = observed.snapshots.iter().map(|one| one.threads.len() as u64);
    [
        observed.series.iter().map(|series| series.count).sum(),
        observed.spans.len() as u64,
        threads.sum(),
        observed.calls.len() as u64,
        observed.samples.len() as u64,
        observed.devices.len() as u64,
        observed.file_systems.len() as u64,
    ]
}

/// The smallest sample of a format, as text; one that the tool itself wrote, where there is one.
fn sample(folder: &Path) -> Option<(PathBuf, String)> {
    let mut files: Vec<(bool, u64, PathBuf)> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let size = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?.len();
            let about = fs::read_to_string(format!("{}.toml", path.display())).ok()?;
            let captured = about.starts_with("kind = \"captured\"");
            (size <= LARGEST).then_some((!captured, size, path))
        })
        .collect();
    files.sort();
    files.into_iter().find_map(|(_, _, path)| {
        let text = fs::read_to_string(&path).ok()?;
        (text.lines().count() > 2 && !text.contains('\u{1b}') && read(&text) != [0; 7])
            .then_some((path, text))
    })
}

#[test]
fn damage_of_a_copy_does_not_change_what_is_read() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../holdup/tests/samples");
    let mut folders: Vec<PathBuf> = fs::read_dir(samples)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    let mut changed = Vec::new();
    let mut kept = 0;
    for folder in folders {
        let format = folder.file_name().unwrap().to_string_lossy().into_owned();
        if OTHERS.contains(&format.as_str()) {
            continue;
        }
        let Some((path, text)) = sample(&folder) else {
            continue;
        };
        let text = text.trim_end();
        let whole = read(text);
        for (name, damage) in DAMAGES {
            match read(&damage(text)) == whole {
                true => kept += 1,
                false => changed.push(format!("{} {name}", path.display())),
            }
        }
    }
    assert!(kept > 500, "{kept}");
    assert!(
        changed.is_empty(),
        "{} of {}: {changed:#?}",
        changed.len(),
        changed.len() + kept
    );
}

/// Each folder's sample.
fn samples_of(formats: &[&str]) -> Vec<(String, String)> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../holdup/tests/samples");
    let of = |format: &&str| Some(((*format).to_owned(), sample(&samples.join(format))?.1));
    formats.iter().filter_map(of).collect()
}

#[test]
fn tabs_commas_and_clocks_of_tables_do_not_change_what_is_read() {
    let mut changed = Vec::new();
    let mut kept = 0;
    for (name, formats, damage) in TABLE_DAMAGES {
        for (format, text) in samples_of(formats) {
            let text = text.trim_end();
            let (whole, damaged) = (read(text), read(&damage(text)));
            match whole == damaged {
                true => kept += 1,
                false => changed.push(format!("{format}: {name}: {whole:?} became {damaged:?}")),
            }
        }
    }
    assert!(changed.is_empty(), "{kept} are as they were; {changed:#?}");
}

#[test]
fn several_outputs_in_one_file_are_each_read() {
    let all = samples_of(TABLES);
    let mut changed = Vec::new();
    for pair in all.windows(2) {
        let [(first, one), (second, other)] = pair else {
            continue;
        };
        let (one, other) = (one.trim_end(), other.trim_end());
        let whole: Vec<u64> = read(one)
            .iter()
            .zip(read(other))
            .map(|(one, other)| one + other)
            .collect();
        let together = read(&format!("$ {first}\n{one}\n\n$ {second}\n{other}\n"));
        if whole != together {
            changed.push(format!("{first} and {second}: {whole:?} became {together:?}"));
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}

/// Columns at which a mail program wraps.
const MAIL_COLUMNS: usize = 76;

/// Formats whose lines are long sentences of a stack, which mail programs wrap between two words.
const WRAPPED: &[&str] = &["goroutines", "native-stacks", "thread-dump"];

/// Lines that are longer than a mail allows go on in the next line.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = 0;
        for (number, word) in line.split(' ').enumerate() {
            let breaks = number > 0 && !word.is_empty() && column > 0 && column + word.len() >= MAIL_COLUMNS;
            match (number, breaks) {
                (0, _) => {}
                (_, true) => {
                    out.push('\n');
                    column = 0;
                }
                (_, false) => {
                    out.push(' ');
                    column += 1;
                }
            }
            out.push_str(word);
            column += word.len();
        }
        out.push('\n');
    }
    out
}

#[test]
fn stacks_that_a_mail_program_has_wrapped_have_the_same_threads() {
    let mut changed = Vec::new();
    for (format, text) in samples_of(WRAPPED) {
        let (whole, damaged) = (read(&text), read(&wrapped(&text)));
        if whole[2] != damaged[2] {
            changed.push(format!("{format}: {whole:?} became {damaged:?}"));
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn a_text_that_is_clipped_at_its_end_is_read_as_far_as_it_goes() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../holdup/tests/samples");
    let mut changed = Vec::new();
    let mut folders: Vec<PathBuf> = fs::read_dir(samples)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    for folder in folders {
        let format = folder.file_name().unwrap().to_string_lossy().into_owned();
        if OTHERS.contains(&format.as_str()) {
            continue;
        }
        let Some((_, text)) = sample(&folder) else {
            continue;
        };
        let text = text.trim_end();
        let last = text.rfind('\n').map_or(0, |at| at + 1);
        let (before, line) = text.split_at(last);
        let half = (line.len() / 2..line.len())
            .find(|at| line.is_char_boundary(*at))
            .unwrap_or(0);
        let clipped = format!("{before}{}", &line[..half]);
        let (whole, without, found) = (read(text), read(before), read(&clipped));
        let between = (0..found.len()).all(|at| {
            let (one, other) = (whole[at].min(without[at]), whole[at].max(without[at]));
            (one..=other).contains(&found[at])
        });
        if !between {
            changed.push(format!("{format}: {without:?}, {whole:?}: {found:?}"));
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}
