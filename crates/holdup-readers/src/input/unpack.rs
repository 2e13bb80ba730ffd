//! Packed files, recognised by their first bytes.
//!
//! In: a stream. Out: what it contains, to the readers; unpacked as it is read, never to a disk and never whole into
//! memory. A bomb is known by how much more comes out than went in.

use super::{Allowance, DEPTH, Outermost, Watch, archive};
use crate::gather::Gather;
use crate::stream::{self, Chained, beginning};
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{BufRead, BufReader, Error, Read, Seek, SeekFrom};
use std::rc::Rc;

/// Bytes from which packing is reported: a tar archive's mark is at 257.
const PEEKED: usize = 512;

/// Unpacked bytes for each packed one from which it is a bomb: logs of an idle machine come to a hundred, those of one line that repeats to three
/// hundred, zeros to a thousand and more.
const RATIO: u64 = 500;

/// Unpacked bytes up to which anything goes: that much is read in some seconds.
const HARMLESS: u64 = 64 << 20;

/// Unpacked bytes of a whole file, with all that is in it, up to which it is read however small it is: of the logs that cost most so many take some
/// 40 s of CPU time. Of a larger file this many may come out for each packed byte.
const LARGE: u64 = 512 << 20;
const LARGE_RATIO: u64 = 200;

/// Memory that unpacking may take, KiB: `xz -9` takes 65 MiB.
const DICTIONARY_KIB: u32 = 128 << 10;

/// How a stream is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Tar,
    Zip,
}

impl Packing {
    fn of(head: &[u8]) -> Option<Packing> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
            [
                b'B',
                b'Z',
                b'h',
                b'1'..=b'9',
                0x31,
                0x41,
                0x59,
                0x26,
                0x53,
                0x59,
                ..,
            ] => Some(Packing::Bzip2),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Packing::Zip),
            _ if archive::is_tar(head) => Some(Packing::Tar),
            _ => None,
        }
    }
}

/// Reads a file.
pub(super) fn file(name: &str, mut file: File, depth: u32, gather: &mut Gather, allowance: &mut Allowance) {
    let (head, _) = beginning(&mut file, 4);
    let rewound = file.seek(SeekFrom::Start(0)).is_ok();
    if rewound && depth < DEPTH && Packing::of(&head) == Some(Packing::Zip) {
        // An archive is read here and there: how far that is nobody can say.
        let whole = file.metadata().map_or(0, |metadata| metadata.len());
        allowance.begin().packed.set(whole);
        archive::zip(name, file, depth, gather, allowance);
        return allowance.watch.tell(whole);
    }
    let mut file = Watched {
        file,
        watch: allowance.watch.clone(),
        outermost: allowance.begin(),
    };
    if rewound {
        read(name, &mut file, depth, gather, allowance);
    } else {
        read(
            name,
            &mut Chained::new(head, None, &mut file),
            depth,
            gather,
            allowance,
        );
    }
}

/// Reads a stream that comes from outside.
pub(super) fn whole(name: &str, stream: &mut dyn Read, gather: &mut Gather, allowance: &mut Allowance) {
    let mut counted = OfOutermost {
        stream,
        outermost: allowance.begin(),
    };
    read(name, &mut counted, 0, gather, allowance);
}

/// Reads a stream.
pub(super) fn read(
    name: &str,
    stream: &mut dyn Read,
    depth: u32,
    gather: &mut Gather,
    allowance: &mut Allowance,
) {
    let (head, failure) = beginning(stream, PEEKED);
    let packing = Packing::of(&head);
    let mut stream = Chained::new(head, failure, stream);
    let Some(packing) = packing else {
        stream::read(name, &mut stream, 0, gather);
        return;
    };
    if depth >= DEPTH {
        let mut out = gather.begin(name, "");
        out.problem(format!("packed more than {DEPTH} times over: not unpacked"));
        return;
    }
    let count = Rc::new(Cell::new(0));
    let packed = BufReader::new(Counted {
        stream: &mut stream,
        count: Rc::clone(&count),
    });
    let unpacked: Box<dyn Read + '_> = match packing {
        Packing::Tar => return archive::tar(name, &mut stream, depth, gather, allowance),
        Packing::Zip => return archive::zip_of_stream(name, &mut stream, depth, gather, allowance),
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        Packing::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
        Packing::Xz => Box::new(XzReader::new_mem_limit(packed, true, DICTIONARY_KIB)),
        Packing::Zstd => Box::new(Zstd::new(packed)),
    };
    let mut guarded = Guarded::new(unpacked, count, allowance);
    read(name, &mut guarded, depth + 1, gather, allowance);
}

/// What may come out of a file of this length, with all that is in it; and one buffer more, with which it is noticed.
#[cfg(test)]
pub(super) fn most_of(packed: u64) -> u64 {
    const BUFFER: u64 = 1 << 20;
    let (ratio, large) = (RATIO * (packed + 1), LARGE_RATIO * (packed + 1));
    HARMLESS.max(ratio).min(LARGE.max(large)) + BUFFER
}

/// Tells what is read of a file.
struct Watched {
    file: File,
    watch: Watch,
    outermost: Rc<Outermost>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.watch.tell(read as u64);
        add(&self.outermost.packed, read as u64);
        Ok(read)
    }
}

