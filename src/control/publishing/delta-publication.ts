/**
 * Publishes deltas: changes of a site's clients and derived keys, appended to its chain. The cost is that of the changes.
 * Source: docs/design/bundle.md "Deltas"; docs/operate/control.md "From key to traffic".
 */
import { signDelta } from '../../bundle/authoring/publishing-documents.ts';
import type { ClientContent, DerivedKeyContent } from '../../bundle/format/schema.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { noteRevoked, noteSigned, type SignedEnds } from './signed-bounds.ts';
import { derivedKeyContent, readClientsOf } from './stored-site-content.ts';

/** Maximum number of changes in a delta: far below the size limit of a document. */
export const MAX_CHANGES = 2000;

/** Current content of a delta. */
export interface DeltaDraft {
  readonly clients: readonly ClientContent[];
  /** Keys that have not ended. A revoked key stays listed until its planned end. */
  readonly keys: readonly RowOf<'derivedKey'>[];
}

/**
 * Leaves out ended keys, which verifiers drop by themselves.
 * @returns undefined when a client was deleted: a delta could name one that was never published, so a whole bundle is due
 */
export async function readDelta(
  tx: Transaction,
  site: RowOf<'site'>,
  changes: readonly RowOf<'siteChange'>[],
  nowMs: number,
): Promise<DeltaDraft | undefined> {
  const clientIds = referencesOf(changes, 'client');
  const clients = await readClientsOf(tx, site, clientIds);
  if (clients.length < clientIds.length) return undefined;
  return {
    clients,
    keys: await tx.publication.keys(site.id, referencesOf(changes, 'key'), Math.floor(nowMs / 1000)),
  };
}

/** The distinct references of one kind. */
export function referencesOf(
  changes: readonly Pick<RowOf<'siteChange'>, 'kind' | 'reference'>[],
  kind: 'client' | 'key',
): readonly string[] {
  const found = changes.filter((change) => change.kind === kind).map(({ reference }) => reference);
  return [...new Set(found)];
}

export interface DeltaContext {
  readonly signers: readonly SigningKey[];
  readonly nowMs: number;
}

export interface PublishedStep {
  /** The site as it stands now. */
  readonly site: RowOf<'site'>;
  /** Size of the document. */
  readonly bytes: number;
}

/**
 * Call it under the site's lock. The site must have been published before.
 * @throws BundleError `file_too_large`
 */
export async function publishDelta(
  tx: Transaction,
  site: RowOf<'site'>,
  draft: DeltaDraft,
  { signers, nowMs }: DeltaContext,
): Promise<PublishedStep> {
  if (site.head === null) throw new Error('a delta follows a bundle');
  const keysPut: readonly DerivedKeyContent[] = draft.keys.map(derivedKeyContent);
  const content = {
    auth_site: site.id,
    revision: nextRevision(site),
    previous_head: site.head,
    issued_at: formatTime(Math.floor(nowMs / 1000)),
    clients_put: draft.clients,
    clients_removed: [],
    keys_put: keysPut,
    keys_removed: [],
  };
  const { document, position } = signDelta(content, signers);
  const issuedAtSeconds = Math.floor(nowMs / 1000);
  const before = await noteSigned(tx, site, { revision: position.revision, issuedAtSeconds });
  await tx.distribution.addStep({
    siteId: site.id,
    revision: position.revision,
    kind: 'delta',
    head: position.head,
    previousHead: site.head,
    document: document.toString('utf8'),
    bytes: document.length,
    publishedAtMs: nowMs,
  });
  const policy = draft.clients.length > 0 ? { policyRevision: position.revision } : {};
  await tx.hierarchy.advance(site.id, { ...position, ...policy });
  await notePublishedKeys(tx, draft.keys, { siteId: site.id, revision: position.revision, before });
  return { site: { ...site, ...position, ...policy }, bytes: document.length };
}

/** A revision above everything published and everything that a target reported. */
export function nextRevision({ revision, floorRevision }: RowOf<'site'>): number {
  return Math.max(revision, floorRevision) + 1;
}

export interface PublishedRevision {
  readonly siteId: string;
  readonly revision: number;
  /** Until when verifiers may use earlier revisions. */
  readonly before: SignedEnds;
}

/** Records which revision first listed each key, and which one revoked it. */
export async function notePublishedKeys(
  tx: Transaction,
  keys: readonly RowOf<'derivedKey'>[],
  { siteId, revision, before }: PublishedRevision,
): Promise<void> {
  const listed = keys.filter(({ status, listedRevision }) => status === 'active' && listedRevision === null);
  const revoked = keys.filter(
    ({ status, revokedRevision }) => status === 'revoked' && revokedRevision === null,
  );
  await tx.keys.noteRevision(namesOf(listed), { listedRevision: revision });
  await tx.keys.noteRevision(namesOf(revoked), { revokedRevision: revision });
  if (revoked.length > 0) await noteRevoked(tx, siteId, revision, before);
}

function namesOf(keys: readonly RowOf<'derivedKey'>[]): readonly string[] {
  return keys.map(({ keyId }) => keyId);
}
