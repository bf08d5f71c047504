/**
 * The token with which an installation begins: admin of everything, written once to a file of its own, kept as a hash.
 *
 * The file is complete on the disk before the database knows the hash, so that no crash leaves a token that nobody has.
 * What a crash does leave is a file that the next start takes up. Several instances that start at once agree in the
 * database: one's token is taken, and the others take their files back.
 * Source: docs/control.md "Operators".
 */
import { newToken, tokenHash, tokenKind } from '../secrets/bearer-token.ts';
import type { ControlStore } from '../store/port.ts';

/** In place of a hash: there is none, and no start makes one by itself. */
const DISABLED = 'disabled';

export interface BootstrapTokenFile {
  /** Undefined when there is none. Its permissions have been checked. */
  read(): Promise<string | undefined>;
  /** Complete and on the disk, or not there. @returns false when there was one already */
  create(token: string): Promise<boolean>;
  remove(): Promise<void>;
}

export type BootstrapTokenState =
  /** The file was written, or taken up, by this start. */
  | 'written'
  /** The file holds the token. */
  | 'kept'
  /** There is a token; the file is gone, or with another instance. */
  | 'elsewhere'
  /** There is a token, and the file holds another one. */
  | 'stale'
  | 'disabled';

/** The file holds something that is no bootstrap token. */
export class BootstrapTokenError extends Error {
  override readonly name = 'BootstrapTokenError';
}

/**
 * At every start.
 * @param reset takes the file's token, or a new one, whatever the database knows
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

/** Ends the bootstrap token, for ever unless a start is told to reset it. */
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

/** @returns the hash that is kept: the first one, unless told to put this in its place */
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
