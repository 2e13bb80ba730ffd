//! Names without what is another in each run: addresses of lambdas, process and thread ids, ports, numbers of threads,
//! temporary names. Else everything would be gone and new.
//!
//! In: a name, as bytes of whatever encoding. Out: the same with `*` where such a thing was.

use std::borrow::Cow;

/// Characters after which a number is an id of this run: `[tid=123]`, `pid 123`, `http-nio-8443-exec-7`, `#12`, `host:54321`.
const MARKS: &[u8] = b"=#:-@[/ ";

/// Digits that make a number after `:` a port, and one after `/` a process id: a line of source has fewer, mostly.
const PORT_DIGITS: usize = 4;

/// Hexadecimal digits that make a word an address or a hash: a function's name may have some.
const ADDRESS_DIGITS: usize = 6;

/// Words whose number is made anew in each run of a JVM: everything after them up to what is no name goes.
const GENERATED: [&[u8]; 8] = [
    b"$$Lambda",
    b"GeneratedMethodAccessor",
    b"GeneratedConstructorAccessor",
    b"GeneratedSerializationConstructorAccessor",
    b"$Proxy",
    b"LambdaForm$",
    b"$$FastClassBy",
    b"$$EnhancerBy",
];

/// Where temporary names lie.
const TEMPORARY: [&[u8]; 3] = [b"/tmp/", b"/var/tmp/", b"/dev/shm/"];

/// The name without what is of one run.
pub(crate) fn normal(name: &str) -> Cow<'_, str> {
    let bytes = name.as_bytes();
    // Most names have nothing of the kind.
    if !bytes.iter().any(|byte| byte.is_ascii_digit() || *byte == b'$') && !name.contains("/tmp/") {
        return Cow::Borrowed(name);
    }
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let before = at.checked_sub(1).map(|at| bytes[at]);
        let (taken, kept) = replaced(rest, before);
        if taken > 0 {
            out.extend_from_slice(&rest[..kept]);
            out.push(b'*');
        } else {
            out.push(rest[0]);
        }
        at += taken.max(1);
    }
    match String::from_utf8(out) {
        Ok(out) if out == name => Cow::Borrowed(name),
        Ok(out) => Cow::Owned(out),
        // Cut within a character: only ASCII is taken out, so this never happens to text.
        Err(_) => Cow::Borrowed(name),
    }
}

/// How many bytes go, and how many of them are kept before the `*`; 0: it stays.
fn replaced(rest: &[u8], before: Option<u8>) -> (usize, usize) {
    for word in GENERATED {
        if rest.starts_with(word) {
            let tail = count(&rest[word.len()..], |byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'$' | b'/' | b'+' | b'_' | b'*')
            });
            return (word.len() + tail, word.len());
        }
    }
    for folder in TEMPORARY {
        if rest.starts_with(folder) {
            let tail = count(&rest[folder.len()..], |byte| {
                !matches!(byte, b'/' | b';' | b' ' | b')' | b']' | b'"' | b'\'') && byte.is_ascii()
            });
            return if tail > 0 {
                (folder.len() + tail, folder.len())
            } else {
                (0, 0)
            };
        }
    }
    let in_a_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if in_a_word {
        return (0, 0);
    }
    if rest.starts_with(b"0x") {
        let digits = count(&rest[2..], |byte| byte.is_ascii_hexdigit());
        return if digits > 0 { (2 + digits, 2) } else { (0, 0) };
    }
    let word = count(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let digits = count(&rest[..word], |byte| byte.is_ascii_digit());
    let hex = count(&rest[..word], |byte| byte.is_ascii_hexdigit());
    if hex == word && hex >= ADDRESS_DIGITS && digits > 0 && digits < word {
        return (word, 0);
    }
    let marked = before.is_some_and(|byte| MARKS.contains(&byte));
    let long = !matches!(before, Some(b':' | b'/' | b' ')) || digits >= PORT_DIGITS;
    if digits > 0 && digits == word && marked && long {
        return (digits, 0);
    }
    (0, 0)
}

fn count(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is(**byte)).count()
}

#[cfg(test)]
mod tests {
    use super::normal;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn what_is_of_one_run_is_taken_out() {
        for (name, expected) in [
            (
                "shop/Till$$Lambda$123/0x00007f8b2c0a1b50.run_[j]",
                "shop/Till$$Lambda*.run_[j]",
            ),
            (
                "shop/Till$$Lambda+0x00007f8b2c0a1b50.run",
                "shop/Till$$Lambda*.run",
            ),
            (
                "jdk/internal/reflect/GeneratedMethodAccessor42.invoke",
                "jdk/internal/reflect/GeneratedMethodAccessor*.invoke",
            ),
            ("com/sun/proxy/$Proxy117.find", "com/sun/proxy/$Proxy*.find"),
            ("Shop$$Lambda$55.handle", "Shop$$Lambda*.handle"),
            ("Shop$$Lambda*.handle", "Shop$$Lambda*.handle"),
            ("http-nio-8443-exec-7", "http-nio-*-exec-*"),
            ("[java tid=12345]", "[java tid=*]"),
            ("[0x7f12aa]", "[0x*]"),
            ("127.0.0.1:54321", "127.0.0.1:*"),
            ("pool-3-thread-11", "pool-*-thread-*"),
            ("/tmp/hsperf.Xy12/data", "/tmp/*/data"),
            ("libfoo.so+7f12aa0b", "libfoo.so+*"),
        ] {
            assert_eq!(normal(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_a_name_stays() {
        for name in [
            "main",
            "__x64_sys_recvfrom_[k]",
            "socketRead0_[j]",
            "do_syscall_64",
            "entry_SYSCALL_64_after_hwframe",
            "md5_block_asm_data_order",
            "Foo.java:123",
            "utf8",
            "sd_decode",
            "facade",
            "Ünïcödé_1",
            "",
        ] {
            assert_eq!(normal(name), name);
        }
    }

    proptest! {
        #[test]
        fn twice_is_once(name in "[a-f0-9$/:#= *-]{0,24}", made in "[a-z]{0,3}(\\$\\$Lambda|LambdaForm\\$|\\$Proxy)[0-9$/x*]{0,9}[.a-z]{0,4}", any in any::<String>()) {
            for name in [name, made, any] {
                let once = normal(&name).into_owned();
                prop_assert_eq!(normal(&once), once.as_str());
            }
        }
    }
}
