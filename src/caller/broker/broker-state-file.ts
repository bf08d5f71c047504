/** Reads and writes the broker state file beside a key. Source: docs/operate/workloads.md "With a broker". */

import { readInputBytes } from '../../process/files/input-files.ts';
import { CliError } from '../../process/program/errors.ts';
import { BrokerError } from './broker-error.ts';
import { type BrokerState, parseBrokerState } from './broker-state.ts';

/** Room for the profiles and passports of many routes. */
const MAX_STATE_BYTES = 8 * 1024 * 1024;

export function brokerStatePathOf(keyFile: string): string {
  return `${keyFile}.broker.json`;
}

/**
 * Undefined when there is no file. The file contains passports, so only the owner may have access. @param keyThumbprint
 * thumbprint of the key beside the file
 * @throws CliError as `readInputBytes`; BrokerError `broker_state_invalid`
 */
export async function readBrokerState(
  keyFile: string,
  keyThumbprint: string,
): Promise<BrokerState | undefined> {
  const path = brokerStatePathOf(keyFile);
  try {
    const bytes = await readInputBytes(path, { maxBytes: MAX_STATE_BYTES, secret: true });
    const state = parseBrokerState(bytes.toString('utf8'), path);
    if (state.keyThumbprint === keyThumbprint) return state;
  } catch (error) {
    if (error instanceof CliError && error.code === 'file_not_found') return undefined;
    throw error;
  }
  throw new BrokerError('usage', 'broker_state_invalid', `${path} is for another key`);
}
