/** Removes the block of a subject or caller, and says so when there is none. */

import { CliError } from '../../process/program/errors.ts';
import type { ControlApi } from './client/control-api.ts';
import { OperatorError } from './client/operator-error.ts';
import { sitePath } from './client/paths.ts';

/** @throws CliError `not_found`, OperatorError */
export async function removeBlock(
  api: ControlApi,
  site: string,
  path: string,
  blocked: string,
): Promise<void> {
  try {
    await api.remove(path, undefined);
  } catch (error) {
    const isMissing = error instanceof OperatorError && error.code === 'not_found';
    if (!isMissing || (await api.find(sitePath(site))) === undefined) throw error;
    throw new CliError('refused', 'not_found', `${blocked} is not blocked at ${site}`);
  }
}
