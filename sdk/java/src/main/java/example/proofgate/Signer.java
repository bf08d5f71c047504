package example.proofgate;

import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Signs with a key file and the state beside it, as {@code proofgate enroll} and {@code proofgate agent} write them, and
 * follows both when they are replaced. It is safe for concurrent use.
 */
public final class Signer {
    /** Version of the whole project. */
    public static final String VERSION = "0.4.0";

    private static final int PASSPORT_SECONDS = 300;
    /** A passport is reused for two thirds of its life: verifiers cache it. */
    private static final int REUSE_SECONDS = 200;
    private static final long RELOAD_NANOS = 1_000_000_000L;
    private static final SecureRandom RANDOM = new SecureRandom();

    private final Path keyFile;
    private final Path profileFile;
    private final String profile;
    private final List<String> signHeaders;
    private final Proof proof;
    private final Consumer<String> warn;
    private final Clocks clocks;
    private final Dpop dpop = new Dpop();
    private final ReentrantLock reloading = new ReentrantLock();
    private List<KeyFiles.Version> versions;
    private volatile Loaded loaded;
    private volatile long checkedAt;
    // Only tests choose these.
    InstantSource clock = InstantSource.system();
    Supplier<String> newJti = Signer::randomJti;

    private Signer(Options options) throws SigningException {
        this.keyFile = options.keyFile;
        this.profileFile = options.profileFile;
        this.profile = options.profile;
        this.signHeaders = options.signHeaders;
        this.proof = options.proof;
        this.warn = options.warn;
        this.clocks = new Clocks(warn);
        this.versions = KeyFiles.versionsOf(keyFile, profileFile);
        this.loaded = new Loaded(Identity.read(keyFile, profileFile, Instant.now()));
        this.checkedAt = System.nanoTime();
    }

    /**
     * Reads the key file and the state beside it.
     *
     * @throws SigningException when they cannot be used
     */
    public static Signer open(Path keyFile) throws SigningException {
        return options(keyFile).open();
    }

    /** Options for a signer with this key file: {@code Signer.options(keyFile).profile("orders").open()}. */
    public static Options options(Path keyFile) {
        return new Options(keyFile);
    }

    /** Says with which key a {@link Signer} signs, and how. */
    public static final class Options {
        private static final System.Logger LOG = System.getLogger("proofgate");

        private final Path keyFile;
        private Path profileFile;
        private String profile;
        private List<String> signHeaders = List.of();
        private Proof proof = Proof.TRANSCRIPT_V1;
        private Consumer<String> warn = message -> LOG.log(System.Logger.Level.WARNING, message);

        private Options(Path keyFile) {
            this.keyFile = keyFile;
        }

        /** Takes a signing profile in JSON, for a key without an enrollment. */
        public Options profileFile(Path file) {
            this.profileFile = file;
            return this;
        }

        /** Names the profile where several fit. */
        public Options profile(String name) {
            this.profile = name;
            return this;
        }

        /** Signs these headers beyond those of the route. */
        public Options signHeaders(String... names) {
            this.signHeaders = List.of(names);
            return this;
        }

        /** Signs in this format, in place of {@link Proof#TRANSCRIPT_V1}. */
        public Options proof(Proof format) {
            this.proof = format;
            return this;
        }

        /** Gets warnings, in place of the logger {@code proofgate}. */
        public Options warn(Consumer<String> warn) {
            this.warn = warn;
            return this;
        }

        /**
         * Reads the files.
         *
         * @throws SigningException when they cannot be used
         */
        public Signer open() throws SigningException {
            return new Signer(this);
        }
    }

    /**
     * Signs one request. Its target must be sent as it is in the URL, byte for byte.
     *
     * @param headers of the request; those that are credentials are ignored, and to be replaced
     * @param body all bytes; null for none. A route with {@code body: unbound} does not need them.
     * @throws SigningException when the request cannot be signed, with a code such as {@code profile_not_found}
     */
    public SignedRequest sign(String method, String url, Map<String, ? extends Collection<String>> headers, byte[] body)
        throws SigningException {
        return sign(method, url, headers, body, null);
    }

