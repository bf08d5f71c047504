/** The three header values of a signed request. They are secret: their owner can send that request once. */
import { Redacted } from '../protocol/redacted.ts';

export interface CredentialHeaderValues {
  /** `Passport <compact JWS>` */
  readonly authorization: string;
  readonly transcript: string;
  readonly signature: string;
}

export class CredentialHeaders extends Redacted<CredentialHeaderValues> {
  /** Header names, as people write them, with their values. As secret as the result of `reveal`. */
  revealLines(): readonly { readonly name: string; readonly value: string }[] {
    const { authorization, transcript, signature } = this.reveal();
    return [
      { name: 'Authorization', value: authorization },
      { name: 'X-Proofgate-Transcript', value: transcript },
      { name: 'X-Proofgate-Signature', value: signature },
    ];
  }
}
