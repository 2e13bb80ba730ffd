package com.shop;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import stage.Stage;

/** Locks the till, and rests. */
final class Till {
    private Till() {}

    public static void main(String[] words) throws IOException {
        Path till = Path.of(words[0]);
        Stage.ready();
        try (FileChannel channel = FileChannel.open(till, StandardOpenOption.WRITE)) {
            channel.lock(0, 100, false);
            Stage.rest();
        }
    }
}
