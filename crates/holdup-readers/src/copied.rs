//! What copying does to an output: signs in front of each line, and letters in the form of a page.
//!
//! In: the text that lies ahead, from a place at which something new may begin. Out: the format that it is of, and what has to be
//! undone of each line so that its reader understands it: `> ` of a quotation, the name of a container or a host, the time that a
//! container's log or the journal puts in front, `&lt;` of a page. Something is undone only where a format is recognised by
//! that, so that no line loses a word that is its own.

use crate::format::{Family, Format, Shape, Sureness};
use crate::formats::{ALL, Writer, journal_message};
use crate::prompt::{self, Prompt};

/// Bytes ahead that are looked at.
pub(crate) const AHEAD: usize = 8 << 10;

/// Lines ahead that are asked for what stands in front of them, and how many must have it at least.
const LINES: usize = 60;
const MIN_LINES: usize = 2;

/// What may stand in front of a line, one within another.
const LAYERS: usize = 3;

/// Bytes of a name in front of a line: of a container, a pod, a host.
const NAME: usize = 80;

/// Signs of a page that stand for others.
const ENTITIES: [(&[u8], u8); 6] = [
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&amp;", b'&'),
    (b"&quot;", b'"'),
    (b"&#39;", b'\''),
    (b"&nbsp;", b' '),
];

/// What a page puts around a text that is to stay as it is.
const TAGS: [&[u8]; 4] = [b"<pre>", b"<code>", b"</code>", b"</pre>"];

/// How people say that they left out lines.
const LEFT_OUT: [&[u8]; 8] = [
    b"[...]",
    b"(...)",
    b"...",
    b"....",
    b"<snip>",
    b"[snip]",
    "\u{2026}".as_bytes(),
    "[\u{2026}]".as_bytes(),
];

/// What has to be undone of each line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    layers: Vec<Layer>,
    entities: bool,
}

/// What stands in front of each line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Layer {
    /// `> `, any number of times.
    Quotation,
    /// The same bytes in front of all lines: `app-1  | `, `node008: `, `[pod/web/app] `, blanks.
    Fixed(Vec<u8>),
    /// A time, and which stream and part it was of, as the logs of containers have it.
    Container,
    /// Time, host and program of the journal.
    Journal,
    /// A grave accent before and behind each line, or two stars: people who do not know of fences put each line into them.
    Marked(&'static [u8]),
}

/// What Markdown puts around a line that is code, or that is bold.
const MARKS: [&[u8]; 2] = [b"`", b"**"];

impl Layer {
    /// How many bytes of a line it is.
    fn of(&self, line: &[u8]) -> Option<usize> {
        match self {
            Layer::Quotation => quotation(line),
            Layer::Fixed(bytes) => line.starts_with(bytes).then_some(bytes.len()),
            Layer::Container => container(line),
            Layer::Journal => {
                let (_, message) = journal_message(line)?;
                Some(line.len() - message.len())
            }
            Layer::Marked(mark) => {
                // The first of them may be within a quotation that is said to go on.
                let from = quotation(line).unwrap_or(0);
                let inner = line.get(from..)?.trim_ascii().strip_prefix(*mark)?;
                // A blank line between two marks.
                if inner == *mark {
                    return Some(line.len());
                }
                let whole = inner.len() > mark.len() && inner.ends_with(mark) && !inner.starts_with(mark);
                whole.then(|| from + line.get(from..).map_or(0, leading_blanks) + mark.len())
            }
        }
    }

    /// Bytes at the end of a line that belong to what stands in front of it.
    fn behind(&self) -> &'static [u8] {
        match self {
            Layer::Marked(mark) => mark,
            _ => b"",
        }
    }

    /// Whether it is a time, which a reader may have use for.
    fn is_time(&self) -> bool {
        matches!(self, Layer::Container | Layer::Journal)
    }
}

impl Copied {
    /// Whether there is nothing to undo.
    pub(crate) fn is_nothing(&self) -> bool {
        self.layers.is_empty() && !self.entities
    }

