//! Who asked: the one function of a user stack that a reader should look at.
//!
//! The problem: the innermost frames are always the C library's, and the outermost its start code; neither
//! says who wanted it. The choice: from the innermost outward the first code that is neither. In the program's
//! own code that is the innermost function with a name. In a library it is the outermost: what the program
//! called (`RAND_status`), not what the library does inside. Code without names is named by module and offset.
//! Where there are Java frames, one of those asked: what is under them is the virtual machine. Where there are Python frames, the
//! innermost one that is neither of the standard library nor of an installed package; likewise of JavaScript, Ruby, PHP, Perl,
//! Go and Rust.

use holdup_evidence::{Cause, Frame, Language};
use holdup_knowledge::user_code::of_c_library;
use holdup_knowledge::{go, java, javascript, perl, php, python, ruby, rust};
use holdup_model::attributed::{Judge, JudgedBy};

/// Functions that every program or thread starts in.
const START: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_start_main_impl",
    "__libc_start_main_stage2",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "__clone_internal",
];

/// The function to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asking {
    /// Its name, or `module+0xoffset`.
    pub frame: Option<String>,
    /// Its module.
    pub module: Option<String>,
    /// Whether `frame` is a name.
    pub named: bool,
}

/// Of what stacks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedOf<'a> {
    /// Of CPU time.
    Cpu,
    /// Of a wait: its cause and call, unless its purpose is known better than stacks tell it.
    Wait(Option<(Cause, Option<&'a str>)>),
}

impl<'a> AskedOf<'a> {
    /// The cause and call of a wait of which stacks may tell more.
    pub(super) fn wait(self) -> Option<(Cause, Option<&'a str>)> {
        match self {
            AskedOf::Wait(wait) => wait,
            AskedOf::Cpu => None,
        }
    }
}

/// Whether stacks may tell what a wait was for: a runtime that named the lock knows better.
pub(super) fn may_be_told(judged_by: Option<JudgedBy>) -> bool {
    judged_by.is_none_or(|by| by.judge != Judge::RuntimeLock)
}

fn starts(frame: &Frame) -> bool {
    frame.symbol.as_deref().is_some_and(|symbol| {
        let bare = symbol.split(['@', '.']).next().unwrap_or(symbol);
        START.contains(&bare)
    })
}

fn of(frame: &Frame) -> Asking {
    let name = frame.symbol.clone().unwrap_or_else(|| {
        let module = frame.module.as_deref().unwrap_or("[anonymous]");
        format!("{module}+{:#x}", frame.offset)
    });
    Asking {
        frame: Some(name),
        module: frame.module.clone(),
        named: frame.symbol.is_some(),
    }
}

/// Of Java frames: who asked, or, where all are the runtime's own, what the thread began with.
fn in_java(stack: &[Frame]) -> Option<Asking> {
    let frames: Vec<&str> = stack
        .iter()
        .filter(|frame| frame.language == Language::Java)
        .filter_map(|frame| frame.symbol.as_deref())
        .collect();
    let begins = |frame: &&&str| java::class(frame) != "java.lang.Thread";
    let outermost = || frames.iter().rev().find(begins).or(frames.last()).copied();
    let asker = java::asker(&frames).or_else(outermost)?;
    Some(Asking {
        frame: Some(java::bare(asker).to_owned()),
        module: None,
        named: true,
    })
}

/// Of Python frames: who asked, or, where none is the program's own, what the thread began with.
fn in_python(stack: &[Frame]) -> Option<Asking> {
    let asker = python::asker(stack)?;
    Some(Asking {
        frame: asker.symbol.clone(),
        module: None,
        named: asker.symbol.is_some(),
    })
}

/// Of JavaScript frames: who asked, or, where none is the program's own, what the program began with.
fn in_javascript(stack: &[Frame]) -> Option<Asking> {
    let frames = || {
        stack
            .iter()
            .filter(|frame| frame.language == Language::JavaScript)
    };
    let file = |frame: &&Frame| frame.file.clone().unwrap_or_default();
    let own = frames().find(|frame| !javascript::of_library(&file(frame)));
    let installed = || frames().find(|frame| javascript::is_installed(&file(frame)));
    let asker = own.or_else(installed).or_else(|| frames().next_back())?;
    Some(Asking {
        frame: asker.symbol.clone(),
        module: None,
        named: asker.symbol.is_some(),
    })
}

/// Of a script's frames: who asked, or, where none is the program's own, what the program began with.
fn in_script(stack: &[Frame], language: Language, of_library: fn(&str) -> bool) -> Option<Asking> {
    let frames = || stack.iter().filter(|frame| frame.language == language);
    let own = frames().find(|frame| !of_library(frame.file.as_deref().unwrap_or_default()));
    let asker = own.or_else(|| frames().next_back())?;
    Some(Asking {
        frame: asker.symbol.clone(),
        module: None,
        named: asker.symbol.is_some(),
    })
}

/// Of Go frames: who asked, or, where none is the application's own, what a goroutine of a library began with, or else the innermost
/// function of the runtime that does more than make a call.
fn in_go(stack: &[Frame]) -> Option<Asking> {
    let frames = || stack.iter().filter(|frame| frame.language == Language::Go);
    let names = |frame: &&Frame, one: fn(&str) -> bool| frame.symbol.as_deref().is_some_and(one);
    let own = frames().find(|frame| go::is_application(frame));
    let begun = || frames().rfind(|frame| names(frame, |symbol| !go::is_of_the_runtimes_code(symbol)));
    let runtime = || frames().find(|frame| names(frame, |symbol| !go::makes_calls(symbol)));
    own.or_else(begun).or_else(runtime).map(of)
}

/// Of a Rust program's own code, where that is innermost: who asked, of the frames that are neither the C library's nor start code. The
/// standard library and fetched crates are compiled into the program.
fn in_rust(left: &[&Frame]) -> Option<Asking> {
    let module = left.first()?.module.as_deref();
    let mut own = left
        .iter()
        .take_while(|frame| frame.module.as_deref() == module)
        .filter(|frame| frame.symbol.is_some());
    own.find(|frame| !rust::of_library(frame)).map(|frame| of(frame))
}

/// The frame of the function to look at, where it has a name.
pub fn frame(stack: &[Frame]) -> Option<&Frame> {
    let chosen = choose(stack);
    let name = chosen.frame.filter(|_| chosen.named)?;
    stack
        .iter()
        .find(|frame| frame.symbol.as_deref() == Some(name.as_str()))
}

/// Chooses; nothing when there is no frame that could be it.
pub fn choose(stack: &[Frame]) -> Asking {
    if let Some(asking) = in_java(stack) {
        return asking;
    }
    if let Some(asking) = in_python(stack) {
        return asking;
    }
    if let Some(asking) = in_javascript(stack) {
        return asking;
    }
    if let Some(asking) = in_script(stack, Language::Ruby, ruby::of_library) {
        return asking;
    }
    if let Some(asking) = in_script(stack, Language::Php, php::of_library) {
        return asking;
    }
    if let Some(asking) = in_script(stack, Language::Perl, perl::of_library) {
        return asking;
    }
    if let Some(asking) = in_go(stack) {
        return asking;
    }
    let left: Vec<&Frame> = stack
        .iter()
        .filter(|frame| !of_c_library(frame) && !starts(frame))
        .collect();
    // A library that Rust calls is named as ever.
    let rust = rust::is_rust(stack) && left.first().is_some_and(|frame| rust::of_library(frame));
    if let Some(asking) = rust.then(|| in_rust(&left)).flatten() {
        return asking;
    }
    if let (Some(first), Some(last)) = (left.first(), left.last()) {
        let mut named = left
            .iter()
            .take_while(|frame| frame.module == first.module)
            .filter(|frame| frame.symbol.is_some());
        let chosen = if first.module == last.module {
            named.next()
        } else {
            named.last()
        };
        return of(chosen.unwrap_or(first));
    }
    stack
        .iter()
        .rev()
        .find(|frame| !starts(frame))
        .map(of)
        .unwrap_or_default()
}

/// Where in the application's code a stack stands: the frame of the function that asked, where that has a name and a source file.
pub(super) fn place(stack: &[Frame]) -> Option<Frame> {
    let asking = choose(stack);
    let asker = asking.frame.filter(|_| asking.named)?;
    let is = |frame: &&Frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        match frame.language {
            Language::Java => java::bare(symbol) == asker,
            _ => symbol == asker && (asking.module.is_none() || frame.module == asking.module),
        }
    };
    let frame = stack.iter().find(is).filter(|frame| frame.file.is_some())?;
    Some(Frame {
        symbol: Some(asker),
        ..frame.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::choose;
    use holdup_evidence::{Frame, Language};

    fn stack(frames: &[(&str, Option<&str>, u64)]) -> Vec<Frame> {
        frames
            .iter()
            .map(|(module, symbol, offset)| Frame {
                module: Some((*module).to_owned()),
                symbol: symbol.map(str::to_owned),
                offset: *offset,
                ..Frame::default()
            })
            .collect()
    }

    fn chosen(frames: &[(&str, Option<&str>, u64)]) -> (Option<String>, Option<String>) {
        let asking = choose(&stack(frames));
        (asking.frame, asking.module)
    }

    fn named_by(frame: &str, module: &str) -> (Option<String>, Option<String>) {
        (Some(frame.to_owned()), Some(module.to_owned()))
    }

    #[test]
    fn the_library_that_asks_is_named_by_its_exported_function() {
        let asked = chosen(&[
            ("libc.so.6", Some("getrandom"), 0x20),
            ("libcrypto.so.3", None, 0x1b_2f31),
            ("libcrypto.so.3", Some("RAND_status"), 0x31),
            ("sshd", None, 0x2_f31c),
            ("libc.so.6", Some("__libc_start_main"), 0x85),
        ]);
        assert_eq!(asked, named_by("RAND_status", "libcrypto.so.3"));
    }

    #[test]
    fn a_library_is_named_by_what_the_program_called_and_a_program_by_what_it_does() {
        let asked = chosen(&[
            ("libcrypto.so.3", Some("EVP_RAND_instantiate"), 0x20),
            ("libcrypto.so.3", None, 0x1b_2f31),
            ("libcrypto.so.3", Some("RAND_status"), 0x31),
            ("sshd", Some("seed_rng"), 0x2c),
            ("sshd", Some("main"), 0x2c),
        ]);
        assert_eq!(asked, named_by("RAND_status", "libcrypto.so.3"));
        let asked = chosen(&[("sshd", Some("seed_rng"), 0x2c), ("sshd", Some("main"), 0x2c)]);
        assert_eq!(asked, named_by("seed_rng", "sshd"));
    }

    #[test]
    fn code_without_names_is_not_named_by_another_module() {
        let asked = chosen(&[
            ("libc.so.6", Some("read"), 0x10),
            ("server", None, 0x1234),
            ("libuv.so.1", Some("uv_run"), 0x99),
        ]);
        assert_eq!(asked, named_by("server+0x1234", "server"));
    }

    #[test]
    fn start_code_is_never_the_asker() {
        let asked = chosen(&[
            ("libc.so.6", Some("clock_nanosleep@@GLIBC_2.17"), 0x10),
            ("libc.so.6", Some("nanosleep"), 0x10),
            ("libc.so.6", Some("__libc_start_main@@GLIBC_2.34"), 0x80),
            ("sleep", Some("_start"), 0x2a),
        ]);
        assert_eq!(asked, named_by("nanosleep", "libc.so.6"));
    }

    #[test]
    fn the_virtual_machine_under_java_code_never_asks() {
        let java = |symbol: &str| Frame {
            symbol: Some(symbol.to_owned()),
            language: Language::Java,
            ..Frame::default()
        };
        let mut frames = stack(&[
            ("libc.so.6", Some("pthread_cond_wait"), 1),
            ("libjvm.so", None, 7),
        ]);
        frames.extend([
            java("jdk.internal.misc.Unsafe.park"),
            java("com.shop.Cart.checkout(Cart.java:7)"),
        ]);
        frames.push(java("java.lang.Thread.run"));
        frames.extend(stack(&[
            ("libjvm.so", None, 7),
            ("libc.so.6", Some("start_thread"), 1),
        ]));
        let asking = choose(&frames);
        assert_eq!(
            (asking.frame.as_deref(), asking.module),
            (Some("com.shop.Cart.checkout"), None)
        );
        let own = [
            java("java.lang.Object.wait"),
            java("java.lang.ref.Finalizer$FinalizerThread.run"),
            java("java.lang.Thread.run"),
        ];
        assert_eq!(
            choose(&own).frame.as_deref(),
            Some("java.lang.ref.Finalizer$FinalizerThread.run")
        );
    }

    #[test]
    fn the_innermost_function_of_a_python_program_asks() {
        let python = |symbol: &str, file: &str| Frame {
            symbol: Some(symbol.to_owned()),
            module: Some("python3.11".to_owned()),
            file: Some(file.to_owned()),
            language: Language::Python,
            ..Frame::default()
        };
        let mut frames = stack(&[
            ("libc.so.6", Some("recv"), 1),
            ("python3.11", Some("sock_recv"), 7),
        ]);
        frames.extend([
            python("SocketIO.readinto", "/usr/lib/python3.11/socket.py"),
            python(
                "urlopen",
                "/srv/venv/lib/python3.11/site-packages/urllib3/connectionpool.py",
            ),
            python("Shop.prices", "/srv/shop/prices.py"),
            python("Thread.run", "/usr/lib/python3.11/threading.py"),
        ]);
        frames.extend(stack(&[("python3.11", Some("thread_run"), 7)]));
        let asking = choose(&frames);
        assert_eq!(
            (asking.frame.as_deref(), asking.module),
            (Some("Shop.prices"), None)
        );
        let installed = [
            python("select", "/usr/lib/python3.11/selectors.py"),
            python("serve", "/usr/lib/python3/dist-packages/waitress/server.py"),
            python("_run_code", "<frozen runpy>"),
        ];
        assert_eq!(choose(&installed).frame.as_deref(), Some("serve"));
        let thread = [python("Thread._bootstrap", "/usr/lib/python3.11/threading.py")];
        assert_eq!(choose(&thread).frame.as_deref(), Some("Thread._bootstrap"));
    }

    #[test]
    fn the_innermost_function_of_a_javascript_program_asks() {
        let script = |symbol: &str, file: Option<&str>| Frame {
            symbol: Some(symbol.to_owned()),
            file: file.map(str::to_owned),
            language: Language::JavaScript,
            ..Frame::default()
        };
        let mut frames = stack(&[("libc.so.6", Some("read"), 1), ("node", Some("uv_fs_read"), 7)]);
        frames.extend([
            script("readFileSync", Some("node:fs")),
            script("load", Some("/srv/shop/node_modules/config/index.js")),
            script("prices", Some("/srv/shop/prices.js")),
            script("map", None),
            script("main", Some("/srv/shop/app.js")),
            script("executeUserEntryPoint", Some("node:internal/modules/run_main")),
        ]);
        assert_eq!(choose(&frames).frame.as_deref(), Some("prices"));
        let installed = [
            script("readSync", Some("node:fs")),
            script("load", Some("/srv/node_modules/config/index.js")),
            script(
                "processTicksAndRejections",
                Some("node:internal/process/task_queues"),
            ),
        ];
        assert_eq!(choose(&installed).frame.as_deref(), Some("load"));
        assert_eq!(
            choose(&installed[2..]).frame.as_deref(),
            Some("processTicksAndRejections")
        );
    }

    #[test]
    fn the_innermost_function_of_a_rust_program_asks() {
        let rust = |symbol: &str, file: Option<&str>| Frame {
            symbol: Some(symbol.to_owned()),
            module: Some("ledger".to_owned()),
            file: file.map(str::to_owned),
            ..Frame::default()
        };
        let std = Some("/rustc/59807616e1fa/library/std/src/net/udp.rs");
        let registry = Some("/home/me/.cargo/registry/src/index/ureq-2.9.1/src/stream.rs");
        let mut frames = stack(&[("libc.so.6", Some("recv"), 1)]);
        frames.extend([
            rust("<std::net::udp::UdpSocket>::recv", std),
            rust("ureq::stream::Stream::read", registry),
            rust("ledger::ask_bank", Some("/srv/ledger/src/main.rs")),
            rust("ledger::settle", Some("/srv/ledger/src/main.rs")),
            rust("std::sys::backtrace::__rust_begin_short_backtrace", None),
        ]);
        frames.extend(stack(&[("libc.so.6", Some("start_thread"), 1)]));
        assert_eq!(choose(&frames).frame.as_deref(), Some("ledger::ask_bank"));
        let release = [
            rust("std::sys::pal::unix::futex::futex_wait", None),
            rust("ledger::post", None),
            rust("std::rt::lang_start", None),
        ];
        assert_eq!(choose(&release).frame.as_deref(), Some("ledger::post"));
        // Nothing of the program's own is there: the innermost of all, as ever.
        let none = [rust("std::thread::park", std), rust("std::rt::lang_start", None)];
        assert_eq!(choose(&none).frame.as_deref(), Some("std::thread::park"));
        let library = [
            stack(&[("libcrypto.so.3", Some("RAND_status"), 1)]),
            vec![rust("openssl::rand", registry), rust("ledger::seed", None)],
        ];
        assert_eq!(choose(&library.concat()).frame.as_deref(), Some("RAND_status"));
    }

    #[test]
    fn the_innermost_function_of_a_ruby_program_asks() {
        let ruby = |symbol: &str, file: Option<&str>| Frame {
            symbol: Some(symbol.to_owned()),
            file: file.map(str::to_owned),
            language: Language::Ruby,
            ..Frame::default()
        };
        let mut frames = stack(&[("libc.so.6", Some("poll"), 1), ("libruby-3.1.so.3.1", None, 7)]);
        frames.extend([
            ruby("wait_readable", None),
            ruby("rbuf_fill", Some("/usr/lib/ruby/3.1.0/net/protocol.rb")),
            ruby(
                "call",
                Some("/var/lib/gems/3.1.0/gems/faraday-2.7.0/lib/faraday.rb"),
            ),
            ruby("block in fetch_prices", Some("/srv/shop/prices.rb")),
            ruby("<main>", Some("/srv/shop/main.rb")),
        ]);
        frames.extend(stack(&[("libruby-3.1.so.3.1", Some("ruby_run_node"), 7)]));
        let asking = choose(&frames);
        assert_eq!(
            (asking.frame.as_deref(), asking.module),
            (Some("block in fetch_prices"), None)
        );
        let installed = [
            ruby("select", None),
            ruby(
                "run_internal",
                Some("/srv/bundle/gems/puma-6.0.0/lib/puma/reactor.rb"),
            ),
        ];
        assert_eq!(choose(&installed).frame.as_deref(), Some("run_internal"));
    }

    #[test]
    fn the_innermost_function_of_a_php_program_asks() {
        let php = |symbol: &str, file: Option<&str>| Frame {
            symbol: Some(symbol.to_owned()),
            file: file.map(str::to_owned),
            language: Language::Php,
            ..Frame::default()
        };
        let mut frames = stack(&[("libc.so.6", Some("poll"), 1), ("php8.2", None, 7)]);
        frames.extend([
            php("curl_exec", None),
            php(
                "GuzzleHttp\\Client::request",
                Some("/srv/vendor/guzzle/Client.php"),
            ),
            php("fetch_prices", Some("/srv/shop/prices.php")),
            php("{main}", Some("/srv/shop/index.php")),
        ]);
        frames.extend(stack(&[("php8.2", Some("zend_execute"), 7)]));
        let asking = choose(&frames);
        assert_eq!(
            (asking.frame.as_deref(), asking.module),
            (Some("fetch_prices"), None)
        );
        let installed = [
            php("sleep", None),
            php("wait", Some("/usr/share/php/Wait.php")),
            php("{main}", Some("/srv/shop/vendor/bin/worker.php")),
        ];
        assert_eq!(choose(&installed).frame.as_deref(), Some("{main}"));
    }

    #[test]
    fn the_innermost_function_of_a_perl_program_asks() {
        let perl = |symbol: &str, file: &str| Frame {
            symbol: Some(symbol.to_owned()),
            file: Some(file.to_owned()),
            language: Language::Perl,
            ..Frame::default()
        };
        let mut frames = stack(&[("libc.so.6", Some("select"), 1), ("perl", None, 7)]);
        frames.extend([
            perl("HTTP::Tiny::Handle::read", "/usr/share/perl/5.36/HTTP/Tiny.pm"),
            perl("(eval)", "(eval 7)"),
            perl("fetch_prices", "prices.pl"),
            perl("(main)", "prices.pl"),
        ]);
        frames.extend(stack(&[("perl", Some("perl_run"), 7)]));
        assert_eq!(choose(&frames).frame.as_deref(), Some("fetch_prices"));
        let installed = [
            perl("Starman::Server::run_loop", "/usr/share/perl5/Starman/Server.pm"),
            perl("(main)", "/usr/share/perl5/Plack/Runner.pm"),
        ];
        assert_eq!(choose(&installed).frame.as_deref(), Some("(main)"));
    }

    #[test]
    fn a_stack_of_start_code_has_no_asker() {
        assert_eq!(chosen(&[("libc.so.6", Some("start_thread"), 1)]), (None, None));
        assert_eq!(chosen(&[]), (None, None));
    }
}
