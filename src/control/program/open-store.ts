/** Opens Control's database, master key and bootstrap token; each failure has its own error code. */

import { secretFile } from '../../process/files/secret-files.ts';
import { CliError, usageError } from '../../process/program/errors.ts';
import type { Logger } from '../../process/telemetry/logger.ts';
import {
  BootstrapTokenError,
  type BootstrapTokenState,
  establishBootstrapToken,
} from '../operators/bootstrap-token.ts';
import { establishMasterKeys } from '../secrets/installation-key.ts';
import { MasterKeyError, type MasterKeys } from '../secrets/master-keys.ts';
import {
  type ControlStore,
  type ReportIncident,
  SchemaNewerError,
  StoreUnavailableError,
} from '../store/port.ts';
import type { ControlPlan, DatabasePlan } from './control-plan.ts';

/** @throws CliError `database_unavailable`, `database_newer` */
export async function openControlStore(
  { databaseUrl, dataDirectory }: DatabasePlan,
  nowMs: () => number,
  report: ReportIncident = () => {},
): Promise<ControlStore> {
  try {
    if (databaseUrl === undefined) {
      const { openSqliteStore } = await import('../store/sqlite.ts');
      return await openSqliteStore({ dataDirectory, nowMs, report });
    }
    const { openPostgresStore } = await import('../store/postgres.ts');
    return await openPostgresStore({ url: databaseUrl, nowMs, report });
  } catch (error) {
    throw databaseFault(error);
  }
}

/**
 * @throws CliError `master_key_missing`, `master_key_invalid`, `master_keys_equal`, `master_key_mismatch`, or an error of
 *   the file
 */
export async function openMasterKeys(
  store: ControlStore,
  { masterKeyFile }: DatabasePlan,
): Promise<MasterKeys> {
  try {
    return await establishMasterKeys(store, secretFile(masterKeyFile));
  } catch (error) {
    throw masterKeyFault(error, masterKeyFile);
  }
}

/** Adds the file's name to an error of its keys. */
export function masterKeyFault(error: unknown, file: string): unknown {
  if (error instanceof MasterKeyError) return usageError(error.code, `${file}: ${error.message}`);
  return databaseFault(error);
}

/** @throws CliError `bootstrap_token_invalid`, or an error of the file */
export async function openBootstrapToken(
  store: ControlStore,
  plan: ControlPlan,
  reset: boolean,
  logger: Logger,
): Promise<void> {
  const file = secretFile(plan.bootstrapTokenFile);
  try {
    logTokenState(await establishBootstrapToken(store, file, reset), file.path, logger);
  } catch (error) {
    if (error instanceof BootstrapTokenError) {
      throw usageError('bootstrap_token_invalid', `${file.path} holds no bootstrap token: remove it`);
    }
    throw databaseFault(error);
  }
}

function logTokenState(state: BootstrapTokenState, file: string, logger: Logger): void {
  const fields = { event: 'bootstrap_token', state, file };
  if (state === 'written') {
    logger.info(fields, 'the bootstrap token is in its file: make operators with it, then remove both');
  } else if (state === 'stale') {
    logger.warn(fields, 'the bootstrap token file holds another token than the one that is good: remove it');
  } else {
    logger.debug(fields, 'bootstrap token');
  }
}

function databaseFault(error: unknown): unknown {
  // A retry does not help: the schema is newer than this Control.
  if (error instanceof SchemaNewerError) return usageError('database_newer', error.message);
  if (!(error instanceof StoreUnavailableError)) return error;
  return new CliError('unreachable', 'database_unavailable', error.message);
}
