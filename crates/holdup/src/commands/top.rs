//! `holdup top`: who waits now, for what, and behind whom, on a screen.
//!
//! In: this machine, or a folder of recordings, and a terminal. Out: a screen ([`holdup_top`]) until the person has seen enough.
//!
//! The screen and the observation are two processes. The one that draws has none of root's rights and can always end; the one that observes
//! ([`watcher`]) reads what can block, and is killed when the screen ends.

mod messages;
mod recordings;
mod screen;
mod source;
mod watcher;

use crate::cli::{Color, TopArgs};
use crate::terminal;
use anyhow::bail;
use holdup_collect::privileges::{self, Part};
use holdup_subject::signals::Signals;
use holdup_top::{Effect, Event, Moments, Paper, State};
use screen::Screen;
use source::Source;

/// Watches until the person has seen enough.
///
/// # Errors
/// When the terminal can't show a screen, or there is nothing to observe.
pub(crate) fn run(args: &TopArgs, color: Color) -> anyhow::Result<u8> {
    let choice = if args.no_color { Color::Never } else { color };
    let paper = paper(choice)?;
    let mut signals = Signals::watch()?;
    let (mut source, moments) = match &args.dir {
        Some(folder) => {
            privileges::keep(Part::Read)?;
            let (recordings, labels) = recordings::Recordings::open(folder)?;
            (Source::Recordings(recordings), Moments::replay(labels))
        }
        None => {
            let watcher = watcher::start(args)?;
            privileges::keep(Part::Nothing)?;
            (Source::Live(watcher), Moments::live())
        }
    };
    let mut screen = Screen::enter()?;
    let mut state = State::new(moments);
    let mut events = vec![screen.size()?];
    loop {
        for event in events.drain(..) {
            let (next, effect) = state.after(event);
            state = next;
            match effect {
                Effect::Nothing => {}
                Effect::Quit => return Ok(0),
                Effect::Suspend => screen.suspend()?,
                Effect::Load(at) => {
                    screen.draw(&state, paper)?;
                    let loaded = source.load(at);
                    (state, _) = state.after(Event::Loaded(at, loaded));
                }
            }
        }
        screen.draw(&state, paper)?;
        if screen.wait(&signals, source.fd())? || signals.asked_to_end() {
            return Ok(0);
        }
        events.push(screen.size()?);
        events.extend(screen.pressed()?);
        events.extend(source.come()?);
    }
}

/// What the terminal can show.
///
/// # Errors
/// When it can't show a screen at all: it says what to use instead.
fn paper(choice: Color) -> anyhow::Result<Paper> {
    use std::io::IsTerminal;
    let instead = "use `holdup host`, or `holdup attach -p PID -d 5`, which print text";
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("holdup top needs a terminal, and its input or output is none; {instead}");
    }
    let name = std::env::var("TERM").unwrap_or_default();
    if name.is_empty() || name == "dumb" {
        bail!(
            "holdup top needs a terminal that can move its cursor, and TERM says that this one cannot; {instead}"
        );
    }
    let look = terminal::look(&std::io::stdout(), choice);
    Ok(Paper {
        colour: look.colour,
        unicode: look.unicode,
    })
}