    /**
     * Signs as the other method, with a nonce for {@link Proof#DPOP}.
     *
     * @param dpopNonce {@code DPoP-Nonce} of the server's last answer; null for the last that a client of this signer got
     * @throws SigningException when the request cannot be signed
     */
    public SignedRequest sign(
        String method, String url, Map<String, ? extends Collection<String>> headers, byte[] body, String dpopNonce)
        throws SigningException {
        return sign(choose(method, url), headers, BodyDigest.of(body), dpopNonce);
    }

    /**
     * Whether the body must be known in order to sign the request.
     *
     * @throws SigningException when no profile fits
     */
    public boolean bindsBody(String method, String url) throws SigningException {
        return coversBody(choose(method, url));
    }

    /** Shows the key file and the thumbprint of the key. */
    @Override
    public String toString() {
        return "Signer[" + keyFile + " " + loaded.identity.key().thumbprint() + "]";
    }

    Clocks clocks() {
        return clocks;
    }

    /** How a request will be signed. */
    record Choice(Loaded loaded, Profiles profiles, RouteProfile route, String method, RequestUrl url) {}

    Choice choose(String method, String url) throws SigningException {
        if (!Syntax.isMethod(method))
            throw new SigningException("method_invalid", "the method is not an HTTP method");
        RequestUrl parsed = RequestUrl.parse(url);
        Loaded current = load();
        Profiles.Selected found = Profiles.select(current.identity.files(), method, parsed, profile);
        return new Choice(current, found.profiles(), found.route(), method, parsed);
    }

    boolean coversBody(Choice choice) {
        return choice.route().bindsBody() && proof != Proof.DPOP;
    }

    /** Leaves what belongs to the application. */
    Map<String, List<String>> withoutCredentials(Map<String, ? extends Collection<String>> headers) {
        Map<String, List<String>> own = Credentials.without(headers);
        return proof == Proof.DPOP ? Dpop.withoutEarlier(own) : own;
    }

    /** As {@link #readAnswer}, of an answer that was read before: it keeps no nonce, because a newer one may be kept since. */
    boolean asksForNonce(int status, List<String> nonces, List<String> challenges) {
        return proof == Proof.DPOP && Dpop.asks(status, nonces, challenges);
    }

    /** Keeps the DPoP nonce of an answer. Returns whether the server denied the request for want of it: repeat it once. */
    boolean readAnswer(Choice choice, int status, List<String> nonces, List<String> challenges) {
        return proof == Proof.DPOP && dpop.learn(choice.url().origin(), status, nonces, challenges);
    }

    SignedRequest sign(Choice choice, Map<String, ? extends Collection<String>> headers, BodyDigest body)
        throws SigningException {
        return sign(choice, headers, body, null);
    }

    /** Each format writes the credentials from the same facts. */
    private SignedRequest sign(
        Choice choice, Map<String, ? extends Collection<String>> headers, BodyDigest body, String dpopNonce)
        throws SigningException {
        RouteProfile route = choice.route();
        Map<String, List<String>> own = withoutCredentials(headers);
        boolean hasAuthorization =
            own.keySet().stream().anyMatch(name -> Syntax.lowerAscii(name).equals("authorization"));
        if (hasAuthorization && !route.hasOwnAuthorization()) {
            throw new SigningException("header_reserved", "the passport of this profile travels in Authorization; "
                + "a route with passport_header allows both");
        }
        long now = clock.instant().getEpochSecond();
        String jti = newJti.get();
        Map<String, String> credentials = switch (proof) {
            case HTTP_MESSAGE_SIGNATURES -> HttpMessage.credentials(choice, own, signHeaders, body, now, jti);
            case DPOP -> {
                String nonce = dpopNonce == null ? dpop.nonceOf(choice.url().origin()) : dpopNonce;
                Passport passport = choice.loaded().passportFor(choice, now, newJti);
                yield Dpop.credentials(choice, passport, own, signHeaders, now, jti, nonce);
            }
            case TRANSCRIPT_V1 -> transcript(choice, own, body, now, jti);
        };
        return new SignedRequest(credentials, choice.url().origin() + choice.url().target(), route.routeId(), jti);
    }

