import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.locks.ReentrantLock;

/** Keeps the access token for the partner API fresh. */
final class TokenKeeper {
    private final String host;
    private final int port;
    private final ReentrantLock lock = new ReentrantLock();
    private String token;
    private Instant expires = Instant.EPOCH;

    TokenKeeper(String host, int port) {
        this.host = host;
        this.port = port;
    }

    String token() throws IOException {
        lock.lock();
        try {
            if (token == null || Instant.now().isAfter(expires)) {
                token = fetchToken();
                expires = Instant.now().plus(Duration.ofSeconds(2));
            }
            return token;
        } finally {
            lock.unlock();
        }
    }

    private String fetchToken() throws IOException {
        try (Socket s = new Socket(host, port)) {
            OutputStream out = s.getOutputStream();
            out.write("POST /oauth/token HTTP/1.0\r\nContent-Length: 0\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            out.flush();
            BufferedReader in = new BufferedReader(new InputStreamReader(s.getInputStream(), StandardCharsets.US_ASCII));
            String line;
            String last = "";
            while ((line = in.readLine()) != null) {
                last = line;
            }
            return last;
        }
    }
}
