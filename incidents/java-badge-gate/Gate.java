import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;

/** Opens a door for whoever has a badge that the directory knows. */
public final class Gate {
    private final Directory directory;

    private Gate(Directory directory) { this.directory = directory; }

    private void open(HttpExchange door) throws IOException {
        byte[] said;
        try {
            said = ("welcome " + directory.nameOf(door.getRequestURI().getQuery())).getBytes();
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
        door.sendResponseHeaders(200, said.length);
        door.getResponseBody().write(said);
        door.close();
    }

    public static void main(String[] args) throws IOException {
        Path run = Path.of(System.getenv("RUN"));
        String port = Files.readString(run.resolve("directory.port")).trim();
        Gate gate = new Gate(new Directory("http://127.0.0.1:" + port));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newFixedThreadPool(6));
        server.createContext("/open", gate::open);
        server.start();
        Files.writeString(run.resolve("gate.new"), String.valueOf(server.getAddress().getPort()));
        Files.move(run.resolve("gate.new"), run.resolve("gate.port"));
    }
}
