/** A site with one enrolled key, for verifiers that follow a fake Control and run on the real clock. */
import type { BundleContent } from '../../src/bundle/format/schema.ts';
import { passportSha256 } from '../../src/protocol/passport.ts';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import { newJti, signPassport, signTranscript } from '../../src/protocol/signing.ts';
import { keyNamed } from '../bundle/deltas.ts';
import {
  AUTH_SITE,
  bundleContent,
  CLIENT_ISSUER,
  newSigningKey,
  newTestKeys,
  ORIGIN,
  TRUST_DOMAIN,
} from './bundle-content.ts';
import { type CheckClient, outcomeOfResponse } from './check-client.ts';
import { rawCheckRequest } from './check-request.ts';

export const wallClockSeconds = () => Math.floor(Date.now() / 1000);

const BOUND = {
  method: 'GET',
  scheme: 'https' as const,
  authority: 'api.shop.example',
  target: '/v1/orders/17',
};

export function newEnrolledSite() {
  const keys = newTestKeys();
  const enrolled = newSigningKey();

  /** Issued now, because the replay store in memory rejects proofs for about the clock skew after its start. */
  function content(more: Partial<BundleContent> = {}): Omit<BundleContent, 'revision' | 'previous_head'> {
    const { revision: _, derived_keys: __, ...others } = bundleContent(keys);
    const issued_at = formatTime(wallClockSeconds());
    const expires_at = formatTime(wallClockSeconds() + 3600);
    return { ...others, issued_at, expires_at, skew_seconds: 1, ...more };
  }

  const keyEntry = (status: 'active' | 'revoked') =>
    keyNamed('dk_enrolled', 'billing', enrolled.publicKey.jwk, {
      status,
      expires_at: formatTime(wallClockSeconds() + 3600),
    });

  /** The result of a request by the holder of the enrolled key. */
  async function outcome(client: CheckClient): Promise<string> {
    const issuedAtSeconds = wallClockSeconds();
    const caller = {
      issuer: CLIENT_ISSUER,
      subject: 'client:billing',
      audience: ORIGIN,
      issuedAtSeconds,
      expiresAtSeconds: issuedAtSeconds + 60,
      keyId: 'dk_enrolled',
    };
    const holderJwk = enrolled.publicKey.jwk;
    const passport = signPassport(
      { ...caller, trustDomain: TRUST_DOMAIN, keyBinding: 'software', holderJwk },
      enrolled,
    );
    const proof = signTranscript(
      {
        ...caller,
        ...BOUND,
        authSite: AUTH_SITE,
        passportSha256: passportSha256(passport),
        routeId: 'orders-read',
        jti: newJti(),
        contentSha256: '-',
        headers: [],
      },
      enrolled,
    );
    const headers = [
      { name: 'authorization', value: `Passport ${passport}` },
      { name: 'x-proofgate-transcript', value: proof.transcript },
      { name: 'x-proofgate-signature', value: proof.signature },
    ];
    return outcomeOfResponse(
      await client.check(rawCheckRequest({ ...BOUND, headers, body: { kind: 'none' } })),
    );
  }

  return { signer: keys.bundle, content, keyEntry, outcome };
}
