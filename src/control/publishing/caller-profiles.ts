/**
 * The signing profile file of a caller whose passports a broker signs: the routes whose allowed sources admit it.
 * Source: docs/operate/control-api.md "Resources"; docs/operate/cli.md "Signing profiles".
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { acceptsTranscripts } from '../../bundle/format/proof-members.ts';
import { type AllowedSourceContent, BUNDLE_CONTENT } from '../../bundle/format/schema.ts';
import { type KeyBinding, satisfiesKeyBinding } from '../../protocol/identifiers.ts';
import { isCanonicalSubject, SPIFFE_ID_RULE, subjectLiesInTrustDomain } from '../../protocol/spiffe-id.ts';
import type { CallerProfilesView } from '../contract/derived-keys-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { requireRow } from '../resource/change.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { readSiteRoutes, routeProfile } from './signing-profiles.ts';

export interface CallerName {
  readonly issuer: string;
  readonly subject: string;
  /** Needed when the issuer has several brokers and the subject is no SPIFFE ID. */
  readonly trustDomain?: string | undefined;
}

interface Caller {
  readonly issuer: string;
  readonly trustDomain: string;
  readonly subject: string;
  readonly keyBinding: KeyBinding;
}

const BROKER = Compile(
  Type.Object({
    subject_prefixes: BUNDLE_CONTENT.properties.issuers.items.properties.subject_prefixes,
    key_binding: BUNDLE_CONTENT.properties.issuers.items.properties.key_binding,
  }),
);

/**
 * `profiles` is empty when no route admits the caller.
 * @throws ApiProblem `not_found` without the site; `reference_unknown` when no broker may speak for the subject;
 *   `broker_ambiguous`
 */
export async function callerProfiles(
  tx: Transaction,
  siteId: string,
  name: CallerName,
): Promise<CallerProfilesView> {
  const site = requireRow(await readSiteRoutes(tx, siteId));
  const caller = await identify(tx, siteId, name);
  const admitting = site.routes.filter(
    ({ content, sources }) =>
      acceptsTranscripts(content) && sources?.some((source) => admits(source, caller)),
  );
  return {
    format: 'proofgate.signing-profile/v1',
    auth_site: siteId,
    issuer: caller.issuer,
    trust_domain: caller.trustDomain,
    subject: caller.subject,
    key_binding: caller.keyBinding,
    profiles: admitting.map(({ content }) => routeProfile(site, content)),
  };
}

/** Brokers attest every SPIFFE ID, and no other subject: the class follows from the proof (docs/operate/broker.md). */
async function identify(tx: Transaction, siteId: string, name: CallerName): Promise<Caller> {
  const { issuer, subject } = name;
  if (!isCanonicalSubject(subject)) throw unknown(`the subject is not ${SPIFFE_ID_RULE}`);
  const keyBinding = subject.startsWith('spiffe:') ? 'attested_workload' : 'software';
  const brokers = (await tx.brokers.ofIssuer(siteId, issuer)).filter(
    ({ trustDomain }) =>
      trustDomain === (name.trustDomain ?? trustDomain) && subjectLiesInTrustDomain(subject, trustDomain),
  );
  const [broker, another] = brokers;
  if (broker === undefined) throw unknown(`no broker ${issuer} for the subject's trust domain`);
  if (another !== undefined) throw new ApiProblem('broker_ambiguous', 'name the trust_domain of the subject');
  requireBounds(broker, subject, keyBinding);
  return { issuer, subject, keyBinding, trustDomain: broker.trustDomain };
}

/** Rejects what verifiers would reject. */
function requireBounds({ definition }: RowOf<'broker'>, subject: string, keyBinding: KeyBinding): void {
  const stored: unknown = JSON.parse(definition);
  if (!BROKER.Check(stored) || !stored.subject_prefixes.some((prefix) => subject.startsWith(prefix))) {
    throw unknown("the subject begins with none of the broker's subject_prefixes");
  }
  if (!satisfiesKeyBinding(stored.key_binding, keyBinding)) {
    throw unknown(`the broker may attest ${stored.key_binding} only`);
  }
}

function unknown(detail: string): ApiProblem {
  return new ApiProblem('reference_unknown', detail);
}

/** Applies the verifier's rule: `src/verifier/decision/steps/source.ts`. */
function admits(source: AllowedSourceContent, { issuer, trustDomain, subject, keyBinding }: Caller): boolean {
  const { subject_exact: exact, subject_prefix: prefix } = source;
  return (
    source.issuer === issuer &&
    source.trust_domain === trustDomain &&
    (exact === undefined ? prefix !== undefined && subject.startsWith(prefix) : exact === subject) &&
    satisfiesKeyBinding(keyBinding, source.required_key_binding)
  );
}
