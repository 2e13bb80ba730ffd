//! What the process that observes tells the one that draws.
//!
//! In: messages. Out: bytes, each message with its length before it; and messages again. The reader keeps within bounds whatever comes.

use anyhow::{Context, bail};
use holdup_views::Look;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// Bytes of a message: a look has at most a few hundred rows with a stack each.
const MAX_MESSAGE: usize = 64 << 20;

/// Bytes of the length.
const LENGTH: usize = 4;

/// A message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Who waits now.
    Look(Box<Look>),
    /// Why there is none.
    Failed(String),
}

/// Writes one.
///
/// # Errors
/// When nobody reads it any more.
pub(super) fn send(message: &Message, to: &mut impl Write) -> anyhow::Result<()> {
    let text = serde_json::to_vec(message).context("a look has only plain figures and words")?;
    let length = u32::try_from(text.len()).context("a message has at most 64 MiB")?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&text)?;
    Ok(())
}

/// Bytes that have come and are no whole message yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Takes bytes, and gives the messages that are whole.
    ///
    /// # Errors
    /// When these are no messages.
    pub(super) fn take(&mut self, bytes: &[u8]) -> anyhow::Result<Vec<Message>> {
        self.bytes.extend_from_slice(bytes);
        let mut found = Vec::new();
        while let Some(length) = self.bytes.first_chunk::<LENGTH>() {
            let length = usize::try_from(u32::from_le_bytes(*length))?;
            if length > MAX_MESSAGE {
                bail!("the process that observes has sent a message of {length} bytes");
            }
            let Some(text) = self.bytes.get(LENGTH..LENGTH + length) else {
                break;
            };
            found
                .push(serde_json::from_slice(text).context("the process that observes has sent no message")?);
            self.bytes.drain(..LENGTH + length);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::{Inbox, Message, send};

    #[test]
    fn messages_come_whole_however_they_are_cut() {
        let mut bytes = Vec::new();
        for words in ["one", "", "three"] {
            send(&Message::Failed(words.to_owned()), &mut bytes).unwrap();
        }
        for size in [1, 2, 5, bytes.len()] {
            let mut inbox = Inbox::default();
            let mut found = Vec::new();
            for part in bytes.chunks(size) {
                found.extend(inbox.take(part).unwrap());
            }
            let words: Vec<String> = (found.into_iter())
                .map(|message| match message {
                    Message::Failed(words) => words,
                    Message::Look(_) => panic!("none was sent"),
                })
                .collect();
            assert_eq!(words, ["one", "", "three"]);
        }
    }

    #[test]
    fn what_is_no_message_is_an_error_and_takes_no_memory() {
        assert!(Inbox::default().take(&u32::MAX.to_le_bytes()).is_err());
        assert!(Inbox::default().take(&[1, 0, 0, 0, b'{']).is_err());
    }
}
