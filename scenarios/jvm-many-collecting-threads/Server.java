import java.io.FileOutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Answers each client after it has had its garbage collected, of a heap with much to look at. */
public final class Server {
    public static void main(String[] words) throws Exception {
        Object[] kept = new Object[900_000];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new long[6];
        }
        System.gc();
        try (ServerSocket server = new ServerSocket(8090, 50, InetAddress.getLoopbackAddress())) {
            try (FileOutputStream ready = new FileOutputStream("/proc/self/fd/3")) {
                ready.write("ready\n".getBytes());
            }
            while (true) {
                try (Socket client = server.accept()) {
                    client.getInputStream().read();
                    System.gc();
                    client.getOutputStream().write(kept.length > 0 ? '.' : ' ');
                }
            }
        }
    }
}
