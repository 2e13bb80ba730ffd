//! Bad usage, in one sentence that says what would be right.
//!
//! In: what the parser found wrong, with its context. Out: [`Usage`]. The parser's own message has several
//! paragraphs and repeats the usage line; a person needs the one thing to change.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Exit status of bad usage, as shells have it.
pub(crate) const BAD_USAGE: u8 = 2;

/// Why there is no command line to act upon.
#[derive(Debug)]
pub(crate) enum Usage {
    /// Help or version was asked for: this is it.
    Asked(String),
    /// No command was named: one sentence.
    NothingAsked(String),
    /// One sentence.
    Wrong(String),
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Usage::Asked(text) | Usage::NothingAsked(text) | Usage::Wrong(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Usage {}

impl From<clap::Error> for Usage {
    fn from(error: clap::Error) -> Usage {
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Usage::Asked(error.render().to_string()),
            ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                Usage::NothingAsked(sentence(&error))
            }
            _ => Usage::Wrong(sentence(&error)),
        }
    }
}

fn sentence(error: &clap::Error) -> String {
    let of = |kind| error.get(kind).map(words).filter(|text| !text.is_empty());
    let argument = of(ContextKind::InvalidArg).unwrap_or_else(|| "an argument".to_owned());
    let suggested = of(ContextKind::SuggestedArg)
        .or_else(|| of(ContextKind::SuggestedSubcommand))
        .or_else(|| of(ContextKind::SuggestedValue))
        .map(|better| format!(", did you mean {better}?"));
    let or = |hint: &str| suggested.clone().unwrap_or_else(|| format!("; {hint}"));
    match error.kind() {
        ErrorKind::UnknownArgument if !argument.starts_with('-') => {
            format!("unexpected argument {argument}; remove it, or see holdup --help")
        }
        ErrorKind::UnknownArgument => {
            format!(
                "there is no option {argument}{}",
                or("holdup --help lists the options")
            )
        }
        ErrorKind::InvalidSubcommand => {
            let name = of(ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("there is no command {name}{}", or("use run, read, boot, explain or doctor"))
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "say what to do: holdup run -- CMD, holdup read FILE, holdup boot, holdup explain or holdup doctor".to_owned()
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let valid = of(ContextKind::ValidValue).map(|values| format!("one of {values}"));
            // What our own parsers say is what would be right.
            let said = || std::error::Error::source(&error).map(ToString::to_string);
            let valid = valid.or_else(said).unwrap_or_else(|| "a value".to_owned());
            match of(ContextKind::InvalidValue) {
                Some(value) => format!("{argument} needs {valid}, not {value}"),
                None => format!("{argument} needs {valid}"),
            }
        }
        ErrorKind::MissingRequiredArgument if argument.contains("--getrandom") => {
            "say what the workers do: holdup scale --read PATH, or holdup scale -- CMD".to_owned()
        }
        ErrorKind::MissingRequiredArgument if argument.contains("<CMD>") => {
            "say what to run: holdup run -- CMD".to_owned()
        }
        ErrorKind::MissingRequiredArgument => {
            format!("{argument} is missing; holdup --help shows where it goes")
        }
        ErrorKind::ArgumentConflict => {
            let other = of(ContextKind::PriorArg).unwrap_or_else(|| "another".to_owned());
            if argument == other {
                return format!("{argument} is given twice; give it once");
            }
            format!("{argument} and {other} cannot be used together; use one of them")
        }
        ErrorKind::TooManyValues | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("{argument} has the wrong number of values; holdup --help says how many")
        }
        _ => format!(
            "the command line is not valid; holdup --help shows the usage ({})",
            error.kind()
        ),
    }
}

/// What the parser says of a context, printable: it repeats what was typed.
fn words(value: &ContextValue) -> String {
    let text = match value {
        ContextValue::String(text) => text.clone(),
        ContextValue::Strings(texts) => texts.join(", "),
        ContextValue::StyledStr(text) => text.to_string(),
        ContextValue::StyledStrs(texts) => texts
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    };
    text.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::Usage;
    use crate::cli::Cli;
    use clap::Parser;

    fn wrong(line: &str) -> String {
        match Usage::from(Cli::try_parse_from(line.split(' ')).unwrap_err()) {
            Usage::Wrong(text) | Usage::NothingAsked(text) => text,
            Usage::Asked(text) => panic!("help was printed: {text}"),
        }
    }

    #[test]
    fn each_mistake_has_one_line_with_what_would_be_right() {
        for (line, expected) in [
            (
                "holdup",
                "say what to do: holdup run -- CMD, holdup read FILE, holdup boot, holdup explain or holdup doctor",
            ),
            (
                "holdup explian",
                "there is no command explian, did you mean explain?",
            ),
            (
                "holdup zzz",
                "there is no command zzz; use run, read, boot, explain or doctor",
            ),
            ("holdup run", "say what to run: holdup run -- CMD"),
            (
                "holdup run --jsn x -- ls",
                "there is no option --jsn, did you mean --json?",
            ),
            (
                "holdup run --zzz -- ls",
                "there is no option --zzz; holdup --help lists the options",
            ),
            (
                "holdup run --format xml -- ls",
                "--format <FORMAT> needs one of terminal, json, html, markdown, collapsed, pprof, perfetto, firefox, otlp, prometheus, github, junit, not xml",
            ),
            (
                "holdup run --export pprof -- ls",
                "--export <FORMAT=FILE> needs FORMAT=FILE, with one of json, html, markdown, collapsed, pprof, perfetto, firefox, otlp, prometheus, github, junit as FORMAT, not pprof",
            ),
            (
                "holdup run --json x --json y -- ls",
                "--json <FILE> is given twice; give it once",
            ),
            (
                "holdup run -q -v -- ls",
                "--quiet and --verbose cannot be used together; use one of them",
            ),
            ("holdup run --user", "--user <NAME> needs a value"),
            (
                "holdup explain a b",
                "unexpected argument b; remove it, or see holdup --help",
            ),
        ] {
            assert_eq!(wrong(line), expected, "{line}");
        }
    }

    #[test]
    fn what_was_typed_cannot_move_the_cursor() {
        assert_eq!(
            wrong("holdup \x1b[2J\n"),
            "there is no command \\u{1b}[2J\\n; use run, read, boot, explain or doctor"
        );
    }

    #[test]
    fn help_is_no_mistake() {
        for line in ["holdup --help", "holdup run --help", "holdup --version"] {
            let usage = Usage::from(Cli::try_parse_from(line.split(' ')).unwrap_err());
            assert!(matches!(usage, Usage::Asked(_)), "{line}");
        }
    }
}
