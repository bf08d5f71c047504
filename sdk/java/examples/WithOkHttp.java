import example.proofgate.OkHttpSigningInterceptor;
import example.proofgate.Signer;
import java.nio.file.Path;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

/** Creates an order and reads it. Arguments: key file, base URL. */
public class WithOkHttp {
    public static void main(String[] args) throws Exception {
        Signer signer = Signer.open(Path.of(args[0]));
        String baseUrl = args[1];

        OkHttpClient client = new OkHttpClient.Builder()
            .addNetworkInterceptor(new OkHttpSigningInterceptor(signer))
            .build();
        RequestBody book = RequestBody.create("{\"item\":\"book\"}", MediaType.get("application/json"));
        Request create = new Request.Builder().url(baseUrl + "/v1/orders").post(book).build();
        Request read = new Request.Builder().url(baseUrl + "/v1/orders/17").build();
        try (Response created = client.newCall(create).execute(); Response order = client.newCall(read).execute()) {
            OkHttpSigningInterceptor.denialOf(created).ifPresent(denied -> { throw denied; });
            OkHttpSigningInterceptor.denialOf(order).ifPresent(denied -> { throw denied; });
            System.out.println(created.code() + " " + order.code());
        }
    }
}
