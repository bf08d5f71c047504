package example.proofgate;

import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A key with its profiles and passports; it is replaced as a whole.
 *
 * @param passports by audience; null when the key signs its own
 * @param expiresAt of an enrolled key, otherwise null
 */
record Identity(SigningKey key, List<Profiles> files, Map<String, Passport> passports, Instant expiresAt) {
    private static final String ENROLLMENT_FORMAT = "proofgate.enrollment-state/v1";
    private static final String BROKER_FORMAT = "proofgate.broker-state/v1";

    /** Reads the key file and the state beside it, as "proofgate enroll" and "proofgate agent" write them. */
    static Identity read(Path keyFile, Path profileFile, Instant now) throws SigningException {
        Path settled = KeyFiles.settled(keyFile);
        SigningKey key = SigningKey.parse(KeyFiles.read(settled, KeyFiles.MAX_KEY_BYTES, true), keyFile.toString());
        List<Profiles> given = profileFile == null ? null : List.of(readProfileFile(profileFile));
        Reader broker = KeyFiles.readState(KeyFiles.beside(settled, ".broker.json"), "broker_state_invalid");
        if (broker != null) return ofBroker(key, broker, given, keyFile);
        if (given != null) return new Identity(key, given, null, null);
        Reader enrollment =
            KeyFiles.readState(KeyFiles.beside(settled, ".enrollment.json"), "enrollment_state_invalid");
        return ofEnrollment(key, enrollment, keyFile, now);
    }

    private static Profiles readProfileFile(Path path) throws SigningException {
        byte[] data = KeyFiles.read(path, KeyFiles.MAX_STATE_BYTES / 2, false);
        return Profiles.read(KeyFiles.parse(data, path, "profile_invalid"), path.toString());
    }

    private static Identity ofBroker(SigningKey key, Reader state, List<Profiles> given, Path keyFile)
        throws SigningException {
        state.required("format", BROKER_FORMAT::equals);
        if (!state.required("key_thumbprint", Syntax::isIdentifier).equals(key.thumbprint()))
            throw state.fault("is for another key");
        Map<String, Passport> passports = new HashMap<>();
        for (Reader item : state.items("passports")) {
            String audience = item.required("audience", Syntax::isIdentifier);
            Passport found = Passport.parse(Passport.text(item.members.get("passport")));
            boolean fits = found != null && found.audience().equals(audience)
                && found.holderThumbprint().equals(key.thumbprint());
            if (!fits) throw item.fault("passport is not one for this audience and key");
            passports.putIfAbsent(audience, found);
        }
        if (given != null) return new Identity(key, given, passports, null);
        List<Profiles> files = new ArrayList<>();
        for (Object document : state.list("signing_profiles")) files.add(Profiles.read(document, keyFile.toString()));
        return new Identity(key, files, passports, null);
    }

    private static Identity ofEnrollment(SigningKey key, Reader state, Path keyFile, Instant now)
        throws SigningException {
        if (state == null || !(state.has("enrolled") || state.has("attempt"))) {
            throw new SigningException("enrollment_missing",
                keyFile + " has no enrollment beside it: run proofgate enroll or give a profile file");
        }
        state.required("format", ENROLLMENT_FORMAT::equals);
        if (!state.required("key_thumbprint", Syntax::isBase64urlOf32Bytes).equals(key.thumbprint())) {
            throw new SigningException(
                "enrollment_state_mismatch", "the enrollment beside " + keyFile + " is another key's");
        }
        if (!state.has("enrolled")) throw new SigningException("enrollment_pending", keyFile + " is not enrolled yet");
        Reader enrolled = state.child("enrolled", state.members.get("enrolled"));
        Reader derived = enrolled.child("derived_key", enrolled.members.get("derived_key"));
        derived.required("key_id", Syntax::isKeyId);
        String status = derived.required("status", Set.of("active", "revoked", "expired")::contains);
        Instant expiresAt = instant(derived.required("expires_at", text -> instant(text) != null));
        Profiles file = new Profiles(
            Profiles.readCoordinates(derived, enrolled.required("auth_site", Syntax::isIdentifier)),
            Profiles.readRoutes(enrolled, "signing_profiles", false));
        if (status.equals("revoked"))
            throw new SigningException("key_revoked", "this key was revoked: enroll a new one");
        if (status.equals("expired") || !now.isBefore(expiresAt)) throw keyExpired(keyFile);
        return new Identity(key, List.of(file), null, expiresAt);
    }

    /** Null for anything but a time of RFC 3339. */
    private static Instant instant(String text) {
        try {
            return OffsetDateTime.parse(text).toInstant();
        } catch (DateTimeException notATime) {
            return null;
        }
    }

    static SigningException keyExpired(Path keyFile) {
        return new SigningException("key_expired", "the key " + keyFile + " has expired: enroll again");
    }
}
