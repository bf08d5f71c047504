/** Routes of what targets report of decisions: `/v1/targets/self/summaries`, `…/last-used`, `…/unknown-keys`, `/v1/sites/{site_id}/decisions`. */
import { MAX_SUMMARY_BYTES, SUMMARIES_PATH } from '../../../bundle/format/decision-summary.ts';
import { LAST_USED_PATH } from '../../../bundle/format/key-use.ts';
import { UNKNOWN_KEYS_PATH } from '../../../bundle/format/unknown-keys.ts';
import { nothing, SITE_PATH } from '../../../process/http-service/members-contract.ts';
import {
  DECISION_SERIES,
  DECISION_SUMMARY,
  DECISIONS_QUERY,
  LAST_USED,
  UNKNOWN_KEYS,
} from '../../contract/decisions-contract.ts';
import type { CollectedSummaries } from '../../decisions/collected-summaries.ts';
import { decisionSeries } from '../../decisions/decision-series.ts';
import type { ReportedKeyUses } from '../../decisions/reported-key-uses.ts';
import type { UnknownOAuthKeys } from '../../sources/unknown-oauth-keys.ts';
import type { ControlStore } from '../../store/port.ts';
import { siteInPath, targetOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { registerRead } from '../resource-routes.ts';

export interface DecisionRoutesOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly summaries: Pick<CollectedSummaries, 'add'>;
  readonly keyUses: Pick<ReportedKeyUses, 'report'>;
  readonly unknownKeys: Pick<UnknownOAuthKeys, 'report'>;
}

/** A page with the longest key IDs. */
const MAX_LAST_USED_BYTES = 192 * 1024;
/** A page with the longest issuers and key IDs. */
const MAX_UNKNOWN_KEYS_BYTES = 16 * 1024;

export function registerDecisionRoutes(app: ControlApp, options: DecisionRoutesOptions): void {
  const { keyUses, nowMs, store, summaries, unknownKeys } = options;
  app.post(
    SUMMARIES_PATH,
    {
      bodyLimit: MAX_SUMMARY_BYTES,
      config: { access: { kind: 'target' } },
      schema: {
        operationId: 'reportDecisions',
        summary: 'Report what an instance of the target decided in the last minute',
        tags: ['Distribution'],
        body: DECISION_SUMMARY,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      summaries.add(targetOf(request), request.body);
      return reply.code(204).send(null);
    },
  );
  app.post(
    LAST_USED_PATH,
    {
      bodyLimit: MAX_LAST_USED_BYTES,
      config: { access: { kind: 'target' } },
      schema: {
        operationId: 'reportLastUsed',
        summary: 'Report when derived keys last signed a request that the target allowed',
        tags: ['Distribution'],
        body: LAST_USED,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const uses = request.body.keys.map(({ key_id: keyId, used_at }) => ({
        keyId,
        usedAtSeconds: Math.floor(Date.parse(used_at) / 1000),
      }));
      await keyUses.report(targetOf(request).targetId, uses);
      return reply.code(204).send(null);
    },
  );
  app.post(
    UNKNOWN_KEYS_PATH,
    {
      bodyLimit: MAX_UNKNOWN_KEYS_BYTES,
      config: { access: { kind: 'target' } },
      schema: {
        operationId: 'reportUnknownKeys',
        summary: 'Report keys of OAuth issuers that access tokens name and the target does not have',
        tags: ['Distribution'],
        body: UNKNOWN_KEYS,
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      await unknownKeys.report(targetOf(request), request.body.keys);
      return reply.code(204).send(null);
    },
  );
  registerRead(
    app,
    { tags: ['Runtime'], item: { url: '/v1/sites/:site_id', params: SITE_PATH, place: siteInPath } },
    {
      below: '/decisions',
      operationId: 'getDecisions',
      summary: 'Decisions of the site over a period, as its targets reported them',
      description:
        'By outcome, a period of at most a day by minute; otherwise 2 hours by minute. By hour at most 7 days.',
      query: DECISIONS_QUERY,
      answer: DECISION_SERIES,
      run: ({ site_id: siteId }, query) =>
        store.readAside((tx) => decisionSeries(tx, siteId, query, nowMs())),
    },
  );
}
