//! Goroutines of a real program: where each stands in the program's own code, those that wait for a lock, a group, a name or to send for good,
//! and those for which the poller waits.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use support::{Guarded, HOLDUP, list, lossy, read_until};

/// What each argument does: `order` takes two locks in different orders, `calm` in the same; `queue` sends to a receiver that waits for a
/// lock; `group` waits for workers whose channel nobody closes; `resolve` asks a name server; `tries` sleeps between tries of a file's lock;
/// `serve` answers late; and with an address, it asks there. All but `serve` have a ticker that lives.
const PROGRAM: &str = "\
package main

import (
\t\"context\"
\t\"fmt\"
\t\"io\"
\t\"net\"
\t\"net/http\"
\t\"os\"
\t\"sync\"
\t\"syscall\"
\t\"time\"
)

var orders, stock sync.Mutex

func payFirst(taken chan bool) {
\torders.Lock()
\ttaken <- true
\ttime.Sleep(50 * time.Millisecond)
\tstock.Lock() // first
}

func paySecond(taken chan bool) {
\tstock.Lock()
\ttaken <- true
\ttime.Sleep(50 * time.Millisecond)
\torders.Lock() // second
}

func produce(queue chan int) {
\tqueue <- 1 // sends
}

func consume(queue chan int) {
\tstock.Lock() // consumes
\tfor range queue {
\t}
}

