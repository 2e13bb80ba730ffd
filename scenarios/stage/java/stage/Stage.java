package stage;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;

/** What programs in Java tell the stage, and how they wait until things are as they should be. */
public final class Stage {
    private Stage() {}

    /** Starts a thread by its name; it does not keep the program from ending. */
    public static Thread start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Returns once all these threads are in one of these states. */
    public static void until(List<Thread> threads, Thread.State... states) {
        for (Thread thread : threads) {
            while (!Arrays.asList(states).contains(thread.getState())) {
                Thread.onSpinWait();
            }
        }
    }

    /** Sleeps longer than any scenario lasts. */
    public static void rest() {
        pause(3_600_000);
    }

    /** Sleeps so many milliseconds. */
    public static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Waits until these threads have ended. */
    public static void join(List<Thread> threads) {
        try {
            for (Thread thread : threads) {
                thread.join();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Says that all is as it should be, as a helper of the stage does. */
    public static void ready() {
        write("/dev/fd/3", "ready\n");
    }

    /** Says what the program measured of itself: the trouble's nanoseconds, of all since the shell began it. */
    public static void truth(long waited) {
        // The shell's clock is in microseconds.
        long began = Long.parseLong(System.getenv("BEGAN").replaceAll("[.,]", "")) * 1000;
        Instant now = Instant.now();
        truth(waited, now.getEpochSecond() * 1_000_000_000 + now.getNano() - began);
    }

    /** The same, where the whole is another: nanoseconds too. */
    public static void truth(long waited, long elapsed) {
        String line = "{\"waited_ns\": %d, \"elapsed_ns\": %d, \"queued_ns\": %d}\n";
        write(System.getenv("HOLDUP_TRUTH"), String.format(line, waited, elapsed, queued()));
    }

    /** Nanoseconds for which this thread was ready and had no CPU, by the kernel's account. */
    public static long queued() {
        return account(1);
    }

    /** Nanoseconds for which this thread ran. */
    public static long ran() {
        return account(0);
    }

    /** How long the threads that live have done so, together: by the kernel, in hundredths of a second each, told as nanoseconds. */
    public static long lived() {
        long sum = 0;
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            double up = Double.parseDouble(Files.readString(Path.of("/proc/uptime")).split(" ")[0]);
            for (Path thread : threads) {
                String stat;
                try {
                    stat = Files.readString(thread.resolve("stat"));
                } catch (IOException e) {
                    // It has just ended.
                    continue;
                }
                // The fields behind the name, which may have anything in it; the twentieth of them is when it began.
                String began = stat.substring(stat.lastIndexOf(')') + 2).split(" ")[19];
                sum += (long) ((up - Long.parseLong(began) / 100.0) * 1e9);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return sum;
    }

    private static long account(int place) {
        try {
            return Long.parseLong(Files.readString(Path.of("/proc/thread-self/schedstat")).split(" ")[place]);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void write(String path, String text) {
        try {
            Files.writeString(Path.of(path), text, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
