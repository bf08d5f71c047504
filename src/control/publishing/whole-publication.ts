/**
 * Publishes whole bundles: all of a site's content, with its derived keys in shards. The slow reading of keys happens
 * before the site's lock is taken; under the lock only later changes are read. If only clients and keys changed since
 * the previous documents, deltas publish those first. A link to the whole bundle then lets followers continue without
 * fetching it.
 * Source: docs/design/bundle.md "Revision and head".
 */
import { hash } from 'node:crypto';
import {
  linkOf,
  type SignedWholeBundle,
  signLink,
  signWholeBundle,
} from '../../bundle/authoring/publishing-documents.ts';
import { MAX_REVISION_STEP } from '../../bundle/format/chain.ts';
import { BUNDLE_FILE } from '../../bundle/format/file-names.ts';
import type { BundleContent } from '../../bundle/format/schema.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { nextRevision } from './delta-publication.ts';
import type { PolicyDraft } from './policy-draft.ts';
import type { ShardFile, ShardSet } from './shard-set.ts';
import { noteSigned, type SignedEnds, stalenessOf } from './signed-bounds.ts';
import { inBundle, type MembersPublished, withheldMembers } from './withheld-members.ts';

/** Maximum number of keys inside the bundle itself; more go to shards, which later bundles can reuse. */
const MAX_INLINE_KEYS = 1000;

export interface WholePublication {
  /** The draft, with all changes read. */
  readonly draft: PolicyDraft;
  readonly shards: ShardSet;
  /** Whether anything changed that followers do not have from deltas. */
  readonly changesContent: boolean;
  readonly signers: readonly SigningKey[];
  readonly nowMs: number;
}

export interface PublishedWhole {
  readonly site: RowOf<'site'>;
  readonly kind: 'bundle' | 'link';
  /** Total size of the files. */
  readonly bytes: number;
  /** Until when verifiers may use earlier revisions. */
  readonly before: SignedEnds;
}

/** Call it under the site's lock. @throws BundleError when the content is invalid or too large */
export async function publishWhole(
  tx: Transaction,
  site: RowOf<'site'>,
  whole: WholePublication,
): Promise<PublishedWhole> {
  const { draft, signers, nowMs } = whole;
  const inline = whole.shards.linesOfAtMost(MAX_INLINE_KEYS);
  const files = inline === undefined ? whole.shards.files() : [];
  const { content, members } = await wholeContent(tx, site, { draft, nowMs, inline, files });
  const signed = signWholeBundle(content, signers);
  const { revision, head } = signed.position;
  const issuedAtSeconds = Math.floor(nowMs / 1000);
  const before = await noteSigned(tx, site, {
    ...{ revision, issuedAtSeconds },
    whole: {
      ...stalenessOf(content),
      expiresAtSeconds: issuedAtSeconds + site.bundleLifetimeSeconds,
      skewSeconds: site.skewSeconds,
    },
  });
  const bytes = await keepFiles(tx, site.id, revision, signed.document, files);
  const kind = await addStep(tx, site, { ...whole, content, signed });
  const policy = kind === 'bundle' ? { policyRevision: revision } : {};
  const next = { revision, head, baseRevision: revision, wholeNeeded: 0 as const, ...members, ...policy };
  await tx.hierarchy.advance(site.id, next);
  await awaitAcknowledgements(tx, site.id, revision, nowMs);
  return { site: { ...site, ...next }, kind, bytes, before };
}

interface PartsOfWhole {
  readonly draft: PolicyDraft;
  readonly nowMs: number;
  readonly inline: readonly string[] | undefined;
  readonly files: readonly ShardFile[];
}

async function wholeContent(
  tx: Transaction,
  site: RowOf<'site'>,
  { draft, nowMs, inline, files }: PartsOfWhole,
): Promise<{ readonly content: BundleContent; readonly members: MembersPublished }> {
  const nowSeconds = Math.floor(nowMs / 1000);
  const keys =
    inline === undefined
      ? {
          key_shards: files.map(({ keys: count, sha256 }, index) => ({
            file: shardName(index),
            count,
            sha256,
          })),
        }
      : { derived_keys: inline.map((line): unknown => JSON.parse(line)) };
  const { content: policy, members } = inBundle(await draft.policy(tx, site), {
    withheld: await withheldMembers(tx, site.id),
    nowSeconds,
  });
  const content = {
    ...policy,
    revision: nextRevision(site),
    ...(site.head === null ? {} : { previous_head: site.head }),
    issued_at: formatTime(nowSeconds),
    expires_at: formatTime(nowSeconds + site.bundleLifetimeSeconds),
    ...keys,
  };
  // Signing checks its shape.
  return { content: content as unknown as BundleContent, members };
}

function shardName(index: number): string {
  return `keys-${String(index + 1).padStart(4, '0')}.jsonl`;
}

/** @returns total bytes of the files */
async function keepFiles(
  tx: Transaction,
  siteId: string,
  revision: number,
  document: Buffer,
  shards: readonly ShardFile[],
): Promise<number> {
  const sha256 = hash('sha256', document, 'base64url');
  const bundle = { siteId, revision, sha256, bytes: document.length, keys: null, firstKey: null };
  await tx.distribution.putBlob({ siteId, sha256, content: document });
  await tx.distribution.addFile({ ...bundle, name: BUNDLE_FILE });
  let bytes = document.length;
  for (const [index, shard] of shards.entries()) {
    await keepContent(tx, siteId, shard);
    const { keys, firstKey } = shard;
    const file = { siteId, revision, sha256: shard.sha256, bytes: shard.bytes, keys, firstKey };
    await tx.distribution.addFile({ ...file, name: shardName(index) });
    bytes += shard.bytes;
  }
  return bytes;
}

/** @throws Error when the bytes of a kept shard are missing: it must be rewritten */
export async function keepContent(
  tx: Transaction,
  siteId: string,
  { sha256, content }: ShardFile,
): Promise<void> {
  if (await tx.distribution.hasBlob(siteId, sha256)) return;
  if (content === undefined) throw new Error(`a shard of ${siteId} is not kept any more`);
  await tx.distribution.putBlob({ siteId, sha256, content });
}

async function addStep(
  tx: Transaction,
  site: RowOf<'site'>,
  whole: WholePublication & { readonly content: BundleContent; readonly signed: SignedWholeBundle },
): Promise<'bundle' | 'link'> {
  const { content, signed, signers, nowMs } = whole;
  const { revision, head } = signed.position;
  const link = linkOf(content, signed);
  // Followers reject a longer step. They fetch the whole bundle, which has no such limit.
  const mayLink = !whole.changesContent && revision - site.revision <= MAX_REVISION_STEP;
  const document = mayLink && link !== undefined ? signLink(link, signers).document : undefined;
  const kind = document === undefined ? 'bundle' : 'link';
  await tx.distribution.addStep({
    siteId: site.id,
    revision,
    kind,
    head,
    previousHead: site.head,
    document: document?.toString('utf8') ?? '',
    bytes: document?.length ?? 0,
    publishedAtMs: nowMs,
  });
  return kind;
}

/** Sources that this bundle lists first become active once every target has it. */
async function awaitAcknowledgements(
  tx: Transaction,
  siteId: string,
  revision: number,
  nowMs: number,
): Promise<void> {
  const rows = await tx.sources.inStates(siteId, ['publishing']);
  for (const row of rows.filter(({ awaitedRevision }) => awaitedRevision === null)) {
    await tx.sourceRevisions.change(row, { awaitedRevision: revision }, nowMs);
  }
}
