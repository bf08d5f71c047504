// Sends a GET, or a POST of the second argument, with the default settings of OkHttp, and prints the status.
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

public class OkHttp {
    public static void main(String[] args) throws Exception {
        Request.Builder request = new Request.Builder().url(args[0]);
        if (args.length > 1) request.post(RequestBody.create(MediaType.get("text/plain"), args[1]));
        try (Response response = new OkHttpClient().newCall(request.build()).execute()) {
            System.out.println(response.code());
        }
    }
}
