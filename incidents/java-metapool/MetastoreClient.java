import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

final class MetastoreClient {
    private final Socket socket;
    private final long since = System.currentTimeMillis();

    MetastoreClient(int port) throws IOException {
        socket = new Socket("127.0.0.1", port);
        socket.setSoTimeout(8000);
    }

    String ask(String request) throws IOException {
        socket.getOutputStream().write((request + "\n").getBytes(StandardCharsets.UTF_8));
        InputStream in = socket.getInputStream();
        StringBuilder line = new StringBuilder();
        for (int c; (c = in.read()) != '\n'; line.append((char) c)) {
            if (c < 0) {
                throw new IOException("metastore closed the connection");
            }
        }
        return line.toString();
    }

    long age() {
        return System.currentTimeMillis() - since;
    }

    void close() {
        try {
            socket.close();
        } catch (IOException ignored) {
            // it is gone either way
        }
    }
}
