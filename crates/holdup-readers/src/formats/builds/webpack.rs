//! `speed-measure-webpack-plugin` (SMP): how long the plugins and the loaders of webpack took.
//!
//! In: `General output time took 15.7 secs`, and below `Plugins` and `Loaders` a line for each; loaders that work one behind another stand on
//! a line each, with `, and` at its end, and their time behind the last. Out: a statement about the largest, with its share of the whole.
//! Source: `output.js` and `utils.js` of the plugin.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, holds, length, name_of, ns_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{duration, whole_percent};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("webpack-times", Family::Times, recognise)
    .about("times of webpack's plugins and loaders (SMP)");

/// Bytes of the names of loaders that work one behind another.
const NAMES_BYTES: usize = 400;

fn recognise(head: &[u8]) -> Sureness {
    let whole = holds(head, "General output time took");
    let loaders = holds(head, "module count =") || holds(head, "modules with no loaders took");
    let titled = |line: &str| {
        let line = line.trim_start_matches(|char: char| !char.is_alphanumeric());
        line.starts_with("SMP ") && (line.ends_with(" Plugins") || line.ends_with(" Loaders"))
    };
    let may = whole || loaders || holds(head, "SMP ") && any_line(head, titled);
    Sureness::certain_if(may && any_line(head, |line| Took::of(line).is_some()))
}

/// `TerserPlugin took 8.16 secs`.
#[derive(Debug, PartialEq)]
struct Took<'a> {
    name: &'a str,
    seconds: f64,
}

impl<'a> Took<'a> {
    fn of(line: &'a str) -> Option<Took<'a>> {
        let (name, time) = line.rsplit_once(" took ")?;
        // A sentence is no name.
        let words = name.split_whitespace().count();
        (words <= 8).then_some(Took {
            name: name.trim(),
            seconds: length(time)?,
        })
    }
}

/// What the times that follow are of.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Part {
    #[default]
    Unknown,
    Plugins,
    Loaders,
}

#[derive(Debug, Default)]
struct Reader {
    part: Part,
    whole: Option<(f64, Quote)>,
    plugins: Largest,
    loaders: Largest,
    /// Loaders whose time stands behind the last of them, and where the first is.
    names: String,
    first: Option<Quote>,
    /// Modules that the largest loaders worked on; the count of the last line is of the last loaders.
    modules: Option<f64>,
    last_is_largest: bool,
}

