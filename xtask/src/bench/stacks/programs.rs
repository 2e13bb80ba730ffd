//! The programs whose blocked threads are compared, as data.
//!
//! Each is a piece of shell that starts programs in the background and goes on; it finds in `$DIR` a folder of
//! its own with a FIFO `fifo` that nothing is written to, in `$PORT` a free port, in `$DEAF` the port of a
//! server that takes connections and says nothing, and in `$ROOT` a folder of unpacked packages by name.

use crate::setup::Packages;

/// The judge, and the programs that are stock and no services.
pub(super) const PACKAGES: Packages = Packages {
    purpose: "compare stacks",
    names: &[
        "bash",
        "curl",
        "g++",
        "gdb",
        "git",
        "libicu72",
        "libldap-2.5-0",
        "libpcre2-8-0",
        "libpq5",
        "libwrap0",
        "libxml2",
        "nodejs",
        "openjdk-17-jre-headless",
        "openssh-client",
        "perl",
        "php8.2-cli",
        "python3",
        "util-linux",
    ],
};

/// Packages with services, which are unpacked and not installed.
pub(super) const UNPACKED: &[&str] = &["nginx", "openssh-server", "postgresql-15", "postgresql-client-15"];

/// Something to start.
#[derive(Debug)]
pub(super) struct Program {
    /// What the table calls it.
    pub(super) name: &'static str,
    /// What must be done before, not observed.
    pub(super) prepare: &'static str,
    /// What is observed.
    pub(super) start: &'static str,
    /// How many processes there are when all has started.
    pub(super) processes: usize,
    /// Connect to `$PORT` when it listens, say this, and then nothing.
    pub(super) client: Option<&'static str>,
}

const PLAIN: Program = Program {
    name: "",
    prepare: "",
    start: "",
    processes: 1,
    client: None,
};

