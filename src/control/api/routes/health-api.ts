/** Liveness (`/healthz`) and readiness (`/readyz`) probes. They reveal nothing else. */
import Type from 'typebox';
import { object } from '../../../process/http-service/members-contract.ts';
import { ApiProblem } from '../../domain/api-problem.ts';
import type { ControlApp } from '../app.ts';

const HEALTH = object({ status: Type.Literal('ok') }, 'Health');

/** @param isReady returns known state without asking the database: a probe must cost nothing */
export function registerHealthRoutes(app: ControlApp, isReady: () => boolean): void {
  app.get(
    '/healthz',
    {
      config: { access: { kind: 'public' } },
      schema: {
        operationId: 'getHealth',
        summary: 'The process answers',
        tags: ['Health'],
        response: { 200: HEALTH },
      },
    },
    async () => ({ status: 'ok' as const }),
  );
  app.get(
    '/readyz',
    {
      config: { access: { kind: 'public' } },
      schema: {
        operationId: 'getReadiness',
        summary: 'The database answers and takes writes, and Control is not stopping',
        tags: ['Health'],
        response: { 200: HEALTH },
      },
    },
    async () => {
      if (app.closing.aborted || !isReady()) throw new ApiProblem('unavailable');
      return { status: 'ok' as const };
    },
  );
}
