//! A document of JSON over one or several lines, as rows: each object of a list is one, with what its objects within have, and with
//! the names of what it is in.
//!
//! In: lines. Out: rows of names and values. Nothing is kept but the objects that are open; what is deeper, longer or more than the
//! bounds below is left out.

/// Objects and lists within one another.
const DEPTH: usize = 24;

/// Bytes of a key and of a value.
const KEY: usize = 40;
const VALUE: usize = 60;

/// Values of one object that are kept.
const PAIRS: usize = 24;

/// Values that an object has from those around it.
const INHERITED: usize = 2;

/// Keys of values that name an object, and by that what is in it.
const NAMES: [&str; 20] = [
    "name",
    "group",
    "cluster",
    "topic",
    "host",
    "node",
    "index",
    "queue",
    "pool",
    "service",
    "database",
    "table",
    "job",
    "task",
    "instance",
    "consumer",
    "hostname",
    "vhost",
    "namespace",
    "id",
];

/// A key with its value.
pub(super) type Pair = (String, String);

/// What is open.
#[derive(Debug)]
struct Level {
    /// The key that it is the value of; empty in a list.
    key: String,
    list: bool,
    pairs: Vec<Pair>,
    /// Whether rows have been made of what is in it: then it is no row of its own, but the heading of them.
    parted: bool,
}

/// Reads one document.
#[derive(Debug, Default)]
pub(super) struct Json {
    open: Vec<Level>,
    key: Option<String>,
    /// Lists and objects that are open beyond the depth.
    beyond: usize,
    rows: Vec<Vec<Pair>>,
}

/// Whether a document may begin with a line.
pub(super) fn begins(line: &[u8]) -> bool {
    matches!(
        line,
        b"{" | b"[" | b"[{" | [b'{', b'"', ..] | [b'[', b'{', b'"', ..]
    )
}

impl Json {
    /// Takes a line; `None` where it is none of a document, so that there is none any more.
    pub(super) fn line(&mut self, line: &[u8]) -> Option<()> {
        let mut at = 0;
        while let Some(byte) = line.get(at) {
            at += 1;
            match byte {
                b'{' => self.open(false),
                b'[' => self.open(true),
                b'}' | b']' => self.close()?,
                b'"' => {
                    let (text, end) = string(line, at)?;
                    at = end;
                    let behind = line.get(end..).unwrap_or_default().trim_ascii_start();
                    match behind.first() {
                        Some(b':') => self.key = Some(cut(text, KEY)),
                        _ => self.value(cut(text, VALUE)),
                    }
                }
                b':' | b',' | b' ' | b'\t' | b'\r' => {}
                _ if self.open.is_empty() => return None,
                byte if byte.is_ascii_alphanumeric() || *byte == b'-' => {
                    let rest = line.get(at - 1..).unwrap_or_default();
                    let word = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-+._".contains(byte);
                    let end = at - 1 + rest.iter().take_while(word).count();
                    self.value(cut(line.get(at - 1..end).unwrap_or_default(), VALUE));
                    at = end.max(at);
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// Whether nothing is open any more.
    pub(super) fn is_whole(&self) -> bool {
        self.open.is_empty()
    }

    /// The rows since the last look.
    pub(super) fn rows(&mut self) -> Vec<Vec<Pair>> {
        std::mem::take(&mut self.rows)
    }

    fn open(&mut self, list: bool) {
        let key = self.key.take();
        if self.open.len() >= DEPTH {
            self.beyond += 1;
            return;
        }
        self.open.push(Level {
            key: key.unwrap_or_default(),
            list,
            pairs: Vec::new(),
            parted: false,
        });
    }

    fn close(&mut self) -> Option<()> {
        if self.beyond > 0 {
            self.beyond -= 1;
            return Some(());
        }
        let level = self.open.pop()?;
        let in_list = self.open.last().is_none_or(|around| around.list);
        if level.list || level.pairs.is_empty() {
            return Some(());
        }
        if in_list {
            if !level.parted && level.pairs.len() > 1 {
                self.row(level.pairs);
            }
            for around in &mut self.open {
                around.parted = true;
            }
        } else if self.is_map() && level.pairs.len() > 1 {
            let kind = self
                .open
                .last()
                .map_or(String::new(), |around| around.key.clone());
            let mut own = vec![(kind, level.key)];
            own.extend(level.pairs);
            self.row(own);
            for around in &mut self.open {
                around.parted = true;
            }
        } else if let Some(around) = self.open.last_mut() {
            for (key, value) in level.pairs {
                if around.pairs.len() < PAIRS {
                    around.pairs.push((format!("{} {key}", level.key), value));
                }
            }
        }
        Some(())
    }

    /// Whether what was just read is one of several of a kind, by its key: `"subscriptions": {"bills": {…}, "mail": {…}}`.
    fn is_map(&self) -> bool {
        self.open
            .last()
            .is_some_and(|around| !around.list && !around.key.is_empty() && around.pairs.is_empty())
    }

    /// A row, behind the names of what it is in.
    fn row(&mut self, own: Vec<Pair>) {
        let names = |pair: &&Pair| NAMES.iter().any(|name| pair.0.rsplit(' ').next() == Some(name));
        let around = self.open.iter().flat_map(|level| &level.pairs).filter(names);
        let around =
            around.filter(|(key, value)| !value.is_empty() && own.iter().all(|(known, _)| known != key));
        let mut inherited: Vec<Pair> = around.rev().take(INHERITED).cloned().collect();
        inherited.reverse();
        let first = own.first().map(|(key, _)| key.clone());
        let of_map = |pair: &Pair| first.as_ref() == Some(&pair.0) && names_of_maps(&pair.0);
        let (named, rest): (Vec<Pair>, Vec<Pair>) =
            own.into_iter().partition(|pair| names(&pair) || of_map(pair));
        inherited.splice(0..0, named);
        inherited.extend(rest);
        self.rows.push(inherited);
    }

    fn value(&mut self, value: String) {
        let Some(key) = self.key.take() else { return };
        if self.beyond > 0 {
            return;
        }
        if let Some(level) = self.open.last_mut().filter(|level| level.pairs.len() < PAIRS) {
            level.pairs.push((key, value));
        }
    }
}

/// Whether a key is that of several of a kind.
fn names_of_maps(key: &str) -> bool {
    key.len() > 2 && key.ends_with('s')
}

fn cut(text: &[u8], bytes: usize) -> String {
    crate::gather::text_of(text.get(..bytes).unwrap_or(text))
}

/// What stands between quotation marks, and where it ends; `None` where the line ends before.
fn string(line: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let mut at = from;
    loop {
        match line.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some((line.get(from..at)?, at + 1)),
            _ => at += 1,
        }
    }
}
