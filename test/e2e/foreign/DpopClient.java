import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.jwk.Curve;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.oauth2.sdk.ClientCredentialsGrant;
import com.nimbusds.oauth2.sdk.TokenRequest;
import com.nimbusds.oauth2.sdk.TokenResponse;
import com.nimbusds.oauth2.sdk.auth.ClientSecretBasic;
import com.nimbusds.oauth2.sdk.auth.Secret;
import com.nimbusds.oauth2.sdk.dpop.DPoPProofFactory;
import com.nimbusds.oauth2.sdk.dpop.DefaultDPoPProofFactory;
import com.nimbusds.oauth2.sdk.http.HTTPRequest;
import com.nimbusds.oauth2.sdk.http.HTTPResponse;
import com.nimbusds.oauth2.sdk.id.ClientID;
import com.nimbusds.oauth2.sdk.token.DPoPAccessToken;
import com.nimbusds.oauth2.sdk.token.DPoPTokenError;
import com.nimbusds.openid.connect.sdk.Nonce;
import java.io.FileInputStream;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.URI;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Does with Nimbus what dpop-client.mjs does. The library makes proofs and reads nonces; its caller repeats a request.
 * Arguments: token endpoint, client ID, secret, resource, file of the CA, host and port of the relay, URLs.
 */
public class DpopClient {
  private static DPoPProofFactory proofs;
  private static DPoPAccessToken token;
  private static Proxy relay;
  private static Nonce nonce;

  public static void main(String[] args) throws Exception {
    proofs = new DefaultDPoPProofFactory(new ECKeyGenerator(Curve.P_256).generate(), JWSAlgorithm.ES256);
    URI endpoint = URI.create(args[0]);
    HTTPRequest asks = new TokenRequest(endpoint, new ClientSecretBasic(new ClientID(args[1]), new Secret(args[2])),
        new ClientCredentialsGrant(), null, List.of(URI.create(args[3])), null).toHTTPRequest();
    asks.setDPoP(proofs.createDPoPJWT("POST", endpoint));
    asks.setSSLSocketFactory(trusting(args[4]).getSocketFactory());
    token = TokenResponse.parse(asks.send()).toSuccessResponse().getTokens().getDPoPAccessToken();
    relay = new Proxy(Proxy.Type.HTTP, new InetSocketAddress(args[5], Integer.parseInt(args[6])));
    List<Integer> statuses = new ArrayList<>();
    for (String url : List.of(args).subList(7, args.length)) {
      HTTPResponse answer = read(URI.create(url));
      if (asksForNonce(answer)) answer = read(URI.create(url));
      statuses.add(answer.getStatusCode());
    }
    System.out.println(statuses);
  }

  private static HTTPResponse read(URI url) throws Exception {
    HTTPRequest request = new HTTPRequest(HTTPRequest.Method.GET, url);
    request.setProxy(relay);
    request.setAuthorization(token.toAuthorizationHeader());
    request.setDPoP(proofs.createDPoPJWT("GET", url, token, nonce));
    HTTPResponse answer = request.send();
    if (answer.getDPoPNonce() != null) nonce = answer.getDPoPNonce();
    return answer;
  }

  private static boolean asksForNonce(HTTPResponse answer) throws Exception {
    return answer.getStatusCode() == 401
        && DPoPTokenError.USE_DPOP_NONCE.getCode().equals(DPoPTokenError.parse(answer.getWWWAuthenticate()).getCode());
  }

  private static SSLContext trusting(String file) throws Exception {
    KeyStore roots = KeyStore.getInstance(KeyStore.getDefaultType());
    roots.load(null, null);
    try (FileInputStream input = new FileInputStream(file)) {
      roots.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(input));
    }
    TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(roots);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, managers.getTrustManagers(), null);
    return context;
  }
}
