import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that wait in known ways, until standard input ends. */
public class Waits {
    static final Object MONITOR = new Object();
    static final Object CONDITION = new Object();
    static final ReentrantLock LOCK = new ReentrantLock();
    static final CountDownLatch NEVER = new CountDownLatch(1);
    static final List<Thread> THREADS = new ArrayList<>();
    static volatile boolean hot;

    interface Body { void run() throws Exception; }

    static void start(String name, Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        THREADS.add(thread);
    }

    /** Whether it does, as far as can be told from here. */
    static boolean waits(Thread thread) {
        StackTraceElement[] stack = thread.getStackTrace();
        if (stack.length == 0) return false;
        boolean calls = stack[0].isNativeMethod() && !stack[0].getMethodName().equals("connect0");
        return calls || thread.getState() == Thread.State.BLOCKED;
    }

    static void sleep() throws Exception { Thread.sleep(1_000_000); }

    static void deep(int levels) throws Exception {
        if (levels == 0) sleep(); else deep(levels - 1);
    }

    static void await() throws Exception {
        synchronized (CONDITION) { CONDITION.wait(); }
    }

    static void enter() {
        synchronized (MONITOR) { hot = hot; }
    }

    static synchronized void holdClass() throws Exception { sleep(); }

    // Small enough to be put into each other once they are compiled.
    static int outer(int x) throws Exception { return middle(x) + 1; }
    static int middle(int x) throws Exception { return inner(x) + 1; }
    static int inner(int x) throws Exception {
        if (hot && x == Integer.MAX_VALUE) sleep();
        return x ^ 1;
    }

    static int warm() throws Exception {
        int sum = 0;
        for (int i = 0; i < 200_000; i++) sum += outer(i);
        return sum;
    }

    public static void main(String[] args) throws Exception {
        warm();
        hot = true;
        int depth = args.length > 0 ? Integer.parseInt(args[0]) : 60;
        start("sleeper", Waits::sleep);
        start("deep", () -> deep(depth));
        start("waiter", Waits::await);
        start("owner", () -> { synchronized (MONITOR) { LOCK.lock(); sleep(); } });
        while (!LOCK.isLocked()) Thread.sleep(1);
        start("enterer", Waits::enter);
        start("locker", LOCK::lock);
        start("latch", NEVER::await);
        start("hot", () -> outer(Integer.MAX_VALUE));
        start("class", Waits::holdClass);
        // Which of the two has it must not be chance.
        Thread first = THREADS.get(THREADS.size() - 1);
        while (first.getState() != Thread.State.TIMED_WAITING) Thread.sleep(1);
        start("class-too", Waits::holdClass);
        start("with a name that is longer than what the kernel keeps", Waits::sleep);
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        start("accepter", () -> { server.accept(); server.accept(); });
        start("reader", () -> {
            try (Socket socket = new Socket(server.getInetAddress(), server.getLocalPort())) {
                InputStream in = socket.getInputStream();
                in.read();
            }
        });
        for (Thread thread : THREADS) while (!waits(thread)) Thread.sleep(1);
        System.out.println("ready");
        System.in.read();
    }
}
