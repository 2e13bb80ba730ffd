//! What depends on the processor.

/// Whether the machine code of an observed program is searched for addresses: the forms of instructions that are known are x86-64's. Elsewhere
/// what only code tells stays unknown.
pub(crate) const READS_CODE: bool = cfg!(target_arch = "x86_64");
