//! An extract of the kernel's type information: the types that the programs are adapted to, and what lies in them.
//!
//! The problem: to adapt a program libbpf goes through all types of the kernel, 130,000, once for each of the types that the program knows:
//! 45 ms of CPU time, a quarter of a start; and to look for one name takes a third of a millisecond. The choice: one walk, which finds by name all that is looked for, and libbpf is given what
//! the programs know of that. What pointers point to is left out, for no
//! adaptation looks through one. Numbers of types are others in the extract: [`KernelTypes`](crate::capability::KernelTypes) has those of the
//! kernel. In: the kernel's types. Out: a file in memory, in the kernel's own format.

use libbpf_rs::AsRawLibbpf;
use libbpf_rs::btf::Btf;
use libbpf_rs::libbpf_sys::{
    self, btf, btf_array, btf_enum, btf_enum64, btf_header, btf_member, btf_param, btf_type, btf_var_secinfo,
};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::mem::offset_of;
use std::os::fd::FromRawFd;

/// Types of the kernel that the programs know, without what libbpf takes off a name (`___` and what follows). A test holds them against the programs.
const KNOWN: &[&str] = &[
    "address_space",
    "bpf_func_id",
    "bpf_iter__bpf_map_elem",
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

/// Functions of the kernel by which it is known what it can do, or that stand for what programs may be run over.
const FUNCTIONS: &[&str] = &[
    "bpf_iter_task",
    "bpf_iter_task_file",
    "bpf_task_pt_regs",
    "bpf_task_work_schedule_resume_impl",
];

/// Each of them begins so.
const FUNCTIONS_BEGIN: &[u8] = b"bpf_";

/// The name of a tracepoint's own type begins so.
const TRACEPOINT: &[u8] = b"btf_trace_";

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
        // SAFETY: it is null, or was made by `btf__new_empty`, and nothing of it is used any more.
        unsafe { libbpf_sys::btf__free(self.to) };
    }
}

/// What one walk over the kernel's types finds.
#[derive(Default)]
pub(crate) struct Walked {
    /// What the programs are adapted by; `None` where the kernel lacks something that may be in a module, or there is no memory.
    pub(crate) extract: Option<File>,
    /// Tracepoints that programs may attach to by type, each with the number of its own type.
    pub(crate) tracepoints: HashMap<String, u32>,
    /// Numbers of structures of [`KNOWN`].
    pub(crate) structures: HashMap<&'static str, u32>,
    /// Numbers of functions of [`FUNCTIONS`].
    pub(crate) functions: HashMap<&'static str, u32>,
}

/// Goes through all types once.
pub(crate) fn walk(kernel: &Btf<'_>) -> Walked {
    let mut walked = Walked::default();
    // SAFETY: no argument.
    let to = unsafe { libbpf_sys::btf__new_empty() };
    let mut extract = Extract {
        from: kernel.as_libbpf_object().as_ptr(),
        to,
        taken: HashMap::new(),
    };
    let mut complete = !to.is_null();
    let mut found = HashSet::new();
    for one in all_types(raw(kernel.as_libbpf_object().as_ptr())) {
        match one.kind {
            libbpf_sys::BTF_KIND_TYPEDEF => {
                let name = one
                    .name_after(TRACEPOINT)
                    .and_then(|name| std::str::from_utf8(name).ok());
                if let Some(name) = name {
                    walked.tracepoints.entry(name.to_owned()).or_insert(one.id);
                }
            }
            libbpf_sys::BTF_KIND_FUNC => {
                let known = one
                    .name_after(FUNCTIONS_BEGIN)
                    .and_then(|_| one_of(FUNCTIONS, one.name()));
                if let Some(known) = known {
                    walked.functions.entry(known).or_insert(one.id);
                }
            }
            libbpf_sys::BTF_KIND_STRUCT
            | libbpf_sys::BTF_KIND_UNION
            | libbpf_sys::BTF_KIND_ENUM
            | libbpf_sys::BTF_KIND_ENUM64 => {
                let name = one.name();
                let Some(known) = one_of(KNOWN, essential(name)) else {
                    continue;
                };
                if one.kind == libbpf_sys::BTF_KIND_STRUCT && name == known.as_bytes() {
                    walked.structures.entry(known).or_insert(one.id);
                }
                found.insert(known);
                complete = complete && extract.take(one.id).is_some();
            }
            _ => {}
        }
    }
    if complete && found.contains(PERHAPS_IN_MODULE) {
        walked.extract = extract.file();
    }
    walked
}

