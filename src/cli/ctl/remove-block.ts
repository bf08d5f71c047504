/** Removes the block of a subject or caller, and reports an error when there is none. */

import { CliError } from '../../process/program/errors.ts';
import type { ControlApi } from './client/control-api.ts';
import { OperatorError } from './client/operator-error.ts';

/** @throws CliError `not_found`, OperatorError */
export async function removeBlock(
  api: ControlApi,
  site: string,
  remove: () => Promise<unknown>,
  blocked: string,
): Promise<void> {
  try {
    await remove();
  } catch (error) {
    if (!(error instanceof OperatorError && error.code === 'not_found')) throw error;
    // Throws the same error when the site is missing.
    await api.get('/v1/sites/{site_id}', { path: { site_id: site } });
    throw new CliError('refused', 'not_found', `${blocked} is not blocked at ${site}`);
  }
}
