//! Serves prices to tills, from a cache that is filled on demand.
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug)]
struct Price {
    cents: u64,
    revision: u32,
}

struct Tariff {
    base: u64,
    surcharge: u64,
}

impl Tariff {
    fn calculate(&self, article: &str) -> Price {
        let mut h: u64 = 0xcbf29ce484222325;
        for b in article.bytes() {
            h = (h ^ b as u64).wrapping_mul(0x100000001b3);
        }
        Price { cents: self.base + h % 5000 + self.surcharge, revision: 1 }
    }
}

struct PriceCache {
    entries: Mutex<HashMap<String, Price>>,
    tariff: Tariff,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl PriceCache {
    fn warm(&self, articles: &[&str]) {
        let mut entries = self.entries.lock().unwrap();
        for a in articles {
            entries.insert(a.to_string(), self.tariff.calculate(a));
        }
    }

    fn remember(&self, article: &str, price: &Price) {
        let mut entries = self.entries.lock().unwrap();
        if entries.len() > 10_000 {
            entries.clear();
        }
        entries.insert(article.to_string(), price.clone());
    }

    fn price_for(&self, article: &str) -> Price {
        match self.entries.lock().unwrap().get(article) {
            Some(p) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                p.clone()
            }
            None => {
                self.misses.fetch_add(1, Ordering::Relaxed);
                let p = self.tariff.calculate(article);
                self.remember(article, &p);
                p
            }
        }
    }
}

fn session(stream: UnixStream, cache: Arc<PriceCache>) {
    let mut out = match stream.try_clone() {
        Ok(s) => s,
        Err(_) => return,
    };
    for line in BufReader::new(stream).lines() {
        let Ok(article) = line else { return };
        let p = cache.price_for(article.trim());
        if writeln!(out, "{} {} r{}", article.trim(), p.cents, p.revision).is_err() {
            return;
        }
    }
}

fn statistics(cache: Arc<PriceCache>, path: PathBuf) {
    loop {
        thread::sleep(Duration::from_secs(1));
        let line = format!(
            "hits {} misses {}\n",
            cache.hits.load(Ordering::Relaxed),
            cache.misses.load(Ordering::Relaxed)
        );
        let _ = std::fs::write(&path, line);
    }
}

fn main() {
    let run = PathBuf::from(std::env::var("RUN").expect("RUN"));
    let cache = Arc::new(PriceCache {
        entries: Mutex::new(HashMap::new()),
        tariff: Tariff { base: 990, surcharge: 45 },
        hits: AtomicU64::new(0),
        misses: AtomicU64::new(0),
    });
    cache.warm(&["bolt-m6", "bolt-m8", "nut-m6", "nut-m8", "washer-6"]);
    let listener = UnixListener::bind(run.join("prices.sock")).expect("bind");
    let c = cache.clone();
    thread::Builder::new().name("statistics".into()).spawn(move || statistics(c, run.join("stats"))).unwrap();
    for (n, stream) in listener.incoming().flatten().enumerate() {
        let c = cache.clone();
        thread::Builder::new().name(format!("session-{n}")).spawn(move || session(stream, c)).unwrap();
    }
}
