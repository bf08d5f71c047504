/**
 * The bootstrap token: admin of a new installation, written once to its own file and stored as a hash.
 *
 * The file is on disk before the database stores the hash, so that a crash never leaves a hash without a token. After a
 * crash the next start uses the file that is there. Of several instances that start at once, the database accepts one
 * token, and the others remove their files.
 * Source: docs/operate/control.md "Operators".
 */
import { isSameSecret, newToken, tokenHash, tokenKind } from '../secrets/bearer-token.ts';
import type { ControlStore, Transaction } from '../store/port.ts';

/** Stored instead of a hash when the token is disabled; only a start with reset creates a new one. */
const DISABLED = 'disabled';

export interface BootstrapTokenFile {
  /** Undefined when the file does not exist. Its permissions have been checked. */
  read(): Promise<string | undefined>;
  /** Writes atomically and durably. @returns false when the file existed already */
  create(token: string): Promise<boolean>;
  remove(): Promise<void>;
}

export type BootstrapTokenState =
  /** This start wrote the file, or used an existing one. */
  | 'written'
  /** The file holds the current token. */
  | 'kept'
  /** A token exists; its file is gone, or on another instance. */
  | 'elsewhere'
  /** A token exists, and the file holds another one. */
  | 'stale'
  | 'disabled';

/** The file does not hold a bootstrap token. */
export class BootstrapTokenError extends Error {
  override readonly name = 'BootstrapTokenError';
}

/**
 * Runs at every start.
 * @param reset installs the file's token, or a new one, whatever the database holds
 * @throws BootstrapTokenError
 */
export async function establishBootstrapToken(
  store: ControlStore,
  file: BootstrapTokenFile,
  reset: boolean,
): Promise<BootstrapTokenState> {
  const known = await store.read((tx) => tx.operators.bootstrapTokenHash());
  if (known !== undefined && !(reset && (await differs(file, known)))) return stateOf(file, known);
  const { token, isNew } = await readOrCreate(file);
  const kept = await setHash(store, tokenHash(token), reset);
  if (kept === tokenHash(token)) return 'written';
  if (isNew) await file.remove();
  return stateOf(file, kept);
}

/** Whether this is the hash of the current bootstrap token. */
export async function isBootstrapToken(tx: Transaction, hash: string): Promise<boolean> {
  const known = await tx.operators.bootstrapTokenHash();
  return known !== undefined && isSameSecret(known, hash);
}

export async function isBootstrapTokenEnabled(tx: Transaction): Promise<boolean> {
  const known = await tx.operators.bootstrapTokenHash();
  return known !== undefined && known !== DISABLED;
}

/** Disables the bootstrap token until a start with reset. */
export async function disableBootstrapToken(
  store: ControlStore,
  { actor, requestId }: { readonly actor: string; readonly requestId: string },
): Promise<void> {
  await store.mutate({ kind: 'installation' }, async (tx) => {
    await tx.operators.setBootstrapTokenHash(DISABLED);
    const audit = { ...auditOf('disable'), actor, requestId };
    return { result: undefined, audit: [audit] };
  });
}

async function differs(file: BootstrapTokenFile, known: string): Promise<boolean> {
  const token = await file.read();
  return token === undefined || tokenHash(token.trim()) !== known;
}

async function stateOf(file: BootstrapTokenFile, known: string): Promise<BootstrapTokenState> {
  if (known === DISABLED) return 'disabled';
  const token = await file.read();
  if (token === undefined) return 'elsewhere';
  return tokenHash(token.trim()) === known ? 'kept' : 'stale';
}

async function readOrCreate(
  file: BootstrapTokenFile,
): Promise<{ readonly token: string; readonly isNew: boolean }> {
  const fresh = newToken('bootstrap');
  if ((await file.read()) === undefined && (await file.create(fresh))) return { token: fresh, isNew: true };
  const token = (await file.read())?.trim() ?? '';
  if (tokenKind(token) !== 'bootstrap') throw new BootstrapTokenError('the file holds no bootstrap token');
  return { token, isNew: false };
}

/** @returns the stored hash: the first one, unless `reset` replaces it */
async function setHash(store: ControlStore, hash: string, reset: boolean): Promise<string> {
  try {
    return await store.mutate({ kind: 'installation' }, async (tx) => {
      const known = await tx.operators.bootstrapTokenHash();
      if (known !== undefined && !reset) throw new AlreadySet(known);
      await tx.operators.setBootstrapTokenHash(hash);
      return { result: hash, audit: [auditOf(known === undefined ? 'create' : 'reset')] };
    });
  } catch (error) {
    if (error instanceof AlreadySet) return error.known;
    throw error;
  }
}

class AlreadySet extends Error {
  readonly known: string;

  constructor(known: string) {
    super('another instance was first');
    this.known = known;
  }
}

function auditOf(verb: 'create' | 'reset' | 'disable') {
  return {
    kind: `proofgate.control.bootstrap_token.${verb}`,
    actor: 'control',
    resource: { kind: 'bootstrap_token', id: 'bootstrap' },
    place: {},
  } as const;
}