/// All of them.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "sshd",
        prepare: "ssh-keygen -q -t ed25519 -N '' -f $DIR/key",
        start: "unshare --mount sh -ec 'mount -t tmpfs tmpfs /run; mkdir /run/sshd; \
                exec $ROOT/openssh-server/usr/sbin/sshd -D -f /dev/null -h $DIR/key -p $PORT -o ListenAddress=127.0.0.1' &",
        processes: 3,
        // sshd answers in a process without privileges, beside the one that listens and the one that watches.
        client: Some("SSH-2.0-x\r\n"),
    },
    Program {
        name: "nginx",
        prepare: "mkdir $DIR/t; cat > $DIR/conf <<EOF\n\
                  daemon off; pid $DIR/pid; error_log $DIR/log; user root; worker_processes 2; events {}\n\
                  http { access_log off; client_body_temp_path $DIR/t; proxy_temp_path $DIR/t; fastcgi_temp_path $DIR/t;\n\
                  uwsgi_temp_path $DIR/t; scgi_temp_path $DIR/t; server { listen 127.0.0.1:$PORT; } }\nEOF",
        start: "$ROOT/nginx/usr/sbin/nginx -e $DIR/log -c $DIR/conf &",
        processes: 3,
        client: Some(""),
    },
    Program {
        name: "postgres",
        prepare: "cp -a $ROOT/postgresql-15/. $ROOT/postgresql-client-15/. $DIR/; mkdir $DIR/db; chown nobody $DIR $DIR/db; \
                  setpriv --reuid=nobody --regid=nogroup --clear-groups \
                  $DIR/usr/lib/postgresql/15/bin/initdb -N -D $DIR/db -U me >/dev/null",
        start: "setpriv --reuid=nobody --regid=nogroup --clear-groups \
                $DIR/usr/lib/postgresql/15/bin/postgres -D $DIR/db -k $DIR -p $PORT -h '' & \
                until $DIR/usr/lib/postgresql/15/bin/pg_isready -q -h $DIR -p $PORT; do sleep 0.1; done; \
                $DIR/usr/lib/postgresql/15/bin/psql -h $DIR -p $PORT -U me -c 'select pg_sleep(1000)' postgres &",
        processes: 8,
        ..PLAIN
    },
    Program {
        name: "python3",
        start: "/usr/bin/python3 -c 'import socket, threading, time\n\
                lock = threading.Lock()\n\
                lock.acquire()\n\
                threading.Thread(target=lambda: time.sleep(1000)).start()\n\
                threading.Thread(target=lambda: lock.acquire()).start()\n\
                server = socket.create_server((\"127.0.0.1\", 0))\n\
                sorted([1], key=lambda _: server.accept())' &",
        ..PLAIN
    },
    Program {
        name: "node",
        start: "node -e 'require(\"http\").createServer().listen(0, \"127.0.0.1\"); require(\"fs\").readFile(process.env.DIR + \"/fifo\", () => 0)' &",
        ..PLAIN
    },
    Program {
        name: "node, in JavaScript",
        start: "node -e 'function inner() { require(\"fs\").readSync(0, Buffer.alloc(1)) } function outer() { inner() } outer()' <>$DIR/fifo &",
        ..PLAIN
    },
    Program {
        name: "php",
        start: "php -r 'function f($s) { return fread($s, 1); } f(stream_socket_client(\"tcp://127.0.0.1:\" . getenv(\"DEAF\")));' & \
                php -S 127.0.0.1:$PORT &",
        processes: 2,
        ..PLAIN
    },
    Program {
        name: "git",
        start: "git ls-remote http://127.0.0.1:$DEAF/x & git hash-object --stdin <>$DIR/fifo &",
        processes: 4,
        ..PLAIN
    },
    Program {
        name: "curl",
        start: "curl --silent http://127.0.0.1:$DEAF/ & curl --silent --insecure https://127.0.0.1:$DEAF/ &",
        processes: 2,
        ..PLAIN
    },
    Program {
        name: "ssh",
        start: "ssh -F /dev/null -p $DEAF 127.0.0.1 &",
        ..PLAIN
    },
    Program {
        name: "perl",
        start: "perl -e 'sub f { my $n = shift; $n ? f($n - 1) : sleep 1000 } f(3)' &",
        ..PLAIN
    },
    Program {
        name: "bash",
        start: "bash -c 'f() { read -r line; }; f; true' <>$DIR/fifo & bash -c 'f() { sleep 1000; }; f; true' &",
        processes: 3,
        ..PLAIN
    },
    Program {
        name: "java",
        prepare: "cat > $DIR/Blocked.java <<EOF\n\
                  class Blocked { public static void main(String[] words) throws Exception {\n\
                  new java.net.ServerSocket(0).accept(); } }\nEOF",
        start: "java -XX:TieredStopAtLevel=1 $DIR/Blocked.java &",
        ..PLAIN
    },
    Program {
        name: "C++",
        prepare: "cat > $DIR/c.cc <<EOF\n\
                  #include <condition_variable>\n#include <thread>\n#include <functional>\n#include <unistd.h>\n\
                  namespace pool { template <typename T> struct Worker { std::mutex m; std::condition_variable c;\n\
                  __attribute__((noinline)) void wait(T) { std::unique_lock<std::mutex> l(m); c.wait(l, [] { return false; }); } }; }\n\
                  int main() { pool::Worker<int> w; std::thread t([&w] { w.wait(1); });\n\
                  std::function<int(int)> f = [](int n) { return pause() + n; }; return f(1); }\nEOF\n\
                  g++ -O2 -pthread -o $DIR/c $DIR/c.cc",
        start: "$DIR/c &",
        ..PLAIN
    },
    Program {
        name: "Rust",
        prepare: "cat > $DIR/r.rs <<EOF\n\
                  use std::{io::Read, sync::Mutex, thread};\n\
                  static LOCK: Mutex<u8> = Mutex::new(0);\n\
                  #[inline(never)] fn locked() -> u8 { *LOCK.lock().unwrap() }\n\
                  fn main() { let _held = LOCK.lock(); thread::spawn(locked); thread::spawn(thread::park);\n\
                  let mut byte = [0]; std::io::stdin().read(&mut byte).unwrap(); }\nEOF\n\
                  rustc -O -o $DIR/r $DIR/r.rs && rustc -O -C symbol-mangling-version=v0 -o $DIR/r0 $DIR/r.rs",
        start: "$DIR/r <>$DIR/fifo & $DIR/r0 <>$DIR/fifo &",
        processes: 2,
        ..PLAIN
    },
    Program {
        name: "Go",
        prepare: "cat > $DIR/g.go <<EOF\n\
                  package main\n\
                  import (\"net\"; \"syscall\"; \"time\")\n\
                  type T struct{}\n\
                  //go:noinline\n\
                  func (t *T) read() { b := make([]byte, 1); syscall.Read(0, b) }\n\
                  func main() { l, _ := net.Listen(\"tcp\", \"127.0.0.1:0\"); go l.Accept(); go func() { (&T{}).read() }()\n\
                  time.Sleep(100000 * time.Second) }\nEOF\n\
                  export HOME=$DIR GOCACHE=$DIR/cache GOFLAGS=-mod=mod\n\
                  CGO_ENABLED=0 go build -o $DIR/g $DIR/g.go",
        start: "$DIR/g <>$DIR/fifo &",
        ..PLAIN
    },
];
