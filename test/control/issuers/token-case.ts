/** Types of a test case for a token that must be rejected. */
import type { TokenProblemCode } from '../../../src/control/issuers/token-envelope.ts';
import type { ServiceAccountIssuer, TokenRequest } from '../../fakes/service-account-issuer.ts';
import type { IssuerSigner } from '../../fakes/token-signer.ts';

export const NOW_SECONDS = 1_800_000_000;

export interface TokenWorld {
  readonly issuer: ServiceAccountIssuer;
  readonly rsa: IssuerSigner;
  readonly ec: IssuerSigner;
  readonly ed: IssuerSigner;
}

export interface TokenCase {
  readonly what: string;
  readonly code: TokenProblemCode;
  readonly make: (world: TokenWorld) => string;
}

export const good = (world: TokenWorld, change: TokenRequest = {}) =>
  world.issuer.token({ nowMs: NOW_SECONDS * 1000, signer: world.rsa, ...change });

export const withClaims = (
  what: string,
  code: TokenProblemCode,
  claims: TokenRequest['claims'],
): TokenCase => ({
  what,
  code,
  make: (world) => good(world, { claims: claims ?? {} }),
});
