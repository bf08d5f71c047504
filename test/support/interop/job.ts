/** The input and output of the signers in other languages; `README.md` describes them for their authors. */

export interface SigningJob {
  /** PEM, PKCS#8, Ed25519. */
  readonly holder_key_file: string;
  readonly passport: GivenPassport | PassportToMake;
  readonly auth_site: string;
  readonly route: {
    readonly route_id: string;
    readonly audience: string;
    readonly body: 'bound' | 'unbound';
    readonly signed_headers: readonly string[];
  };
  readonly request: {
    readonly method: string;
    readonly url: string;
    /** All that are sent, but for the credentials. */
    readonly headers: readonly (readonly [name: string, value: string])[];
    readonly body_base64: string;
  };
  /** Beside those that the route wants. */
  readonly also_signed: readonly string[];
  /** These three are for comparisons; signers choose them otherwise. */
  readonly jti?: string;
  readonly issued_at?: number;
  readonly expires_at?: number;
}

/** From a broker. */
interface GivenPassport {
  readonly jws: string;
}

export interface PassportToMake {
  readonly key_file: string;
  readonly key_id: string;
  readonly issuer: string;
  readonly subject: string;
  readonly trust_domain: string;
  readonly key_binding: string;
  readonly issued_at?: number;
  readonly expires_at?: number;
  readonly not_before?: number;
  readonly jti?: string;
  readonly provenance?: { readonly [name: string]: string };
  readonly context?: { readonly [name: string]: string };
}

export interface SignedAnswer {
  /** As signed: what goes into `Host` or `:authority`. */
  readonly authority: string;
  /** As signed: what goes into the request line or `:path`. */
  readonly target: string;
  readonly transcript: string;
  readonly headers: { readonly [name: string]: string };
}

/** Gets a passport from a broker. Keys and certificates are PEM files. */
export type PassportJob = {
  readonly broker_url: string;
  readonly ca_file: string;
  readonly audience: string;
} & (
  | ({ readonly kind: 'mtls' } & SvidFiles)
  | ({ readonly kind: 'signed_form'; readonly holder_key_file: string } & SvidFiles)
  | { readonly kind: 'jwt_svid'; readonly holder_key_file: string; readonly token_file: string }
  | {
      readonly kind: 'software_key';
      readonly registered_key_file: string;
      /** Default: the registered key is the holder's. */
      readonly holder_key_file?: string;
    }
);

interface SvidFiles {
  readonly svid_file: string;
  readonly svid_key_file: string;
}

/** Members of the broker's answer. */
export interface IssuedPassport {
  readonly passport: string;
  readonly key_binding: string;
  readonly subject: string;
}