    /// The line as it was before it was copied.
    pub(crate) fn undo<'a>(&self, line: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
        let mut rest = line;
        for layer in &self.layers {
            let bare = rest.trim_ascii_end();
            match (layer.of(rest), layer) {
                (Some(length), _) => {
                    rest = rest.get(length..).unwrap_or_default();
                    let mark = layer.behind();
                    if !mark.is_empty() {
                        rest = bare_of(rest, mark);
                    }
                }
                // An empty line has lost the blanks behind its sign.
                (None, Layer::Fixed(bytes)) if bytes.trim_ascii_end() == bare => rest = &[],
                (None, _) => return line,
            }
        }
        if !self.entities || !rest.iter().any(|byte| matches!(byte, b'&' | b'<')) {
            return rest;
        }
        room.clear();
        while let Some((first, behind)) = rest.split_first() {
            if let Some((form, byte)) = ENTITIES.iter().find(|(form, _)| rest.starts_with(form)) {
                room.push(*byte);
                rest = rest.get(form.len()..).unwrap_or_default();
            } else if let Some(tag) = TAGS.iter().find(|tag| rest.starts_with(tag)) {
                rest = rest.get(tag.len()..).unwrap_or_default();
            } else {
                room.push(*first);
                rest = behind;
            }
        }
        room
    }

    /// A text as it was.
    fn undone(&self, text: &[u8]) -> Vec<u8> {
        let mut all = Vec::with_capacity(text.len());
        let mut room = Vec::new();
        for line in text.split(|byte| *byte == b'\n') {
            all.extend_from_slice(self.undo(line, &mut room));
            all.push(b'\n');
        }
        all
    }
}

/// What lies ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub(crate) format: &'static Format,
    pub(crate) copied: Copied,
    pub(crate) sure: Sureness,
}

/// Whether something new may begin behind a line, of which it is not known what it is: a fence, a prompt, an empty line, an announcement.
pub(crate) fn may_begin_behind(line: &[u8], prompt: Prompt, is_known: bool) -> bool {
    // Outputs of known formats have such lines of their own.
    if is_known && LEFT_OUT.contains(&line.trim_ascii()) {
        return false;
    }
    // Of a command that is known it is known what follows.
    if is_fence(line) || matches!(prompt, Prompt::Other) {
        return true;
    }
    let line = line.trim_ascii();
    !is_known && (line.is_empty() || line.ends_with(b":"))
}

/// Whether a line is a fence of Markdown, a page's sign that a text as it is begins, or says that lines were left out.
pub(crate) fn is_fence(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    if LEFT_OUT.contains(&line) {
        return true;
    }
    let behind = line.strip_prefix(b"```").or_else(|| line.strip_prefix(b"~~~"));
    // A language may stand behind it; a line of waves on both sides of words is a heading.
    let heads = |behind: &[u8]| {
        let words = behind.iter().skip_while(|byte| **byte == b'~');
        words.copied().any(|byte| byte == b'~')
    };
    behind.is_some_and(|behind| behind.len() < NAME && !behind.contains(&b'`') && !heads(behind))
        || TAGS.contains(&line)
}

/// The format of what lies ahead, as far as the next fence or else the next empty line.
pub(crate) fn look(ahead: &[u8]) -> Option<Ahead> {
    let parts = |line: &[u8]| is_fence(line) || !matches!(prompt::of(line), Prompt::No);
    let to_fence = until(ahead, parts);
    let to_blank = until(to_fence, |line| line.trim_ascii().is_empty());
    let mut best: Option<Ahead> = None;
    for text in [to_fence, to_blank] {
        if text.len() == to_fence.len() && best.is_some() {
            break;
        }
        let found = of_section(text);
        if let Some(found) = found
            && best.as_ref().is_none_or(|best| found.sure > best.sure)
        {
            best = Some(found);
        }
    }
    best
}

/// The lines before the first that ends them, but for the very first lines.
fn until(text: &[u8], ends: impl Fn(&[u8]) -> bool) -> &[u8] {
    let (mut at, mut some) = (0, false);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if some && ends(line) {
            return text.get(..at).unwrap_or_default();
        }
        some |= !ends(line);
        at += line.len();
    }
    text
}

