/** Routes of `/v1/targets/self/…`: poll, acknowledge and download, for targets. Source: docs/bundle.md "Distribution". */
import Type from 'typebox';
import { nothing, parameters } from '../../../api-contract/members-contract.ts';
import { ACK_PATH, POLL_PATH } from '../../../bundle/format/bundle-limits.ts';
import {
  ACKNOWLEDGEMENT,
  POLL_ANSWER,
  POLL_QUERY,
  type PollAnswer,
} from '../../../bundle/format/distribution-contract.ts';
import type { Distribution } from '../../publishing/distribution.ts';
import { targetIdOf } from '../api-access.ts';
import { type ControlApp, longPollSignal } from '../app.ts';

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

export function registerTargetSelfRoutes(app: ControlApp, distribution: TargetSide): void {
  app.get(
    POLL_PATH,
    {
      config: { access: { kind: 'target' }, problems: ['revision_out_of_range'] },
      schema: {
        operationId: 'pollBundle',
        summary: 'What the target lacks, as soon as there is something',
        tags,
        querystring: POLL_QUERY,
        headers: Type.Object({ 'if-none-match': Type.Optional(Type.String({ maxLength: 256 })) }),
        response: { 200: POLL_ANSWER, 304: nothing },
      },
    },
    async (request, reply) => {
      const etag = request.headers['if-none-match'];
      const signal = longPollSignal(app, request);
      const result = await distribution.poll(targetIdOf(request), request.query, etag, signal);
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
        summary: 'Say which revision was taken, or why one was refused',
        tags,
        body: ACKNOWLEDGEMENT,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      await distribution.acknowledge(targetIdOf(request), request.body);
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
              description: 'The bytes, as they were signed or hashed.',
            }),
          ),
        },
      },
    },
    async (request, reply) => {
      const { revision, file } = request.params;
      const content = await distribution.file(targetIdOf(request), revision, file);
      // Immutable, and for this target only.
      reply.header('cache-control', 'private, max-age=86400, immutable');
      return reply.type('application/octet-stream').send(content);
    },
  );
}
