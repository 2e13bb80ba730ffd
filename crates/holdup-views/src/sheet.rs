//! Lines of known width out of coloured pieces: the one way onto the terminal.
//!
//! In: rows (something in front, a body that wraps, something at the right edge). Out: text in which every
//! line is within the style's columns and nothing is acted upon but our own colours, whatever the pieces
//! contain: each piece is made printable when it is made.

use crate::style::Style;
use crate::text::{printable, shorten, split_at_joint, width};

/// How a piece looks. Few, so that colour means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// As is.
    Plain,
    /// The numbers and names of the verdict.
    Bold,
    /// Ids and what is only for those who look.
    Dim,
    /// Something is wrong.
    Yellow,
    /// Something stops the work.
    Red,
}

impl Paint {
    /// The SGR parameters, empty for none.
    fn sgr(self) -> &'static str {
        match self {
            Paint::Plain => "",
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Yellow => "1;33",
            Paint::Red => "1;31",
        }
    }
}

/// Text of one look.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    text: String,
    paint: Paint,
    /// Blanks between this and what is before it in the same line.
    gap: usize,
    /// A name stays in one line and loses its middle when it is longer than that; words wrap.
    name: bool,
}

impl Piece {
    /// Sets the blanks before it; 1 else. With 0 it stays in the line of what is before it.
    pub(crate) fn after(mut self, gap: usize) -> Piece {
        self.gap = gap;
        self
    }

    /// The columns that it takes in one line.
    pub(crate) fn width(&self) -> usize {
        width(&self.text)
    }

    /// Sets the look.
    pub(crate) fn paint(mut self, paint: Paint) -> Piece {
        self.paint = paint;
        self
    }
}

/// A row before it is broken into lines.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// In front of the body, in the first line.
    pub(crate) lead: Vec<Piece>,
    /// Column at which the body begins, in every line.
    pub(crate) indent: usize,
    /// Column at which the body's further lines begin, where it is another.
    pub(crate) hang: Option<usize>,
    /// What wraps.
    pub(crate) body: Vec<Piece>,
    /// At the right edge of the first line.
    pub(crate) edge: Option<Piece>,
}

/// Columns of the first line that the body needs beside the edge; with less, the edge gets its own line.
const LEAST_BODY: usize = 16;

/// Blanks between the body and the edge.
const EDGE_GAP: usize = 2;

/// A row as it was said, for a view that breaks lines itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// What stands in front, without blanks around it.
    pub(crate) lead: String,
    /// What is said: texts, how each looks, and whether a blank stands before it.
    pub(crate) body: Vec<(String, Paint, bool)>,
    /// What stands at the edge.
    pub(crate) edge: Option<String>,
}

/// A text that grows by rows.
#[derive(Debug)]
pub(crate) struct Sheet {
    style: Style,
    text: String,
    said: Vec<Said>,
}

impl Sheet {
    /// An empty one.
    pub(crate) fn new(style: &Style) -> Sheet {
        Sheet {
            style: *style,
            text: String::new(),
            said: Vec::new(),
        }
    }

    /// The rows so far, in order, before they were broken into lines; they are not reported again.
    pub(crate) fn take_said(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.said)
    }

    /// The finished text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Columns of a line.
    pub(crate) fn columns(&self) -> usize {
        self.style.columns()
    }

    /// The style it is set in.
    pub(crate) fn style(&self) -> &Style {
        &self.style
    }

    /// Words that wrap.
    pub(crate) fn words(&self, text: &str) -> Piece {
        Piece {
            text: printable(text, self.style.unicode),
            paint: Paint::Plain,
            gap: 1,
            name: false,
        }
    }

    /// A name, kept in one line.
    pub(crate) fn name(&self, text: &str) -> Piece {
        Piece {
            name: true,
            ..self.words(text)
        }
    }

    /// An empty line; never two in a row, nor at the beginning.
    pub(crate) fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A row with nothing in front.
    pub(crate) fn line(&mut self, indent: usize, body: Vec<Piece>) {
        self.led(Vec::new(), indent, body);
    }

    /// A row with something in front of its body.
    pub(crate) fn led(&mut self, lead: Vec<Piece>, indent: usize, body: Vec<Piece>) {
        self.row(Row {
            lead,
            indent,
            body,
            ..Row::default()
        });
    }

    /// Breaks a row into lines and adds them.
    pub(crate) fn row(&mut self, row: Row) {
        self.said.push(Said::from(&row));
        let columns = self.columns();
        let edge_width = row.edge.as_ref().map_or(0, |edge| width(&edge.text) + EDGE_GAP);
        let beside = columns.saturating_sub(edge_width) >= row.indent + LEAST_BODY;
        let mut line = Line::new(columns);
        for piece in row.lead {
            line.put(&piece, self.style.unicode);
        }
        line.limit = if beside { columns - edge_width } else { columns };
        let after_lead = if line.used > 0 { line.used + 1 } else { 0 };
        line.pad_to(row.indent.max(after_lead));
        let hang = row.hang.unwrap_or(row.indent).min(columns / 2);
        let mut edge = row.edge;
        // A word or name gets a line of its own before it is cut.
        let full = columns - hang;
        let words: Vec<Piece> = row.body.into_iter().flat_map(Piece::into_words).collect();
        for (at, word) in words.iter().enumerate() {
            let mut word = word.clone();
            let glued = words[at + 1..].iter().take_while(|next| next.gap == 0);
            let whole = width(&word.text) + glued.map(|next| width(&next.text)).sum::<usize>();
            if whole > line.room(&word) && line.room(&word) < full {
                self.finish(&mut line, beside.then(|| edge.take()).flatten());
                line = Line::hanging(columns, hang);
            }
            while !word.name && width(&word.text) > full {
                let (head, tail) = split_at_joint(&word.text, full);
                let (head, tail) = (head.to_owned(), tail.to_owned());
                line.put(&Piece { text: head, ..word }, self.style.unicode);
                self.finish(&mut line, beside.then(|| edge.take()).flatten());
                line = Line::hanging(columns, hang);
                word.text = tail;
            }
            line.put(&word, self.style.unicode);
        }
        self.finish(&mut line, beside.then(|| edge.take()).flatten());
        if let Some(edge) = edge {
            let mut line = Line::new(columns);
            self.finish(&mut line, Some(edge));
        }
    }

    /// Ends a line, with what is at its edge.
    fn finish(&mut self, line: &mut Line, edge: Option<Piece>) {
        if let Some(edge) = edge {
            let columns = line.columns;
            line.limit = columns;
            let text = shorten(&edge.text, columns, self.style.unicode);
            line.pad_to(columns.saturating_sub(width(&text)));
            let edge = Piece { text, gap: 0, ..edge };
            line.put(&edge, self.style.unicode);
        }
        let mut blanks = 0;
        for (text, paint) in line.spans.drain(..) {
            let bare = text.trim_start_matches(' ');
            blanks += text.len() - bare.len();
            if bare.is_empty() {
                continue;
            }
            self.text.extend(std::iter::repeat_n(' ', blanks));
            let kept = bare.trim_end_matches(' ');
            blanks = bare.len() - kept.len();
            if self.style.colour && paint != Paint::Plain {
                self.text.push_str("\x1b[");
                self.text.push_str(paint.sgr());
                self.text.push('m');
                self.text.push_str(kept);
                self.text.push_str("\x1b[0m");
            } else {
                self.text.push_str(kept);
            }
        }
        self.text.push('\n');
    }
}

