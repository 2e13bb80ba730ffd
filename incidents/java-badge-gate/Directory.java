import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Knows whose badge it is: asks the directory. */
final class Directory {
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final String base;

    Directory(String base) { this.base = base; }

    String nameOf(String badge) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(base + "/badges/" + badge)).build();
        HttpResponse<String> answer =
            client.send(request, HttpResponse.BodyHandlers.ofString());
        return answer.statusCode() == 200 ? answer.body().trim() : "nobody";
    }
}
