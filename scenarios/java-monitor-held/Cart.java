package com.shop;

import java.util.ArrayList;
import java.util.List;
import stage.Stage;

/** Four tills want to look at the stock, which the main thread has locked, and in which it sleeps. */
public final class Cart {
    private final Stock stock;

    private Cart(Stock stock) {
        this.stock = stock;
    }

    int checkout() {
        synchronized (stock) {
            return stock.left();
        }
    }

    public static void main(String[] words) {
        boolean shared = words[0].equals("stall");
        Stock stock = new Stock();
        List<Thread> tills = new ArrayList<>();
        synchronized (stock) {
            for (int till = 1; till <= 4; till++) {
                Cart cart = new Cart(shared ? stock : new Stock());
                tills.add(Stage.start("till-" + till, () -> {
                    cart.checkout();
                    Stage.rest();
                }));
            }
            Stage.until(tills, shared ? Thread.State.BLOCKED : Thread.State.TIMED_WAITING);
            Stage.ready();
            stock.count();
        }
    }
}
