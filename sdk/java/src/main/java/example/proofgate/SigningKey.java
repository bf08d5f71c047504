package example.proofgate;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.interfaces.ECPrivateKey;
import java.security.interfaces.EdECPrivateKey;
import java.security.interfaces.EdECPublicKey;
import java.security.spec.ECFieldFp;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.security.spec.NamedParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.KeyAgreement;

/** A private key with its public JWK. It prints as its thumbprint. */
final class SigningKey {
    private static final Pattern PEM = Pattern.compile(
        "-----BEGIN ((?:EC )?PRIVATE KEY)-----\\s+([A-Za-z0-9+/=\\s]+)-----END \\1-----");
    /** DER of the object identifier prime256v1. */
    private static final String P256_OID = "06082a8648ce3d030107";
    /** The beginning of PKCS#8 (RFC 5208) around a key of RFC 5915. */
    private static final String EC_PKCS8_HEAD = "020100301306072a8648ce3d0201" + P256_OID;
    private static final int COORDINATE_BYTES = 32;

    private final PrivateKey key;
    private final String algorithm;
    private final String signatureName;
    private final String publicJwk;
    private final String thumbprint;

    private SigningKey(PrivateKey key, String algorithm, String signatureName, String publicJwk, String thumbprint) {
        this.key = key;
        this.algorithm = algorithm;
        this.signatureName = signatureName;
        this.publicJwk = publicJwk;
        this.thumbprint = thumbprint;
    }

    /** Ed25519 or ES256. */
    String algorithm() {
        return algorithm;
    }

    /** With the members in the order of passports. */
    String publicJwk() {
        return publicJwk;
    }

    /** Of RFC 7638. */
    String thumbprint() {
        return thumbprint;
    }

    @Override
    public String toString() {
        return "SigningKey[" + algorithm + " " + thumbprint + "]";
    }

    static SigningKey parse(byte[] pem, String name) throws SigningException {
        String text = new String(pem, StandardCharsets.ISO_8859_1);
        if (text.contains("PUBLIC KEY-----")) {
            throw new SigningException(
                "public_key_where_private_expected", name + " holds a public key, not a private one");
        }
        Matcher match = PEM.matcher(text);
        try {
            if (match.find()) {
                byte[] der = Base64.getMimeDecoder().decode(match.group(2));
                return of(match.group(1).startsWith("EC") ? pkcs8Of(der) : der);
            }
        } catch (GeneralSecurityException | RuntimeException unusable) {
            // Neither the cause nor its text: a parser may repeat what it read.
        }
        throw new SigningException(
            "private_key_invalid", name + ": not an unencrypted Ed25519 or P-256 private key in PEM");
    }

    private static byte[] pkcs8Of(byte[] ecPrivateKey) throws GeneralSecurityException {
        HexFormat hex = HexFormat.of();
        String key = hex.formatHex(ecPrivateKey);
        if (!key.contains(P256_OID)) throw new GeneralSecurityException("another curve");
        String content = EC_PKCS8_HEAD + "04" + derLength(ecPrivateKey.length) + key;
        return hex.parseHex("30" + derLength(content.length() / 2) + content);
    }

    private static String derLength(int length) {
        if (length < 0x80) return String.format("%02x", length);
        return length < 0x100 ? String.format("81%02x", length) : String.format("82%04x", length);
    }

    private static SigningKey of(byte[] pkcs8) throws GeneralSecurityException {
        boolean isP256 = HexFormat.of().formatHex(pkcs8).contains(P256_OID);
        PrivateKey key = KeyFactory.getInstance(isP256 ? "EC" : "Ed25519").generatePrivate(new PKCS8EncodedKeySpec(pkcs8));
        return isP256 ? ofP256((ECPrivateKey) key) : ofEd25519((EdECPrivateKey) key);
    }

