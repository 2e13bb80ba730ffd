package com.shop;

import stage.Crossing;

/** Two transfers between the same two accounts, in both directions, each of which takes the lock of where it takes from first. */
public final class Transfer {
    private Transfer() {}

    static void book(Account from, Account to, Runnable meet) {
        from.lock.writeLock().lock();
        try {
            meet.run();
            to.lock.writeLock().lock();
            try {
                from.left--;
                to.left++;
            } finally {
                to.lock.writeLock().unlock();
            }
        } finally {
            from.lock.writeLock().unlock();
        }
    }

    public static void main(String[] words) {
        Crossing.run(words[0].equals("stall"), Account::new, Transfer::book, Thread.State.WAITING);
    }
}
