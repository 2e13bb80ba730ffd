//! nginx under full load, watched and not: requests a second, the time of the slowest hundredth, CPU time a request.
//!
//! Server and client have a core each; holdup's own user space goes where the scheduler puts it, and so takes from both.

use super::watcher::{Peer, Watcher, cpu_ns};
use super::{Plan, middle, ratios};
use crate::bench::observer::CORE;
use crate::bench::samples::median;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The client's core.
const CLIENT_CORE: &str = "1";

/// How long the server may take to listen, and to have its worker.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the page has, bytes: a small one, so that requests and not their bodies are what is served.
const PAGE: usize = 600;

/// The most that throughput may fall, and the time of the slowest hundredth rise, as ratios.
const LEAST_THROUGHPUT: f64 = 0.97;
const MOST_P99: f64 = 1.05;

/// One measured turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    per_second: f64,
    p99_us: f64,
    /// CPU time of the server a request, nanoseconds.
    of_server: f64,
    requests: u64,
}

/// The turns of one observer, each beside the mean of those without one in its round.
#[derive(Debug, Default)]
struct Column {
    per_second: Vec<f64>,
    p99: Vec<f64>,
    of_server: Vec<f64>,
}

/// Measures and prints.
pub(super) fn measure(plan: &Plan<'_>) -> anyhow::Result<()> {
    let server = Nginx::start(plan)?;
    let (mut without, mut again, mut with) = (Vec::new(), Column::default(), Column::default());
    let mut peers: Vec<(Peer, Column)> = Vec::new();
    if !plan.args.no_peers {
        peers.extend(Peer::ALL.map(|peer| (peer, Column::default())));
    }
    let mut seen = Vec::new();
    // The first turn fills caches, and counts for nothing.
    server.load(plan)?;
    for _ in 0..plan.args.rounds {
        let first = server.load(plan)?;
        let watched = [server.watched(plan, &mut seen)?, server.watched(plan, &mut seen)?];
        let last = server.load(plan)?;
        let base = mean([first, last]);
        with.add(mean(watched), base);
        again.add(last, first);
        for (peer, column) in &mut peers {
            if let Some(watcher) = Watcher::peer(*peer, &[server.worker]) {
                column.add(server.load(plan)?, base);
                watcher.end()?;
            }
        }
        without.push(base);
    }
    println!(
        "nginx with one worker, wrk with {} connections, a core each, {} rounds of {} s (A B B A), medians",
        plan.args.connections, plan.args.rounds, plan.args.seconds
    );
    println!(
        "  untraced: {} requests/s, p99 {} µs, {} µs of the server's CPU a request",
        middle(without.iter().map(|turn| turn.per_second), 0),
        middle(without.iter().map(|turn| turn.p99_us), 0),
        middle(without.iter().map(|turn| turn.of_server / 1e3), 1),
    );
    println!(
        "  {:<18} {:<26} {:<26} {:<26}",
        "ratio to untraced", "requests/s", "p99", "CPU a request"
    );
    println!(
        "  {:<18} {:<26} {:<26}",
        "aimed for",
        format!("at least {LEAST_THROUGHPUT}"),
        format!("at most {MOST_P99}")
    );
    let rows = [("untraced, again", &again), ("holdup attach", &with)];
    let others = peers.iter().map(|(peer, column)| (peer.name(), column));
    for (name, column) in rows.into_iter().chain(others) {
        println!(
            "  {name:<18} {:<26} {:<26} {:<26}",
            ratios(&column.per_second),
            ratios(&column.p99),
            ratios(&column.of_server)
        );
    }
    println!(
        "  requests in the reports, of those that wrk counted: {}",
        ratios(&seen)
    );
    Ok(())
}

impl Column {
    fn add(&mut self, turn: Turn, base: Turn) {
        self.per_second.push(turn.per_second / base.per_second);
        self.p99.push(turn.p99_us / base.p99_us);
        self.of_server.push(turn.of_server / base.of_server);
    }
}

fn mean(turns: [Turn; 2]) -> Turn {
    let of = |figure: fn(&Turn) -> f64| median(turns.iter().map(figure)).unwrap_or_default();
    Turn {
        per_second: of(|turn| turn.per_second),
        p99_us: of(|turn| turn.p99_us),
        of_server: of(|turn| turn.of_server),
        requests: turns.iter().map(|turn| turn.requests).sum(),
    }
}

/// A server of our own on a port of its own.
#[derive(Debug)]
struct Nginx {
    child: Child,
    worker: u32,
    port: u16,
}

