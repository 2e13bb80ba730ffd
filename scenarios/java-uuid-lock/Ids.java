package com.shop;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import stage.Stage;

/**
 * Eight tills that want an identifier for each sale: from UUID.randomUUID, or in the twin from a generator of each thread's own. Each
 * counts how long it lived and neither ran nor was ready to: there is nothing else that it could have waited for.
 */
public final class Ids {
    private static final int SALES = 60_000;

    static UUID next(boolean shared) {
        if (shared) {
            return UUID.randomUUID();
        }
        ThreadLocalRandom random = ThreadLocalRandom.current();
        return new UUID(random.nextLong(), random.nextLong());
    }

    public static void main(String[] words) {
        boolean shared = words[0].equals("stall");
        List<Thread> tills = new ArrayList<>();
        AtomicLong waited = new AtomicLong();
        AtomicLong lived = new AtomicLong();
        for (int till = 1; till <= 8; till++) {
            tills.add(Stage.start("till-" + till, () -> {
                long before = System.nanoTime();
                long onCpu = Stage.ran() + Stage.queued();
                long sum = 0;
                for (int sale = 0; sale < SALES; sale++) {
                    sum += next(shared).getLeastSignificantBits();
                }
                if (sum == 0) {
                    throw new IllegalStateException("no identifiers");
                }
                onCpu = Stage.ran() + Stage.queued() - onCpu;
                long took = System.nanoTime() - before;
                waited.addAndGet(took - onCpu);
                lived.addAndGet(took);
            }));
        }
        Stage.join(tills);
        Stage.truth(waited.get(), lived.get() + Stage.lived());
    }
}