/// Counts what is read of what comes from outside.
struct OfOutermost<'a> {
    stream: &'a mut dyn Read,
    outermost: Rc<Outermost>,
}

impl Read for OfOutermost<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.stream.read(buffer)?;
        add(&self.outermost.packed, read as u64);
        Ok(read)
    }
}

fn add(sum: &Cell<u64>, more: u64) {
    sum.set(sum.get().saturating_add(more));
}

/// Whether so much comes out of so little only where that is the purpose.
pub(super) fn is_bomb(unpacked: u64, packed: u64) -> bool {
    unpacked > HARMLESS && unpacked / RATIO > packed
}

/// Whether more came out of a file, with all that is in it, than is worth the time.
pub(super) fn is_too_large(unpacked: u64, packed: u64) -> bool {
    unpacked > LARGE && unpacked / LARGE_RATIO > packed
}

/// Counts what is read through it.
struct Counted<'a> {
    stream: &'a mut dyn Read,
    count: Rc<Cell<u64>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.stream.read(buffer)?;
        self.count.set(self.count.get() + length as u64);
        Ok(length)
    }
}

/// Ends what is a bomb.
pub(super) struct Guarded<R> {
    stream: R,
    /// Packed bytes that went in.
    packed: Rc<Cell<u64>>,
    unpacked: u64,
    /// Unpacked bytes that may still come.
    left: Rc<Cell<u64>>,
    outermost: Rc<Outermost>,
}

impl<R> Guarded<R> {
    pub(super) fn new(stream: R, packed: Rc<Cell<u64>>, allowance: &Allowance) -> Guarded<R> {
        Guarded {
            stream,
            packed,
            unpacked: 0,
            left: Rc::clone(&allowance.bytes),
            outermost: Rc::clone(&allowance.outermost),
        }
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.stream.read(buffer)? as u64;
        self.unpacked += length;
        add(&self.outermost.unpacked, length);
        if is_bomb(self.unpacked, self.packed.get()) {
            return Err(Error::other(format!(
                "more than {RATIO} bytes come out for each packed one, as of a bomb, so it was not unpacked further"
            )));
        }
        if is_bomb(self.outermost.unpacked.get(), self.outermost.packed.get()) {
            return Err(Error::other(format!(
                "all files in the archive together have more than {RATIO} bytes for each packed one, as of a bomb, so nothing more was unpacked"
            )));
        }
        if is_too_large(self.outermost.unpacked.get(), self.outermost.packed.get()) {
            return Err(Error::other(format!(
                "more than {} MiB and more than {LARGE_RATIO} bytes for each packed one come out, so it was not unpacked further",
                LARGE >> 20
            )));
        }
        match self.left.get().checked_sub(length) {
            Some(left) => self.left.set(left),
            None => {
                return Err(Error::other(
                    "too much comes out of packed files, so it was not unpacked further",
                ));
            }
        }
        Ok(length as usize)
    }
}

/// Frames of zstd one after another, as `zstd` and `cat` write them.
struct Zstd<R: Read> {
    packed: Shared<R>,
    frame: Option<Box<StreamingDecoder<Shared<R>, ruzstd::decoding::FrameDecoder>>>,
}

struct Shared<R>(Rc<RefCell<R>>);

impl<R: Read> Read for Shared<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().read(buffer)
    }
}

impl<R: BufRead> Zstd<R> {
    fn new(packed: R) -> Zstd<R> {
        Zstd {
            packed: Shared(Rc::new(RefCell::new(packed))),
            frame: None,
        }
    }

    /// Begins the next frame; whether there is one.
    fn next(&mut self) -> std::io::Result<bool> {
        loop {
            if self.packed.0.borrow_mut().fill_buf()?.is_empty() {
                return Ok(false);
            }
            match StreamingDecoder::new(Shared(Rc::clone(&self.packed.0))) {
                Ok(frame) => {
                    self.frame = Some(Box::new(frame));
                    return Ok(true);
                }
                // A frame of somebody's own.
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = Shared(Rc::clone(&self.packed.0)).take(u64::from(length));
                    std::io::copy(&mut skipped, &mut std::io::sink())?;
                }
                Err(error) => return Err(Error::other(error)),
            }
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let length = frame.read(buffer)?;
                if length > 0 || buffer.is_empty() {
                    return Ok(length);
                }
                self.frame = None;
            }
            if !self.next()? {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_bomb, is_too_large};

    #[test]
    fn a_log_of_one_line_that_repeats_is_no_bomb() {
        // Logs of one line as gzip packs them, and of an idle machine.
        for (unpacked, packed) in [(117_600_000, 402_781), (89_100_000, 302_606), (8 << 30, 70 << 20)] {
            assert!(
                !is_bomb(unpacked, packed) && !is_too_large(unpacked, packed),
                "{packed}"
            );
        }
        assert!(is_bomb(200_000_000, 200_000));
    }

    #[test]
    fn what_comes_out_of_a_small_file_is_bounded() {
        assert!(!is_bomb(1 << 30, 2_900_000) && is_too_large(1 << 30, 2_900_000));
        assert!(is_too_large(600_000_000, 2_900_000));
        assert!(!is_too_large(500_000_000, 2_900_000));
    }
}
