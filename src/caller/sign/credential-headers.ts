/** The three header values of a signed request. They are secret, because their owner can send that request once. */
import { Redacted } from '../../protocol/redacted.ts';
import {
  AUTHORIZATION_HEADER,
  PASSPORT_HEADER_MEMBER,
  PASSPORT_SCHEME,
  type PassportHeader,
} from '../../protocol/wire-names.ts';

export interface CredentialHeaderValues {
  /** Compact JWS. */
  readonly passport: string;
  readonly passportHeader: PassportHeader;
  readonly transcript: string;
  readonly signature: string;
}

export class CredentialHeaders extends Redacted<CredentialHeaderValues> {
  /** Header names in their usual spelling, with their values. The lines are as secret as the result of `reveal`. */
  revealLines(): readonly { readonly name: string; readonly value: string }[] {
    const { passport, passportHeader, transcript, signature } = this.reveal();
    return [
      passportHeader === AUTHORIZATION_HEADER
        ? { name: 'Authorization', value: `${PASSPORT_SCHEME} ${passport}` }
        : { name: PASSPORT_HEADER_MEMBER, value: passport },
      { name: 'X-Proofgate-Transcript', value: transcript },
      { name: 'X-Proofgate-Signature', value: signature },
    ];
  }
}
