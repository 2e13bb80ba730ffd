package com.shop;

/** What somebody has. */
final class Account {
    int left = 100;
}
