//! What Slurm says of its jobs: those that ended (`sacct`), and those that wait and run (`squeue`).

pub(crate) mod sacct;
pub(crate) mod squeue;