    /** The JDK derives no public key from a private one, but generates a pair from the bytes of a random generator. */
    private static SigningKey ofEd25519(EdECPrivateKey key) throws GeneralSecurityException {
        byte[] seed = key.getBytes().orElseThrow();
        KeyPairGenerator generator = KeyPairGenerator.getInstance("Ed25519");
        generator.initialize(NamedParameterSpec.ED25519, new SecureRandom() {
            private static final long serialVersionUID = 1L;

            @Override
            public void nextBytes(byte[] bytes) {
                System.arraycopy(seed, 0, bytes, 0, bytes.length);
            }
        });
        EdECPublicKey publicKey = (EdECPublicKey) generator.generateKeyPair().getPublic();
        byte[] point = reversed(bytesOf(publicKey.getPoint().getY()));
        if (publicKey.getPoint().isXOdd()) point[COORDINATE_BYTES - 1] |= (byte) 0x80;
        String x = Syntax.encodeBase64url(point);
        SigningKey made = new SigningKey(key, "Ed25519", "Ed25519",
            "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" + x + "\"}", ed25519Thumbprint(x));
        if (!made.isOf(publicKey)) throw new GeneralSecurityException("another provider");
        return made;
    }

    /**
     * The JDK derives no public key from a private one. ECDH with the curve's generator gives x of the public key; of
     * the two y, one verifies a signature.
     */
    private static SigningKey ofP256(ECPrivateKey key) throws GeneralSecurityException {
        AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
        parameters.init(new ECGenParameterSpec("secp256r1"));
        ECParameterSpec curve = parameters.getParameterSpec(ECParameterSpec.class);
        boolean isOnCurve = curve.getCurve().equals(key.getParams().getCurve())
            && curve.getGenerator().equals(key.getParams().getGenerator());
        if (!isOnCurve) throw new GeneralSecurityException("another curve");
        KeyFactory factory = KeyFactory.getInstance("EC");
        KeyAgreement agreement = KeyAgreement.getInstance("ECDH");
        agreement.init(key);
        agreement.doPhase(factory.generatePublic(new ECPublicKeySpec(curve.getGenerator(), curve)), true);
        BigInteger x = new BigInteger(1, agreement.generateSecret());
        BigInteger p = ((ECFieldFp) curve.getCurve().getField()).getP();
        BigInteger square = x.pow(3).add(curve.getCurve().getA().multiply(x)).add(curve.getCurve().getB()).mod(p);
        // p is 3 modulo 4.
        BigInteger root = square.modPow(p.add(BigInteger.ONE).shiftRight(2), p);
        for (BigInteger y : Arrays.asList(root, p.subtract(root))) {
            String xText = Syntax.encodeBase64url(bytesOf(x));
            String yText = Syntax.encodeBase64url(bytesOf(y));
            SigningKey made = new SigningKey(key, "ES256", "SHA256withECDSAinP1363Format",
                "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" + xText + "\",\"y\":\"" + yText + "\"}",
                p256Thumbprint(xText, yText));
            if (made.isOf(factory.generatePublic(new ECPublicKeySpec(new ECPoint(x, y), curve)))) return made;
        }
        throw new GeneralSecurityException("another provider");
    }

    private boolean isOf(PublicKey publicKey) throws GeneralSecurityException {
        byte[] message = "proofgate".getBytes(StandardCharsets.US_ASCII);
        Signature verifier = Signature.getInstance(signatureName);
        verifier.initVerify(publicKey);
        verifier.update(message);
        return verifier.verify(sign(message));
    }

    private static byte[] bytesOf(BigInteger coordinate) {
        byte[] given = coordinate.toByteArray();
        byte[] padded = new byte[COORDINATE_BYTES];
        int length = Math.min(given.length, COORDINATE_BYTES);
        System.arraycopy(given, given.length - length, padded, COORDINATE_BYTES - length, length);
        return padded;
    }

    private static byte[] reversed(byte[] bytes) {
        byte[] reversed = new byte[bytes.length];
        for (int i = 0; i < bytes.length; i++) reversed[i] = bytes[bytes.length - 1 - i];
        return reversed;
    }

    static String ed25519Thumbprint(String x) {
        return Syntax.sha256Base64url("{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"" + x + "\"}");
    }

    static String p256Thumbprint(String x, String y) {
        return Syntax.sha256Base64url("{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"" + x + "\",\"y\":\"" + y + "\"}");
    }

    /** Returns 64 bytes: of RFC 8032, or r || s of RFC 7518. */
    byte[] sign(byte[] message) {
        try {
            Signature signer = Signature.getInstance(signatureName);
            signer.initSign(key);
            signer.update(message);
            return signer.sign();
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("the JDK cannot sign with " + algorithm, error);
        }
    }
}
