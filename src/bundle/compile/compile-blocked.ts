/**
 * Compiles the blocked callers of a bundle to look-up tables.
 * Source: docs/design/bundle.md "Content".
 */
import { decodeBase64url } from '../../protocol/base64url.ts';
import { isCanonicalSubject, SPIFFE_ID_RULE } from '../../protocol/spiffe-id.ts';
import { type Faults, pointer, showValue } from '../format/bundle-error.ts';
import type { BlockedCallerContent, BundleContent } from '../format/schema.ts';
import type { BlockedCallers } from './snapshot.ts';

/** Undefined for a bundle without blocked callers, so that its requests cost nothing more. */
export function compileBlocked({ blocked = [] }: BundleContent, faults: Faults): BlockedCallers | undefined {
  const byIssuer = new Map<string, { readonly subjects: Set<string>; readonly holders: Set<string> }>();
  for (const [index, entry] of blocked.entries()) {
    const path = pointer('blocked', index);
    const selector = selectorOf(entry, path, faults);
    if (selector === undefined) continue;
    const ofIssuer = byIssuer.get(entry.issuer) ?? { subjects: new Set(), holders: new Set() };
    byIssuer.set(entry.issuer, ofIssuer);
    const values = ofIssuer[selector.kind];
    if (values.has(selector.value)) {
      faults.add('duplicate', path, `${showValue(selector.value)} occurs twice for this issuer`);
    }
    values.add(selector.value);
  }
  return byIssuer.size === 0 ? undefined : byIssuer;
}

interface Selector {
  readonly kind: 'subjects' | 'holders';
  readonly value: string;
}

function selectorOf(
  { holder_thumbprint: holder, subject }: BlockedCallerContent,
  path: string,
  faults: Faults,
): Selector | undefined {
  if (subject !== undefined && holder === undefined) {
    if (!isCanonicalSubject(subject)) {
      const text = `${showValue(subject)} blocks no caller: it is not ${SPIFFE_ID_RULE}`;
      faults.warn('subject_not_canonical', `${path}/subject`, text);
    }
    return { kind: 'subjects', value: subject };
  }
  if (holder !== undefined && subject === undefined) {
    // A thumbprint in another spelling would never match.
    if (decodeBase64url(holder) === undefined) {
      faults.add('value_invalid', `${path}/holder_thumbprint`, 'not 32 bytes in canonical base64url');
    }
    return { kind: 'holders', value: holder };
  }
  const found = subject === undefined ? 'neither' : 'both';
  faults.add('subject_selector', path, `needs subject or holder_thumbprint, has ${found}`);
  return undefined;
}
