//! Makes the programs fit for kernels that lack something, and says what could not be seen there after all.
//!
//! In: what the kernel's type information offers. Out: programs and maps that this kernel can load; a
//! [`NotMeasured`] where its way of doing without did not do. How the programs do without is in `bpf/kernels.h`.

use crate::capability::KernelTypes;
use crate::skeleton::{OpenTraceSkel, TraceSkel, types::holdup_numbers};
use holdup_evidence::{Loss, LossClass, NotMeasured};
use libbpf_rs::{MapCore, MapFlags};

/// Chooses between the two ways of each thing that some kernels lack.
pub(crate) fn suit(skeleton: &mut OpenTraceSkel<'_>, types: &KernelTypes) -> libbpf_rs::Result<()> {
    if let Some(settings) = skeleton.maps.rodata_data.as_deref_mut() {
        settings.have_switch_state = u8::from(types.has_switch_state());
    }
    // What this kernel can't make must not be asked of it; what refers to it is cut out of the programs.
    let storage = types.has_task_storage();
    skeleton.maps.threads.set_autocreate(storage)?;
    skeleton.maps.thread_table.set_autocreate(!storage)?;
    skeleton.maps.kept_sockets.set_autocreate(storage)?;
    skeleton.maps.socket_table.set_autocreate(!storage)?;
    skeleton.progs.look_at_socket.set_autoload(storage);
    skeleton.progs.forget_task.set_autoload(storage);
    let errands = types.has_task_work();
    skeleton.progs.on_switch.set_autoload(errands);
    skeleton.progs.on_switch_without_errands.set_autoload(!errands);
    Ok(())
}

/// Fills the queue from which the programs number threads and objects. 0 is CMD's first thread, and no object.
pub(crate) fn give_out_numbers(numbers: &impl MapCore) -> libbpf_rs::Result<()> {
    (1..=holdup_numbers::HOLDUP_NUMBER_LANES.0)
        .try_for_each(|number| numbers.update(&[], &number.to_ne_bytes(), MapFlags::ANY))
}

/// What an older kernel did not show after all.
pub(crate) fn unseen(skeleton: &TraceSkel<'_>, losses: &[Loss]) -> Vec<NotMeasured> {
    let mut unseen = Vec::new();
    let unreadable = skeleton
        .maps
        .bss_data
        .as_deref()
        .map_or(0, |state| state.unreadable_calls);
    if unreadable > 0 {
        unseen.push(NotMeasured {
            what: format!("which system call a thread was in, {unreadable} times"),
            why: "this kernel has no bpf_task_pt_regs, and no registers lie where they should on its stacks"
                .into(),
            fix: "Linux 5.15 or later".into(),
        });
    }
    let lost = losses
        .iter()
        .any(|loss| loss.class == LossClass::Thread && loss.count > 0);
    if lost && skeleton.maps.thread_table.autocreate() {
        unseen.push(NotMeasured {
            what: "threads beyond 16,384 alive at once".into(),
            why: "this kernel lets no tracing program store something with a task, and the table was full"
                .into(),
            fix: "Linux 5.13 or later".into(),
        });
    }
    unseen
}