    private Map<String, String> transcript(
        Choice choice, Map<String, List<String>> own, BodyDigest body, long now, String jti) throws SigningException {
        Passport passport = choice.loaded().passportFor(choice, now, newJti);
        Map<String, String> signedHeaders = Transcript.selectHeaders(own, choice.route(), signHeaders);
        return Transcript.credentials(choice, passport, signedHeaders, body, now, jti);
    }

    private static String randomJti() {
        byte[] random = new byte[16];
        RANDOM.nextBytes(random);
        return Syntax.encodeBase64url(random);
    }

    /** Lets the next request look at the files. */
    void forgetCheck() {
        checkedAt = System.nanoTime() - RELOAD_NANOS;
    }

    /** Returns the current identity, after a look at the files at most once a second. */
    private Loaded load() throws SigningException {
        if (System.nanoTime() - checkedAt >= RELOAD_NANOS && reloading.tryLock()) {
            try {
                reloadIfReplaced();
                checkedAt = System.nanoTime();
            } finally {
                reloading.unlock();
            }
        }
        Loaded current = loaded;
        Instant expiresAt = current.identity.expiresAt();
        if (expiresAt != null && !clock.instant().isBefore(expiresAt)) throw Identity.keyExpired(keyFile);
        return current;
    }

    /** Keeps the old key when the new files cannot be used, unless they say that the key has ended. */
    private void reloadIfReplaced() throws SigningException {
        List<KeyFiles.Version> found = KeyFiles.versionsOf(keyFile, profileFile);
        if (found.equals(versions)) return;
        try {
            loaded = new Loaded(Identity.read(keyFile, profileFile, clock.instant()));
            versions = found;
        } catch (SigningException error) {
            if (error.code().equals("key_revoked") || error.code().equals("key_expired")) throw error;
            // A later check tries again.
            warn.accept("the key file was replaced and cannot be used: " + error.getMessage());
        }
    }

    /** An identity with the passports that its key has signed. */
    static final class Loaded {
        private record Made(Profiles.Coordinates coordinates, String audience) {}

        private final Identity identity;
        private final Map<Made, Passport> made = new HashMap<>();

        private Loaded(Identity identity) {
            this.identity = identity;
        }

        Identity identity() {
            return identity;
        }

        private Passport passportFor(Choice choice, long now, Supplier<String> newJti) throws SigningException {
            Profiles.Coordinates caller = choice.profiles().coordinates();
            String audience = choice.route().audience();
            if (identity.passports() != null) return givenPassport(caller, audience, now);
            Made place = new Made(caller, audience);
            synchronized (made) {
                Passport found = made.get(place);
                if (found == null || now < found.issuedAt() || now >= found.issuedAt() + REUSE_SECONDS) {
                    found = makePassport(caller, audience, now, newJti);
                    made.put(place, found);
                }
                return found;
            }
        }

        private Passport givenPassport(Profiles.Coordinates caller, String audience, long now)
            throws SigningException {
            Passport found = identity.passports().get(audience);
            if (found == null)
                throw new SigningException("passport_required", "there is no passport for the audience " + audience);
            requireSame("iss", found.issuer(), caller.issuer());
            requireSame("sub", found.subject(), caller.subject());
            requireSame("trust_domain", found.trustDomain(), caller.trustDomain());
            requireSame("key_binding", found.keyBinding(), caller.keyBinding());
            if (found.expiresAt() <= now) throw new SigningException("passport_expired", "the passport has expired");
            return found;
        }

        private static void requireSame(String claim, String given, String wanted) throws SigningException {
            if (given.equals(wanted)) return;
            throw new SigningException(
                "passport_mismatch", "the passport's " + claim + " is not the one of the profile");
        }

        private Passport makePassport(Profiles.Coordinates caller, String audience, long now, Supplier<String> newJti)
            throws SigningException {
            if (caller.keyId() == null) throw new SigningException("key_id_missing", "the profile names no key_id");
            if (!caller.keyBinding().equals("software"))
                throw new SigningException("passport_required", "a broker's passport is needed for this profile");
            String jws =
                Passport.make(identity.key(), caller, audience, now, now + PASSPORT_SECONDS, newJti.get());
            Passport passport = Passport.parse(jws);
            if (passport == null)
                throw new SigningException("credentials_too_large", "the passport is longer than 8 KiB");
            return passport;
        }
    }
}
