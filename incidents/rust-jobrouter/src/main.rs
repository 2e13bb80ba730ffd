//! Routes jobs to workers by their kind.
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What travels through the router's inbox.
#[derive(Debug)]
enum Work {
    Batch { tenant: u32, items: u32 },
    Item { tenant: u32, seq: u32 },
}

#[derive(Default)]
struct Stats {
    routed: AtomicU64,
    batches: AtomicU64,
}

struct Router {
    inbox: mpsc::Receiver<Work>,
    requeue: mpsc::Sender<Work>,
    outbox: HashMap<u32, mpsc::UnboundedSender<u32>>,
    stats: Arc<Stats>,
}

impl Router {
    fn new(capacity: usize, stats: Arc<Stats>) -> (Self, mpsc::Sender<Work>) {
        let (tx, rx) = mpsc::channel(capacity);
        let router = Router {
            inbox: rx,
            requeue: tx.clone(),
            outbox: HashMap::new(),
            stats,
        };
        (router, tx)
    }

    fn attach(&mut self, tenant: u32) -> mpsc::UnboundedReceiver<u32> {
        let (tx, rx) = mpsc::unbounded_channel();
        self.outbox.insert(tenant, tx);
        rx
    }

    fn deliver(&self, tenant: u32, seq: u32) {
        if let Some(out) = self.outbox.get(&tenant) {
            let _ = out.send(seq);
            self.stats.routed.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn explode(&self, tenant: u32, items: u32) {
        for seq in 0..items {
            if self.requeue.send(Work::Item { tenant, seq }).await.is_err() {
                return;
            }
        }
        self.stats.batches.fetch_add(1, Ordering::Relaxed);
    }

    async fn run(mut self) {
        while let Some(work) = self.inbox.recv().await {
            match work {
                Work::Item { tenant, seq } => self.deliver(tenant, seq),
                Work::Batch { tenant, items } => self.explode(tenant, items).await,
            }
        }
    }
}

async fn tenant_worker(tenant: u32, mut jobs: mpsc::UnboundedReceiver<u32>) {
    let mut sum: u64 = 0;
    while let Some(seq) = jobs.recv().await {
        sum = sum.wrapping_mul(31).wrapping_add(seq as u64 + tenant as u64);
        if sum % 97 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn intake(tenant: u32, to: mpsc::Sender<Work>) {
    let mut round = 0u32;
    loop {
        round += 1;
        let work = if round % 5 == 0 {
            Work::Batch { tenant, items: 6 + round % 40 }
        } else {
            Work::Item { tenant, seq: round }
        };
        if to.send(work).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(15 + tenant as u64)).await;
    }
}

async fn report(stats: Arc<Stats>, path: PathBuf) {
    let mut tick = tokio::time::interval(Duration::from_millis(500));
    loop {
        tick.tick().await;
        let line = format!(
            "routed {} batches {}\n",
            stats.routed.load(Ordering::Relaxed),
            stats.batches.load(Ordering::Relaxed)
        );
        let _ = std::fs::write(&path, line);
    }
}

fn main() {
    let run = PathBuf::from(std::env::var("RUN").expect("RUN"));
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    rt.block_on(async move {
        let stats = Arc::new(Stats::default());
        let (mut router, tx) = Router::new(32, stats.clone());
        for tenant in 1..=4 {
            let jobs = router.attach(tenant);
            tokio::spawn(tenant_worker(tenant, jobs));
            tokio::spawn(intake(tenant, tx.clone()));
        }
        tokio::spawn(router.run());
        report(stats, run.join("routed")).await;
    });
}
