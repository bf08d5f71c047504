/** Routes of `/v1/sites/{site_id}/targets` and `/v1/targets/{target_id}`. */

import Type from 'typebox';
import {
  ACK_PATH,
  ACK_SIGNATURE_HEADER,
  ENFORCED_HEADER,
  INSTANCE_HEADER,
  MEMBERS_HEADER,
  POLL_PATH,
} from '../../../bundle/format/bundle-limits.ts';
import {
  ACKNOWLEDGEMENT,
  POLL_ANSWER,
  POLL_QUERY,
  type PollAnswer,
} from '../../../bundle/format/distribution-contract.ts';
import {
  NAME_FILTER,
  nothing,
  parameters,
  SITE_PATH,
} from '../../../process/http-service/members-contract.ts';
import type { Targets } from '../../configuration/targets.ts';
import {
  NEW_TARGET,
  TARGET,
  TARGET_CHANGE,
  TARGET_PATH,
  TARGET_WITH_TOKEN,
  TOKEN_ROTATION,
} from '../../contract/targets-contract.ts';
import type { Distribution } from '../../publishing/distribution.ts';
import { siteInPath, targetInPath, targetOf } from '../api-access.ts';
import { type ControlApp, longPollSignal } from '../app.ts';
import { registerAction, registerResource } from '../resource-routes.ts';

export function registerTargetRoutes(app: ControlApp, targets: Targets): void {
  const basics = {
    tags: ['Targets'],
    view: TARGET,
    permission: 'administer',
    item: { url: '/v1/targets/:target_id', params: TARGET_PATH, place: targetInPath },
  } as const;
  registerResource(app, {
    ...basics,
    collection: { url: '/v1/sites/:site_id/targets', params: SITE_PATH, place: siteInPath },
    create: {
      operationId: 'createTarget',
      summary: 'Attach a target; its token is shown only once',
      body: NEW_TARGET,
      answer: TARGET_WITH_TOKEN,
      location: ({ target_id: id }) => `/v1/targets/${id}`,
      run: (operation, { site_id: siteId }, { name }) => targets.create(operation, siteId, name),
    },
    list: {
      operationId: 'listTargets',
      summary: 'Targets of a site, detached ones too',
      page: 'TargetPage',
      cursorOf: ({ target_id: id }) => id,
      filter: NAME_FILTER,
      run: ({ site_id: siteId }, page, { name }) => targets.list(siteId, page, name),
    },
    get: { operationId: 'getTarget', summary: 'A target', run: ({ target_id: id }) => targets.get(id) },
    change: {
      method: 'PATCH',
      operationId: 'renameTarget',
      summary: 'Rename a target',
      body: TARGET_CHANGE,
      run: (operation, { target_id: id }, version, { name }) => targets.rename(operation, id, version, name),
    },
  });
  registerAction(app, basics, {
    verb: 'rotate-token',
    operationId: 'rotateTargetToken',
    summary: 'Create a new token, shown only once; the previous one stays valid for a while',
    problems: ['target_state_conflict'],
    body: TOKEN_ROTATION,
    answer: TARGET_WITH_TOKEN,
    run: (operation, { target_id: id }, rotation) => targets.rotateToken(operation, id, rotation),
  });
  registerAction(app, basics, {
    verb: 'detach',
    operationId: 'detachTarget',
    summary: 'Detach a target: it gets no more bundles, and no publication waits for it',
    problems: ['target_state_conflict'],
    run: (operation, { target_id: id }) => targets.detach(operation, id),
  });
}

/** The operations of Distribution that targets call. */
type TargetSide = Pick<Distribution, 'authenticate' | 'poll' | 'acknowledge' | 'file'>;

const tags = ['Distribution'];
const FILE_PATH = {
  revision: Type.Integer({
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Of the whole bundle.',
  }),
  file: Type.String({ pattern: '^(bundle\\.jws|keys-[0-9]{4}\\.jsonl)$', description: 'Name of the file.' }),
};

