/** Decisions of a site by the target that reported them. */
import { type DecisionSeries, useDecisions } from '../api/decisions';
import { useSite } from '../api/session';
import { DecisionChart } from '../parts/decision-chart';
import { Loading } from '../parts/loading';
import { Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { placeStroke, type Scheme } from '../parts/series-color';
import { UntrustedText } from '../parts/values';

type Series = DecisionSeries['series'][number];
const strokeOf = (_: Series, place: number, scheme: Scheme) => placeStroke(place, scheme);

export function TargetDecisions() {
  const { site_id } = useSite();
  const { data, error } = useDecisions(site_id, { by: 'target', period: 'hour' });
  return (
    <Section title="Decisions">
      {error && <Problem error={error} />}
      {data === undefined ? (
        !error && <Loading height={180} />
      ) : (
        <DecisionChart
          title="Decisions a minute, by target"
          data={data}
          strokeOf={strokeOf}
          nameOf={({ name }) => (
            <>
              reported by <UntrustedText value={name} />
            </>
          )}
        />
      )}
    </Section>
  );
}
