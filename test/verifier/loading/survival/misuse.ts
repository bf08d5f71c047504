/** Documents that are properly made, and not to be taken by a verifier that stands at the end of the chain. */

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
import { deltaAfter } from '../../../bundle/deltas.ts';
import { NOW_SECONDS, newSigningKey } from '../../../fakes/bundle-content.ts';
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
  const payload = Buffer.from(JSON.stringify(next));
  return [
    { why: 'of a lower revision', code: 'revision_lower', bytes: chain.old.bundle },
    {
      why: 'of the same revision with another head',
      code: 'revision_conflict',
      bytes: signed({ revision: chain.end.revision }),
    },
    { why: 'of another site', code: 'auth_site_mismatch', bytes: signed({ auth_site: OTHER_SITE }) },
    {
      why: 'said to be a delta',
      code: 'document_type',
      bytes: signDocument(DOCUMENTS.delta.type, payload, chain.bundleKeys),
    },
    { why: 'that has expired', code: 'expired', bytes: signed({ expires_at: LAPSED }) },
    ...wrongSigners(chain).map(([why, keys]) => ({
      why,
      code: 'signatures_insufficient',
      bytes: signed({}, keys),
    })),
  ];
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
  return [
    { ...next, why: 'that was taken before', code: 'revision_lower', bytes: chain.documents['delta-3.jws'] },
    {
      ...next,
      why: 'that continues another head',
      code: 'chain_broken',
      bytes: delta({ ...end, head: OTHER_HEAD }),
    },
    {
      ...next,
      revision: far,
      why: 'too far away',
      code: 'revision_step',
      bytes: delta(end, { revision: far }),
    },
    {
      ...next,
      why: 'of another site',
      code: 'auth_site_mismatch',
      bytes: delta(end, { auth_site: OTHER_SITE }),
    },
    { ...next, kind: 'link', why: 'said to be a link', code: 'document_type', bytes: delta(end) },
    {
      ...next,
      kind: 'link',
      why: 'to a bundle that has expired',
      code: 'expired',
      bytes: signLink(lapsed, chain.bundleKeys).document,
    },
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
  return [
    { why: 'that is older', code: undefined, bytes: statement(end, undefined, NOW_SECONDS + 500) },
    {
      why: 'from the future',
      code: 'ahead_of_clock',
      bytes: statement(end, undefined, CLOCK_SECONDS + 60),
    },
    { why: 'about the revision before', code: 'other_revision', bytes: statement(before['link-4.jws']) },
    { why: 'about the next revision', code: 'other_revision', bytes: statement({ ...end, revision: 5 }) },
    { why: 'about another head', code: 'other_head', bytes: statement({ ...end, head: OTHER_HEAD }) },
    {
      why: 'signed by keys of bundles',
      code: 'signatures_insufficient',
      bytes: statement(end, chain.bundleKeys),
    },
    { why: 'signed by others', code: 'signatures_insufficient', bytes: statement(end, strangers) },
    { why: 'that is a delta', code: 'document_type', bytes: chain.documents['delta-3.jws'] },
  ];
}