impl Nginx {
    fn start(plan: &Plan<'_>) -> anyhow::Result<Nginx> {
        let folder = &plan.folder;
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .context("find a free port")?
            .port();
        std::fs::write(folder.join("index.html"), "x".repeat(PAGE)).context("write the page")?;
        let settings = folder.join("nginx.conf");
        std::fs::write(&settings, configuration(folder, port)).context("write nginx's settings")?;
        let child = Command::new("taskset")
            .args(["-c", CORE, "nginx", "-c"])
            .arg(&settings)
            .arg("-e")
            .arg(folder.join("error.log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start nginx")?;
        let mut server = Nginx {
            child,
            worker: 0,
            port,
        };
        let began = Instant::now();
        while server.worker == 0 || TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > PATIENCE {
                bail!(
                    "nginx did not start; {} says why",
                    folder.join("error.log").display()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
            server.worker = first_child(server.child.id()).unwrap_or_default();
        }
        Ok(server)
    }

    /// A turn of load.
    fn load(&self, plan: &Plan<'_>) -> anyhow::Result<Turn> {
        let before = cpu_ns(self.worker);
        let output = crate::process::output(Command::new("taskset").args([
            "-c",
            CLIENT_CORE,
            "wrk",
            "-t1",
            &format!("-c{}", plan.args.connections),
            &format!("-d{}s", plan.args.seconds),
            "--latency",
            &format!("http://127.0.0.1:{}/index.html", self.port),
        ]))?;
        let used = cpu_ns(self.worker).saturating_sub(before);
        let load = Load::read(&output).with_context(|| format!("wrk said:\n{output}"))?;
        Ok(Turn {
            per_second: load.per_second,
            p99_us: load.p99_us,
            of_server: used as f64 / load.requests as f64,
            requests: load.requests,
        })
    }

    /// The same while holdup watches; notes which part of the requests it has seen.
    fn watched(&self, plan: &Plan<'_>, seen: &mut Vec<f64>) -> anyhow::Result<Turn> {
        let report = plan.report();
        let watcher = Watcher::holdup(plan.holdup(), &[self.worker], &report)?;
        let turn = self.load(plan)?;
        if !watcher.end()? {
            bail!("holdup failed");
        }
        let text = std::fs::read_to_string(&report).context("read the report")?;
        let report: serde_json::Value = serde_json::from_str(&text).context("understand the report")?;
        let count = report["requests"]["count"].as_u64().unwrap_or_default();
        seen.push(count as f64 / turn.requests as f64);
        Ok(turn)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It ends its worker itself. Neither can fail for a child that has not been waited for.
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

fn configuration(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "user root; worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n\
         events {{ }}\n\
         http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n\
         server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n"
    )
}

fn first_child(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// What wrk prints.
#[derive(Debug, PartialEq)]
struct Load {
    requests: u64,
    per_second: f64,
    p99_us: f64,
}

impl Load {
    fn read(text: &str) -> anyhow::Result<Load> {
        let word = |key: &str, place: usize| {
            let line = text.lines().find(|line| line.trim_start().starts_with(key));
            line.and_then(|line| line.trim().trim_start_matches(key).split_whitespace().nth(place))
        };
        let line = text.lines().find(|line| line.contains(" requests in "));
        let requests = line.and_then(|line| line.split_whitespace().next());
        Ok(Load {
            requests: requests.context("no count")?.parse()?,
            per_second: word("Requests/sec:", 0).context("no rate")?.parse()?,
            p99_us: microseconds(word("99%", 0).context("no 99 %")?).context("no time")?,
        })
    }
}

/// `1.25ms`, as wrk writes it.
fn microseconds(text: &str) -> Option<f64> {
    for (unit, factor) in [("us", 1.0), ("ms", 1e3), ("s", 1e6)] {
        if let Some(number) = text.strip_suffix(unit) {
            return Some(number.parse::<f64>().ok()? * factor);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Load;

    #[test]
    fn reads_what_wrk_prints() {
        let text = "Running 2s test @ http://127.0.0.1:8080/\n  1 threads and 32 connections\n  \
                    Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.02ms  291.05us   9.77ms   92.96%\n    \
                    Req/Sec    31.42k     1.21k   33.25k    85.00%\n  Latency Distribution\n     50%  987.00us\n     \
                    75%    1.06ms\n     90%    1.15ms\n     99%    1.88ms\n  62504 requests in 2.00s, 50.01MB read\n\
                    Requests/sec:  31249.87\nTransfer/sec:     25.00MB\n";
        let load = Load::read(text).unwrap();
        assert_eq!(
            load,
            Load {
                requests: 62_504,
                per_second: 31_249.87,
                p99_us: 1_880.0
            }
        );
        assert!(Load::read("unable to connect").is_err());
    }
}
