package com.shop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import stage.Stage;

/** Two payments that ask a bank, by the plain sockets of java.net. */
public final class Payment {
    private final int port;

    private Payment(int port) {
        this.port = port;
    }

    /** The first byte of the bank's answer. */
    int authorise() {
        try (Socket bank = new Socket("127.0.0.1", port)) {
            OutputStream out = bank.getOutputStream();
            out.write("GET / HTTP/1.0\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            InputStream in = bank.getInputStream();
            return in.read();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static void main(String[] words) {
        boolean stall = words[0].equals("stall");
        Payment payment = new Payment(Integer.parseInt(words[1]));
        Runnable work = () -> {
            payment.authorise();
            Stage.rest();
        };
        List<Thread> tills = List.of(Stage.start("till-1", work), Stage.start("till-2", work));
        if (!stall) {
            Stage.until(tills, Thread.State.TIMED_WAITING);
        }
        // Who reads from a socket is runnable to Java.
        Stage.pause(500);
        Stage.ready();
        Stage.rest();
    }
}
