import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

/** Keeps most of a small heap and makes garbage in the rest of it. The machine itself counts how long its collections took. */
public final class Full {
    static volatile Object sink;
    static volatile long compute;

    public static void main(String[] words) throws Exception {
        // 44 MB, in pieces as small as what lists and maps are made of: each has to be looked at by each collection.
        Object[] kept = new Object[700_000];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new long[6];
        }
        long until = System.nanoTime() + 2_500_000_000L;
        int turn = 0;
        while (System.nanoTime() < until) {
            for (int i = 0; i < 1_000; i++) {
                for (int step = 0; step < 10; step++) {
                    compute = (compute * 31 + i) ^ (compute >>> 7);
                }
                sink = new long[6];
                if (i % 50 == 0) {
                    kept[turn++ % kept.length] = sink;
                }
            }
        }
        long collecting = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collecting += collector.getCollectionTime();
        }
        stage.Stage.truth(collecting * 1_000_000);
    }
}
