//! What is on the screen, and what becomes of it.
//!
//! In: an [`Event`]. Out: the next state, and what the program has to do. Pure.

use crate::lines;
use crate::moments::Moments;
use holdup_views::{Look, LookRow};
use std::cmp::Reverse;

/// Letters of a filter.
const MAX_FILTER: usize = 60;

/// Lines that the wheel moves.
const WHEEL_LINES: isize = 3;

/// A key that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// One up.
    Up,
    /// One down.
    Down,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// To the first.
    Home,
    /// To the last.
    End,
    /// Earlier.
    Left,
    /// Later.
    Right,
    /// Into it.
    Enter,
    /// Out of it.
    Escape,
    /// Out of it; of a filter its last letter.
    Backspace,
    /// A letter.
    Char(char),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The screen has this many columns and lines.
    Size(u16, u16),
    /// A key was pressed.
    Key(Key),
    /// A line of the screen was pointed at.
    Click(u16),
    /// The wheel was turned: down is positive.
    Wheel(i8),
    /// A live look has come; the label says when that was.
    Look(String, Box<Look>),
    /// What was asked for by [`Effect::Load`].
    Loaded(usize, Result<Box<Look>, String>),
    /// What the source says of itself: how often it looks, or why it can't.
    Status(String),
}

/// What the program has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing but to draw.
    Nothing,
    /// Read this recording.
    Load(usize),
    /// End.
    Quit,
    /// Stop, as any program does on Ctrl-Z.
    Suspend,
}

/// In which order rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// What the first sentence is about, then by time in this look.
    #[default]
    Time,
    /// Those that still wait first, by how long they have waited.
    Longest,
    /// By name.
    Name,
}

impl Order {
    fn next(self) -> Order {
        match self {
            Order::Time => Order::Longest,
            Order::Longest => Order::Name,
            Order::Name => Order::Time,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Order::Time => "time lost",
            Order::Longest => "longest wait",
            Order::Name => "name",
        }
    }
}

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    /// Who waits.
    List,
    /// All of one row, from this line on.
    Details { key: String, from: usize },
    /// The keys, from this line on.
    Help { from: usize },
}

/// The state.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub(crate) moments: Moments,
    pub(crate) view: View,
    pub(crate) filter: String,
    /// Whether letters go to the filter.
    pub(crate) types: bool,
    pub(crate) order: Order,
    /// Whether rows that rest are shown.
    pub(crate) idle: bool,
    /// The row that is chosen.
    pub(crate) chosen: Option<String>,
    /// The first row of the list that is on the screen.
    pub(crate) top: usize,
    pub(crate) status: String,
    pub(crate) size: (u16, u16),
}

impl State {
    /// The beginning.
    #[must_use]
    pub fn new(moments: Moments) -> State {
        State {
            moments,
            view: View::List,
            filter: String::new(),
            types: false,
            order: Order::default(),
            idle: false,
            chosen: None,
            top: 0,
            status: String::new(),
            size: (80, 24),
        }
    }

    /// What becomes of it.
    #[must_use]
    pub fn after(mut self, event: Event) -> (State, Effect) {
        let effect = match event {
            Event::Size(columns, rows) => {
                self.size = (columns, rows);
                Effect::Nothing
            }
            Event::Key(key) => self.key(key),
            Event::Click(line) => {
                self.click(line);
                Effect::Nothing
            }
            Event::Wheel(by) => {
                self.scroll(isize::from(by).saturating_mul(WHEEL_LINES));
                Effect::Nothing
            }
            Event::Look(label, look) => {
                self.moments.push(label, *look);
                Effect::Nothing
            }
            Event::Loaded(at, look) => {
                self.moments.fill(at, look.map(|look| *look));
                Effect::Nothing
            }
            Event::Status(words) => {
                self.status = words;
                Effect::Nothing
            }
        };
        self.keep_in_sight();
        let effect = match (effect, self.moments.unread()) {
            (Effect::Nothing, Some(at)) => Effect::Load(at),
            (effect, _) => effect,
        };
        (self, effect)
    }

    /// The rows of the list, in order.
    pub(crate) fn rows(&self) -> Vec<&LookRow> {
        let Some(look) = self.moments.look() else {
            return Vec::new();
        };
        let filter = self.filter.to_lowercase();
        let shown = |row: &&LookRow| (self.idle || !row.rests) && matches(row, &filter);
        let mut rows: Vec<&LookRow> = look.rows.iter().filter(shown).collect();
        match self.order {
            Order::Time => {}
            Order::Longest => rows.sort_by_key(|row| Reverse((row.open, row.longest_ns))),
            Order::Name => rows.sort_by(|one, other| one.who.cmp(&other.who)),
        }
        rows
    }

