/** Documents that are properly made, and must be rejected by a verifier at the end of the chain. */

import {
  signDelta,
  signLink,
  signWholeBundle,
} from '../../../../src/bundle/authoring/publishing-documents.ts';
import type { ChainPosition } from '../../../../src/bundle/format/chain.ts';
import { DOCUMENTS, signDocument } from '../../../../src/bundle/format/documents.ts';
import type { StepKind } from '../../../../src/bundle/format/file-names.ts';
import type { BundleContent, DeltaContent } from '../../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../../src/protocol/signing.ts';
import { deltaAfter } from '../../../support/bundle/deltas.ts';
import { NOW_SECONDS, newSigningKey } from '../../../support/fixtures/bundle-content.ts';
import { CLOCK_SECONDS, type SignedChain } from './signed-chain.ts';

export interface MisusedWhole {
  readonly why: string;
  readonly code: string;
  readonly bytes: Buffer;
}

export interface MisusedStep extends MisusedWhole {
  readonly kind: StepKind;
  /** As its name says it. */
  readonly revision: number;
}

const strangers = [newSigningKey(), newSigningKey('ES256'), newSigningKey()];
const OTHER_HEAD = 'A'.repeat(43);
const OTHER_SITE = 'another-site';
/** Just expired, skew included. */
const LAPSED = formatTime(CLOCK_SECONDS - 20);

/** Signers that are not enough, by what is wrong with them. */
function wrongSigners({ bundleKeys }: SignedChain): readonly (readonly [string, readonly SigningKey[]])[] {
  const [first, second] = bundleKeys;
  if (first === undefined || second === undefined) throw new Error('too few keys');
  return [
    ['signed by others', strangers],
    ['signed by one of the two that are needed', [second]],
    ['signed by one key, three times', [first, first, first]],
    ['signed by one key and by others', [first, ...strangers]],
  ];
}

export function misusedWholes(chain: SignedChain): readonly MisusedWhole[] {
  const next = { ...chain.content, revision: chain.end.revision + 1, previous_head: chain.end.head };
  const signed = (more: Partial<BundleContent>, keys = chain.bundleKeys) =>
    signWholeBundle({ ...next, ...more }, keys).document;
  const renamed = signDocument(DOCUMENTS.delta.type, Buffer.from(JSON.stringify(next)), chain.bundleKeys);
  return [
    ...cases([
      ['of a lower revision', 'revision_lower', chain.old.bundle],
      [
        'of the same revision with another head',
        'revision_conflict',
        signed({ revision: chain.end.revision }),
      ],
      ['of another site', 'auth_site_mismatch', signed({ auth_site: OTHER_SITE })],
      ['with the type of a delta', 'document_type', renamed],
      ['that has expired', 'expired', signed({ expires_at: LAPSED })],
    ]),
    ...wrongSigners(chain).map(([why, keys]) => ({
      why,
      code: 'signatures_insufficient',
      bytes: signed({}, keys),
    })),
  ];
}

function cases<C extends string | undefined>(
  rows: readonly (readonly [why: string, code: C, bytes: Buffer])[],
) {
  return rows.map(([why, code, bytes]) => ({ why, code, bytes }));
}

export function misusedSteps(chain: SignedChain): readonly MisusedStep[] {
  const delta = (previous: ChainPosition, more: Partial<DeltaContent> = {}, keys = chain.bundleKeys) =>
    signDelta(deltaAfter(previous, more), keys).document;
  const { end } = chain;
  const next = { kind: 'delta', revision: end.revision + 1 } as const;
  const far = end.revision + 1_000_001;
  const link = { auth_site: chain.content.auth_site, revision: next.revision, previous_head: end.head };
  const lapsed = {
    ...link,
    bundle_sha256: OTHER_HEAD,
    issued_at: formatTime(NOW_SECONDS),
    expires_at: LAPSED,
  };
  const deltas = cases([
    ['that was taken before', 'revision_lower', chain.documents['delta-3.jws']],
    ['that continues another head', 'chain_broken', delta({ ...end, head: OTHER_HEAD })],
    ['of another site', 'auth_site_mismatch', delta(end, { auth_site: OTHER_SITE })],
  ]);
  const links = cases([
    ['with the type of a delta', 'document_type', delta(end)],
    ['to a bundle that has expired', 'expired', signLink(lapsed, chain.bundleKeys).document],
  ]);
  const distant = { why: 'too far away', code: 'revision_step', bytes: delta(end, { revision: far }) };
  return [
    ...deltas.map((step) => ({ ...next, ...step })),
    { ...next, ...distant, revision: far },
    ...links.map((step) => ({ ...next, ...step, kind: 'link' as const })),
    ...wrongSigners(chain).map(([why, keys]) => ({
      ...next,
      why,
      code: 'signatures_insufficient',
      bytes: delta(end, {}, keys),
    })),
  ];
}

/** `code`: of the rejection, or the reason for which the statement is not applied; undefined where it contains nothing new. */
export type MisusedStatement = Omit<MisusedWhole, 'code'> & { readonly code: string | undefined };

/** All but the first claim to be younger than they are. */
export function misusedStatements(chain: SignedChain): readonly MisusedStatement[] {
  const { before, end } = chain;
  const statement = (position: ChainPosition, keys?: readonly SigningKey[], asOfSeconds = CLOCK_SECONDS) =>
    chain.statement(position, asOfSeconds, keys);
  return cases([
    ['that is older', undefined, statement(end, undefined, NOW_SECONDS + 500)],
    ['from the future', 'ahead_of_clock', statement(end, undefined, CLOCK_SECONDS + 60)],
    ['about the revision before', 'other_revision', statement(before['link-4.jws'])],
    ['about the next revision', 'other_revision', statement({ ...end, revision: 5 })],
    ['about another head', 'other_head', statement({ ...end, head: OTHER_HEAD })],
    ['signed by keys of bundles', 'signatures_insufficient', statement(end, chain.bundleKeys)],
    ['signed by others', 'signatures_insufficient', statement(end, strangers)],
    ['that is a delta', 'document_type', chain.documents['delta-3.jws']],
  ]);
}
