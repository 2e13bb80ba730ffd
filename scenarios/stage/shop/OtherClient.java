import javax.net.ssl.SSLContext;
import org.apache.http.client.methods.CloseableHttpResponse;
import org.apache.http.client.methods.HttpGet;
import org.apache.http.conn.ssl.NoopHostnameVerifier;
import org.apache.http.conn.ssl.SSLConnectionSocketFactory;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClients;
import org.apache.http.util.EntityUtils;

/**
 * The same shop with Apache's HTTP client: OtherClient each|one TRUTH. `each` makes a client for each request, as one that is closed with
 * its answer is mostly made, and a TLS context with it; `one` makes one context for all, and a client for each; `kept` one client for all.
 */
public final class OtherClient {
    private static CloseableHttpClient client(SSLContext context) {
        TimedSockets sockets = new TimedSockets(context.getSocketFactory());
        return HttpClients.custom().setSSLSocketFactory(new SSLConnectionSocketFactory(sockets, NoopHostnameVerifier.INSTANCE)).build();
    }

    private static void ask(CloseableHttpClient client) throws Exception {
        try (CloseableHttpResponse answer = client.execute(new HttpGet(Shop.STOCK.toURI()))) {
            EntityUtils.consume(answer.getEntity());
        }
    }

    public static void main(String[] words) throws Exception {
        SSLContext common = Shop.context();
        CloseableHttpClient kept = client(common);
        Shop.Client how = words[0].equals("kept")
            ? () -> ask(kept)
            : () -> {
                try (CloseableHttpClient client = client(words[0].equals("each") ? Shop.context() : common)) {
                    ask(client);
                }
            };
        Shop.serve(how, words[1]);
    }
}
