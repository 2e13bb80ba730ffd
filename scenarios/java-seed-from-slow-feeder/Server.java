import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.util.HexFormat;

/** A server that starts: its log wants an identifier, and that wants a seed. It says what it measured of itself. */
public final class Server {
    /** Names the instance, as a message broker does. */
    static final class Ids {
        static long waited;

        static String next() {
            long before = System.nanoTime();
            byte[] id = new SecureRandom().generateSeed(16);
            waited += System.nanoTime() - before;
            return HexFormat.of().formatHex(id);
        }
    }

    static final class Log {
        final String instance = Ids.next();
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("instance " + new Log().instance);
        // The shell's clock, which the command began with, is in microseconds.
        long began = Long.parseLong(System.getenv("BEGAN").replaceAll("[.,]", "")) * 1000;
        var now = java.time.Instant.now();
        long elapsed = now.getEpochSecond() * 1_000_000_000 + now.getNano() - began;
        String line = "{\"waited_ns\": %d, \"elapsed_ns\": %d, \"queued_ns\": %d}\n".formatted(Ids.waited, elapsed, queued());
        Files.writeString(Path.of(System.getenv("HOLDUP_TRUTH")), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /** Nanoseconds for which this thread was ready and had no CPU, by the kernel's account. */
    static long queued() throws Exception {
        return Long.parseLong(Files.readString(Path.of("/proc/thread-self/schedstat")).split(" ")[1]);
    }
}
