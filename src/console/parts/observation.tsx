/** Says on each page of a site that denied requests may pass, and for how long. */
import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { overviewQuery } from '../api/site-overview';
import { UntrustedText } from './values';

const DAY_MS = 86_400_000;

export function ObservationBanner({ siteId }: { readonly siteId: string }) {
  const { data } = useQuery(overviewQuery(siteId));
  if (data?.observation === undefined) return null;
  const { routes, unmatched, until, withheld_for: targets = [] } = data.observation;
  const what = [
    ...(routes === 0 ? [] : [`${routes} ${routes === 1 ? 'route' : 'routes'}`]),
    ...(unmatched ? ['requests that no route matches'] : []),
  ].join(' and ');
  const days = Math.ceil((Date.parse(until) - Date.now()) / DAY_MS);
  const left = `${Math.max(1, days)} ${days > 1 ? 'days' : 'day'} left`;
  if (targets.length > 0) {
    return (
      <Alert color="yellow" mb="md" role="status" title={`Observation of ${what} withheld, ${left}`}>
        Everything is enforced, because verifiers do not know observations. Upgrade them, or detach their
        targets:{' '}
        {targets.map(({ name, target_id }, index) => (
          <span key={target_id}>
            {index > 0 && ', '}
            <UntrustedText value={name} />
          </span>
        ))}
        .
      </Alert>
    );
  }
  return (
    <Alert color="yellow" mb="md" role="status" title={`Observing ${what}, ${left}`}>
      Denied requests pass without identity, where the verifier allows it.
    </Alert>
  );
}
