/** Routes of `/v1/sessions`: who is signed in. `session-api.ts` has those of the caller's own session. */
import Type from 'typebox';
import { parameters } from '../../../process/http-service/members-contract.ts';
import {
  ENDED_SESSIONS,
  OPERATOR_SESSION,
  OPERATOR_SESSION_PATH,
  SESSIONS_OF,
} from '../../contract/operators-contract.ts';
import type { OperatorSessions } from '../../operators/operator-sessions.ts';
import { principalOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { PAGE_MEMBERS, page, pageOf } from '../pagination.ts';
import { operationOf } from '../versions.ts';

const tags = ['Operators'];

/** Every operator may use these, for their own sessions. */
export function registerOperatorSessionRoutes(app: ControlApp, sessions: OperatorSessions): void {
  const access = { kind: 'signed_in' } as const;
  app.get(
    '/v1/sessions',
    {
      config: { access },
      schema: {
        operationId: 'listSessions',
        tags,
        summary:
          "Sessions of signed-in operators: all with `read` on the installation, otherwise the caller's own",
        querystring: parameters(PAGE_MEMBERS),
        response: { 200: pageOf(OPERATOR_SESSION, 'OperatorSessionPage') },
      },
    },
    (request) =>
      page(
        request.query,
        (asked) => sessions.list(principalOf(request), asked),
        ({ session_id: id }) => id,
        (view) => view,
      ),
  );
  app.get(
    '/v1/sessions/:session_id',
    {
      config: { access, problems: ['not_found'] },
      schema: {
        operationId: 'getOperatorSession',
        tags,
        summary: 'A session of a signed-in operator',
        params: parameters(OPERATOR_SESSION_PATH),
        response: { 200: OPERATOR_SESSION },
      },
    },
    (request) => sessions.get(principalOf(request), request.params.session_id),
  );
  app.delete(
    '/v1/sessions',
    {
      config: { access, problems: ['permission_denied'] },
      schema: {
        operationId: 'endSessions',
        tags,
        summary:
          'End all sessions of one operator: the caller, or anybody with `administer` on the installation',
        querystring: parameters(SESSIONS_OF),
        response: { 200: ENDED_SESSIONS },
      },
    },
    async (request) => {
      const { principal } = request.query;
      return { ended: await sessions.endAll(principalOf(request), principal, operationOf(request)) };
    },
  );
  app.delete(
    '/v1/sessions/:session_id',
    {
      config: { access, problems: ['not_found', 'permission_denied'] },
      schema: {
        operationId: 'endSession',
        tags,
        summary: "End a session: the caller's own, or any with `administer` on the installation",
        params: parameters(OPERATOR_SESSION_PATH),
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      await sessions.end(principalOf(request), request.params.session_id, operationOf(request));
      return reply.code(204).send(null);
    },
  );
}
