package stage;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;

/** Two threads, there and back, that each take one of two things and then want the other's. */
public final class Crossing {
    private Crossing() {}

    /** Takes the first, meets the other thread, takes the second. */
    public interface Taking<T> {
        void take(T first, T second, Runnable meet);
    }

    /** Crossed they want each other's and come to stand in this state; else each has two things of its own, and is done. */
    public static <T> void run(boolean crossed, Supplier<T> make, Taking<T> taking, Thread.State stuck) {
        CountDownLatch both = new CountDownLatch(2);
        T first = make.get();
        T second = make.get();
        Thread there = start("there", taking, first, second, both);
        Thread back = crossed
                ? start("back", taking, second, first, both)
                : start("back", taking, make.get(), make.get(), both);
        Stage.until(List.of(there, back), crossed ? stuck : Thread.State.TIMED_WAITING);
        Stage.ready();
        Stage.rest();
    }

    private static <T> Thread start(String name, Taking<T> taking, T first, T second, CountDownLatch both) {
        return Stage.start(name, () -> {
            taking.take(first, second, () -> meet(both));
            Stage.rest();
        });
    }

    private static void meet(CountDownLatch both) {
        both.countDown();
        try {
            both.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
