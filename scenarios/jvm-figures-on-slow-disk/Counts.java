import java.nio.file.Files;
import java.nio.file.Path;

/** Has its garbage collected between steps, so that the machine counts each time. The looks at the clock say how long it stood. */
public final class Counts {
    static final long STEP_NS = 50_000_000;
    static final long MOMENT_NS = 30_000_000;
    static volatile long compute;

    static void step(long until) {
        while (System.nanoTime() < until) {
            for (int i = 0; i < 20_000; i++) {
                compute = (compute * 31 + i) ^ (compute >>> 7);
            }
        }
    }

    public static void main(String[] words) throws Exception {
        // From now on the disk is kept busy.
        Files.createFile(Path.of(words[0]));
        long waited = 0;
        long until = System.nanoTime() + 4_000_000_000L;
        while (System.nanoTime() < until) {
            long before = System.nanoTime();
            System.gc();
            long took = System.nanoTime() - before;
            if (took > MOMENT_NS) {
                waited += took;
            }
            step(System.nanoTime() + STEP_NS);
        }
        Files.delete(Path.of(words[0]));
        stage.Stage.truth(waited);
    }
}
