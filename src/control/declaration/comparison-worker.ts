/** The thread that compares declarations. It has its own database connection, which only reads. */
import { parentPort, workerData } from 'node:worker_threads';
import { RequestShapeError } from '../../process/http-service/request-shape.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { StoreUnavailableError } from '../store/port.ts';
import { compareDeclaration } from './comparison.ts';
import type { ComparisonOutcome, ComparisonTask, DatabasePlace } from './comparison-thread.ts';

const { dataDirectory, databaseUrl }: DatabasePlace = workerData;
const reader =
  databaseUrl === undefined
    ? (await import('../store/sqlite.ts')).openSqliteSnapshots(dataDirectory)
    : (await import('../store/postgres.ts')).openPostgresSnapshots(databaseUrl);

parentPort?.on('message', async (request: ComparisonTask) => {
  const outcome = await compareDeclaration(reader, request)
    .then((comparison): ComparisonOutcome => ({ kind: 'done', comparison }))
    .catch(failureOf);
  parentPort?.postMessage(outcome);
});

/** Errors lose their class and members between threads. */
function failureOf(error: unknown): ComparisonOutcome {
  if (error instanceof ApiProblem) {
    const { code, detail, faults = [] } = error;
    return { kind: 'problem', code, detail, faults };
  }
  if (error instanceof RequestShapeError) return { kind: 'malformed', faults: error.faults };
  if (error instanceof StoreUnavailableError) return { kind: 'unavailable', message: error.message };
  return { kind: 'fault', error };
}
