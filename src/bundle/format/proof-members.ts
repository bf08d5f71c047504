/** Members with which a bundle's routes accept other proofs than transcript-v1 alone. */
import type { ProofFormat } from '../../protocol/proof-format.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';

/** Callers with a passport sign transcripts. */
export function acceptsTranscripts({
  accepted_proofs: formats,
}: {
  readonly accepted_proofs?: readonly ProofFormat[];
}): boolean {
  return formats === undefined || formats.includes('transcript-v1');
}

/** Whether verifiers know the format, where a route names it. */
type IsKnown = (format: ProofFormat) => boolean;

/**
 * Of an unknown freshness class: a route of it denies every request, in every version of verifiers, and still takes its requests
 * from routes with a more general path.
 */
const DENIES_ALL = { freshness_class: 'withheld' } as const;

/**
 * The content as verifiers that know only some formats may have it. No route accepts more than before: one without
 * `accepted_proofs` accepts transcripts, so a route that did not accept them and has no other format left denies everything.
 */
export function keepProofFormats<C extends JsonObject>(content: C, isKnown: IsKnown): C {
  const { routes } = content;
  if (!Array.isArray(routes)) return content;
  return {
    ...content,
    routes: routes.map((route: unknown) => (isJsonObject(route) ? kept(route, isKnown) : route)),
  };
}

function kept(route: JsonObject, isKnown: IsKnown): JsonObject {
  const {
    accepted_proofs: formats,
    unbound: _unbound,
    dpop_nonce: _nonce,
    oauth_revocation: _revocation,
    ...others
  } = route as JsonObject & {
    readonly accepted_proofs?: readonly ProofFormat[];
  };
  if (formats === undefined) return route;
  const known = formats.filter(isKnown);
  if (known.includes('dpop')) return { ...route, accepted_proofs: known };
  if (known.length > 0) return { ...others, accepted_proofs: known };
  return acceptsTranscripts({ accepted_proofs: formats }) ? others : { ...others, ...DENIES_ALL };
}

/** The content with those of `oauth_issuers` that have keys, if verifiers know the member. */
export function keepOAuthIssuers<C extends JsonObject>(content: C, isKnown: () => boolean): C {
  const { oauth_issuers: issuers, ...others } = content;
  if (!Array.isArray(issuers)) return content;
  const keyed: readonly unknown[] = issuers.filter(
    (issuer) => isJsonObject(issuer) && Array.isArray(issuer.keys) && issuer.keys.length > 0,
  );
  return (keyed.length > 0 && isKnown() ? { ...content, oauth_issuers: keyed } : others) as C;
}
