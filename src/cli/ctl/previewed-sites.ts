/** Reads from Control what a preview compares: a site as it is, and as a declaration would make it. */

import { keyProvenance } from '../../bundle/authoring/key-provenance.ts';
import { withoutObservations } from '../../bundle/format/observation-members.ts';
import type { BundleContent } from '../../bundle/format/schema.ts';
import { asContent } from '../../bundle/format/shape.ts';
import { parseMoment } from '../../protocol/rfc3339.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import type { PreviewInputs } from '../../verifier/preview/preview.ts';
import { type ListedKey, previewedSite } from '../../verifier/preview/previewed-site.ts';
import type { ControlApi, Schemas } from './client/control-api.ts';
import { declareSite, type SiteFile } from './client/declaration.ts';
import { OperatorError } from './client/operator-error.ts';

/**
 * @throws OperatorError `preview_unsupported`, `site_not_published`, and those of declarations; BundleError for a site that
 *   verifiers would reject
 */
export async function previewedSites(
  api: ControlApi,
  file: SiteFile,
  prune: boolean,
): Promise<PreviewInputs> {
  const { contents } = await declareSite(api, file, { dryRun: true, prune, contents: true });
  if (contents?.published === undefined) throw notPublished(file.siteId);
  const { after, before, published, revoking_sources: revokingSources } = contents;
  const keys = await listedKeys(api, file.siteId);
  const revoking = new Set(revokingSources);
  const revoked = new Map(
    [...keys].map(([keyId, { sourceId, ...key }]): [string, ListedKey] => [
      keyId,
      revoking.has(sourceId) ? { ...key, status: 'revoked' } : key,
    ]),
  );
  return {
    before: await previewedSite(asBundle(before), keys, 'current site'),
    after: await previewedSite(asBundle({ ...before, ...after }), revoked, file.fileName),
    published: {
      revision: published.revision,
      head: published.head,
      policyRevision: published.policy_revision,
    },
  };
}

/** Revision and times are placeholders: predictions use neither them nor observations, whose ends depend on the times. */
function asBundle(content: JsonObject): BundleContent {
  const times = { issued_at: '1970-01-01T00:00:00Z', expires_at: '1970-01-01T00:00:01Z' };
  return asContent('bundle', { ...withoutObservations(content), revision: 1, ...times }, 'bundle');
}

type SitedKey = ListedKey & { readonly sourceId: string };

async function listedKeys(api: ControlApi, siteId: string): Promise<ReadonlyMap<string, SitedKey>> {
  const keys = new Map<string, SitedKey>();
  const pages = api.untyped.pages('/v1/sites/{site_id}/derived-keys', { path: { site_id: siteId } });
  for await (const page of pages) {
    // The list of typed calls would hold all pages at once.
    for (const key of page as unknown as readonly Schemas['DerivedKey'][])
      keys.set(key.key_id, listedKey(key));
  }
  return keys;
}

function listedKey(key: Schemas['DerivedKey']): SitedKey {
  const { policy_id: policyId, source_id: sourceId, verified_issuer: verifiedIssuer } = key;
  const facts = { policyId, sourceId, verifiedIssuer, verifiedSubject: key.verified_subject };
  return {
    clientId: key.client_id,
    status: key.status === 'revoked' ? 'revoked' : 'active',
    expiresAtSeconds: parseMoment(key.expires_at) ?? 0,
    provenance: new Map(Object.entries(keyProvenance(facts, key.provenance))),
    thumbprint: key.fingerprint,
    sourceId,
  };
}

function notPublished(siteId: string): OperatorError {
  const text = `changes of ${siteId} are not published yet, so no event shows the site as it is: try again after the publication`;
  return new OperatorError('refused', 'site_not_published', text);
}
