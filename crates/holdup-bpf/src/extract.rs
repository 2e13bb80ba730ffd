//! An extract of the kernel's type information: the types that the programs are adapted to, and what lies in them.
//!
//! The problem: to adapt a program libbpf goes through all types of the kernel, 130,000, once for each of the types that the program knows:
//! 45 ms of CPU time, a quarter of a start. The choice: one walk by name, and libbpf is given what that found. What pointers point to is left out, for no
//! adaptation looks through one. Numbers of types are others in the extract: [`KernelTypes`](crate::capability::KernelTypes) has those of the
//! kernel. In: the kernel's types. Out: a file in memory, in the kernel's own format.

use libbpf_rs::AsRawLibbpf;
use libbpf_rs::btf::Btf;
use libbpf_rs::libbpf_sys::{self, btf, btf_array, btf_member, btf_type};
use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;

/// Types of the kernel that the programs know, without what libbpf takes off a name (`___` and what follows). A test holds them against the programs.
const KNOWN: &[&str] = &[
    "address_space",
    "bpf_func_id",
    "bpf_iter__task",
    "bpf_iter__task_file",
    "bpf_iter_meta",
    "cfs_rq",
    "cpumask",
    "dentry",
    "dst_entry",
    "epitem",
    "eventpoll",
    "fdtable",
    "file",
    "file_lock",
    "file_lock_context",
    "file_lock_core",
    "file_system_type",
    "files_struct",
    "folio",
    "hlist_head",
    "inet_connection_sock",
    "inet_sock",
    "inode",
    "io_hash_bucket",
    "io_hash_table",
    "io_kiocb",
    "io_ring_ctx",
    "io_uring_task",
    "io_worker",
    "linux_binprm",
    "list_head",
    "mm_struct",
    "mount",
    "mutex",
    "net_device",
    "page",
    "pid",
    "pid_namespace",
    "pt_regs",
    "rb_node",
    "rq",
    "rt_mutex",
    "rt_mutex_base",
    "rt_mutex_waiter",
    "rw_semaphore",
    "sk_buff",
    "sock",
    "socket",
    "super_block",
    "task_struct",
    "tcp_sock",
    "unix_address",
    "unix_sock",
    "upid",
    "vfsmount",
];

/// A type that is part of the kernel itself or of a module, as it was built. Where it is of a module so may others be, and the extract has
/// none of them.
const PERHAPS_IN_MODULE: &str = "unix_sock";

/// Bytes in front of what follows a type: members, or what an array is of.
const HEAD: usize = size_of::<btf_type>();

/// What is kept.
struct Extract {
    from: *mut btf,
    to: *mut btf,
    /// Numbers there by numbers here.
    taken: HashMap<u32, u32>,
}

impl Drop for Extract {
    fn drop(&mut self) {
        // SAFETY: it was made by `btf__new_empty`, and nothing of it is used any more.
        unsafe { libbpf_sys::btf__free(self.to) };
    }
}

