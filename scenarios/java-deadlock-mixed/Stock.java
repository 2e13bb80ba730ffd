package com.shop;

/** What is left on the shelves. */
final class Stock {
    int left = 7;
}
