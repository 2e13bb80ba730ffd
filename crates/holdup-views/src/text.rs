//! From any string to something that can stand in a line of a terminal.
//!
//! The problem: names of programs, files, hosts and functions are chosen by those we observe. An escape
//! sequence moves the cursor, a newline forges a line of the report, a bidirectional control turns `gpj.exe`
//! around, a pile of combining marks covers the lines above. The choice: whatever Rust's `escape_debug` calls
//! unprintable (controls, formats, private use, unassigned, separators but the space) is shown as its escape,
//! so that two different names stay different; few combining marks stay, so that names in most scripts read as
//! they should. Bytes that are no UTF-8 have become U+FFFD before they get here, and stay visible as that.
//!
//! In: text and a width. Out: text of known width, in one line or in several.

use unicode_width::UnicodeWidthChar;

/// Combining marks that may follow each other: Vietnamese and Thai need two, Hebrew with points and accents
/// three; more only serves to pile up.
const MARKS_IN_A_ROW: usize = 3;

/// The text with nothing in it that a terminal would act upon. Without `unicode`, in ASCII only.
#[must_use]
pub fn printable(text: &str, unicode: bool) -> String {
    let mut out = String::with_capacity(text.len());
    // Nothing precedes a mark at the beginning but what we print there ourselves: it would change that.
    let mut marks = MARKS_IN_A_ROW;
    for character in text.chars() {
        match kind(character) {
            Kind::Plain if character.is_ascii() || unicode => {
                out.push(character);
                marks = 0;
            }
            Kind::Plain => {
                match ascii_for(character) {
                    Some(words) => out.push_str(words),
                    None => escape(character, &mut out),
                }
                marks = 0;
            }
            Kind::Mark if unicode && marks < MARKS_IN_A_ROW => {
                out.push(character);
                marks += 1;
            }
            Kind::Mark | Kind::Unprintable => {
                escape(character, &mut out);
                marks = MARKS_IN_A_ROW;
            }
        }
    }
    out
}

/// The columns that printable text takes. A sum over characters, so an upper bound where a terminal joins
/// several into one (flags, skin tones).
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(character_width).sum()
}

/// The printable text within `columns`, its middle left out if it must be: beginnings and ends of paths and
/// functions tell more than middles do.
#[must_use]
pub fn shorten(text: &str, columns: usize, unicode: bool) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let gap = if unicode { "…" } else { "..." };
    let Some(room) = columns.checked_sub(width(gap)) else {
        return take(text.chars(), columns).collect();
    };
    let head: String = take(text.chars(), room.div_ceil(2)).collect();
    let mut tail: Vec<char> = take(text.chars().rev(), room - room.div_ceil(2)).collect();
    tail.reverse();
    // A mark without its base would sit on the gap.
    let tail = tail
        .into_iter()
        .skip_while(|character| character_width(*character) == 0);
    head.chars().chain(gap.chars()).chain(tail).collect()
}

/// Cuts printable text in two, the first part as long as fits into `columns` and never empty.
#[must_use]
pub fn split(text: &str, columns: usize) -> (&str, &str) {
    let fits: usize = take(text.chars(), columns).map(char::len_utf8).sum();
    let first = text.chars().next().map_or(0, char::len_utf8);
    text.split_at(fits.max(first))
}

/// The same, at the last joint of a long name where there is one in the second half: behind `::`, `/`, `.`, `,` or `<`.
#[must_use]
pub fn split_at_joint(text: &str, columns: usize) -> (&str, &str) {
    let (head, tail) = split(text, columns);
    if tail.is_empty() {
        return (head, tail);
    }
    let joint = head.rfind(['/', '.', ',', '<', ':']).map(|at| at + 1);
    // Between the two colons of a path, and before its last part, nothing is broken.
    let joint = match joint {
        Some(at) if at == head.len() && head.ends_with(':') && tail.starts_with(':') => {
            head[..at - 1].rfind(['/', '.', ',', '<', ':']).map(|at| at + 1)
        }
        joint => joint,
    };
    match joint.filter(|at| width(&head[..*at]) * 2 >= columns) {
        Some(at) => text.split_at(at),
        None => (head, tail),
    }
}

/// Characters from the beginning that fit into `columns`.
fn take(characters: impl Iterator<Item = char>, columns: usize) -> impl Iterator<Item = char> {
    characters
        .scan(0, |used, character| {
            *used += character_width(character);
            Some((*used, character))
        })
        .take_while(move |(used, _)| *used <= columns)
        .map(|(_, character)| character)
}

/// Columns of one character of printable text.
fn character_width(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// What a terminal does with a character.
enum Kind {
    /// Shows it in columns of its own.
    Plain,
    /// Puts it on the one before.
    Mark,
    /// Acts upon it, or shows nothing.
    Unprintable,
}

/// See [`Kind`].
fn kind(character: char) -> Kind {
    if matches!(character, '\\' | '\'' | '"') {
        return Kind::Plain;
    }
    // Variation selectors are marks to Unicode, but they change how wide the character before them is.
    if matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}') {
        return Kind::Unprintable;
    }
    // `escape_debug` of a `str` spares a mark that follows something; that of a `char` does not. What
    // neither escapes is plain.
    let escaped_after_a_letter = ['a', character].iter().collect::<String>().escape_debug().count() > 2;
    if escaped_after_a_letter {
        Kind::Unprintable
    } else if character.width().unwrap_or(0) == 0 {
        Kind::Mark
    } else {
        Kind::Plain
    }
}

