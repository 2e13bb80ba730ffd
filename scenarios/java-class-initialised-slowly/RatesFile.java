package com.shop;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/** Where the rates come from: a pipe that whoever is to write to it leaves empty. */
final class RatesFile {
    static volatile boolean begun;
    static volatile boolean slow;

    private RatesFile() {}

    static void first() {
        Rates.of(1);
    }

    static int read() {
        begun = true;
        if (!slow) {
            return 1;
        }
        try (InputStream in = new FileInputStream(System.getenv("RATES"))) {
            return in.read();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