/// What a section is of, as it is or with something undone.
fn of_section(text: &[u8]) -> Option<Ahead> {
    let plain = surest(text);
    let mut best = plain.map(|(sure, format)| Ahead {
        format,
        copied: Copied::default(),
        sure,
    });
    if let Some(undone) = undone(text, plain.map_or(Sureness::No, |(sure, _)| sure)) {
        best = Some(undone);
    }
    best
}

/// What a text is of once something is undone, if that is surer than what it is of as it is (or as sure, and what is undone is no word
/// of any format).
pub(crate) fn undone(text: &[u8], plain: Sureness) -> Option<Ahead> {
    let mut copied = Copied {
        layers: Vec::new(),
        entities: has_entities(text),
    };
    let mut best: Option<Ahead> = None;
    let mut now = match copied.entities {
        true => copied.undone(text),
        false => text.to_vec(),
    };
    for depth in 0..=LAYERS {
        if !copied.is_nothing()
            && let Some((sure, format)) = surest(&now)
            && sure >= Sureness::Likely
        {
            let time = copied.layers.iter().any(Layer::is_time);
            let of_times = matches!(
                format.family,
                Family::Logs | Family::Databases | Family::Runtime | Family::Times
            );
            let enough = sure > plain || sure == plain && !(time && of_times);
            if enough && best.as_ref().is_none_or(|best| sure > best.sure) {
                best = Some(Ahead {
                    format,
                    copied: copied.clone(),
                    sure,
                });
            }
        }
        if depth == LAYERS {
            break;
        }
        let Some(layer) = layer(&now) else { break };
        copied.layers.push(layer);
        now = copied.undone(text);
    }
    best
}

/// The format that is surest of a text, of those that are read by lines.
fn surest(text: &[u8]) -> Option<(Sureness, &'static Format)> {
    let mut best: Option<(Sureness, &'static Format)> = None;
    for &format in ALL {
        let sure = (format.recognise)(text);
        if sure > best.map_or(Sureness::No, |(best, _)| best) {
            best = Some((sure, format));
        }
    }
    best.filter(|(_, format)| matches!(format.shape, Shape::Lines(_)))
}

/// What stands in front of nearly all lines of a text.
fn layer(text: &[u8]) -> Option<Layer> {
    let lines: Vec<&[u8]> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .take(LINES)
        .collect();
    let fits = |layer: &Layer| {
        let count = lines.iter().filter(|line| layer.of(line).is_some()).count();
        // Copies are clipped: the last line may be a part of one.
        // A terminal wraps long lines: what it wraps has no time, host and program of its own.
        let of_ten = if *layer == Layer::Journal { 6 } else { 9 };
        count >= MIN_LINES
            && (count * 10 >= lines.len() * of_ten || count + 1 == lines.len() && count > MIN_LINES)
    };
    let first = lines.first()?;
    let mut candidates = vec![Layer::Quotation, Layer::Container];
    candidates.extend(MARKS.map(Layer::Marked));
    // What the kernel and the service manager say has a reader of its own.
    if let Some((program, _)) = journal_message(first)
        && Writer::named(program) == Writer::Service
        && lines
            .iter()
            .all(|line| journal_message(line).is_none_or(|(other, _)| other == program))
    {
        candidates.push(Layer::Journal);
    }
    candidates.extend(named(first).map(Layer::Fixed));
    candidates.extend(commented(first).map(Layer::Fixed));
    // Lines that a patch adds, as people paste them from a review.
    candidates.extend(first.starts_with(b"+").then(|| Layer::Fixed(b"+".to_vec())));
    candidates.extend(indented(&lines).map(Layer::Fixed));
    candidates.into_iter().find(fits)
}

/// A line without the mark at its end.
fn bare_of<'a>(line: &'a [u8], mark: &[u8]) -> &'a [u8] {
    let line = line.trim_ascii_end();
    line.strip_suffix(mark).unwrap_or(line)
}

fn leading_blanks(line: &[u8]) -> usize {
    line.len() - line.trim_ascii_start().len()
}

