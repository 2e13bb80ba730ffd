//! Lines as cells of a screen.
//!
//! In: the state, and what the terminal can show. Out: a buffer. Nothing that a name contains is acted upon: all text is made printable here
//! once more, whatever came before.

use crate::lines::{self, Tone};
use crate::state::State;
use holdup_views::text::printable;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paper {
    /// Whether to colour.
    pub colour: bool,
    /// Whether the locale's encoding is UTF-8; else only ASCII is written.
    pub unicode: bool,
}

/// Draws the screen. The state has to have been given the buffer's size before.
pub fn draw(state: &State, paper: Paper, buffer: &mut Buffer) {
    let area = buffer.area;
    for (line, row) in lines::screen(state).into_iter().zip(area.top()..area.bottom()) {
        let mut column = area.left();
        for (text, tone) in line {
            let room = usize::from(area.right().saturating_sub(column));
            if room == 0 {
                break;
            }
            let text = printable(&text, paper.unicode);
            (column, _) = buffer.set_stringn(column, row, text, room, style(tone, paper));
        }
    }
}

/// Emphasis is no colour: without colours it is all there is.
fn style(tone: Tone, paper: Paper) -> Style {
    let plain = Style::new();
    let coloured = |colour: Color| match paper.colour {
        true => plain.fg(colour),
        false => plain,
    };
    match tone {
        Tone::Plain => plain,
        Tone::Bold => plain.add_modifier(Modifier::BOLD),
        Tone::Dim => match paper.colour {
            true => plain.add_modifier(Modifier::DIM),
            false => plain,
        },
        Tone::Critical => coloured(Color::Red).add_modifier(Modifier::BOLD),
        Tone::Warning => coloured(Color::Yellow).add_modifier(Modifier::BOLD),
        Tone::Chosen => match paper.colour {
            true => plain.add_modifier(Modifier::REVERSED),
            false => plain.add_modifier(Modifier::BOLD),
        },
    }
}
