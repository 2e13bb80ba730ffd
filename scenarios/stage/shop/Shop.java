import com.sun.net.httpserver.HttpServer;
import java.io.FileWriter;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;

/**
 * A shop that answers on 127.0.0.1:8080, and asks https://localhost:8443/stock once for each request, by the client that comes with the
 * JDK: Shop TRUTH. When it is told to end it writes how long its requests took and how much of that were handshakes, and says how many
 * there were of each.
 */
public final class Shop {
    static final URL STOCK = url("https://localhost:8443/stock");

    /** Whoever answers is believed: the certificate is made for the occasion. */
    private static final X509TrustManager ALL = new X509TrustManager() {
        @Override public void checkClientTrusted(X509Certificate[] chain, String type) { }
        @Override public void checkServerTrusted(X509Certificate[] chain, String type) { }
        @Override public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
    };

    /** Something that asks. */
    interface Client {
        void ask() throws Exception;
    }

    /** What the answers are for: a shop that did nothing of its own would rightly be said to wait. */
    private static volatile long sum;

    private static final AtomicLong answered = new AtomicLong(), answering = new AtomicLong();

    private static void use() {
        long mixed = sum;
        for (int i = 0; i < 200_000; i++) {
            mixed = mixed * 6364136223846793005L + i;
        }
        sum = mixed;
    }

    private static URL url(String address) {
        try {
            return new URL(address);
        } catch (java.net.MalformedURLException error) {
            throw new IllegalArgumentException(error);
        }
    }

    /** Keeps the sessions of all connections that are made with it. */
    static SSLContext context() throws Exception {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {ALL}, new SecureRandom());
        return context;
    }

    /** Once it is warm, and until it is told to end. */
    static void serve(Client client, String truth) throws Exception {
        for (int i = 0; i < 300; i++) {
            client.ask();
            use();
        }
        // Else the second half of each answer waits for the customer's system to acknowledge the first.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 8080), 0);
        server.setExecutor(Executors.newFixedThreadPool(2));
        server.createContext("/", exchange -> {
            long began = System.nanoTime();
            try {
                client.ask();
            } catch (Exception error) {
                throw new java.io.IOException(error);
            }
            use();
            byte[] ok = {'o', 'k', '\n'};
            exchange.sendResponseHeaders(200, ok.length);
            exchange.getResponseBody().write(ok);
            exchange.close();
            answering.addAndGet(System.nanoTime() - began);
            answered.incrementAndGet();
        });
        server.start();
        long shaking = TimedSockets.shaking.get(), handshakes = TimedSockets.handshakes.get();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try (FileWriter file = new FileWriter(truth, true)) {
                long took = TimedSockets.shaking.get() - shaking;
                file.write(String.format("{\"waited_ns\": %d, \"elapsed_ns\": %d}%n", took, answering.get()));
                System.err.printf("the shop: %d requests in %.3f ms each, %d handshakes in %.3f ms each%n", answered.get(),
                    answering.get() / 1e6 / answered.get(), TimedSockets.handshakes.get() - handshakes,
                    took / 1e6 / Math.max(1, TimedSockets.handshakes.get() - handshakes));
            } catch (java.io.IOException error) {
                error.printStackTrace();
            }
        }));
        try (FileWriter ready = new FileWriter("/proc/self/fd/3")) {
            ready.write("ready\n");
        }
    }

    public static void main(String[] words) throws Exception {
        HttpsURLConnection.setDefaultSSLSocketFactory(new TimedSockets(context().getSocketFactory()));
        HttpsURLConnection.setDefaultHostnameVerifier((host, session) -> true);
        serve(() -> {
            try (InputStream answer = STOCK.openStream()) {
                answer.readAllBytes();
            }
        }, words[0]);
    }
}