impl From<&Row> for Said {
    fn from(row: &Row) -> Said {
        let lead: Vec<&str> = row.lead.iter().map(|piece| piece.text.trim()).collect();
        let body = row
            .body
            .iter()
            .map(|piece| (piece.text.clone(), piece.paint, piece.gap > 0));
        Said {
            lead: lead.join(" ").trim().to_owned(),
            body: body.collect(),
            edge: row.edge.as_ref().map(|edge| edge.text.clone()),
        }
    }
}

impl Said {
    /// What is said, in one line.
    pub(crate) fn text(&self) -> String {
        let mut all = String::new();
        for (text, _, blank) in &self.body {
            if *blank && !all.is_empty() {
                all.push(' ');
            }
            all.push_str(text);
        }
        all
    }
}

impl Piece {
    /// The parts between which a line may be broken.
    fn into_words(self) -> Vec<Piece> {
        if self.name {
            return vec![self];
        }
        let mut words: Vec<Piece> = Vec::new();
        for word in self.text.split(' ').filter(|word| !word.is_empty()) {
            match words.last_mut() {
                Some(before) if is_unit(word) && before.text.ends_with(|end: char| end.is_ascii_digit()) => {
                    before.text.push(' ');
                    before.text.push_str(word);
                }
                _ => words.push(Piece {
                    text: word.to_owned(),
                    gap: if words.is_empty() { self.gap } else { 1 },
                    ..self
                }),
            }
        }
        words
    }
}

/// Whether a word is a unit, which stays with its number.
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 8] = ["%", "s", "ms", "µs", "us", "ns", "min", "h"];
    UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']))
}

/// A line under construction.
#[derive(Debug)]
struct Line {
    spans: Vec<(String, Paint)>,
    /// Columns used.
    used: usize,
    /// Columns that the body may use.
    limit: usize,
    /// Columns there are.
    columns: usize,
    /// Whether nothing of the body is in it yet.
    fresh: bool,
}

impl Line {
    fn new(columns: usize) -> Line {
        Line {
            spans: Vec::new(),
            used: 0,
            limit: columns,
            columns,
            fresh: true,
        }
    }

    /// A further line of a row.
    fn hanging(columns: usize, hang: usize) -> Line {
        let mut line = Line::new(columns);
        line.pad_to(hang);
        line
    }

    /// Blanks up to a column, and a fresh start there.
    fn pad_to(&mut self, column: usize) {
        if column > self.used {
            self.spans.push((" ".repeat(column - self.used), Paint::Plain));
            self.used = column;
        }
        self.fresh = true;
    }

    /// Columns that are left for a piece.
    fn room(&self, piece: &Piece) -> usize {
        self.limit.saturating_sub(self.used + self.gap(piece))
    }

    /// Blanks before a piece: none at the beginning.
    fn gap(&self, piece: &Piece) -> usize {
        if self.fresh { 0 } else { piece.gap }
    }

    /// Adds a piece, shortened to what fits.
    fn put(&mut self, piece: &Piece, unicode: bool) {
        let gap = self.gap(piece);
        let text = shorten(&piece.text, self.room(piece), unicode);
        self.used += gap + width(&text);
        let same = self.spans.last().is_some_and(|(_, paint)| *paint == piece.paint);
        match self.spans.last_mut() {
            Some((last, _)) if same => {
                last.push_str(&" ".repeat(gap));
                last.push_str(&text);
            }
            _ => self
                .spans
                .push((format!("{}{text}", " ".repeat(gap)), piece.paint)),
        }
        self.fresh = false;
    }
}
