//! Keeps how many parcels are in each bin: pickers take, and a recount asks the scanner now and then.
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::sleep;

#[derive(Default)]
struct Bins {
    counts: Mutex<HashMap<u32, i64>>,
}

impl Bins {
    async fn recount(&self, bin: u32) {
        let mut counts = self.counts.lock().unwrap();
        let seen = scan(bin).await;
        counts.insert(bin, seen);
    }

    #[inline(never)]
    fn take(&self, bin: u32) -> i64 {
        let mut counts = self.counts.lock().unwrap();
        let left = counts.entry(bin).or_insert(100);
        *left -= 1;
        *left
    }
}

async fn scan(bin: u32) -> i64 {
    sleep(Duration::from_millis(40)).await;
    100 + i64::from(bin)
}

async fn pick(bins: Rc<Bins>, picker: u64) {
    let mut taken = 0;
    loop {
        sleep(Duration::from_millis(7 + picker)).await;
        taken += bins.take(u32::try_from(picker % 3).unwrap());
        if taken < 0 {
            eprintln!("picker {picker} is short");
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let bins = Rc::new(Bins::default());
    let local = LocalSet::new();
    for picker in 0..4 {
        local.spawn_local(pick(Rc::clone(&bins), picker));
    }
    local
        .run_until(async move {
            loop {
                sleep(Duration::from_millis(300)).await;
                let bins = Rc::clone(&bins);
                tokio::task::spawn_local(async move { bins.recount(1).await });
            }
        })
        .await;
}
