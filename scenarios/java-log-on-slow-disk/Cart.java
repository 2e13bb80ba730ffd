package com.shop;

import java.util.ArrayList;
import java.util.List;
import stage.Stage;

/** Four tills that write each sale to the audit log. */
public final class Cart {
    private static final int SALES = 5;

    static void checkout(AuditLog log, int sale) {
        log.append("sale " + sale);
    }

    public static void main(String[] words) {
        AuditLog log = new AuditLog(words[0]);
        List<Thread> tills = new ArrayList<>();
        long before = System.nanoTime();
        for (int till = 1; till <= 4; till++) {
            tills.add(Stage.start("till-" + till, () -> {
                for (int sale = 0; sale < SALES; sale++) {
                    checkout(log, sale);
                }
            }));
        }
        Stage.join(tills);
        Stage.truth(System.nanoTime() - before);
    }
}
