/**
 * Stores a sign-in between two steps: sealed in the database, keyed by the hash of its handle, taken once. A reader of
 * the database learns neither the nonce nor the verifier, and cannot complete a sign-in.
 */
import { randomBytes } from 'node:crypto';
import { parseStrictJson } from '../../protocol/strict-json.ts';
import { tokenHash } from '../secrets/bearer-token.ts';
import { type MasterKey, UnsealError } from '../secrets/master-key.ts';
import type { ControlStore } from '../store/port.ts';
import type { SignInSecrets } from './identity-provider.ts';
import type { OperatorIdentity } from './operator-identity.ts';
import type { CommandLine, Destination } from './sign-in-request.ts';

/** Waits for the browser to return from the identity provider. */
export interface PendingSignIn {
  readonly step: 'pending';
  /** Hash of the cookie of the browser that began it. */
  readonly browserHash: string;
  readonly redirectUri: string;
  readonly destination: Destination;
  readonly secrets: SignInSecrets;
}

/** Waits for the operator to confirm the command line. */
export interface UnconfirmedSignIn {
  readonly step: 'unconfirmed';
  readonly browserHash: string;
  readonly identity: OperatorIdentity;
  readonly commandLine: CommandLine;
}

/** Waits for the command line to send its verifier. */
export interface ConfirmedSignIn {
  readonly step: 'confirmed';
  readonly identity: OperatorIdentity;
  readonly challenge: string;
}

export type SignInStep = PendingSignIn | UnconfirmedSignIn | ConfirmedSignIn;

export const STEP_LIFETIME_MS = {
  pending: 600_000,
  unconfirmed: 300_000,
  confirmed: 60_000,
} as const satisfies { readonly [S in SignInStep['step']]: number };

export interface SignInSteps {
  /** @param handle what the caller will bring back; random if absent @returns the handle */
  keep(step: SignInStep, handle?: string): Promise<string>;
  /** Undefined when it does not exist, has expired, or waits for another step. Removes it in any case. */
  take<S extends SignInStep['step']>(
    step: S,
    handle: string,
  ): Promise<Extract<SignInStep, { readonly step: S }> | undefined>;
}

export function signInSteps(store: ControlStore, masterKey: MasterKey, nowMs: () => number): SignInSteps {
  return {
    async keep(step, handle = randomBytes(32).toString('base64url')) {
      const stateHash = tokenHash(handle);
      const sealed = masterKey.seal(Buffer.from(JSON.stringify(step)), purposeOf(step.step, stateHash));
      const expiresAtMs = nowMs() + STEP_LIFETIME_MS[step.step];
      await store.housekeep(undefined, (tx) => tx.operators.addSignIn({ stateHash, sealed, expiresAtMs }));
      return handle;
    },
    async take(step, handle) {
      const stateHash = tokenHash(handle);
      const row = await store.housekeep(undefined, (tx) => tx.operators.takeSignIn(stateHash));
      if (row === undefined || row.expiresAtMs <= nowMs()) return undefined;
      return unsealed(masterKey, row.sealed, step, stateHash);
    },
  };
}

/** The sealing purpose binds the text to its step and handle, which makes the type assertion safe. */
function unsealed<S extends SignInStep['step']>(
  masterKey: MasterKey,
  sealed: string,
  step: S,
  stateHash: string,
): Extract<SignInStep, { readonly step: S }> | undefined {
  try {
    const text = masterKey.unseal(sealed, purposeOf(step, stateHash)).toString();
    return parseStrictJson(text) as Extract<SignInStep, { readonly step: S }>;
  } catch (error) {
    if (error instanceof UnsealError) return undefined;
    throw error;
  }
}

function purposeOf(step: SignInStep['step'], stateHash: string): string {
  return `sign-in:${step}:${stateHash}`;
}
