import example.proofgate.Signer;
import example.proofgate.SigningHttpClient;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;

/** Creates an order and reads it. Arguments: key file, base URL. */
public class WithHttpClient {
    public static void main(String[] args) throws Exception {
        Path keyFile = Path.of(args[0]);
        String baseUrl = args[1];

        HttpClient client = new SigningHttpClient(Signer.open(keyFile));
        HttpRequest create = HttpRequest.newBuilder(URI.create(baseUrl + "/v1/orders"))
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString("{\"item\":\"book\"}"))
            .build();
        HttpResponse<String> created = client.send(create, BodyHandlers.ofString());
        SigningHttpClient.denialOf(created).ifPresent(denied -> { throw denied; });

        HttpRequest read = HttpRequest.newBuilder(URI.create(baseUrl + "/v1/orders/17")).build();
        HttpResponse<String> order = client.send(read, BodyHandlers.ofString());
        SigningHttpClient.denialOf(order).ifPresent(denied -> { throw denied; });
        System.out.println(created.statusCode() + " " + order.statusCode());
    }
}