/// `> > `.
fn quotation(line: &[u8]) -> Option<usize> {
    let mut rest = line.strip_prefix(b">")?;
    loop {
        let bare = rest.strip_prefix(b" ").unwrap_or(rest);
        match bare.strip_prefix(b">") {
            Some(more) => rest = more,
            None => return Some(line.len() - bare.len()),
        }
    }
}

/// `2026-03-03T10:00:00.123456789Z `, and `stdout F ` behind it.
fn container(line: &[u8]) -> Option<usize> {
    let end = line.iter().position(|byte| *byte == b' ')?;
    let stamp = line.get(..end)?;
    let digits = |from: usize, to: usize| {
        stamp
            .get(from..to)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let is_stamp = digits(0, 4)
        && digits(5, 7)
        && digits(8, 10)
        && stamp.get(10) == Some(&b'T')
        && digits(11, 13)
        && stamp.get(19) == Some(&b'.')
        && (stamp.ends_with(b"Z") || stamp.len() > 24);
    if !is_stamp {
        return None;
    }
    let rest = line.get(end + 1..)?;
    let stream = [&b"stdout F "[..], b"stderr F ", b"stdout P ", b"stderr P "];
    let stream = stream.iter().find(|stream| rest.starts_with(stream));
    Some(end + 1 + stream.map_or(0, |stream| stream.len()))
}

/// A name of one word with the sign behind it that parts it from the line: `app-1  | `, `node008: `, `[pod/web-1/app] `.
fn named(line: &[u8]) -> Option<Vec<u8>> {
    let head = line.get(..NAME).unwrap_or(line);
    let end = head.iter().position(|byte| matches!(byte, b' ' | b'\t'))?;
    let word = head.get(..end)?;
    let rest = head.get(end..)?;
    let blanks = rest.len() - rest.trim_ascii_start().len();
    let behind = rest.get(blanks..)?;
    let length = match word {
        [b'[', name @ .., b']'] if name.contains(&b'/') => end + 1,
        [name @ .., b':'] if name.iter().any(u8::is_ascii_alphabetic) => end + 1,
        _ if behind.starts_with(b"| ") && word.iter().any(u8::is_ascii_alphanumeric) => end + blanks + 2,
        _ => return None,
    };
    line.get(..length).map(<[u8]>::to_vec)
}

/// Signs of a comment in front of a line, with the blank behind them: `// `, `# `, ` * `, `;; `, `  | `.
fn commented(line: &[u8]) -> Option<Vec<u8>> {
    let signs = line.iter().take_while(|byte| b" \t/#*;|!".contains(byte)).count();
    // `// #0  0x…`: the last sign may be the line's own.
    let front = line.get(..signs)?;
    let front = front.get(..front.iter().rposition(|byte| *byte == b' ')? + 1)?;
    let behind = line.get(front.len()..)?;
    // A frame of a table is no comment.
    let is_frame = front.contains(&b'|') && behind.contains(&b'|');
    let is_sign = front.iter().any(|byte| !byte.is_ascii_whitespace());
    // Blanks behind the sign may be the line's own.
    let end = front.iter().rposition(|byte| !byte.is_ascii_whitespace())? + 2;
    (is_sign && !is_frame && front.len() <= COMMENT).then(|| front.get(..end).unwrap_or(front).to_vec())
}

/// Bytes of the signs of a comment.
const COMMENT: usize = 12;

/// The blanks that stand in front of all lines.
fn indented(lines: &[&[u8]]) -> Option<Vec<u8>> {
    let blanks = |line: &&[u8]| {
        line.iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count()
    };
    let least = lines.iter().map(blanks).min().filter(|least| *least > 1)?;
    lines.first()?.get(..least).map(<[u8]>::to_vec)
}

/// Whether signs stand in the form of a page, and none of them as it is.
fn has_entities(text: &[u8]) -> bool {
    let mut forms = 0;
    for at in memchr::memchr_iter(b'&', text) {
        let rest = text.get(at..).unwrap_or_default();
        forms += usize::from(ENTITIES.iter().any(|(form, _)| rest.starts_with(form)));
    }
    let bare = memchr::memchr_iter(b'<', text).any(|at| {
        let rest = text.get(at..).unwrap_or_default();
        !TAGS.iter().any(|tag| rest.starts_with(tag))
    });
    let tagged = text.trim_ascii_start().starts_with(b"<pre>");
    !bare && (forms >= MIN_LINES || tagged)
}

#[cfg(test)]
mod tests {
    use super::{Copied, is_fence, look, may_begin_behind};
    use crate::format::Sureness;
    use crate::prompt::Prompt;
    use crate::read_text;

    const BLAME: &str = "31.250s dev-sdb1.device\n 2.500s web.service\n  300ms a.mount\n";

    fn each(text: &str, front: impl Fn(&str) -> String) -> String {
        text.lines().map(|line| format!("{}\n", front(line))).collect()
    }

    fn format(text: &str) -> Option<&'static str> {
        look(text.as_bytes())
            .filter(|ahead| ahead.sure >= Sureness::Likely)
            .map(|ahead| ahead.format.id)
    }

    #[test]
    fn signs_in_front_of_each_line_are_undone_where_a_format_is_known_by_that() {
        for front in [
            "> ",
            ">> ",
            "app-1  | ",
            "node008: ",
            "[pod/web-1/app] ",
            "2026-03-03T10:00:00.123456789Z ",
            "2026-03-03T10:00:00.123456789+01:00 stdout F ",
            "Mar 03 10:00:00 box app[812]: ",
            "> app-1 | 2026-03-03T10:00:00.123456789Z ",
            "// ",
            " * ",
            ";; ",
            ">   | ",
        ] {
            let text = each(BLAME, |line| format!("{front}{line}"));
            assert_eq!(format(&text), Some("systemd-blame"), "{front}");
            let spans = read_text("b", text.as_bytes()).observed.spans;
            assert_eq!(spans.len(), 3, "{front}: {spans:?}");
        }
    }

    #[test]
    fn lines_that_are_marked_one_by_one_lose_their_marks() {
        for mark in ["`", "**"] {
            let text = each(BLAME, |line| format!("{mark}{line}{mark} "));
            assert_eq!(format(&text), Some("systemd-blame"), "{mark}");
            assert_eq!(read_text("b", text.as_bytes()).observed.spans.len(), 3, "{mark}");
        }
        let quoted = "> `31.250s dev-sdb1.device`\n`2.500s web.service`\n`300ms a.mount`\n";
        assert_eq!(format(quoted), Some("systemd-blame"));
    }

    #[test]
    fn nothing_is_undone_of_what_no_format_is_known_by() {
        let text = each("one word\nanother word\n", |line| format!("app-1  | {line}"));
        assert!(look(text.as_bytes()).is_none_or(|ahead| ahead.copied == Copied::default()));
    }

    #[test]
    fn what_stands_behind_prose_a_fence_or_a_prompt_is_found() {
        for text in [
            format!("My boot is slow, this is what I get:\n\n{BLAME}"),
            format!("My boot is slow:\n{BLAME}\nAny idea?\n"),
            format!("See here\n```text\n{BLAME}```\nThanks.\n"),
            format!("root@box:~# date\nMon Mar  3 10:00:00 UTC 2026\nroot@box:~# slow-units\n{BLAME}"),
            format!("<pre>\n{BLAME}</pre>\n"),
        ] {
            let reading = read_text("b", text.as_bytes());
            assert_eq!(reading.observed.spans.len(), 3, "{text}");
        }
    }

    #[test]
    fn letters_of_a_page_are_undone() {
        let copied = Copied {
            entities: true,
            ..Copied::default()
        };
        let mut room = Vec::new();
        assert_eq!(
            copied.undo(b"<pre>a &lt;b&gt; &amp;&amp; c &x;", &mut room),
            b"a <b> && c &x;"
        );
    }

    #[test]
    fn hostile_texts_end() {
        for text in [
            "",
            "\n",
            ">",
            "> ",
            "```",
            "|",
            ": :",
            "&lt;",
            "[/] \n[/] \n",
            "\u{0}\n\u{0}",
        ] {
            let _ = look(text.as_bytes());
            let _ = may_begin_behind(text.as_bytes(), Prompt::No, false);
        }
        assert!(is_fence(b"```console") && is_fence(b"~~~") && !is_fence(b"```a``` is it"));
    }
}
