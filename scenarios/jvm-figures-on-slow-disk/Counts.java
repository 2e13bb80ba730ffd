import java.nio.file.Files;
import java.nio.file.Path;

/** Has its garbage collected between steps, so that the machine counts each time. What of its time were no steps is how long it stood. */
public final class Counts {
    static final long STEP_NS = 50_000_000;
    static volatile long compute;
    static long computed;

    static void step(long ns) {
        long began = System.nanoTime();
        long now = began;
        while (now < began + ns) {
            for (int i = 0; i < 20_000; i++) {
                compute = (compute * 31 + i) ^ (compute >>> 7);
            }
            now = System.nanoTime();
        }
        computed += now - began;
    }

    public static void main(String[] words) throws Exception {
        Path runs = Path.of(words[0]);
        Path busy = Path.of(words[1]);
        // Loaded before the clock starts; the machine counts its classes, too.
        stage.Stage.ran();
        Files.createFile(busy);
        long began = System.nanoTime();
        // From now on the disk is kept busy.
        Files.createFile(runs);
        while (System.nanoTime() < began + 4_000_000_000L) {
            System.gc();
            step(STEP_NS);
        }
        Files.delete(runs);
        // What is still on its way to the disk would hold up the machine's own end, which no clock of this program sees.
        while (Files.exists(busy)) {
            step(STEP_NS / 10);
        }
        stage.Stage.truth(System.nanoTime() - began - computed);
    }
}