/// The extract; `None` where the kernel lacks something that may be in a module, or there is no memory.
pub(crate) fn extract(kernel: &Btf<'_>) -> Option<File> {
    let from = kernel.as_libbpf_object().as_ptr();
    // SAFETY: no argument.
    let to = unsafe { libbpf_sys::btf__new_empty() };
    if to.is_null() {
        return None;
    }
    let mut extract = Extract {
        from,
        to,
        taken: HashMap::new(),
    };
    let mut found = HashSet::new();
    let wanted: HashSet<&[u8]> = KNOWN.iter().map(|name| name.as_bytes()).collect();
    let count = u32::try_from(kernel.len()).ok()?;
    for id in 1..count {
        let Some(name) = extract.name_of_composite(id) else {
            continue;
        };
        if let Some(known) = wanted.get(essential(name)) {
            found.insert(*known);
            extract.take(id)?;
        }
    }
    if !found.contains(PERHAPS_IN_MODULE.as_bytes()) {
        return None;
    }
    let mut size = 0;
    // SAFETY: `to` is valid; what is returned is as long as `size` says and lives until `to` is changed or freed.
    let bytes = unsafe {
        let data = libbpf_sys::btf__raw_data(extract.to, &raw mut size);
        if data.is_null() {
            return None;
        }
        std::slice::from_raw_parts(data.cast::<u8>(), usize::try_from(size).ok()?)
    };
    // SAFETY: a name that ends with 0, and a flag.
    let descriptor = unsafe { libc::memfd_create(c"holdup-types".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: it is a new descriptor, and nobody else's.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(bytes).ok()?;
    Some(file)
}

impl Extract {
    fn here(&self, id: u32) -> *const btf_type {
        // SAFETY: `from` is valid as long as whoever called `extract` has it; a number that is none gives null.
        unsafe { libbpf_sys::btf__type_by_id(self.from, id) }
    }

    /// Of a structure, union or enumeration that has one.
    fn name_of_composite(&self, id: u32) -> Option<&[u8]> {
        let at = self.here(id);
        if at.is_null() {
            return None;
        }
        // SAFETY: it is not null, so it is a type.
        let at = unsafe { &*at };
        let composite = [
            libbpf_sys::BTF_KIND_STRUCT,
            libbpf_sys::BTF_KIND_UNION,
            libbpf_sys::BTF_KIND_ENUM,
            libbpf_sys::BTF_KIND_ENUM64,
        ];
        if at.name_off == 0 || !composite.contains(&kind(at)) {
            return None;
        }
        // SAFETY: names are strings that end with 0, and live as long as `from`.
        let name = unsafe {
            let name = libbpf_sys::btf__name_by_offset(self.from, at.name_off);
            (!name.is_null()).then(|| CStr::from_ptr(name))
        };
        name.map(CStr::to_bytes)
    }

    /// Takes a type with all that lies in it; its number there.
    fn take(&mut self, id: u32) -> Option<u32> {
        if id == 0 {
            return Some(0);
        }
        if let Some(taken) = self.taken.get(&id) {
            return Some(*taken);
        }
        let at = self.here(id);
        if at.is_null() {
            return None;
        }
        // SAFETY: both are valid, and `at` is a type of `from`.
        let there = unsafe { libbpf_sys::btf__add_type(self.to, self.from, at) };
        let there = u32::try_from(there).ok()?;
        self.taken.insert(id, there);
        // SAFETY: it is not null, so it is a type.
        let (kind, length) = unsafe { (kind(&*at), (*at).info & 0xffff) };
        for part in parts(kind, length) {
            // SAFETY: a type of this kind has a number there.
            let refers_to = unsafe { at.cast::<u8>().add(part).cast::<u32>().read() };
            // What a pointer points to is not looked at: it points to nothing.
            let refers_to = match kind {
                libbpf_sys::BTF_KIND_PTR => 0,
                _ => self.take(refers_to)?,
            };
            // SAFETY: as above; whoever takes a part may move the types there, so the copy is looked up only now.
            unsafe {
                let copy = libbpf_sys::btf__type_by_id(self.to, there)
                    .cast_mut()
                    .cast::<u8>();
                copy.add(part).cast::<u32>().write(refers_to);
            }
        }
        Some(there)
    }
}

fn kind(of: &btf_type) -> u32 {
    of.info >> 24 & 0x1f
}

/// Where the numbers of other types are in a type of this kind, bytes from its beginning.
fn parts(kind: u32, length: u32) -> Vec<usize> {
    match kind {
        libbpf_sys::BTF_KIND_PTR
        | libbpf_sys::BTF_KIND_TYPEDEF
        | libbpf_sys::BTF_KIND_VOLATILE
        | libbpf_sys::BTF_KIND_CONST
        | libbpf_sys::BTF_KIND_RESTRICT
        | libbpf_sys::BTF_KIND_TYPE_TAG => vec![HEAD - size_of::<u32>()],
        libbpf_sys::BTF_KIND_ARRAY => {
            vec![
                HEAD + std::mem::offset_of!(btf_array, type_),
                HEAD + std::mem::offset_of!(btf_array, index_type),
            ]
        }
        libbpf_sys::BTF_KIND_STRUCT | libbpf_sys::BTF_KIND_UNION => (0..length as usize)
            .map(|member| HEAD + member * size_of::<btf_member>() + std::mem::offset_of!(btf_member, type_))
            .collect(),
        _ => Vec::new(),
    }
}

/// A name as libbpf compares it: up to the last `___` that stands between other letters.
fn essential(name: &[u8]) -> &[u8] {
    let separates =
        |at: &[u8]| matches!(at, [before, b'_', b'_', b'_', after] if *before != b'_' && *after != b'_');
    match name.windows(5).rposition(separates) {
        Some(before) => &name[..=before],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, essential, extract};
    use crate::capability::KernelTypes;
    use libbpf_rs::btf::{Btf, types};
    use object::{Object, ObjectSection};
    use std::collections::BTreeSet;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_name_ends_where_libbpf_says() {
        for (name, expected) in [
            ("task_struct", "task_struct"),
            ("task_struct___state", "task_struct"),
            ("file_lock___before_core", "file_lock"),
            ("a___b___c", "a___b"),
            ("___b", "___b"),
            ("a____b", "a____b"),
            ("a___", "a___"),
            ("", ""),
        ] {
            assert_eq!(essential(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }

    fn word(bytes: &[u8], at: usize) -> usize {
        u32::from_ne_bytes(*bytes[at..].first_chunk().unwrap()) as usize
    }

    /// Numbers of the types by which the programs are adapted: the last table of `.BTF.ext`.
    fn adapted(extension: &[u8]) -> BTreeSet<u32> {
        const HEADER_LENGTH: usize = 4;
        const TABLE: usize = 24;
        let begin = word(extension, HEADER_LENGTH) + word(extension, TABLE);
        let end = begin + word(extension, TABLE + 4);
        let record = word(extension, begin);
        let mut numbers = BTreeSet::new();
        let mut at = begin + 4;
        while at < end {
            let count = word(extension, at + 4);
            at += 8;
            for _ in 0..count {
                numbers.insert(u32::try_from(word(extension, at + 4)).unwrap());
                at += record;
            }
        }
        numbers
    }

    #[test]
    fn every_type_that_the_programs_are_adapted_by_is_known() {
        const OBJECT: &str = concat!(env!("OUT_DIR"), "/trace.bpf.o");
        let bytes = std::fs::read(OBJECT).unwrap();
        let file = object::File::parse(&bytes[..]).unwrap();
        let extension = file.section_by_name(".BTF.ext").unwrap().data().unwrap();
        let own = Btf::from_path(OBJECT).unwrap();
        let mut names = BTreeSet::new();
        for number in adapted(extension) {
            let of_struct = own.type_by_id::<types::Struct<'_>>(number.into());
            let name = of_struct.and_then(|one| one.name().map(ToOwned::to_owned));
            let of_enum = || own.type_by_id::<types::Enum<'_>>(number.into());
            let name = name.or_else(|| of_enum()?.name().map(ToOwned::to_owned)).unwrap();
            let name = name.into_string().unwrap();
            names.insert(String::from_utf8(essential(name.as_bytes()).to_vec()).unwrap());
        }
        assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), KNOWN);
    }

    #[test]
    fn what_lies_in_a_type_is_there_and_what_it_points_to_is_not() {
        let kernel = Btf::from_vmlinux().unwrap();
        let file = extract(&kernel).unwrap();
        let few = Btf::from_path(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        assert!(few.len() < kernel.len() / 10, "{} of {}", few.len(), kernel.len());
        let members = |of: &Btf<'_>| {
            let task = of.type_by_name::<types::Struct<'_>>("task_struct").unwrap();
            let offsets = task
                .iter()
                .map(|member| (member.name.map(ToOwned::to_owned), format!("{:?}", member.attr)));
            offsets.collect::<Vec<_>>()
        };
        assert_eq!(members(&few), members(&kernel));
        assert!(
            few.type_by_name::<types::Struct<'_>>("sched_entity").is_some(),
            "lies in a task"
        );
        assert!(
            few.type_by_name::<types::Struct<'_>>("nsproxy").is_none(),
            "a task points to it"
        );
    }

    #[test]
    fn numbers_are_those_of_the_kernel() {
        let kernel = Btf::from_vmlinux().unwrap();
        let types = KernelTypes::read().unwrap();
        let file = kernel
            .type_by_id::<types::Struct<'_>>(types.structure("file").into())
            .unwrap();
        assert_eq!(file.name().unwrap(), "file");
        assert_eq!(types.structure("no_such_structure"), 0);
    }
}
