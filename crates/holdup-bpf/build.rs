//! Compiles the BPF programs and generates their loader and record types. Needs clang and the libbpf headers,
//! which come with libbpf-sys.

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let out = folder.join("trace.skel.rs");
    let arch = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "-D__TARGET_ARCH_x86",
        Ok("aarch64") => "-D__TARGET_ARCH_arm64",
        other => panic!("holdup-bpf reads registers of x86_64 and aarch64, not of {other:?}"),
    };
    println!("cargo:rerun-if-changed=bpf");
    if let Err(error) = SkeletonBuilder::new()
        .source("bpf/trace.bpf.c")
        // Where tests/kernels.rs looks for it.
        .obj(folder.join("trace.bpf.o"))
        .clang_args([arch, "-mcpu=v3", "-Wall", "-Werror"])
        .build_and_generate(&out)
    {
        panic!(
            "the BPF programs do not compile (is clang installed? `cargo xtask demo` installs it): {error:#}"
        );
    }
}
