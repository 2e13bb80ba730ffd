import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.ReentrantLock;

/** Virtual threads that wait in known ways: for a lock, a queue, a socket, a timer, below many calls, and one in an initialiser. */
public class Virtuals {
    static final ReentrantLock LOCK = new ReentrantLock();
    static final BlockingQueue<String> QUEUE = new LinkedBlockingQueue<>();

    static class Slow {
        static final String VALUE = takes();
    }

    static void pays() {
        LOCK.lock();
        LOCK.unlock();
    }

    static String takes() {
        try {
            return QUEUE.take();
        } catch (InterruptedException end) {
            return "";
        }
    }

    static void rests() {
        try {
            Thread.sleep(1_000_000);
        } catch (InterruptedException end) {
            return;
        }
    }

    static void asks(int port) {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.getInputStream().read();
        } catch (Exception end) {
            return;
        }
    }

    static int down(int steps) {
        return steps == 0 ? takes().length() : down(steps - 1) + 1;
    }

    public static void main(String[] arguments) throws Exception {
        int steps = Integer.parseInt(arguments[0]);
        LOCK.lock();
        ServerSocket silent = new ServerSocket(0);
        var pool = Executors.newVirtualThreadPerTaskExecutor();
        for (int index = 0; index < 20; index++) {
            pool.submit(Virtuals::pays);
            pool.submit(Virtuals::takes);
        }
        Thread.ofVirtual().name("rester").start(Virtuals::rests);
        Thread.ofVirtual().name("asker").start(() -> asks(silent.getLocalPort()));
        Thread.ofVirtual().name("deep").start(() -> down(steps));
        Thread.sleep(1_000);
        Thread.ofVirtual().name("pinned").start(() -> Slow.VALUE.length());
        Thread.sleep(1_000);
        System.out.println("ready");
        System.in.read();
    }
}
