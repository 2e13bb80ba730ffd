package com.shop;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** A log of which no line may be lost: each is on the disk before its writer goes on. */
final class AuditLog {
    private final RandomAccessFile file;

    AuditLog(String path) {
        try {
            file = new RandomAccessFile(path, "rwd");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    synchronized void append(String line) {
        try {
            file.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
