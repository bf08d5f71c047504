/** Reads and writes the enrollment state file beside a key. Source: docs/cli.md "The state file". */

import { ownState } from '../client/enroll/enrolled-profiles.ts';
import type { EnrollmentState, EnrollmentStates } from '../client/enroll/enrollment-state.ts';
import { formatEnrollmentState, parseEnrollmentState } from '../client/enroll/state-format.ts';
import { CliError } from '../program/errors.ts';
import { readInputBytes } from '../program/input-files.ts';
import { readSigningKeyFile } from '../program/key-files.ts';
import { replaceFile } from '../program/output-files.ts';
import type { SigningKey } from '../protocol/signing.ts';
import { settledKeyFile } from './pair-links.ts';

/** Room for the profiles of a large site. */
const MAX_STATE_BYTES = 8 * 1024 * 1024;

export function statePathOf(keyFile: string): string {
  return `${keyFile}.enrollment.json`;
}

export class EnrollmentStateFile implements EnrollmentStates {
  readonly #path: string;

  constructor(keyFile: string) {
    this.#path = statePathOf(keyFile);
  }

  /**
   * The state contains no secret, but a signer relies on it, so only the owner may have access.
   * @throws CliError as `readInputBytes`; EnrollError `enrollment_state_invalid`
   */
  async load(): Promise<EnrollmentState | undefined> {
    try {
      const bytes = await readInputBytes(this.#path, { maxBytes: MAX_STATE_BYTES, secret: true });
      return parseEnrollmentState(bytes.toString('utf8'), this.#path);
    } catch (error) {
      if (error instanceof CliError && error.code === 'file_not_found') return undefined;
      throw error;
    }
  }

  /** @throws CliError as `replaceFile` */
  async save(state: EnrollmentState): Promise<void> {
    await replaceFile({ path: this.#path, content: formatEnrollmentState(state), mode: 0o600 });
  }
}

export interface EnrolledKeyFile {
  readonly key: SigningKey;
  readonly state: EnrollmentState;
}

/** @throws EnrollError `enrollment_missing`, `enrollment_state_mismatch`; CliError for the files */
export async function readEnrolledKeyFile(keyFile: string): Promise<EnrolledKeyFile> {
  const file = await settledKeyFile(keyFile);
  const key = await readSigningKeyFile(file);
  const state = await new EnrollmentStateFile(file).load();
  return { key, state: ownState(state, key.publicKey.thumbprint, keyFile) };
}
