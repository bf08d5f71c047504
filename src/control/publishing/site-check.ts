/**
 * Checks that verifiers would accept a site's configuration, by compiling it as a verifier does. Derived keys are left
 * out; enrollment validates them.
 * Source: docs/design/bundle.md "Rules that a load enforces".
 */

import { LRUCache } from 'lru-cache';
import { compileBundle } from '../../bundle/compile/compile.ts';
import type { KeyImporter } from '../../bundle/compile/compile-keys.ts';
import { BundleError, type BundleFault } from '../../bundle/format/bundle-error.ts';
import { headOf } from '../../bundle/format/chain.ts';
import { BUNDLE_FILE } from '../../bundle/format/file-names.ts';
import { withoutObservations } from '../../bundle/format/observation-members.ts';
import { asContent } from '../../bundle/format/shape.ts';
import { importPublicKey } from '../../protocol/import-public-key.ts';
import { type PublicKey, thumbprintOf } from '../../protocol/public-key.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { SiteCheck } from '../resource/change.ts';
import { hasKeys, readOneClient, readRoutes, readSitePolicy } from './stored-site-content.ts';

/** Size of the cache of validated broker keys; validating one costs about a millisecond. */
const MAX_REMEMBERED_KEYS = 10_000;
const MAX_SHOWN_FAULTS = 5;

export function createSiteCheck(): SiteCheck {
  const check = createPolicyCheck();
  return async (tx, siteId) => {
    const site = await tx.sites.find(siteId);
    if (site === undefined) throw new ApiProblem('not_found');
    const large = { clients: await readOneClient(tx, site), ...(await readRoutes(tx, siteId)) };
    await check(await readSitePolicy(tx, site, large));
  };
}

/** @throws ApiProblem `definition_invalid` */
export function createPolicyCheck(): (policy: JsonObject) => Promise<void> {
  const importKey = rememberingImporter();
  return (policy) => checkPolicy(policy, importKey);
}

function rememberingImporter(): KeyImporter {
  const sound = new LRUCache<string, PublicKey>({ max: MAX_REMEMBERED_KEYS });
  return (jwk) => {
    const name = thumbprintOf(jwk);
    const known = sound.get(name) ?? importPublicKey(jwk);
    if (known !== undefined) sound.set(name, known);
    return known;
  };
}

/** @throws ApiProblem `definition_invalid` */
async function checkPolicy(policy: JsonObject, importKey: KeyImporter): Promise<void> {
  // Revision and times are placeholders; the publisher sets them. No rule across members concerns observations, whose ends depend
  // on these times.
  const times = { issued_at: formatTime(0), expires_at: formatTime(1) };
  const draft = { ...withKeys(withoutObservations(policy)), revision: 1, ...times };
  try {
    const content = asContent('bundle', draft, BUNDLE_FILE);
    const head = headOf(undefined, Buffer.from('')) ?? '';
    await compileBundle(content, { file: BUNDLE_FILE, head, importKey });
  } catch (error) {
    if (!(error instanceof BundleError)) throw error;
    const shown = error.faults.slice(0, MAX_SHOWN_FAULTS).map((fault) => describe(fault, policy));
    throw new ApiProblem('definition_invalid', shown.join('; '));
  }
}

/** RFC 8037 appendix A.2. */
const SOME_KEY = {
  ...{ kid: 'not-fetched', alg: 'Ed25519' },
  jwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
};

/** An authorization server whose keys come later must not stop publication then: the same rules apply to it now. */
function withKeys({ oauth_issuers: issuers, ...policy }: JsonObject): JsonObject {
  if (!Array.isArray(issuers)) return policy;
  const keyed: readonly unknown[] = issuers.map((issuer: unknown) =>
    isJsonObject(issuer) && !hasKeys(issuer) ? { ...issuer, keys: [SOME_KEY] } : issuer,
  );
  return { ...policy, oauth_issuers: keyed };
}

/** Names for list entries, so that a fault shows the entry's name and not its index in the bundle. */
const NAMED_LISTS: {
  readonly [list: string]: { readonly members: readonly string[]; readonly called: string };
} = {
  routes: { members: ['route_id'], called: 'route' },
  route_sources: { members: ['route_id'], called: 'sources of route' },
  clients: { members: ['client_id'], called: 'client' },
  issuers: { members: ['issuer', 'trust_domain'], called: 'broker' },
  oauth_issuers: { members: ['issuer'], called: 'OAuth issuer' },
  trust_anchor_sources: { members: ['id'], called: 'source' },
};

function describe({ path, text }: BundleFault, policy: JsonObject): string {
  const [, list = '', index = '', ...rest] = path.split('/');
  const naming = Object.hasOwn(NAMED_LISTS, list) ? NAMED_LISTS[list] : undefined;
  const entries = policy[list];
  const entry: unknown = Array.isArray(entries) ? entries[Number(index)] : undefined;
  if (naming === undefined || !isJsonObject(entry)) return `${path}: ${text}`;
  const place = [
    `${naming.called} ${naming.members.map((member) => String(entry[member])).join(' ')}`,
    ...rest.map((step) => `/${step}`),
  ];
  return `${place[0]}: ${place.slice(1).join('')}${place.length > 1 ? ': ' : ''}${text}`;
}
