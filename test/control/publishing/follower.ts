/** Follows the chain of a site with the verifier's own parts: parses, validates and applies the documents in the store. */

import { compileBundle, type LiveSnapshot } from '../../../src/bundle/compile/compile.ts';
import { prepareStep } from '../../../src/bundle/compile/compile-delta.ts';
import { judgeStep } from '../../../src/bundle/format/chain.ts';
import type { Signers } from '../../../src/bundle/format/documents.ts';
import { openBundle, openStep } from '../../../src/bundle/format/open-document.ts';
import { TimeSlice } from '../../../src/bundle/format/time-slice.ts';
import type { RowOf } from '../../../src/control/store/repositories/records.ts';
import { importPublicKey } from '../../../src/protocol/import-public-key.ts';
import type { PublicJwk, PublicKey } from '../../../src/protocol/public-key.ts';
import { type ControlWorld, SITE } from './publishing-fixture.ts';

/** Caches imported keys, because tests give many key IDs the same public key. */
const imported = new Map<string, PublicKey | undefined>();
function importKey(jwk: PublicJwk): PublicKey | undefined {
  if (!imported.has(jwk.x)) imported.set(jwk.x, importPublicKey(jwk));
  return imported.get(jwk.x);
}

export class Follower {
  readonly #world: ControlWorld;
  readonly #siteId: string;
  snapshot: LiveSnapshot | undefined;
  /** Kinds of the applied documents, in order. */
  readonly taken: string[] = [];

  constructor(world: ControlWorld, siteId = SITE) {
    this.#world = world;
    this.#siteId = siteId;
  }

  /** Applies deltas and links, and a whole bundle only when nothing else applies. */
  async follow(): Promise<LiveSnapshot> {
    for (;;) {
      const next = await this.#nextStep();
      if (next === undefined) break;
      await this.#apply(next);
    }
    const site = await this.#world.site(this.#siteId);
    if (this.snapshot === undefined || this.snapshot.head !== site.head) {
      this.snapshot = await this.whole();
      this.taken.push('whole');
      if (this.snapshot.head !== site.head) return this.follow();
    }
    return this.snapshot;
  }

  async #nextStep(): Promise<RowOf<'bundleStep'> | undefined> {
    const { snapshot } = this;
    if (snapshot === undefined) return undefined;
    const [step] = await this.#world.read((tx) =>
      tx.distribution.stepsAfter(this.#siteId, snapshot.revision, 1),
    );
    return step?.kind === 'bundle' ? undefined : step;
  }

  async #apply(row: RowOf<'bundleStep'>): Promise<void> {
    const { snapshot } = this;
    if (snapshot === undefined || row.kind === 'bundle') throw new Error('nothing to apply it to');
    const signers = await this.#signers();
    const bytes = Buffer.from(row.document);
    const step = openStep(row.kind, bytes, { file: row.kind, signers, authSite: this.#siteId });
    const refused = judgeStep(snapshot, step, row.kind);
    if (refused !== undefined) throw refused;
    const slice = new TimeSlice();
    const prepared = await prepareStep(snapshot, step, { importKey, slice });
    this.snapshot = prepared.commit();
    if (this.snapshot.head !== row.head) throw new Error('the row names another head');
    this.taken.push(row.kind);
  }

  /** Loads the newest whole bundle from its files. */
  async whole(): Promise<LiveSnapshot> {
    const { baseRevision } = await this.#world.site(this.#siteId);
    const files = await this.#world.read((tx) => tx.distribution.files(this.#siteId, baseRevision));
    const read = async (name: string): Promise<Buffer> => {
      const sha256 = files.find((file) => file.name === name)?.sha256 ?? '';
      const content = await this.#world.read((tx) => tx.distribution.blob(this.#siteId, sha256));
      if (content === undefined) throw new Error(`no file ${name}`);
      return content;
    };
    const signers = await this.#signers();
    const options = { file: 'bundle.jws', signers, authSite: this.#siteId };
    const { content, position } = openBundle(await read('bundle.jws'), options);
    return compileBundle(content, {
      file: 'bundle.jws',
      head: position.head,
      readShard: read,
      importKey,
      forgetBeforeSeconds: this.#world.clock.seconds,
    });
  }

  async #signers(): Promise<Signers> {
    const { clock, signingKeys } = this.#world;
    const keys = await this.#world.read((tx) => signingKeys.signers(tx, this.#siteId, 'bundle', clock.ms));
    return { keys: keys.map(({ publicKey }) => publicKey), threshold: 1 };
  }
}

/** The content that decisions use, as comparable text: clients with grants, and keys that have not expired. */
export function describeSnapshot(
  { keys }: LiveSnapshot,
  clientIds: readonly string[],
  keyIds: readonly string[],
  nowSeconds: number,
) {
  const described = keyIds.map((keyId) => {
    const key = keys.get(keyId);
    if (key?.kind !== 'derived_key' || key.expiresAtSeconds <= nowSeconds) return undefined;
    const { client, status, expiresAtSeconds, provenance, clientId } = key;
    const grants = Object.fromEntries(client.grants);
    return { keyId, clientId, status, expiresAtSeconds, provenance: Object.fromEntries(provenance), grants };
  });
  return {
    clients: clientIds.map((clientId) => {
      const client = keys.client(clientId);
      return client && { clientId, grants: Object.fromEntries(client.grants) };
    }),
    keys: described.filter((key) => key !== undefined),
  };
}