/// Whether a terminal or an editor acts upon the character, or shows nothing for it.
pub(crate) fn is_unprintable(character: char) -> bool {
    !character.is_ascii_graphic() && character != ' ' && matches!(kind(character), Kind::Unprintable)
}

/// The character as an escape that shows what it was: `\n`, `\x1b`, `\u{202e}`.
fn escape(character: char, out: &mut String) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0'..='\u{ff}' => out.push_str(&format!("\\x{:02x}", u32::from(character))),
        _ => out.extend(character.escape_unicode()),
    }
}

/// What stands for the few characters beyond ASCII that our own words use.
fn ascii_for(character: char) -> Option<&'static str> {
    Some(match character {
        '…' => "...",
        '←' => "<-",
        '→' => "->",
        '≥' => ">=",
        '≤' => "<=",
        '±' => "+-",
        '×' => "x",
        'µ' => "u",
        '·' | '–' | '—' => "-",
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        '\u{fffd}' => "?",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{printable, shorten, split, split_at_joint, width};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn escapes_are_shown_and_not_acted_upon() {
        assert_eq!(printable("a\x1b[2Jb", true), "a\\x1b[2Jb");
        assert_eq!(
            printable("one\ntwo\r\t\0\u{7f}", true),
            "one\\ntwo\\r\\t\\x00\\x7f"
        );
        assert_eq!(printable("csi\u{9b}31m", true), "csi\\x9b31m");
        assert_eq!(printable("photo\u{202e}gpj.exe", true), "photo\\u{202e}gpj.exe");
        assert_eq!(printable("zero\u{200b}width", true), "zero\\u{200b}width");
        assert_eq!(printable("line\u{2028}end", true), "line\\u{2028}end");
        assert_eq!(printable("soft\u{ad}hyphen", true), "soft\\xadhyphen");
        assert_eq!(printable("tag\u{e0041}", true), "tag\\u{e0041}");
        assert_eq!(printable("heart\u{fe0f}", true), "heart\\u{fe0f}");
    }

    #[test]
    fn names_in_any_script_stay() {
        for name in [
            "naïve",
            "Müller",
            "файл",
            "文件",
            "tiếng Việt",
            "e\u{301}",
            "C:\\x",
            "it's \"it\"",
            "😀",
        ] {
            assert_eq!(printable(name, true), name);
        }
    }

    #[test]
    fn marks_do_not_pile_up_and_do_not_change_what_is_before_the_name() {
        assert_eq!(printable("\u{301}x", true), "\\u{301}x");
        let piled = printable(&format!("a{}", "\u{301}".repeat(40)), true);
        assert_eq!(
            piled,
            format!("a{}{}", "\u{301}".repeat(3), "\\u{301}".repeat(37))
        );
    }

    #[test]
    fn without_unicode_all_is_ascii_and_ours_reads_well() {
        assert_eq!(printable("a ← b … ≥ 3 µs", false), "a <- b ... >= 3 us");
        assert_eq!(printable("é\u{fffd}", false), "\\xe9?");
    }

    #[test]
    fn the_middle_is_what_is_left_out() {
        assert_eq!(shorten("/var/lib/thing/data.db", 11, true), "/var/…ta.db");
        assert_eq!(shorten("/var/lib/thing/data.db", 11, false), "/var...a.db");
        assert_eq!(shorten("short", 5, true), "short");
        assert_eq!(shorten("文件文件文件", 7, true), "文…件");
        assert_eq!(shorten("long", 0, true), "");
    }

    #[test]
    fn a_cut_always_makes_progress() {
        assert_eq!(split("abc", 2), ("ab", "c"));
        assert_eq!(split("文件", 1), ("文", "件"));
    }

    #[test]
    fn a_long_name_is_cut_at_a_joint() {
        assert_eq!(
            split_at_joint("feed::Subscriber::deliver", 20),
            ("feed::Subscriber::", "deliver")
        );
        assert_eq!(split_at_joint("/usr/share/name", 12), ("/usr/share/", "name"));
        assert_eq!(split_at_joint("com.example.Cache", 13), ("com.example.", "Cache"));
        // What follows a name goes with its last part, not alone.
        assert_eq!(
            split_at_joint("cache.Bounded.compute,", 21),
            ("cache.Bounded.", "compute,")
        );
        // Not between two colons, nor where hardly anything would stand before it.
        assert_eq!(split_at_joint("abc::def::ghij", 9), ("abc::", "def::ghij"));
        assert_eq!(split_at_joint("a::bcdefghijklmn", 10), ("a::bcdefgh", "ijklmn"));
        assert_eq!(split_at_joint("short", 10), ("short", ""));
        assert_eq!(split("", 3), ("", ""));
    }

    proptest! {
        #[test]
        fn nothing_survives_that_a_terminal_acts_upon(text in any::<String>(), unicode in any::<bool>()) {
            let shown = printable(&text, unicode);
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert!(unicode || shown.is_ascii());
            prop_assert!(shown.width() <= width(&shown));
        }

        #[test]
        fn shortening_keeps_within_the_width(text in any::<String>(), columns in 0_usize..50, unicode in any::<bool>()) {
            let shown = printable(&text, unicode);
            prop_assert!(width(&shorten(&shown, columns, unicode)) <= columns);
            let (head, tail) = split(&shown, columns);
            prop_assert_eq!(format!("{head}{tail}"), shown);
        }
    }
}
