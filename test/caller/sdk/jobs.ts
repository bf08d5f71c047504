/** Input and output of the SDK drivers, one JSON object a line; `README.md` describes them. */

export interface SdkJob {
  readonly id: number;
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body_base64: string | null;
  /** Seconds since the epoch. */
  readonly now: number;
  /** For the proof, and for the passport if this request makes one. */
  readonly jti: string;
  /** `DPoP-Nonce` of the server, with dpop. */
  readonly dpop_nonce?: string;
}

export interface SdkAnswer {
  readonly id: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Empty with other formats than transcript-v1. */
  readonly transcript_base64: string;
  /** The stable code when the request could not be signed. */
  readonly error?: string;
}
