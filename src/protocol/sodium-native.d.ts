/** Types of the libsodium functions in use; the package has none. All arguments are byte arrays. */
declare module 'sodium-native' {
  const sodium: {
    /** RFC 8032 section 5.1.7. @throws when an argument has the wrong length */
    crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
    /** Canonical, on the curve, in the prime-order subgroup, and not its identity. */
    crypto_core_ed25519_is_valid_point(point: Uint8Array): boolean;
  };
  export default sodium;
}
