package com.shop;

import stage.Crossing;

/** Two transfers between the same two accounts, in both directions, each of which locks where it takes from first. */
public final class Transfer {
    private Transfer() {}

    static void book(Account from, Account to, Runnable meet) {
        synchronized (from) {
            meet.run();
            synchronized (to) {
                from.left--;
                to.left++;
            }
        }
    }

    public static void main(String[] words) {
        Crossing.run(words[0].equals("stall"), Account::new, Transfer::book, Thread.State.BLOCKED);
    }
}
