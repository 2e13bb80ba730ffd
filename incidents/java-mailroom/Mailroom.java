import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Accepts letters over HTTP, renders them and hands them to the printer spool. */
public final class Mailroom {
    private final ExecutorService renderers = Executors.newFixedThreadPool(12);
    private final ScheduledExecutorService timer = Executors.newScheduledThreadPool(2);
    private final Map<String, Long> pagesByCustomer = new ConcurrentHashMap<>();
    private final AtomicLong accepted = new AtomicLong();
    private final AtomicLong rendered = new AtomicLong();

    private void accept(HttpExchange x) throws IOException {
        String body = new String(x.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        accepted.incrementAndGet();
        renderers.submit(() -> render(body));
        byte[] answer = "queued\n".getBytes(StandardCharsets.US_ASCII);
        x.sendResponseHeaders(202, answer.length);
        x.getResponseBody().write(answer);
        x.close();
    }

    private void render(String letter) {
        String customer = letter.substring(0, Math.min(4, letter.length()));
        StringBuilder page = new StringBuilder();
        for (int line = 0; line < 60; line++) {
            page.append(String.format("%3d %s%n", line, letter));
        }
        pagesByCustomer.merge(customer, 1L + page.length() / 4000, Long::sum);
        rendered.incrementAndGet();
    }

    private void statistics(Path file) {
        try {
            Files.writeString(file, "accepted " + accepted + " rendered " + rendered + " customers " + pagesByCustomer.size() + "\n");
        } catch (IOException e) {
            System.err.println("statistics: " + e.getMessage());
        }
    }

    public static void main(String[] args) throws Exception {
        Path run = Path.of(System.getenv("RUN"));
        Mailroom m = new Mailroom();
        for (int i = 0; i < 12; i++) {
            m.renderers.submit(() -> m.render("warm up"));
        }
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 50);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/letters", m::accept);
        server.start();
        m.timer.scheduleAtFixedRate(() -> m.statistics(run.resolve("stats.txt")), 1, 5, TimeUnit.SECONDS);
        Files.writeString(run.resolve("http.port.tmp"), String.valueOf(server.getAddress().getPort()));
        Files.move(run.resolve("http.port.tmp"), run.resolve("http.port"));
    }
}
