/**
 * OAuth authorization servers of a site. Their keys are fetched after the change, because a transaction fetches nothing
 * (`oauth-key-refresh.ts`). A server without keys is stored, but not published.
 * Source: docs/operate/control.md "OAuth issuers"; docs/design/bundle.md "Content".
 */
import Type from 'typebox';
import { oauthIssuer } from '../../bundle/format/schema-entries.ts';
import type { UrlReading } from '../../process/outbound-fetch/fetchable-url.ts';
import { tokenKeyThumbprint } from '../../protocol/token-key.ts';
import {
  OAUTH_ISSUER_DEFINITION,
  type OAuthIssuerDefinition,
  type OAuthIssuerView,
} from '../contract/oauth-issuers-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { readIssuerUrl, readKeySetUrl } from '../issuers/issuer-url.ts';
import { type ConfigurationDeps, momentOf, placeInSite, requireRow, versionOf } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import { siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import { rejectOldTargets } from './old-targets.ts';
import { storedDefinition } from './stored-definition.ts';

interface OAuthIssuerName {
  readonly siteId: string;
  readonly issuer: string;
}

export class OAuthIssuers extends VersionedResource<'oauth_issuer', 'oauthIssuer', OAuthIssuerView> {
  readonly #siteCheck: ConfigurationDeps['siteCheck'];

  constructor(deps: ConfigurationDeps) {
    super(deps, {
      audited: 'oauth_issuer',
      table: (tx) => tx.oauthIssuers,
      lock: siteLock,
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ issuer }) => issuer,
      views: (_tx, rows) => rows.map(oauthIssuerView),
    });
    this.#siteCheck = deps.siteCheck;
  }

  list(siteId: string, page: Page): Promise<readonly OAuthIssuerView[]> {
    return this.listRows((tx) => tx.oauthIssuers.list({ siteId }, page));
  }

  /**
   * Also makes the next fetch due.
   * @param version the change is based on; undefined for a new server
   * @throws ApiProblem `precondition_required`, `precondition_failed`, `definition_invalid`, `target_too_old`
   */
  put(
    operation: Operation,
    { siteId, issuer }: OAuthIssuerName,
    version: number | undefined,
    definition: OAuthIssuerDefinition,
  ) {
    return this.putRow(operation, [siteId, issuer], version, async (tx, known) => {
      rejectFaultyUrls(issuer, definition, requireRow(await tx.sites.find(siteId)));
      await rejectOldTargets(tx, siteId, known === undefined ? ['accepted_proofs'] : []);
      // Keys of another key set must not serve this one.
      const isSameKeySet =
        known !== undefined && readDefinition(known.definition).jwks_url === definition.jwks_url;
      const set = {
        definition: JSON.stringify(definition),
        attemptedAtMs: null,
        ...(isSameKeySet ? {} : { keys: null, fetchedAtMs: null, failureCode: null }),
      };
      return {
        set,
        add: (first) => tx.oauthIssuers.add({ siteId, issuer, ...NOT_FETCHED, ...set, ...first }),
        check: () => this.#siteCheck(tx, siteId),
        publish: { kind: 'policy' },
      };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, issuer }: OAuthIssuerName, version: number): Promise<void> {
    return this.removeRow(operation, [siteId, issuer], version, async () => ({
      publish: { kind: 'policy' },
    }));
  }
}

const NOT_FETCHED = { keys: null, fetchedAtMs: null, failureCode: null };

/** @throws ApiProblem `definition_invalid` */
export function rejectFaultyUrls(
  issuer: string,
  { jwks_url: jwksUrl }: OAuthIssuerDefinition,
  { issuerUrl }: Pick<RowOf<'site'>, 'issuerUrl'>,
): void {
  // Also while the site has no client, with which the site check would find it.
  if (issuer === issuerUrl) {
    throw invalidAt('/path/issuer', "the site's own issuer, whose passports derived keys sign");
  }
  rejectRefused('/path/issuer', readIssuerUrl(issuer));
  if (jwksUrl !== undefined) rejectRefused('/body/definition/jwks_url', readKeySetUrl(jwksUrl));
}

function rejectRefused(pointer: string, reading: UrlReading): void {
  if (reading.kind === 'refused') throw invalidAt(pointer, reading.detail);
}

function invalidAt(pointer: string, reason: string): ApiProblem {
  return new ApiProblem('definition_invalid', undefined, { faults: [{ pointer, reason }] });
}

const readDefinition = storedDefinition(OAUTH_ISSUER_DEFINITION);
const readKeys = storedDefinition(Type.Array(oauthIssuer.properties.keys.items));

/** `kid`s of the keys that Control fetched last. */
export function fetchedKids({ keys }: Pick<RowOf<'oauthIssuer'>, 'keys'>): readonly string[] {
  return keys === null ? [] : readKeys(keys).map(({ kid }) => kid);
}

export function oauthIssuerView(row: RowOf<'oauthIssuer'>): OAuthIssuerView {
  const definition = readDefinition(row.definition);
  return {
    site_id: row.siteId,
    issuer: row.issuer,
    trust_domain: definition.trust_domain,
    definition,
    keys: (row.keys === null ? [] : readKeys(row.keys)).map(({ kid, alg, jwk }) => ({
      ...{ kid, alg, thumbprint: tokenKeyThumbprint(jwk) },
    })),
    published: row.keys !== null,
    ...(row.fetchedAtMs === null ? {} : { fetched_at: momentOf(row.fetchedAtMs) }),
    ...(row.failureCode === null ? {} : { failure: row.failureCode }),
    ...versionOf(row),
  };
}
