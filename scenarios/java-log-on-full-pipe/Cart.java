package com.shop;

import java.util.ArrayList;
import java.util.List;
import java.util.logging.Logger;
import stage.Stage;

/** Four tills that log each sale to the console, by the JDK's own logging. */
public final class Cart {
    private static final Logger LOG = Logger.getLogger("shop");
    private static final int SALES = 10;
    private static final String RECEIPT = "x".repeat(4000);

    void checkout() {
        LOG.info(RECEIPT);
    }

    public static void main(String[] words) {
        List<Thread> tills = new ArrayList<>();
        LOG.info("open");
        long before = System.nanoTime();
        for (int till = 1; till <= 4; till++) {
            tills.add(Stage.start("till-" + till, () -> {
                Cart cart = new Cart();
                for (int sale = 0; sale < SALES; sale++) {
                    cart.checkout();
                }
            }));
        }
        Stage.join(tills);
        Stage.truth(System.nanoTime() - before);
    }
}
