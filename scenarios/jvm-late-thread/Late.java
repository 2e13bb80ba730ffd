/**
 * One thread goes on in small steps and has all stopped now and then; another computes in a loop of counted length. The machine's own
 * log tells how long it took until they had stopped.
 */
public final class Late {
    static volatile int sink;
    static volatile boolean over;

    static int compute(int[] numbers, int times) {
        int sum = 1;
        for (int i = 0; i < times; i++) {
            sum = sum * 31 + (numbers[i & 1023] ^ (sum >>> 3));
        }
        return sum;
    }

    static void step(long until) {
        int[] small = new int[1024];
        long collect = 0;
        while (System.nanoTime() < until) {
            if (System.nanoTime() > collect) {
                System.gc();
                collect = System.nanoTime() + 60_000_000;
            }
            sink = compute(small, 1_000);
        }
    }

    public static void main(String[] words) throws Exception {
        int[] numbers = new int[1024];
        for (int i = 0; i < 100; i++) {
            sink = compute(numbers, 100_000);
        }
        Thread computes = new Thread(() -> {
            while (!over) {
                sink = compute(numbers, 250_000_000);
            }
        }, "computes");
        computes.start();
        step(System.nanoTime() + 3_000_000_000L);
        over = true;
        // Who joins it takes over its time; nobody has waited for it so far.
        while (computes.isAlive()) {
            Thread.onSpinWait();
        }
        stage.Stage.truth(0);
    }
}
