//! Who asked, of made-up stacks of each language.

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
fn of_a_thread_that_a_library_began_the_program_asks() {
    let invoke = "void std::__invoke_impl<void, void (*)(int), int>(int&&)";
    let run = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<int> > >::_M_run()";
    let began = [
        ("shop", Some(invoke), 7),
        ("shop", Some(run), 7),
        ("libstdc++.so.6.0.30", None, 0xd_44a3),
        ("libc.so.6", Some("start_thread"), 7),
    ];
    let receives = [
        &[
            ("libc.so.6", Some("recv"), 1),
            ("shop", Some("fetch_rate()"), 7),
            ("shop", Some("load()"), 7),
        ][..],
        &began,
    ];
    assert_eq!(chosen(&receives.concat()), named_by("fetch_rate()", "shop"));
    let waits = [
        &[
            ("libc.so.6", Some("pthread_cond_wait"), 1),
            (
                "libstdc++.so.6.0.30",
                Some("std::condition_variable::wait(std::unique_lock<std::mutex>&)"),
                7,
            ),
            ("shop", Some("std::condition_variable::wait<ready>(ready)"), 7),
            ("shop", Some("wait_ready()"), 7),
        ][..],
        &began,
    ];
    assert_eq!(chosen(&waits.concat()), named_by("wait_ready()", "shop"));
    let guard = [
        ("libc.so.6", Some("syscall"), 1),
        ("libstdc++.so.6.0.30", Some("__cxa_guard_acquire"), 7),
        ("shop", Some("table()"), 7),
        ("shop", Some("main"), 7),
    ];
    assert_eq!(chosen(&guard), named_by("table()", "shop"));
    let of_glib = [
        ("libc.so.6", Some("recv"), 1),
        ("shop", Some("fetch_rate"), 7),
        ("libglib-2.0.so.0.7400.6", Some("g_thread_proxy"), 7),
        ("libc.so.6", Some("start_thread"), 7),
    ];
    assert_eq!(chosen(&of_glib), named_by("fetch_rate", "shop"));
    // A program without names is named by what it called.
    let stripped = [
        ("libc.so.6", Some("pthread_cond_wait"), 1),
        ("libstdc++.so.6.0.30", Some("std::condition_variable::wait"), 7),
        ("shop", None, 0x1234),
        ("libstdc++.so.6.0.30", None, 0xd_44a3),
    ];
    assert_eq!(
        chosen(&stripped),
        named_by("std::condition_variable::wait", "libstdc++.so.6.0.30")
    );
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
