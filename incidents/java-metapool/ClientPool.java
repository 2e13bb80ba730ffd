import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;

/** A small pool of connections to the metastore. */
final class ClientPool {
    interface Factory {
        MetastoreClient open() throws IOException;
    }

    private final Deque<MetastoreClient> idle = new ArrayDeque<>();
    private final Factory factory;
    private final int limit;
    private int opened;
    private int waiting;

    ClientPool(int limit, Factory factory) {
        this.limit = limit;
        this.factory = factory;
    }

    synchronized MetastoreClient borrow() throws IOException, InterruptedException {
        waiting++;
        try {
            while (idle.isEmpty()) {
                if (opened < limit) {
                    idle.add(factory.open());
                    opened++;
                } else {
                    wait();
                }
            }
            return idle.poll();
        } finally {
            waiting--;
        }
    }

    synchronized void giveBack(MetastoreClient c) {
        idle.addFirst(c);
        notify();
    }

    /** Waits for a moment in which nobody uses or wants a connection, and then closes the old ones. */
    synchronized void retireOld(long maxAgeMillis) throws InterruptedException {
        while (waiting > 0 || idle.size() < opened) {
            wait();
        }
        for (MetastoreClient c : idle.toArray(new MetastoreClient[0])) {
            if (c.age() > maxAgeMillis) {
                idle.remove(c);
                c.close();
                opened--;
            }
        }
    }

    synchronized String describe() {
        return "opened " + opened + " idle " + idle.size() + " waiting " + waiting;
    }
}
