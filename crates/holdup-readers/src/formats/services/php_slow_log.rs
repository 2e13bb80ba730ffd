//! The slow log of PHP-FPM: in which function requests were when they had run for too long.
//!
//! In: for each request its time, pool and process, the script, and its stack, innermost frame first. Out: a statement for each innermost
//! function, with how many requests were in it, which line called it, and the script that most of them ran.
//! Source: `sapi/fpm/fpm/fpm_php_trace.c` of PHP, `request_slowlog_timeout` of its manual.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, name_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("php-slow-log", Family::Logs, recognise).about("the slow log of PHP-FPM");

/// Places that are kept, and of these the ones that are told.
const MAX_PLACES: usize = 2_000;
const MAX_TOLD: usize = 5;

/// What the line of the script begins with.
const SCRIPT: &str = "script_filename = ";

fn recognise(head: &[u8]) -> Sureness {
    let begins =
        |line: &str| Line::of(line) == Some(Line::Frame) || matches!(Line::of(line), Some(Line::Head(_)));
    Sureness::certain_if(holds(head, SCRIPT) && any_line(head, begins))
}

#[derive(Debug, PartialEq)]
enum Line<'a> {
    /// Of a request, with its pool.
    Head(&'a str),
    Script(&'a str),
    Frame,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Line<'a>> {
        if let Some(script) = line.strip_prefix(SCRIPT) {
            return Some(Line::Script(script.trim()));
        }
        if frame(line).is_some() {
            return Some(Line::Frame);
        }
        // `[02-Jan-2019 02:10:20]  [pool www] pid 13776`; a copy may have lost the time.
        let (_, rest) = line.split_once("[pool ")?;
        let (pool, rest) = rest.split_once(']')?;
        let pid = rest.trim().strip_prefix("pid ")?;
        pid.trim().parse::<u32>().ok()?;
        Some(Line::Head(pool))
    }
}

/// The function and the place of `[0x00007fc26e017500] curl_exec() /srv/a.php:351`.
fn frame(line: &str) -> Option<(&str, &str)> {
    let (address, rest) = line.strip_prefix("[0x")?.split_once(']')?;
    let is_address = address
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'.');
    let (function, place) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
    (is_address && function.ends_with(')')).then_some((function, place.trim()))
}

/// Requests that were in one function, called from one line.
#[derive(Debug)]
struct Place {
    function: String,
    line: String,
    caller: String,
    script: String,
    pool: String,
    times: u64,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    pool: String,
    script: String,
    /// Frames of the request that is being read: its innermost function and place, and the function that called it.
    frames: usize,
    inner: Option<(String, String, Quote)>,
    caller: String,
    requests: u64,
    places: Vec<Place>,
}

impl Reader {
    /// A request's stack is complete.
    fn close(&mut self, out: &mut Out<'_>) {
        let caller = std::mem::take(&mut self.caller);
        self.frames = 0;
        let Some((function, line, quote)) = self.inner.take() else {
            return;
        };
        self.requests += 1;
        let same = |place: &&mut Place| place.function == function && place.line == line;
        if let Some(place) = self.places.iter_mut().find(same) {
            place.times += 1;
            return;
        }
        if self.places.len() >= MAX_PLACES {
            out.account().left_out += 1;
            return;
        }
        self.places.push(Place {
            function,
            line,
            caller,
            script: self.script.clone(),
            pool: self.pool.clone(),
            times: 1,
            quote,
        });
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        match Line::of(&text) {
            Some(Line::Head(pool)) => {
                self.close(out);
                self.pool = name_of(pool);
                self.script.clear();
            }
            Some(Line::Script(script)) => {
                self.close(out);
                self.script = name_of(script);
            }
            Some(Line::Frame) => {
                let Some((function, place)) = frame(&text) else {
                    return Understood::No;
                };
                match self.frames {
                    0 => self.inner = Some((name_of(function), name_of(place), out.here())),
                    1 => self.caller = name_of(function),
                    _ => {}
                }
                self.frames = self.frames.saturating_add(1);
            }
            None => return Understood::No,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
        let mut read = std::mem::take(self);
        read.places.sort_by_key(|place| std::cmp::Reverse(place.times));
        let all = read.requests;
        for place in read.places.into_iter().take(MAX_TOLD) {
            let called = match (place.caller.as_str(), place.line.as_str()) {
                ("", "") => String::new(),
                ("", line) => format!(", called from {line}"),
                (caller, line) => format!(", called by {caller} at {line}"),
            };
            let of = match place.pool.as_str() {
                "" => String::new(),
                pool => format!(" of the pool {pool}"),
            };
            let script = match place.script.as_str() {
                "" => String::new(),
                script => format!("; script {script}"),
            };
            let text = format!(
                "{} of {all} slow requests{of} were in {}{called}{script}",
                place.times, place.function
            );
            out.statement(Statement {
                share: Some(place.times as f64 / all.max(1) as f64),
                ..statements::one(StatementKind::Stalled, None, place.quote, text)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn request(pid: u32, function: &str) -> String {
        format!(
            "[04-Jan-2021 15:14:38]  [pool www] pid {pid}\nscript_filename = /srv/shop/index.php\n\
             [0x00007fbda20149a0] {function} /srv/shop/db.php:2056\n[0x00007fbda2014930] run_query() /srv/shop/db.php:1945\n\n"
        )
    }

    #[test]
    fn functions_in_which_requests_were() {
        let text = request(7, "mysqli_query()") + &request(8, "curl_exec()") + &request(9, "mysqli_query()");
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "php-slow-log");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "2 of 3 slow requests of the pool www were in mysqli_query(), called by run_query() at /srv/shop/db.php:2056; script \
                 /srv/shop/index.php",
                "1 of 3 slow requests of the pool www were in curl_exec(), called by run_query() at /srv/shop/db.php:2056; script \
                 /srv/shop/index.php"
            ]
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "script_filename = x\n",
            "[pool www] pid x\nscript_filename = \n[0x] ()\n",
            "[0xzz] f() a\nscript_filename = b\n",
        ] {
            let reading = read_text("p", text.as_bytes());
            assert!(reading.observed.statements.len() <= 1, "{text}");
        }
    }
}
