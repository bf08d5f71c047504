/** One route: what it admits, and why its requests were denied. */
import { NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { api, bodyOf } from '../api/client';
import { type DecisionSeries, useDecisions } from '../api/decisions';
import { useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { DecisionChart } from '../parts/decision-chart';
import { Facts, Page, Section } from '../parts/page';
import { formatsText } from '../parts/proof-formats';
import { ReasonChart } from '../parts/reason-chart';
import { outcomeStroke, type Scheme } from '../parts/series-color';
import { Unread } from '../parts/unread';
import { State, UntrustedText } from '../parts/values';
import { RouteCallers } from './callers';

type Period = 'hour' | 'day' | 'week';
type Series = DecisionSeries['series'][number];
const PERIODS: readonly { readonly value: Period; readonly label: string }[] = [
  { value: 'hour', label: 'Last hour, by minute' },
  { value: 'day', label: 'Last day, by hour' },
  { value: 'week', label: 'Last week, by hour' },
];
const ALWAYS = ['allowed', 'denied'];
const strokeOf = ({ name }: Series, _place: number, scheme: Scheme) => outcomeStroke(name, scheme);

export default function Route() {
  const { site_id } = useSite();
  const { routeId = '' } = useParams({ strict: false });
  const [period, setPeriod] = useState<Period>('hour');
  const { data: route, error } = useQuery({
    queryKey: ['site', site_id, 'route', routeId],
    queryFn: () =>
      bodyOf(
        api.GET('/v1/sites/{site_id}/routes/{route_id}', {
          params: { path: { site_id, route_id: routeId } },
        }),
      ),
  });
  if (route === undefined) return <Unread kind="Route" title={routeId} error={error} />;
  const { method, path_template, audience } = route.definition;
  return (
    <Page kind="Route" title={route.route_id} question="Who may call it, and why are its requests denied?">
      <Section title="What it is">
        <Facts
          rows={[
            ['Requests', <UntrustedText key="requests" value={`${method} ${path_template}`} />],
            ['Audience', <UntrustedText key="audience" value={audience} />],
            ['Accepted proofs', formatsText(route.definition)],
            ['State', <State key="state" value={route.published ? 'published' : 'no caller rules'} />],
          ]}
        />
        <AsCommand words={['get', 'routes', '--site', site_id]} />
      </Section>
      <Section title="Who may call it?">
        <RouteCallers route={route.route_id} />
      </Section>
      <Section title="Decisions, as targets (verifiers with one token) report them">
        <NativeSelect
          label="Period"
          maw={240}
          value={period}
          onChange={({ currentTarget: { value } }) =>
            setPeriod(PERIODS.find((one) => one.value === value)?.value ?? 'hour')
          }
          data={[...PERIODS]}
        />
        <ReasonChart title="Denials by reason" period={period} routeId={routeId} />
        <Outcomes period={period} routeId={routeId} />
      </Section>
    </Page>
  );
}

function Outcomes({ period, routeId }: { readonly period: Period; readonly routeId: string }) {
  const { site_id } = useSite();
  const { data } = useDecisions(site_id, { by: 'outcome', period, routeId });
  return data && <DecisionChart title="By outcome" data={data} always={ALWAYS} strokeOf={strokeOf} />;
}
