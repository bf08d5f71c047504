/**
 * Replaces the master key. One transaction makes the new key the encrypting key. Then each site's signing keys and the
 * sign-ins are encrypted again in separate transactions. The last one records that the old key is no longer needed.
 * Each transaction can be repeated, so a second run completes an interrupted one.
 * Source: docs/operate/control-upkeep.md "The master key".
 */
import { signInPurposes } from '../operators/sealed-sign-in.ts';
import { sealingPurpose } from '../publishing/bundle-signing-keys.ts';
import type { MasterKey } from '../secrets/master-key.ts';
import { MasterKeyError, type MasterKeys } from '../secrets/master-keys.ts';
import { type AuditEntry, type ControlStore, type Lock, UnknownSiteError } from '../store/port.ts';
import type { KeptMasterKey } from '../store/repositories/operators-repository.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** Number of stored secrets that this run encrypted with the new key, and of those that already were. */
export interface Reencrypted {
  readonly changed: number;
  readonly unchanged: number;
}

export interface MasterKeyRotation {
  readonly signingKeys: Reencrypted;
  readonly signIns: Reencrypted;
}

/**
 * @param keys the new key, then the old one
 * @throws MasterKeyError `database_empty`, `master_key_mismatch`, `master_key_unchanged`, `secret_undecryptable`: nothing
 *   has changed
 */
export async function rotateMasterKey(
  store: ControlStore,
  keys: MasterKeys,
  nowMs: () => number,
): Promise<MasterKeyRotation> {
  const [newKey] = keys.all;
  await store.read((tx) => needsNewKey(tx, keys));
  await store.writeUnaudited(undefined, (tx) => tx.operators.pruneSessions(nowMs()));
  await eachSecret(
    store,
    (_lock, work) => store.read(work),
    async (_tx, secret) => open(keys, secret).key === newKey,
  );
  await begin(store, keys, nowMs);
  const rotation = await eachSecret(
    store,
    (lock, work) => store.writeUnaudited(lock, work),
    (tx, secret) => reencrypt(tx, keys, secret),
  );
  await finish(store, newKey, rotation, nowMs);
  return rotation;
}

/** @returns whether the old key encrypts until now @throws MasterKeyError when the keys are not those of a rotation */
async function needsNewKey(tx: Transaction, { all: [newKey, oldKey] }: MasterKeys): Promise<boolean> {
  const kept = await tx.operators.masterKey();
  if (kept === undefined) {
    throw new MasterKeyError('database_empty', 'no Control has started with this database yet');
  }
  if (isUnfinishedRotation(kept, newKey, oldKey)) {
    throw new MasterKeyError(
      'master_key_mismatch',
      'another rotation is not finished: its new key must be on the first line, its old key on the second',
    );
  }
  if (kept.id === oldKey?.id) return true;
  if (kept.id !== newKey.id) {
    throw new MasterKeyError(
      'master_key_mismatch',
      'the database is encrypted with another master key: add that key to the file',
    );
  }
  if (oldKey !== undefined && oldKey.id === kept.previous) return false;
  throw new MasterKeyError(
    'master_key_unchanged',
    'the key on the first line encrypts already: put the new key above it',
  );
}

function isUnfinishedRotation(
  kept: KeptMasterKey,
  newKey: MasterKey,
  oldKey: MasterKey | undefined,
): boolean {
  return kept.replacing !== undefined && (kept.id !== newKey.id || kept.replacing !== oldKey?.id);
}

async function begin(store: ControlStore, keys: MasterKeys, nowMs: () => number): Promise<void> {
  const [{ id }, oldKey] = keys.all;
  // Waits until no transaction encrypts with the old key any more.
  await store.writeUnaudited({ kind: 'master_key' }, async (tx) => {
    if (oldKey === undefined || !(await needsNewKey(tx, keys))) return;
    await tx.operators.replaceMasterKey(oldKey.id, id);
    const entry = audited('rotate', id);
    await tx.audit.append({ ...entry, before: { id: oldKey.id }, after: { id } }, nowMs());
  });
}

async function finish(
  store: ControlStore,
  { id }: MasterKey,
  { signingKeys, signIns }: MasterKeyRotation,
  nowMs: () => number,
): Promise<void> {
  await store.writeUnaudited({ kind: 'installation' }, async (tx) => {
    const kept = await tx.operators.masterKey();
    if (kept?.id !== id || kept.replacing === undefined) return;
    await tx.operators.finishMasterKeyRotation(id);
    const after = { id, signing_keys: total(signingKeys), sign_ins: total(signIns) };
    await tx.audit.append({ ...audited('finish_rotation', id), after }, nowMs());
  });
}

function audited(verb: 'rotate' | 'finish_rotation', id: string): AuditEntry {
  return {
    kind: `proofgate.control.master_key.${verb}`,
    actor: 'control',
    resource: { kind: 'master_key', id },
    place: {},
  };
}

