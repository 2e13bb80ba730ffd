import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

/** Column store node: ingests pages and scrubs old ones. */
public final class StoreServer {
    private final BlockingQueue<int[]> pages = new LinkedBlockingQueue<>(256);
    private final AtomicLong written = new AtomicLong();
    private final AtomicLong dropped = new AtomicLong();

    private void scrubLoop() {
        int pass = 0;
        while (true) {
            PageCodec codec = PageCodec.byName(pass % 2 == 0 ? "default" : "plain");
            byte[] raw = codec.encode(new int[] {pass, pass + 1, pass + 2});
            if (PageCodec.checksum(raw) == 0) {
                System.out.println("scrub: bad page " + pass);
            }
            pass++;
            pause(300);
        }
    }

    private void ingestLoop() {
        pause(60);
        DeltaCodec codec = new DeltaCodec();
        while (true) {
            int[] page;
            try {
                page = pages.take();
            } catch (InterruptedException e) {
                return;
            }
            written.addAndGet(codec.encode(page).length);
        }
    }

    private void receiveLoop() {
        int n = 0;
        while (true) {
            int[] page = new int[64];
            for (int i = 0; i < page.length; i++) {
                page[i] = n + i * i;
            }
            n++;
            if (!pages.offer(page)) {
                dropped.incrementAndGet();
            }
            pause(50);
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] args) {
        StoreServer s = new StoreServer();
        new Thread(s::scrubLoop, "scrubber").start();
        new Thread(s::ingestLoop, "ingest").start();
        new Thread(s::receiveLoop, "receiver").start();
        while (true) {
            pause(2000);
            System.out.println("written " + s.written + " queued " + s.pages.size() + " dropped " + s.dropped);
        }
    }
}