/// All of it as the kernel gave it.
fn raw<'a>(kernel: *mut btf) -> &'a [u8] {
    let mut size = 0;
    // SAFETY: it is valid; what is returned is as long as `size` says and lives as long as it does.
    unsafe {
        let data = libbpf_sys::btf__raw_data(kernel, &raw mut size);
        match usize::try_from(size) {
            Ok(size) if !data.is_null() => std::slice::from_raw_parts(data.cast::<u8>(), size),
            _ => &[],
        }
    }
}

/// A type, as it is told from the bytes: to ask libbpf for each takes three times as long.
struct Type<'a> {
    id: u32,
    kind: u32,
    /// All names from its own on; each ends with 0.
    names: &'a [u8],
}

impl<'a> Type<'a> {
    fn name(&self) -> &'a [u8] {
        self.names.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// What follows this in its name.
    fn name_after(&self, begin: &[u8]) -> Option<&'a [u8]> {
        self.names
            .starts_with(begin)
            .then(|| self.name().get(begin.len()..))?
    }
}

/// The types in the order of their numbers, as far as they are understood.
fn all_types(raw: &[u8]) -> impl Iterator<Item = Type<'_>> {
    let part = |at: usize| {
        let head = word(raw, offset_of!(btf_header, hdr_len))?;
        let begin = head.checked_add(word(raw, at)?)?;
        raw.get(begin..begin.checked_add(word(raw, at + size_of::<u32>())?)?)
    };
    let mut types = part(offset_of!(btf_header, type_off)).unwrap_or_default();
    let names = part(offset_of!(btf_header, str_off)).unwrap_or_default();
    let mut id = 0;
    std::iter::from_fn(move || {
        let name = word(types, offset_of!(btf_type, name_off))?;
        let info = u32::try_from(word(types, offset_of!(btf_type, info))?).ok()?;
        let kind = info >> 24 & 0x1f;
        types = types.get(HEAD + tail(kind, info as usize & 0xffff)?..)?;
        id += 1;
        Some(Type {
            id,
            kind,
            names: names.get(name..)?,
        })
    })
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?);
    usize::try_from(word).ok()
}

/// Bytes behind the head of a type of this kind, with so many parts; `None`: what comes behind it can't be found.
fn tail(kind: u32, parts: usize) -> Option<usize> {
    Some(match kind {
        libbpf_sys::BTF_KIND_INT | libbpf_sys::BTF_KIND_VAR | libbpf_sys::BTF_KIND_DECL_TAG => {
            size_of::<u32>()
        }
        libbpf_sys::BTF_KIND_ARRAY => size_of::<btf_array>(),
        libbpf_sys::BTF_KIND_STRUCT | libbpf_sys::BTF_KIND_UNION => parts * size_of::<btf_member>(),
        libbpf_sys::BTF_KIND_ENUM => parts * size_of::<btf_enum>(),
        libbpf_sys::BTF_KIND_ENUM64 => parts * size_of::<btf_enum64>(),
        libbpf_sys::BTF_KIND_FUNC_PROTO => parts * size_of::<btf_param>(),
        libbpf_sys::BTF_KIND_DATASEC => parts * size_of::<btf_var_secinfo>(),
        libbpf_sys::BTF_KIND_PTR
        | libbpf_sys::BTF_KIND_FWD
        | libbpf_sys::BTF_KIND_TYPEDEF
        | libbpf_sys::BTF_KIND_VOLATILE
        | libbpf_sys::BTF_KIND_CONST
        | libbpf_sys::BTF_KIND_RESTRICT
        | libbpf_sys::BTF_KIND_FUNC
        | libbpf_sys::BTF_KIND_FLOAT
        | libbpf_sys::BTF_KIND_TYPE_TAG => 0,
        _ => return None,
    })
}