function total({ changed, unchanged }: Reencrypted): number {
  return changed + unchanged;
}

/** An encrypted value of the database. */
interface StoredSecret {
  /** Advice for an error when no key decrypts it. */
  readonly advice: string;
  readonly sealed: string;
  /** The secret is sealed for one of these purposes. */
  readonly purposes: readonly string[];
  replace(sealed: string): Promise<void>;
}

/** @returns whether it changed the secret */
type Visit = (tx: Transaction, secret: StoredSecret) => Promise<boolean>;
type Transact = <T>(lock: Lock | undefined, work: (tx: Transaction) => Promise<T>) => Promise<T>;

/** Visits every secret: those of a site in one transaction, sign-ins in one for each page. */
async function eachSecret(store: ControlStore, transact: Transact, visit: Visit): Promise<MasterKeyRotation> {
  const signingKeys: boolean[] = [];
  for (const siteId of await siteIds(store)) {
    const lock = { kind: 'site', siteId } as const;
    const visited = await transact(lock, async (tx) =>
      visitAll(tx, await signingKeysOf(tx, siteId), visit),
    ).catch(nothingInDeletedSite);
    signingKeys.push(...visited);
  }
  const signIns: boolean[] = [];
  for (let page: Page | undefined = FIRST_PAGE; page !== undefined; ) {
    const { after, limit }: Page = page;
    const { visited, last } = await transact(undefined, async (tx) => {
      const rows = await tx.operators.signIns({ after, limit });
      const secrets = rows.map((row) => signInSecret(tx, row));
      return { visited: await visitAll(tx, secrets, visit), last: rows.at(-1) };
    });
    signIns.push(...visited);
    page = last && { after: last.stateHash, limit };
  }
  return { signingKeys: counted(signingKeys), signIns: counted(signIns) };
}

const FIRST_PAGE: Page = { after: undefined, limit: 100 };

async function siteIds(store: ControlStore): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let page: Page | undefined = FIRST_PAGE; page !== undefined; ) {
    const asked: Page = page;
    const sites = await store.read((tx) => tx.hierarchy.reachedSites({ kind: 'everything' }, asked));
    ids.push(...sites.map(({ id }) => id));
    const last = sites.at(-1);
    page = last && { ...asked, after: last.id };
  }
  return ids;
}

async function visitAll(tx: Transaction, secrets: readonly StoredSecret[], visit: Visit): Promise<boolean[]> {
  const visited: boolean[] = [];
  for (const secret of secrets) visited.push(await visit(tx, secret));
  return visited;
}

function nothingInDeletedSite(error: unknown): boolean[] {
  if (error instanceof UnknownSiteError) return [];
  throw error;
}

/** Retired keys have no private half. */
async function signingKeysOf(tx: Transaction, siteId: string): Promise<readonly StoredSecret[]> {
  const rows = (await tx.signingKeys.ofSite(siteId)).filter(({ state }) => state !== 'retired');
  return rows.map(({ id, sealedPrivateKey }) => ({
    advice: `signing key ${id} of site ${siteId} is encrypted with neither key of the file: rotate and retire that signing key`,
    sealed: sealedPrivateKey,
    purposes: [sealingPurpose(id)],
    replace: (sealed) => tx.signingKeys.change(id, { sealedPrivateKey: sealed }),
  }));
}

function signInSecret(tx: Transaction, { stateHash, sealed }: RowOf<'signIn'>): StoredSecret {
  return {
    advice:
      'a sign-in is encrypted with neither key of the file: run this again when it is over, in ten minutes at most',
    sealed,
    purposes: signInPurposes(stateHash),
    replace: (text) => tx.operators.resealSignIn(stateHash, text),
  };
}

/** Encrypts the secret with the new key, if that one does not open it. @throws MasterKeyError `secret_undecryptable` */
async function reencrypt(tx: Transaction, keys: MasterKeys, secret: StoredSecret): Promise<boolean> {
  const current = await keys.current(tx);
  const opened = open(keys, secret);
  if (opened.key === current) return false;
  await secret.replace(current.seal(opened.secret, opened.purpose));
  return true;
}

interface Opened {
  readonly key: MasterKey;
  readonly purpose: string;
  readonly secret: Buffer;
}

/** @throws MasterKeyError `secret_undecryptable` */
function open({ all }: MasterKeys, { advice, purposes, sealed }: StoredSecret): Opened {
  for (const key of all) {
    for (const purpose of purposes) {
      const secret = key.unsealed(sealed, purpose);
      if (secret !== undefined) return { key, purpose, secret };
    }
  }
  throw new MasterKeyError('secret_undecryptable', advice);
}

function counted(visited: readonly boolean[]): Reencrypted {
  const changed = visited.filter((wasChanged) => wasChanged).length;
  return { changed, unchanged: visited.length - changed };
}
