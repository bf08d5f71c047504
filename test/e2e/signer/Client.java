// Sends a GET, or a POST of the second argument, with the default settings of java.net.http, and prints the status.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Client {
    public static void main(String[] args) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(args[0]));
        if (args.length > 1) request.POST(HttpRequest.BodyPublishers.ofString(args[1]));
        HttpClient client = HttpClient.newHttpClient();
        System.out.println(client.send(request.build(), HttpResponse.BodyHandlers.ofString()).statusCode());
    }
}