/// The one of them that is called so. They are in order.
fn one_of(names: &'static [&'static str], name: &[u8]) -> Option<&'static str> {
    let at = names.binary_search_by(|one| one.as_bytes().cmp(name)).ok()?;
    names.get(at).copied()
}

impl Extract {
    fn here(&self, id: u32) -> *const btf_type {
        // SAFETY: `from` is valid as long as whoever called `extract` has it; a number that is none gives null.
        unsafe { libbpf_sys::btf__type_by_id(self.from, id) }
    }

    /// What was taken, as a file in memory.
    fn file(&self) -> Option<File> {
        let bytes = Some(raw(self.to)).filter(|bytes| !bytes.is_empty())?;
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
                HEAD + offset_of!(btf_array, type_),
                HEAD + offset_of!(btf_array, index_type),
            ]
        }
        libbpf_sys::BTF_KIND_STRUCT | libbpf_sys::BTF_KIND_UNION => (0..length as usize)
            .map(|member| HEAD + member * size_of::<btf_member>() + offset_of!(btf_member, type_))
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
    use super::{FUNCTIONS, FUNCTIONS_BEGIN, KNOWN, essential, walk};
    use crate::capability::KernelTypes;
    use libbpf_rs::btf::{Btf, types};
    use libbpf_rs::{AsRawLibbpf, libbpf_sys};
    use object::{Object, ObjectSection};
    use std::collections::BTreeSet;
    use std::ffi::CString;
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
        let file = walk(&kernel).extract.unwrap();
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

    /// What libbpf finds by name and kind; 0: nothing.
    fn found(kernel: &Btf<'_>, name: &str, kind: u32) -> u32 {
        let name = CString::new(name).unwrap();
        // SAFETY: both are valid, and the name ends with 0.
        let number = unsafe {
            libbpf_sys::btf__find_by_name_kind(kernel.as_libbpf_object().as_ptr(), name.as_ptr(), kind)
        };
        u32::try_from(number).unwrap_or_default()
    }

    #[test]
    fn what_one_walk_finds_is_what_libbpf_finds() {
        let kernel = Btf::from_vmlinux().unwrap();
        let walked = walk(&kernel);
        for (name, number) in &walked.structures {
            assert_eq!(
                *number,
                found(&kernel, name, libbpf_sys::BTF_KIND_STRUCT),
                "{name}"
            );
        }
        for name in [
            "task_struct",
            "files_struct",
            "fdtable",
            "file",
            "inode",
            "hlist_head",
        ] {
            assert!(walked.structures.contains_key(name), "{name}");
        }
        for (name, number) in &walked.functions {
            assert_eq!(*number, found(&kernel, name, libbpf_sys::BTF_KIND_FUNC), "{name}");
        }
        assert!(walked.functions.contains_key("bpf_iter_task"));
        for (name, number) in &walked.tracepoints {
            let alias = kernel.type_by_id::<types::Typedef<'_>>((*number).into()).unwrap();
            assert_eq!(
                alias.name().unwrap().to_str().unwrap(),
                format!("btf_trace_{name}")
            );
        }
        assert!(walked.tracepoints.contains_key("sched_switch") && walked.tracepoints.len() > 100);
    }

    #[test]
    fn names_are_in_order_and_functions_begin_as_they_are_looked_for() {
        assert!(KNOWN.is_sorted() && FUNCTIONS.is_sorted());
        assert!(
            FUNCTIONS
                .iter()
                .all(|name| name.as_bytes().starts_with(FUNCTIONS_BEGIN))
        );
    }

    #[test]
    fn all_types_are_walked_over() {
        let kernel = Btf::from_vmlinux().unwrap();
        let bytes = super::raw(kernel.as_libbpf_object().as_ptr());
        // Type 0 is no type, and libbpf counts it.
        assert_eq!(super::all_types(bytes).count() + 1, kernel.len());
        assert_eq!(
            super::all_types(&bytes[..bytes.len() / 2]).count(),
            0,
            "cut short"
        );
        assert_eq!(super::all_types(&[]).count(), 0);
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
