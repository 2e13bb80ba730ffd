//! The terminal, as long as it is a screen.
//!
//! In: states to draw. Out: cells, and what was pressed. However this program ends, the terminal is as it was: when the screen is dropped, on a
//! panic, and on every signal that asks to end, because those are read from a descriptor and end the loop.

use anyhow::Context;
use holdup_subject::signals::Signals;
use holdup_top::{Event, Key, Paper, State, draw};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, raise};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{
    DisableMouseCapture, EnableMouseCapture, Event as Pressed, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
    MouseButton, MouseEventKind, poll as has_come, read,
};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{Stdout, stdin, stdout};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Once;
use std::time::Duration;

/// Events that are taken before the screen is drawn again: text that is pasted comes as thousands.
const MAX_AT_ONCE: usize = 256;

/// The screen.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// Whether the terminal is there no more.
    gone: bool,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When it can't be had.
    pub(super) fn enter() -> anyhow::Result<Screen> {
        restore_on_panic();
        take()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()));
        let terminal = terminal
            .inspect_err(|_| restore())
            .context("cannot use this terminal")?;
        Ok(Screen {
            terminal,
            gone: false,
        })
    }

    /// How large it is.
    ///
    /// # Errors
    /// When it can't be asked.
    pub(super) fn size(&mut self) -> anyhow::Result<Event> {
        let size = self
            .terminal
            .size()
            .context("cannot ask the terminal for its size")?;
        Ok(Event::Size(size.width, size.height))
    }

    /// Draws.
    ///
    /// # Errors
    /// When it can't be written to.
    pub(super) fn draw(&mut self, state: &State, paper: Paper) -> anyhow::Result<()> {
        let drawn = self.terminal.draw(|frame| draw(state, paper, frame.buffer_mut()));
        drawn.map(drop).context("cannot write to the terminal")
    }

    /// Sleeps until a key was pressed, a signal came, or the source has something. Whether the terminal is gone.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn wait(&mut self, signals: &Signals, source: Option<BorrowedFd<'_>>) -> anyhow::Result<bool> {
        let stdin = stdin();
        let of = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut descriptors: Vec<PollFd<'_>> = [of(stdin.as_fd()), of(signals.fd())]
            .into_iter()
            .chain(source.map(of))
            .collect();
        match poll(&mut descriptors, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for a key"),
        }
        let lost = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        let of_stdin = descriptors.first().and_then(PollFd::revents);
        self.gone |= of_stdin.is_some_and(|events| events.intersects(lost));
        Ok(self.gone)
    }

    /// What was pressed since.
    ///
    /// # Errors
    /// When the terminal can't be read.
    pub(super) fn pressed(&mut self) -> anyhow::Result<Vec<Event>> {
        let mut events = Vec::new();
        while events.len() < MAX_AT_ONCE
            && has_come(Duration::ZERO).context("cannot read from the terminal")?
        {
            events.extend(event(&read().context("cannot read from the terminal")?));
        }
        Ok(events)
    }

    /// Gives the terminal back, stops as Ctrl-Z does, and takes it again when somebody says go on.
    ///
    /// # Errors
    /// When it can't be had again.
    pub(super) fn suspend(&mut self) -> anyhow::Result<()> {
        restore();
        raise(Signal::SIGSTOP).context("cannot stop")?;
        take()?;
        self.terminal.clear().context("cannot write to the terminal")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn take() -> anyhow::Result<()> {
    enable_raw_mode().context("cannot use this terminal")?;
    let taken = execute!(
        stdout(),
        EnterAlternateScreen,
        EnableMouseCapture,
        ratatui_crossterm::crossterm::cursor::Hide
    );
    taken
        .inspect_err(|_| restore())
        .context("cannot write to the terminal")
}

/// Gives the terminal back as it was. What fails here can't be helped.
fn restore() {
    execute!(
        stdout(),
        DisableMouseCapture,
        LeaveAlternateScreen,
        ratatui_crossterm::crossterm::cursor::Show
    )
    .ok();
    disable_raw_mode().ok();
}

/// A panic's words belong on the terminal as it was.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// What that is to the screen.
fn event(pressed: &Pressed) -> Option<Event> {
    match pressed {
        Pressed::Key(pressed) if pressed.kind != KeyEventKind::Release => key(pressed).map(Event::Key),
        Pressed::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => Some(Event::Click(mouse.row)),
            MouseEventKind::ScrollDown => Some(Event::Wheel(1)),
            MouseEventKind::ScrollUp => Some(Event::Wheel(-1)),
            _ => None,
        },
        _ => None,
    }
}

fn key(pressed: &KeyEvent) -> Option<Key> {
    let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    Some(match pressed.code {
        KeyCode::Char('c' | 'd') if control => Key::Interrupt,
        KeyCode::Char('z') if control => Key::Suspend,
        KeyCode::Char('h') if control => Key::Backspace,
        KeyCode::Char(letter) if !control => Key::Char(letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{KeyCode, KeyEvent, KeyModifiers, event, key};
    use holdup_top::{Event, Key};
    use ratatui_crossterm::crossterm::event::{Event as Pressed, MouseEvent, MouseEventKind};

    #[test]
    fn control_is_no_letter() {
        let of = |code, modifiers| key(&KeyEvent::new(code, modifiers));
        assert_eq!(
            of(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(Key::Interrupt)
        );
        assert_eq!(of(KeyCode::Char('z'), KeyModifiers::CONTROL), Some(Key::Suspend));
        assert_eq!(of(KeyCode::Char('q'), KeyModifiers::CONTROL), None);
        assert_eq!(of(KeyCode::Char('q'), KeyModifiers::NONE), Some(Key::Char('q')));
        assert_eq!(of(KeyCode::F(1), KeyModifiers::NONE), None);
    }

    #[test]
    fn the_wheel_scrolls() {
        let mouse = |kind| {
            event(&Pressed::Mouse(MouseEvent {
                kind,
                column: 3,
                row: 4,
                modifiers: KeyModifiers::NONE,
            }))
        };
        assert_eq!(mouse(MouseEventKind::ScrollDown), Some(Event::Wheel(1)));
        assert_eq!(mouse(MouseEventKind::Moved), None);
    }
}
