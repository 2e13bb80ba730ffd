/** Makes garbage as fast as it can, beside a collector that works at the same time, with a look at the clock after each piece. */
public final class Stalls {
    static final long MOMENT_NS = 3_000_000;
    static volatile Object sink;

    public static void main(String[] words) throws Exception {
        int bytes = Integer.parseInt(words[0]);
        Object[] kept = new Object[400_000];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new long[6];
        }
        long waited = 0;
        long before = System.nanoTime();
        long until = before + 3_000_000_000L;
        int turn = 0;
        while (before < until) {
            sink = new byte[bytes];
            kept[turn++ % kept.length] = new long[6];
            long now = System.nanoTime();
            if (now - before > MOMENT_NS) {
                waited += now - before;
            }
            before = now;
        }
        stage.Stage.truth(waited);
    }
}
