package com.shop;

import java.util.concurrent.locks.ReentrantReadWriteLock;

/** What somebody has. */
final class Account {
    final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    int left = 100;
}
