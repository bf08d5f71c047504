import example.proofgate.Signer;
import example.proofgate.SigningHttpClient;
import example.proofgate.SpringSigningInterceptor;
import java.nio.file.Path;
import org.springframework.http.MediaType;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientResponseException;

/** Creates an order and reads it. Arguments: key file, base URL. */
public class WithRestClient {
    public static void main(String[] args) throws Exception {
        Signer signer = Signer.open(Path.of(args[0]));
        String baseUrl = args[1];

        RestClient client = RestClient.builder()
            .requestFactory(new JdkClientHttpRequestFactory(new SigningHttpClient(signer)))
            .baseUrl(baseUrl)
            .build();
        try {
            var created = client.post().uri("/v1/orders").contentType(MediaType.APPLICATION_JSON)
                .body("{\"item\":\"book\"}").retrieve().toBodilessEntity();
            var order = client.get().uri("/v1/orders/17").retrieve().toBodilessEntity();
            System.out.println(created.getStatusCode().value() + " " + order.getStatusCode().value());
        } catch (RestClientResponseException error) {
            SpringSigningInterceptor.denialOf(error).ifPresent(denied -> { throw denied; });
            throw error;
        }
    }
}
