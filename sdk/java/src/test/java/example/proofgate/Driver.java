package example.proofgate;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Signs requests from standard input, one JSON line each; test/caller/sdk/README.md describes the lines. */
final class Driver {
    public static void main(String[] args) throws Exception {
        Proof proof = Proof.valueOf(args[1].toUpperCase(Locale.ROOT).replace('-', '_'));
        Signer signer = Signer.options(Path.of(args[0])).proof(proof).open();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<?, ?> job = (Map<?, ?>) StrictJson.parse(line.getBytes(StandardCharsets.UTF_8));
            // Only tests choose the clock and the identifiers.
            signer.clock = () -> Instant.ofEpochSecond(number(job.get("now")));
            signer.newJti = () -> (String) job.get("jti");
            answers.append("{\"id\":").append(number(job.get("id"))).append(',').append(answer(signer, job)).append("}\n");
        }
        System.out.print(answers);
    }

    private static long number(Object value) {
        return Long.parseLong(((StrictJson.Number) value).text());
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    private static String answer(Signer signer, Map<?, ?> job) {
        Map<String, List<String>> headers = new HashMap<>();
        for (Object each : (List<?>) job.get("headers")) {
            List<?> header = (List<?>) each;
            headers.computeIfAbsent((String) header.get(0), name -> new ArrayList<>()).add((String) header.get(1));
        }
        String body = (String) job.get("body_base64");
        try {
            SignedRequest signed = signer.sign((String) job.get("method"), (String) job.get("url"), headers,
                body == null ? null : Base64.getDecoder().decode(body), (String) job.get("dpop_nonce"));
            List<String> credentials = new ArrayList<>();
            Map<String, String> byName = new HashMap<>();
            signed.forEach((name, value) -> {
                credentials.add("[" + quoted(name) + "," + quoted(value) + "]");
                byName.put(name, value);
            });
            byte[] transcript = Syntax.decodeBase64url(byName.getOrDefault("X-Proofgate-Transcript", "")).orElseThrow();
            return "\"headers\":[" + String.join(",", credentials) + "],\"transcript_base64\":\""
                + Base64.getEncoder().encodeToString(transcript) + "\"";
        } catch (SigningException error) {
            return "\"headers\":[],\"transcript_base64\":\"\",\"error\":\"" + error.code() + "\"";
        }
    }
}
