package example.proofgate;

import java.net.URI;
import java.util.List;
import java.util.Map;

/** The URL that clients which take a {@link URI} send, so that it can be signed byte for byte. */
final class ExactUri {
    private ExactUri() {}

    /**
     * Returns a URI whose text is what is sent: without fragment, and without a "?" before an empty query, which
     * java.net.http omits over HTTP/1.1 alone. Characters beyond ASCII are escaped.
     */
    static URI of(URI uri) throws SigningException {
        if (uri.getScheme() == null || uri.getRawAuthority() == null)
            throw new SigningException("url_invalid", "the URL must begin with https:// or http:// and name a host");
        String query = uri.getRawQuery();
        String text = uri.getScheme() + "://" + uri.getRawAuthority() + uri.getRawPath()
            + (query == null || query.isEmpty() ? "" : "?" + query);
        return URI.create(URI.create(text).toASCIIString());
    }

    /** @throws SigningException {@code host_not_allowed}: a request must go to the host that it is signed for */
    static void requireHost(RequestUrl url, Map<String, List<String>> headers) throws SigningException {
        for (Map.Entry<String, List<String>> header : headers.entrySet()) {
            if (!Syntax.lowerAscii(header.getKey()).equals("host")) continue;
            for (String host : header.getValue()) {
                if (RequestUrl.normalizeAuthority(url.scheme(), host).equals(url.authority())) continue;
                throw new SigningException("host_not_allowed", "the Host header is not the host of the URL");
            }
        }
    }
}
