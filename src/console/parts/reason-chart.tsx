/** Denials by reason; each reason leads to what it means. */
import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { type DecisionSeries, type DecisionsQuery, useDecisions } from '../api/decisions';
import { useSite } from '../api/session';
import { DecisionChart } from './decision-chart';
import { Loading } from './loading';
import { Problem } from './problem';
import { reasonStroke, type Scheme } from './series-color';
import { UntrustedText } from './values';

type Series = DecisionSeries['series'][number];
const strokeOf = ({ name, outcome }: Series, _place: number, scheme: Scheme) =>
  reasonStroke(name, scheme, outcome);

interface ReasonChartProps extends Pick<DecisionsQuery, 'period'> {
  readonly title: string;
  /** Default: all of the site. */
  readonly routeId?: string;
}

export function ReasonChart({ title, ...query }: ReasonChartProps) {
  const { site_id } = useSite();
  const { data, error } = useDecisions(site_id, { by: 'reason', ...query });
  if (data === undefined) return error ? <Problem error={error} /> : <Loading height={180} />;
  const nameOf = ({ name, outcome }: Series) => (
    <>
      <Anchor
        component={Link}
        to={`/sites/${encodeURIComponent(site_id)}/reasons/${encodeURIComponent(name)}`}
        size="sm"
      >
        <UntrustedText value={name} />
      </Anchor>
      {outcome === 'observed' && ' (observed)'}
    </>
  );
  return <DecisionChart title={title} data={data} strokeOf={strokeOf} nameOf={nameOf} />;
}