impl Reader {
    fn took(&mut self, took: &Took<'_>, out: &Out<'_>) {
        let name = format!("{}{}", std::mem::take(&mut self.names), took.name);
        let quote = self.first.take().unwrap_or_else(|| out.here());
        let loads = name.contains("-loader") || name == "modules with no loaders";
        let is_loader = match self.part {
            Part::Plugins => false,
            Part::Loaders => true,
            Part::Unknown => loads,
        };
        self.last_is_largest = match is_loader {
            true => self.loaders.take(took.seconds, &name, quote),
            false => {
                self.plugins.take(took.seconds, &name, quote);
                false
            }
        };
        if self.last_is_largest {
            self.modules = None;
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        let heading = text.trim_start_matches(|char: char| !char.is_alphanumeric());
        let heading = heading.strip_prefix("SMP").unwrap_or(heading);
        let heading = heading
            .trim_start_matches(|char: char| !char.is_alphanumeric())
            .trim();
        match heading {
            "" => return Understood::Ignorable,
            "Plugins" => self.part = Part::Plugins,
            "Loaders" => self.part = Part::Loaders,
            _ => {
                if let Some(time) = heading.strip_prefix("General output time took ").and_then(length) {
                    if self.whole.is_some() {
                        self.end(out);
                    }
                    self.whole = Some((time, out.here()));
                } else if let Some(first) = text.strip_suffix(", and") {
                    if self.names.len() + first.len() < NAMES_BYTES {
                        self.names.push_str(&format!("{}, and ", name_of(first)));
                    }
                    self.first.get_or_insert_with(|| out.here());
                } else if let Some(took) = Took::of(&text) {
                    self.took(&took, out);
                } else if let Some(count) = text.strip_prefix("module count =") {
                    if std::mem::take(&mut self.last_is_largest) {
                        self.modules = number(count.trim());
                    }
                } else {
                    return Understood::No;
                }
            }
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let whole = read.whole.as_ref().map(|(seconds, _)| *seconds);
        let time = |seconds: f64| duration(ns_of(seconds));
        let seconds_of = |largest: &Largest| largest.first.as_ref().map_or(-1.0, |(seconds, ..)| *seconds);
        let loads = seconds_of(&read.loaders) >= seconds_of(&read.plugins);
        let (most, other) = match loads {
            true => (&read.loaders, &read.plugins),
            false => (&read.plugins, &read.loaders),
        };
        let Some((seconds, name, quote)) = &most.first else {
            if let Some((seconds, quote)) = read.whole {
                let text = format!("webpack took {}", time(seconds));
                let ns = Some(ns_of(seconds));
                out.statement(statements::one(StatementKind::Took, ns, quote, text));
            }
            return;
        };
        let mut text = format!("{name} took {}", time(*seconds));
        if let Some(modules) = read.modules.filter(|_| loads) {
            text.push_str(&format!(" for {modules:.0} modules"));
        }
        let mut share = None;
        if let Some(whole) = whole.filter(|whole| *whole > 0.0) {
            // Loaders run side by side, so that one of them may have more than the whole.
            let part = whole_percent(ns_of(*seconds), ns_of(whole));
            text.push_str(&format!(", {part} of webpack's {}", time(whole)));
            share = Some(seconds / whole).filter(|share| *share <= 1.0);
        }
        text.push_str(&most.and_next(time));
        if let Some((seconds, name, _)) = &other.first {
            let what = if loads { "plugin" } else { "loader" };
            text.push_str(&format!("; the longest {what} is {name}, {}", time(*seconds)));
        }
        out.statement(Statement {
            share,
            ..statements::one(StatementKind::Took, Some(ns_of(*seconds)), quote.clone(), text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TIMES: &str = " SMP  ⏱  \nGeneral output time took 50.2 secs\n\n SMP  ⏱  Plugins\nTerserPlugin took 9.5 secs\n\
        DefinePlugin took 0.004 secs\n\n SMP  ⏱  Loaders\nbabel-loader, and \nmagic-loader took 30.12 secs\n  module count = 411\n\
        css-loader took 1.2 secs\n  module count = 30\nmodules with no loaders took 0.9 secs\n  module count = 77\n";

    #[test]
    fn the_longest_loader_whose_name_stands_over_two_lines() {
        let reading = read_text("w", TIMES.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "webpack-times");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "babel-loader, and magic-loader took 30.12 s for 411 modules, 60 % of webpack's 50.20 s; next css-loader, 1.20 s; \
                 the longest plugin is TerserPlugin, 9.50 s"
            ]
        );
    }

    #[test]
    fn a_plugin_that_takes_more_and_an_excerpt() {
        let text = TIMES.replace("9.5 secs", "1 min, 3.5 secs");
        assert!(
            read_text("w", text.as_bytes()).texts()[0].starts_with("TerserPlugin took 1 min 4 s"),
            "{:?}",
            read_text("w", text.as_bytes()).texts()
        );
        let excerpt = "thread-loader, and \nts-loader took 2 mins, 1 secs\n  module count = 12\ncss-loader took 3 secs\n  module count = 2\n";
        let reading = read_text("w", excerpt.as_bytes());
        assert_eq!(
            reading.texts(),
            ["thread-loader, and ts-loader took 2 min 1 s for 12 modules; next css-loader, 3.00 s"]
        );
    }

    #[test]
    fn other_texts_that_took_long_are_none() {
        for text in ["The build took 30 secs\n", "SMP kernel\nboot took 3 secs\n"] {
            assert_ne!(
                read_text("w", text.as_bytes()).observed.sources[0].format,
                "webpack-times"
            );
        }
    }
}