    /// Which of the rows is chosen: the first one where none was.
    pub(crate) fn chosen_at(&self, rows: &[&LookRow]) -> usize {
        let chosen = |key: &String| rows.iter().position(|row| row.key == *key);
        self.chosen.as_ref().and_then(chosen).unwrap_or(0)
    }

    fn key(&mut self, key: Key) -> Effect {
        match key {
            Key::Interrupt => return Effect::Quit,
            Key::Suspend => return Effect::Suspend,
            _ => {}
        }
        if self.types {
            self.type_filter(key);
            return Effect::Nothing;
        }
        match key {
            Key::Char('q') => return Effect::Quit,
            Key::Up | Key::Char('k') => self.scroll(-1),
            Key::Down | Key::Char('j') => self.scroll(1),
            Key::PageUp => self.scroll(-self.page()),
            Key::PageDown => self.scroll(self.page()),
            Key::Home => self.scroll(isize::MIN),
            Key::End => self.scroll(isize::MAX),
            Key::Left => self.moments.go(-1),
            Key::Right => self.moments.go(1),
            Key::Enter => self.enter(),
            Key::Escape | Key::Backspace => self.leave(),
            Key::Char(' ') => self.moments.pause(),
            Key::Char('?' | 'h') => self.view = View::Help { from: 0 },
            Key::Char('/') => {
                self.view = View::List;
                self.types = true;
            }
            Key::Char('s') => self.order = self.order.next(),
            Key::Char('i') => self.idle = !self.idle,
            Key::Char(_) | Key::Interrupt | Key::Suspend => {}
        }
        Effect::Nothing
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Char(letter) if self.filter.chars().count() < MAX_FILTER => self.filter.push(letter),
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Enter => self.types = false,
            Key::Escape => {
                self.types = false;
                self.filter.clear();
            }
            _ => {}
        }
    }

    fn enter(&mut self) {
        if self.view == View::List {
            let rows = self.rows();
            let key = rows.get(self.chosen_at(&rows)).map(|row| row.key.clone());
            if let Some(key) = key {
                self.chosen = Some(key.clone());
                self.view = View::Details { key, from: 0 };
            }
        }
    }

    fn leave(&mut self) {
        match self.view {
            View::List => self.filter.clear(),
            View::Details { .. } | View::Help { .. } => self.view = View::List,
        }
    }

    /// Lines of a screen.
    fn page(&self) -> isize {
        isize::from(self.size.1.cast_signed()).saturating_sub(6).max(1)
    }

    fn scroll(&mut self, by: isize) {
        let last = lines::last_line(self);
        match &mut self.view {
            View::List => {
                let rows = self.rows();
                let at = self.chosen_at(&rows).saturating_add_signed(by);
                let at = at.min(rows.len().saturating_sub(1));
                self.chosen = rows.get(at).map(|row| row.key.clone());
            }
            View::Details { from, .. } | View::Help { from } => {
                *from = from.saturating_add_signed(by).min(last);
            }
        }
    }

    fn click(&mut self, line: u16) {
        if self.view != View::List {
            return;
        }
        let Some(at) = lines::row_at(self, usize::from(line)) else {
            return;
        };
        let rows = self.rows();
        let key = rows.get(at).map(|row| row.key.clone());
        let again = key.is_some() && at == self.chosen_at(&rows) && self.chosen.is_some();
        self.chosen = key;
        if again {
            self.enter();
        }
    }

    /// Moves the list so that the chosen row is on the screen.
    fn keep_in_sight(&mut self) {
        let rows = self.rows();
        let at = self.chosen_at(&rows);
        let room = lines::room_for_rows(self);
        let mut top = self.top.min(at);
        while top < at && lines::height(&rows[top..=at], self.size.0) > room {
            top += 1;
        }
        self.top = top;
    }
}

/// Whether a row has the filter in any of its words.
fn matches(row: &LookRow, filter: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(filter);
    filter.is_empty()
        || has(&row.who)
        || has(&row.what)
        || has(row.cause.id())
        || row.behind.iter().any(|step| has(&step.who))
}
