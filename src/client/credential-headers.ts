/** The three header values of a signed request. They are secret: their holder can send that request once. */
import { inspect } from 'node:util';

const REDACTED = '[redacted]';

export interface CredentialHeaderValues {
  /** `Passport <compact JWS>` */
  readonly authorization: string;
  readonly transcript: string;
  readonly signature: string;
}

/** Keeps the values out of logs: converted to text or JSON, or inspected, it is `[redacted]`. */
export class CredentialHeaders {
  readonly #values: CredentialHeaderValues;

  constructor(values: CredentialHeaderValues) {
    this.#values = values;
  }

  /** The plain values. Call it only to send the request or to pass the values on. */
  reveal(): CredentialHeaderValues {
    return this.#values;
  }

  /** Header names, as people write them, with their values; what {@link reveal} says holds here too. */
  revealLines(): readonly { readonly name: string; readonly value: string }[] {
    const { authorization, transcript, signature } = this.#values;
    return [
      { name: 'Authorization', value: authorization },
      { name: 'X-Proofgate-Transcript', value: transcript },
      { name: 'X-Proofgate-Signature', value: signature },
    ];
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}
