/** The decisions of a site as its targets reported them. */
import { useQuery } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from './client';

export type DecisionSeries = Schemas['DecisionSeries'];

export interface DecisionsQuery {
  readonly by: DecisionSeries['by'];
  readonly period: 'hour' | 'day' | 'week';
  readonly routeId?: string;
}

const DAY_MS = 86_400_000;
const PERIOD_MS = { hour: 3_600_000, day: DAY_MS, week: 7 * DAY_MS };

/** Minutes where Control gives them for the whole period. */
function stepOf({ by, period, routeId }: DecisionsQuery): DecisionSeries['step'] {
  if (period === 'hour') return 'minute';
  return period === 'day' && by === 'outcome' && routeId === undefined ? 'minute' : 'hour';
}

export function readDecisions(siteId: string, query: DecisionsQuery): Promise<DecisionSeries> {
  const { by, period, routeId } = query;
  // Without it, an hour of minutes.
  const from = period === 'hour' ? {} : { from: new Date(Date.now() - PERIOD_MS[period]).toISOString() };
  return bodyOf(
    api.GET('/v1/sites/{site_id}/decisions', {
      params: {
        path: { site_id: siteId },
        query: { by, step: stepOf(query), ...from, ...(routeId === undefined ? {} : { route_id: routeId }) },
      },
    }),
  );
}

export function useDecisions(siteId: string, query: DecisionsQuery) {
  return useQuery({
    queryKey: ['site', siteId, 'decisions', query],
    queryFn: () => readDecisions(siteId, query),
    staleTime: 20_000,
    refetchInterval: 60_000,
  });
}
