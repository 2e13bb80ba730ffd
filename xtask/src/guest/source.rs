//! What a guest's kernel can be seeded by.
//!
//! In: nothing. Out: for each the emulator's arguments and the kernel's command line. Debian's kernels trust the CPU and
//! the boot loader if nobody tells them otherwise; the emulator is a boot loader that leaves a seed.

use clap::ValueEnum;

/// A source, the only one that its guest has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Source {
    /// None: the processor has no RDRAND, nobody's seed is trusted.
    Nothing,
    /// The emulator's random device; its driver is a module.
    VirtioRng,
    /// The processor's instruction, as Debian has it: trusted.
    Rdrand,
}

impl Source {
    /// The word for it, which the guest's first process gets as `$source`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Source::Nothing => "nothing",
            Source::VirtioRng => "virtio-rng",
            Source::Rdrand => "rdrand",
        }
    }

    /// The processor and the devices.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Source::Nothing => &["-cpu", "qemu64"],
            Source::VirtioRng => &["-cpu", "qemu64", "-device", "virtio-rng-pci"],
            Source::Rdrand => &["-cpu", "qemu64,+rdrand"],
        }
    }

    /// What is said to the kernel: words with a dot are for it, others for its first process.
    pub(super) fn command_line(self) -> String {
        let trusted = match self {
            Source::Nothing | Source::VirtioRng => " random.trust_cpu=off",
            Source::Rdrand => "",
        };
        format!("random.trust_bootloader=off{trusted} source={}", self.word())
    }
}
