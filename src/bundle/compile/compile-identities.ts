/**
 * Compiles the issuers and clients of a bundle. Issuers sign passports for others; derived keys act for clients.
 * Source: docs/design/bundle.md "Rules that a load enforces".
 */
import type { Access } from '../../protocol/access.ts';
import type { Attributes } from '../../protocol/passport.ts';
import {
  isCanonicalSubject,
  isCanonicalSubjectPrefix,
  SPIFFE_ID_RULE,
  subjectLiesInTrustDomain,
} from '../../protocol/spiffe-id.ts';
import { type Faults, pointer, showValue } from '../format/bundle-error.ts';
import { DEFAULT_PASSPORT_TTL_SECONDS } from '../format/bundle-limits.ts';
import type { BundleContent, ClientContent, IssuerContent } from '../format/schema.ts';
import type { LiveKeyTable } from './key-table.ts';
import type { ClientEntry, IssuerEntry } from './snapshot.ts';

/** In the order of the content's `issuers`. */
export function compileIssuers(content: BundleContent, faults: Faults): readonly IssuerEntry[] {
  const clientIssuers = new Set(content.clients?.map(({ issuer }) => issuer));
  const seen = new Set<string>();
  return (content.issuers ?? []).map((entry, index) => {
    const path = pointer('issuers', index);
    if (clientIssuers.has(entry.issuer)) {
      // A broker must not be able to issue passports as a client.
      faults.add('issuer_of_client', `${path}/issuer`, `${showValue(entry.issuer)} is a client's issuer`);
    }
    // Neither part contains a space.
    const identity = `${entry.issuer} ${entry.trust_domain}`;
    if (seen.has(identity)) {
      faults.add('duplicate', path, `issuer ${showValue(entry.issuer)} occurs twice for this trust domain`);
    }
    seen.add(identity);
    checkSubjectPrefixes(entry, path, faults);
    return compileIssuer(entry);
  });
}

function checkSubjectPrefixes(entry: IssuerContent, path: string, faults: Faults): void {
  for (const [index, prefix] of entry.subject_prefixes.entries()) {
    if (prefix !== '')
      checkSubjectPrefix(prefix, entry.trust_domain, `${path}/subject_prefixes/${index}`, faults);
  }
}

/** A prefix must end at a separator, or it would also match other names with the same beginning. */
export function checkSubjectPrefix(prefix: string, trustDomain: string, path: string, faults: Faults): void {
  if (!prefix.endsWith('/') && !prefix.endsWith(':')) {
    faults.add('subject_prefix_open', path, `${showValue(prefix)} ends neither in "/" nor in ":"`);
  }
  checkForm(prefix, trustDomain, isCanonicalSubjectPrefix(prefix), path, faults);
}

export function checkSubject(subject: string, trustDomain: string, path: string, faults: Faults): void {
  checkForm(subject, trustDomain, isCanonicalSubject(subject), path, faults);
}

/** SPIFFE-ID specification section 2: the trust domain is the authority of the ID. */
function checkForm(
  subject: string,
  trustDomain: string,
  isCanonical: boolean,
  path: string,
  faults: Faults,
): void {
  if (!subjectLiesInTrustDomain(subject, trustDomain)) {
    const text = `${showValue(subject)} does not lie in trust domain ${showValue(trustDomain)}`;
    faults.add('subject_outside_trust_domain', path, text);
  } else if (!isCanonical) {
    const text = `${showValue(subject)} matches nothing: it is not ${SPIFFE_ID_RULE}`;
    faults.warn('subject_not_canonical', path, text);
  }
}

function compileIssuer(entry: IssuerContent): IssuerEntry {
  return {
    issuer: entry.issuer,
    trustDomain: entry.trust_domain,
    subjectPrefixes: entry.subject_prefixes.filter(isCanonicalSubjectPrefix),
    keyBinding: entry.key_binding,
    maxPassportTtlSeconds: entry.max_passport_ttl_seconds ?? DEFAULT_PASSPORT_TTL_SECONDS,
  };
}

/** Adds the clients to the table. */
export function compileClients(content: BundleContent, table: LiveKeyTable, faults: Faults): void {
  for (const [index, entry] of (content.clients ?? []).entries()) {
    const path = pointer('clients', index);
    if (table.client(entry.client_id) !== undefined) {
      faults.add('duplicate', `${path}/client_id`, `${showValue(entry.client_id)} occurs twice`);
    }
    table.putClient(compileClient(entry, path, faults));
  }
}

/** @param path the client's position in its document */
export function compileClient(entry: ClientContent, path: string, faults: Faults): ClientEntry {
  checkSubject(entry.subject, entry.trust_domain, `${path}/subject`, faults);
  const grants = new Map<string, Access>();
  for (const [index, { resource, access }] of entry.grants.entries()) {
    if (grants.has(resource)) {
      faults.add('duplicate', `${path}/grants/${index}/resource`, `${showValue(resource)} occurs twice`);
    }
    grants.set(resource, access);
  }
  return {
    clientId: entry.client_id,
    issuer: entry.issuer,
    trustDomain: entry.trust_domain,
    subject: entry.subject,
    context: attributesOf(entry.context),
    grants,
  };
}

export function attributesOf(record: { readonly [name: string]: string } | undefined): Attributes {
  return new Map(Object.entries(record ?? {}));
}
