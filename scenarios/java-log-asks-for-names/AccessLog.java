package com.shop;

import java.net.InetAddress;
import java.net.UnknownHostException;
import stage.Stage;

/** A log that has the client's name in each line, so that a name server is asked for each new client. */
public final class AccessLog {
    private final StringBuilder lines = new StringBuilder();

    void write(byte[] client, String what) {
        try {
            lines.append(InetAddress.getByAddress(client).getHostName()).append(' ').append(what).append('\n');
        } catch (UnknownHostException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] words) {
        AccessLog log = new AccessLog();
        long before = System.nanoTime();
        for (int client = 1; client <= 3; client++) {
            log.write(new byte[] {(byte) 198, 51, 100, (byte) client}, "GET /");
        }
        Stage.truth(System.nanoTime() - before);
    }
}
