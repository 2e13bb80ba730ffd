import java.io.IOException;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;

/** Forwards hotel bookings to the partner. */
public final class BookingGateway {
    record Booking(int id, String hotel, int nights) {}

    private final BlockingQueue<Booking> inbox = new ArrayBlockingQueue<>(500);
    private final TokenKeeper tokens;
    private final AtomicInteger sent = new AtomicInteger();
    private final AtomicInteger lost = new AtomicInteger();

    BookingGateway(TokenKeeper tokens) {
        this.tokens = tokens;
    }

    private void forward(Booking b) throws IOException {
        String auth = "Bearer " + tokens.token();
        String body = "{\"id\":" + b.id() + ",\"hotel\":\"" + b.hotel() + "\",\"nights\":" + b.nights() + "}";
        if (auth.length() + body.length() > 0) {
            sent.incrementAndGet();
        }
    }

    private void handlerLoop() {
        while (true) {
            try {
                forward(inbox.take());
            } catch (IOException e) {
                System.out.println("forward: " + e.getMessage());
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private void receive() throws InterruptedException {
        Random rnd = new Random(7);
        String[] hotels = {"Post", "Krone", "Seeblick"};
        for (int id = 1; ; id++) {
            if (!inbox.offer(new Booking(id, hotels[rnd.nextInt(3)], 1 + rnd.nextInt(9)))) {
                lost.incrementAndGet();
            }
            Thread.sleep(40);
            if (id % 50 == 0) {
                System.out.println("sent " + sent + " waiting " + inbox.size() + " lost " + lost);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(System.getenv("AUTH_PORT"));
        BookingGateway g = new BookingGateway(new TokenKeeper("127.0.0.1", port));
        for (int i = 1; i <= 6; i++) {
            new Thread(g::handlerLoop, "handler-" + i).start();
        }
        g.receive();
    }
}
