/**
 * Brokers of a site: external issuers that sign passports, one for each issuer and trust domain. A broker without keys is
 * stored, but not published.
 * Source: docs/operate/control-api.md "Resources"; docs/design/bundle.md "Content".
 */
import Type from 'typebox';
import { isLoopback } from '../../protocol/loopback.ts';
import { parsePublicJwk, thumbprintOf } from '../../protocol/public-key.ts';
import { isCanonicalSubjectPrefix } from '../../protocol/spiffe-id.ts';
import {
  BROKER_DEFINITION,
  type BrokerDefinition,
  type BrokerReplacement,
  type BrokerView,
} from '../contract/routes-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { ID_PREFIXES } from '../domain/resource-identifiers.ts';
import { type ConfigurationDeps, momentOf, placeInSite, requireRow, versionOf } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import { siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { rejectNotCanonical } from './routes.ts';
import { storedDefinition } from './stored-definition.ts';

interface BrokerName {
  readonly siteId: string;
  readonly issuer: string;
  readonly trustDomain: string;
}

/** Names a broker as Control did up to 0.3.0, by its issuer alone. */
type IssuerName = Omit<BrokerName, 'trustDomain'>;

export class Brokers extends VersionedResource<'broker', 'broker', BrokerView> {
  readonly #siteCheck: ConfigurationDeps['siteCheck'];

  constructor(deps: ConfigurationDeps) {
    super(deps, {
      audited: 'broker',
      table: (tx) => tx.brokers,
      lock: siteLock,
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ issuer }) => issuer,
      views: (_tx, rows) => rows.map(brokerView),
    });
    this.#siteCheck = deps.siteCheck;
  }

  list(siteId: string, page: Page): Promise<readonly BrokerView[]> {
    return this.listRows((tx) => tx.brokers.list({ siteId }, page));
  }

  /**
   * @param version the change is based on; undefined for a new broker
   * @throws ApiProblem `precondition_required`, `precondition_failed`, `definition_invalid`
   */
  put(operation: Operation, name: BrokerName, version: number | undefined, body: BrokerReplacement) {
    const { siteId, issuer, trustDomain } = name;
    const { definition: content, url } = body;
    return this.putRow(operation, [siteId, issuer, trustDomain], version, async (tx, known, nowMs) => {
      await rejectOwnIssuer(tx, name);
      rejectFaulty(name, body);
      const set = {
        definition: JSON.stringify({ issuer, ...content }),
        url: url ?? null,
        keyPins: JSON.stringify(pinsAfter(known, content.keys, nowMs)),
      };
      return {
        set,
        add: (first) => tx.brokers.add({ siteId, issuer, trustDomain, ...set, ...first }),
        check: () => this.#siteCheck(tx, siteId),
        publish: { kind: 'policy' },
      };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed` */
  remove(operation: Operation, name: BrokerName, version: number): Promise<void> {
    const { siteId, issuer, trustDomain } = name;
    return this.removeRow(operation, [siteId, issuer, trustDomain], version, async () => ({
      publish: { kind: 'policy' },
    }));
  }

  /** @throws ApiProblem `not_found`, `broker_ambiguous` */
  async getByIssuer(name: IssuerName): Promise<BrokerView> {
    const { siteId, issuer, trustDomain } = await this.#only(name);
    return this.get(siteId, issuer, trustDomain);
  }

  /**
   * Keeps the broker's URL when the body has none.
   * @throws ApiProblem as {@link put}, and `broker_ambiguous`
   */
  async putByIssuer(
    operation: Operation,
    name: IssuerName,
    version: number | undefined,
    body: BrokerReplacement,
  ) {
    const { trust_domain: trustDomain } = body.definition;
    const rows = await this.#ofIssuer(name);
    const known = rows.find((row) => row.trustDomain === trustDomain);
    if (version !== undefined && rows.length > 1) throw ambiguous(rows);
    if (version !== undefined && known === undefined && rows[0] !== undefined) {
      const reason = `fixed: it is ${rows[0].trustDomain}. Create the other broker, then remove this one`;
      throw invalidAt('/body/definition/trust_domain', reason);
    }
    const url = body.url ?? known?.url ?? undefined;
    const withUrl = url === undefined ? body : { ...body, url };
    return this.put(operation, { ...name, trustDomain }, version, withUrl);
  }

  /** @throws ApiProblem as {@link remove}, and `broker_ambiguous` */
  async removeByIssuer(operation: Operation, name: IssuerName, version: number): Promise<void> {
    return this.remove(operation, await this.#only(name), version);
  }

  #ofIssuer({ siteId, issuer }: IssuerName): Promise<readonly RowOf<'broker'>[]> {
    return this.store.read((tx) => tx.brokers.ofIssuer(siteId, issuer));
  }

  async #only(name: IssuerName): Promise<RowOf<'broker'>> {
    const rows = await this.#ofIssuer(name);
    if (rows.length > 1) throw ambiguous(rows);
    return requireRow(rows[0]);
  }
}

function ambiguous(rows: readonly RowOf<'broker'>[]): ApiProblem {
  const domains = rows.map(({ trustDomain }) => trustDomain).join(', ');
  const detail = `the issuer has brokers for ${domains}: name the trust domain (in the path; ctl: --trust-domain). ctl up to 0.3.0 cannot`;
  return new ApiProblem('broker_ambiguous', detail.slice(0, MAX_DETAIL));
}

const MAX_DETAIL = 512;

function invalidAt(pointer: string, reason: string): ApiProblem {
  return new ApiProblem('definition_invalid', undefined, { faults: [{ pointer, reason }] });
}

/** A broker must not sign as the site's own issuer, even if the site has no clients yet. @throws ApiProblem `definition_invalid` */
async function rejectOwnIssuer(tx: Transaction, { siteId, issuer }: BrokerName): Promise<void> {
  const { issuerUrl } = requireRow(await tx.sites.find(siteId));
  if (issuer !== issuerUrl) return;
  throw invalidAt('/path/issuer', "the site's own issuer, whose passports derived keys sign");
}

/** Checks that the site check does not cover. @throws ApiProblem `definition_invalid` */
function rejectFaulty({ trustDomain }: BrokerName, { definition, url }: BrokerReplacement): void {
  if (definition.trust_domain !== trustDomain) {
    throw invalidAt('/body/definition/trust_domain', 'must be the trust domain of the path');
  }
  if (url !== undefined && !isBrokerUrl(url)) throw invalidAt('/body/url', BROKER_URL_RULE);
  // The site check leaves derived keys out. Their IDs share a namespace with kids: one of these could stop publication.
  const taken = definition.keys.findIndex(({ kid }) => kid.startsWith(DERIVED_KEY_PREFIX));
  if (taken !== -1) {
    throw invalidAt(`/body/definition/keys/${taken}/kid`, `must not begin with ${DERIVED_KEY_PREFIX}`);
  }
  rejectNotCanonical(
    definition.subject_prefixes.flatMap((prefix, index) =>
      isCanonicalSubjectPrefix(prefix) ? [] : [`/body/definition/subject_prefixes/${index}`],
    ),
  );
}

const DERIVED_KEY_PREFIX = `${ID_PREFIXES.derivedKey}_`;

const BROKER_URL_RULE =
  'must read https://host[:port][/path] (plain http on loopback only), in lower case, without a final slash';

/**
 * Requires a URL in canonical spelling without credentials, query and fragment, because operators' machines fetch keys
 * from it.
 */
function isBrokerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, origin, pathname } = new URL(text);
  const isSecure = protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
  return isSecure && text === `${origin}${pathname === '/' ? '' : pathname}` && !text.endsWith('/');
}

const readStored = storedDefinition(
  Type.Object({ issuer: Type.String(), ...BROKER_DEFINITION.properties }, { additionalProperties: false }),
);
/** When each key was pinned, in milliseconds, by RFC 7638 thumbprint. */
const readPins = storedDefinition(Type.Record(Type.String(), Type.Number()));

function brokerView(row: RowOf<'broker'>): BrokerView {
  const { issuer, ...definition } = readStored(row.definition);
  const pins = readPins(row.keyPins);
  return {
    site_id: row.siteId,
    issuer,
    trust_domain: row.trustDomain,
    ...(row.url === null ? {} : { url: row.url }),
    definition,
    keys: definition.keys.flatMap(({ kid, alg, jwk }) => {
      const thumbprint = thumbprintAt(jwk);
      if (thumbprint === undefined) return [];
      return [{ kid, alg, thumbprint, pinned_at: momentOf(pins[thumbprint] ?? row.updatedAtMs) }];
    }),
    published: definition.keys.length > 0,
    ...versionOf(row),
  };
}

/** A key that stays keeps its time, also under another `kid`. */
function pinsAfter(
  known: RowOf<'broker'> | undefined,
  keys: BrokerDefinition['keys'],
  nowMs: number,
): { readonly [thumbprint: string]: number } {
  const before = known === undefined ? {} : readPins(known.keyPins);
  const thumbprints = keys.flatMap(({ jwk }) => thumbprintAt(jwk) ?? []);
  return Object.fromEntries(thumbprints.map((each) => [each, before[each] ?? nowMs]));
}

function thumbprintAt(value: unknown): string | undefined {
  const jwk = parsePublicJwk(value);
  return jwk === undefined ? undefined : thumbprintOf(jwk);
}
