package com.shop;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import stage.Stage;

/** Four clerks post entries, each entry under a lock: one for all, or one for each clerk. */
public final class Ledger {
    private static final int ENTRIES = 40;
    /** So much is signed with an entry; some milliseconds. */
    private static final byte[] PAGE = new byte[8 << 20];

    private final Object lock;

    private Ledger(Object lock) {
        this.lock = lock;
    }

    void post() {
        synchronized (lock) {
            try {
                if (MessageDigest.getInstance("SHA-256").digest(PAGE).length != 32) {
                    throw new IllegalStateException("no signature");
                }
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    public static void main(String[] words) {
        boolean shared = words[0].equals("stall");
        Object lock = new Object();
        List<Thread> clerks = new ArrayList<>();
        AtomicLong ran = new AtomicLong();
        for (int clerk = 1; clerk <= 4; clerk++) {
            Ledger ledger = new Ledger(shared ? lock : new Object());
            clerks.add(Stage.start("clerk-" + clerk, () -> {
                for (int entry = 0; entry < ENTRIES; entry++) {
                    ledger.post();
                }
                ran.addAndGet(Stage.ran());
            }));
        }
        Stage.join(clerks);
        // One runs at a time: what they ran is how long it took.
        Stage.truth(ran.get());
    }
}