/** Many targets get the identical answer, so it is serialized once. */
const texts = new WeakMap<PollAnswer, string>();

function textOf(answer: PollAnswer): string {
  const known = texts.get(answer);
  if (known !== undefined) return known;
  const text = JSON.stringify(answer);
  texts.set(answer, text);
  return text;
}

/** What a target says of its verifier with each request. A value in another form counts as none. */
const REPORT_HEADERS = {
  [MEMBERS_HEADER]: Type.Optional(
    Type.String({ description: 'Optional bundle members that the target knows, separated by commas.' }),
  ),
  [ENFORCED_HEADER]: Type.Optional(
    Type.String({
      description:
        'What the target enforces although the bundle says observe: the number, then up to 10 names, separated by spaces, such as `2 unmatched route=orders-read`.',
    }),
  ),
  [INSTANCE_HEADER]: Type.Optional(
    Type.String({
      description:
        'Which instance of the target this is: its ID, its version, the ID of its replay store, `memory` or `unknown`, and, for one that signs acknowledgements, its public key and the settings that bound how long it uses a bundle.',
    }),
  ),
};

export function registerTargetSelfRoutes(app: ControlApp, distribution: TargetSide): void {
  app.get(
    POLL_PATH,
    {
      config: { access: { kind: 'target' }, problems: ['revision_out_of_range'] },
      schema: {
        operationId: 'pollBundle',
        summary: 'Long-poll for publications that the target lacks',
        tags,
        querystring: POLL_QUERY,
        headers: Type.Object({
          'if-none-match': Type.Optional(Type.String({ maxLength: 256 })),
          ...REPORT_HEADERS,
        }),
        response: { 200: POLL_ANSWER, 304: nothing },
      },
    },
    async (request, reply) => {
      const etag = request.headers['if-none-match'];
      const signal = longPollSignal(app, request);
      const result = await distribution.poll(targetOf(request), request.query, etag, signal);
      if (result.etag !== undefined) reply.header('etag', result.etag);
      if (result.kind === 'not_modified') return reply.code(304).send(null);
      const { answer } = result;
      return reply.serializer(() => textOf(answer)).send(answer);
    },
  );
  app.post(
    ACK_PATH,
    {
      config: { access: { kind: 'target' }, problems: ['revision_out_of_range'] },
      schema: {
        operationId: 'acknowledgeBundle',
        summary: 'Acknowledge a loaded revision, or report a rejected one',
        tags,
        headers: Type.Object({
          ...REPORT_HEADERS,
          [ACK_SIGNATURE_HEADER]: Type.Optional(
            Type.String({
              description: "The instance's signature. Without it, nothing waits for this instance alone.",
            }),
          ),
        }),
        body: ACKNOWLEDGEMENT,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      await distribution.acknowledge(targetOf(request), request.body);
      return reply.code(204).send(null);
    },
  );
  registerFileRoute(app, distribution);
}

function registerFileRoute(app: ControlApp, distribution: TargetSide): void {
  app.get(
    '/v1/targets/self/bundles/:revision/:file',
    {
      config: { access: { kind: 'target' }, problems: ['not_found'] },
      schema: {
        operationId: 'getBundleFile',
        summary: 'A file of a whole bundle',
        tags,
        params: parameters(FILE_PATH),
        response: {
          200: Type.Unsafe<Buffer>(
            Type.Any({
              contentMediaType: 'application/octet-stream',
              description: 'The signed or hashed bytes.',
            }),
          ),
        },
      },
    },
    async (request, reply) => {
      const { revision, file } = request.params;
      const content = await distribution.file(targetOf(request), revision, file);
      // Immutable, and for this target only.
      reply.header('cache-control', 'private, max-age=86400, immutable');
      return reply.type('application/octet-stream').send(content);
    },
  );
}
