/** Allowed and denied requests of each site. */
import { Anchor, NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { api, bodyOf } from '../api/client';
import { type DecisionSeries, useDecisions } from '../api/decisions';
import { DecisionChart } from '../parts/decision-chart';
import { Loading } from '../parts/loading';
import { Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { outcomeStroke, type Scheme } from '../parts/series-color';

/** As many as the list of sites shows on a page. */
const SITES = 25;
const ALWAYS = ['allowed', 'denied'];

type Series = DecisionSeries['series'][number];
const strokeOf = ({ name }: Series, _place: number, scheme: Scheme) => outcomeStroke(name, scheme);

export default function HomeDecisions() {
  const [period, setPeriod] = useState<'hour' | 'day'>('hour');
  const { data } = useQuery({
    queryKey: ['sites', 'with decisions'],
    queryFn: () => bodyOf(api.GET('/v1/sites', { params: { query: { limit: SITES } } })),
  });
  if (data === undefined || data.items.length === 0) return null;
  return (
    <Section title="Decisions a minute, as targets (verifiers with one token) report them">
      <NativeSelect
        label="Period"
        maw={200}
        value={period}
        onChange={({ currentTarget }) => setPeriod(currentTarget.value === 'day' ? 'day' : 'hour')}
        data={[
          { value: 'hour', label: 'Last hour' },
          { value: 'day', label: 'Last day' },
        ]}
      />
      {data.items.map(({ site_id }) => (
        <WhenSeen key={site_id}>
          <SiteDecisions siteId={site_id} period={period} />
        </WhenSeen>
      ))}
    </Section>
  );
}

/** Shows its content once it is scrolled into view: many sites would cause more requests at once than Control allows. */
function WhenSeen({ children }: { readonly children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  const [isSeen, setIsSeen] = useState(false);
  useEffect(() => {
    const { current } = place;
    if (current === null) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setIsSeen(true);
    });
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={place} className={isSeen ? undefined : 'when-seen'}>
      {isSeen && children}
    </div>
  );
}

function SiteDecisions({ siteId, period }: { readonly siteId: string; readonly period: 'hour' | 'day' }) {
  const { data, error } = useDecisions(siteId, { by: 'outcome', period });
  if (data === undefined) return error ? <Problem error={error} /> : <Loading height={180} />;
  const nameOf = ({ name }: Series) =>
    name === 'allowed' ? (
      name
    ) : (
      <Anchor component={Link} to={`/sites/${encodeURIComponent(siteId)}/reasons`} size="sm">
        {name}
      </Anchor>
    );
  return <DecisionChart title={siteId} data={data} always={ALWAYS} strokeOf={strokeOf} nameOf={nameOf} />;
}