func crawl() {
\tvar group sync.WaitGroup
\tlinks := make(chan int)
\tfor worker := 0; worker < 2; worker++ {
\t\tgroup.Add(1)
\t\tgo func() {
\t\t\tdefer group.Done()
\t\t\tfor range links { // receives
\t\t\t}
\t\t}()
\t}
\tfmt.Println(\"ready\")
\tgroup.Wait() // awaits
\tclose(links)
}

func resolve(server string) {
\tresolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
\t\treturn new(net.Dialer).DialContext(ctx, \"udp\", server)
\t}}
\tfmt.Println(\"ready\")
\tfor {
\t\tresolver.LookupHost(context.Background(), \"shop.example.\") // resolves
\t}
}

func acquireLock(file *os.File) {
\tfor syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
\t\ttime.Sleep(20 * time.Millisecond) // tries
\t}
}

func fetchPrices(address string) int {
\tresponse, err := http.Get(\"http://\" + address + \"/\") // asks
\tif err != nil {
\t\tpanic(err)
\t}
\tdefer response.Body.Close()
\tbody, _ := io.ReadAll(response.Body)
\treturn len(body)
}

func serve() {
\tlistener, err := net.Listen(\"tcp\", \"127.0.0.1:0\")
\tif err != nil {
\t\tpanic(err)
\t}
\tfmt.Println(listener.Addr())
\thttp.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
\t\ttime.Sleep(400 * time.Millisecond)
\t\tfmt.Fprintln(w, \"7\")
\t}))
}

func main() {
\tswitch os.Args[1] {
\tcase \"order\":
\t\ttaken := make(chan bool)
\t\tgo payFirst(taken)
\t\tgo paySecond(taken)
\t\t<-taken
\t\t<-taken
\tcase \"queue\":
\t\tstock.Lock()
\t\tqueue := make(chan int)
\t\tfor sender := 0; sender < 3; sender++ {
\t\t\tgo produce(queue)
\t\t}
\t\tgo consume(queue)
\tcase \"group\":
\t\tgo func() {
\t\t\tfor range time.Tick(100 * time.Millisecond) {
\t\t\t}
\t\t}()
\t\tcrawl()
\tcase \"resolve\":
\t\tresolve(os.Args[2])
\tcase \"tries\":
\t\tfile, err := os.Open(os.Args[2])
\t\tif err != nil {
\t\t\tpanic(err)
\t\t}
\t\tfmt.Println(\"ready\")
\t\tacquireLock(file)
\tcase \"serve\":
\t\tserve()
\tcase \"calm\":
\tdefault:
\t\tfetchPrices(os.Args[1])
\t\tfmt.Println(\"ready\")
\t\tfor {
\t\t\tfetchPrices(os.Args[1])
\t\t}
\t}
\ttime.Sleep(200 * time.Millisecond)
\tfmt.Println(\"ready\")
\tfor range time.Tick(100 * time.Millisecond) {
\t}
}
";

/// The line that ends with a comment of this word.
fn line(mark: &str) -> usize {
    let mark = format!("// {mark}");
    1 + PROGRAM.lines().position(|line| line.ends_with(&mark)).unwrap()
}

/// The first Go whose goroutines are read of stripped programs, too.
const SINCE_MINOR: u32 = 18;

/// The program, with symbols and stripped, built once; `None` where there is no Go that is new enough, which is said.
fn built() -> Option<[PathBuf; 2]> {
    static BUILT: LazyLock<Option<[PathBuf; 2]>> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("goroutines");
        std::fs::create_dir_all(&folder).unwrap();
        build(&folder)
    });
    BUILT.clone()
}

fn build(folder: &Path) -> Option<[PathBuf; 2]> {
    let version = Command::new("go").arg("version").output();
    let version = version.map(|output| lossy(&output.stdout)).unwrap_or_default();
    let minor = version.split("go1.").nth(1);
    let minor = minor.and_then(|rest| rest.split(['.', ' ']).next()?.parse::<u32>().ok());
    if minor.is_none_or(|minor| minor < SINCE_MINOR) {
        eprintln!("SKIPPED: no Go 1.{SINCE_MINOR} or later in PATH: {version:?}");
        return None;
    }
    let source = folder.join("shop.go");
    std::fs::write(&source, PROGRAM).unwrap();
    let programs = [("shop", ""), ("stripped", "-s -w")].map(|(name, flags)| {
        let program = folder.join(name);
        let output = Command::new("go")
            .args(["build", "-ldflags", flags, "-o", program.to_str().unwrap()])
            .arg(&source)
            .env("GOFLAGS", "")
            .env("GOCACHE", folder.join("cache"))
            .env("GO111MODULE", "off")
            .env("CGO_ENABLED", "0")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", lossy(&output.stderr));
        program
    });
    Some(programs)
}

fn report(program: &Path, arguments: &[&str], backend: &str) -> Value {
    let mut shop = Command::new(program);
    let mut shop = Guarded::spawn(shop.args(arguments).stdout(Stdio::piped()));
    read_until(shop.0.stdout.as_mut().unwrap(), "ready\n");
    let output = Command::new(HOLDUP)
        .args([
            "attach",
            "-d",
            "2",
            "--format",
            "json",
            "--backend",
            backend,
            "-p",
        ])
        .arg(shop.0.id().to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn of_rule<'a>(report: &'a Value, rule: &str) -> Option<&'a Value> {
    let findings = list(report, "findings");
    findings.iter().find(|finding| finding["rule"] == rule)
}

/// Whether an asker stands in this function, and in the line with this mark.
fn asks_in(asker: &Value, function: &str, mark: &str) -> bool {
    let frames = asker["stack"].as_array().unwrap();
    asker["frame"] == function
        && frames
            .iter()
            .any(|frame| frame["symbol"] == function && frame["line"] == line(mark))
}

#[test]
fn goroutines_that_wait_for_each_other_are_a_finding_and_stand_in_the_programs_own_lines() {
    let Some([program, _]) = built() else {
        return;
    };
    for backend in ["bpf", "proc"] {
        let report = report(&program, &["order"], backend);
        let rule = "tasks-wait-for-lock";
        let finding = of_rule(&report, rule).unwrap_or_else(|| panic!("{backend}: {report:#}"));
        let title = finding["title"].as_str().unwrap();
        let places = format!(
            "main.payFirst (shop.go:{}) and main.paySecond (shop.go:{})",
            line("first"),
            line("second")
        );
        assert!(title.contains(&places), "{title}");
        let stands = |function: &str, mark: &str| {
            let mut tasks = list(&report, "tasks").iter();
            tasks.any(|task| task["state"] == "waiting" && asks_in(&task["asker"], function, mark))
        };
        assert!(stands("main.payFirst", "first"), "{report:#}");
        assert!(stands("main.paySecond", "second"), "{report:#}");
    }
}

#[test]
fn goroutines_that_wait_for_a_ticker_are_no_finding() {
    let Some([program, _]) = built() else {
        return;
    };
    let report = report(&program, &["calm"], "bpf");
    for rule in ["tasks-wait-for-lock", "tasks-wait-to-send"] {
        assert!(of_rule(&report, rule).is_none(), "{report:#}");
    }
}

#[test]
fn goroutines_that_send_to_nobody_are_a_finding_with_the_receiver_that_waits_itself() {
    let Some([program, _]) = built() else {
        return;
    };
    let report = report(&program, &["queue"], "bpf");
    let finding = of_rule(&report, "tasks-wait-to-send").unwrap_or_else(|| panic!("{report:#}"));
    let title = finding["title"].as_str().unwrap();
    assert!(title.starts_with("3 goroutines of "), "{title}");
    let place = format!("to send on a channel in main.produce (shop.go:{})", line("sends"));
    assert!(title.contains(&place), "{title}");
    let candidate = format!(
        "main.consume (shop.go:{}) waits for a sync.Mutex",
        line("consumes")
    );
    assert!(
        finding["evidence"].to_string().contains(&candidate),
        "{finding:#}"
    );
}

#[test]
fn a_wait_in_the_poller_is_asked_by_the_goroutine_whose_descriptor_it_is() {
    let Some(programs) = built() else {
        return;
    };
    let mut server = Command::new(&programs[0]);
    let mut server = Guarded::spawn(server.arg("serve").stdout(Stdio::piped()));
    let mut address = String::new();
    let output = server.0.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut address).unwrap();
    for program in &programs {
        let report = report(program, &[address.trim()], "bpf");
        let asked = list(&report, "waits").iter().any(|wait| {
            wait["cause"] == "net.receive" && asks_in(&wait["asker"], "main.fetchPrices", "asks")
        });
        assert!(asked, "{report:#}");
    }
}

#[test]
fn a_group_whose_members_wait_for_the_one_that_waits_for_them_is_a_finding() {
    let Some([program, _]) = built() else {
        return;
    };
    let report = report(&program, &["group"], "bpf");
    let finding = of_rule(&report, "goroutines-wait-for-others").unwrap_or_else(|| panic!("{report:#}"));
    let title = finding["title"].as_str().unwrap();
    let waits = format!(
        "waits for a sync.WaitGroup in main.crawl (shop.go:{})",
        line("awaits")
    );
    assert!(title.contains(&waits), "{title}");
    let members = format!(
        "2 goroutines that could end that wait themselves in main.crawl.func1 (shop.go:{})",
        line("receives")
    );
    assert!(title.contains(&members), "{title}");
}

#[test]
fn a_name_server_that_does_not_answer_is_a_finding_with_the_function_that_asks() {
    let Some([program, _]) = built() else {
        return;
    };
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let report = report(&program, &["resolve", &address], "bpf");
    let finding = of_rule(&report, "goroutines-wait-for-names").unwrap_or_else(|| panic!("{report:#}"));
    let title = finding["title"].as_str().unwrap();
    let asks = format!(
        "for the name server {address}, which does not answer, in main.resolve (shop.go:{})",
        line("resolves")
    );
    assert!(title.contains(&asks), "{title}");
}

#[test]
fn who_sleeps_between_tries_of_a_files_lock_waits_for_that_lock() {
    let Some([program, _]) = built() else {
        return;
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().lock().unwrap();
    let path = file.path().to_str().unwrap();
    let report = report(&program, &["tries", path], "bpf");
    let finding = of_rule(&report, "file-lock-polled").unwrap_or_else(|| panic!("{report:#}"));
    let title = finding["title"].as_str().unwrap();
    let held = format!("(pid {})", std::process::id());
    assert!(title.contains(path) && title.contains(&held), "{title}");
    let place = format!("main.acquireLock (shop.go:{})", line("tries"));
    assert!(title.contains(&place), "{title}");
}
