/** Says on each page of a site that denied requests may pass, and for how long; and what bundles leave out for old verifiers. */
import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../api/client';
import { overviewQuery } from '../api/site-overview';
import { UntrustedText } from './values';

const DAY_MS = 86_400_000;

type Overview = Schemas['SiteOverview'];

export function SiteBanners({ siteId }: { readonly siteId: string }) {
  const { data } = useQuery(overviewQuery(siteId));
  const { accepted_proofs: proofs, observation } = data ?? {};
  return (
    <>
      {observation && <ObservationBanner {...observation} />}
      {proofs?.withheld_for && (
        <Alert color="yellow" mb="md" role="status" title="Accepted proofs withheld">
          Routes accept transcript-v1 alone, and routes without it deny everything, because verifiers do not
          know other proofs. <Upgrade targets={proofs.withheld_for} />
        </Alert>
      )}
    </>
  );
}

function ObservationBanner({
  routes,
  unmatched,
  until,
  withheld_for: targets,
}: NonNullable<Overview['observation']>) {
  const what = [
    ...(routes === 0 ? [] : [`${routes} ${routes === 1 ? 'route' : 'routes'}`]),
    ...(unmatched ? ['requests that no route matches'] : []),
  ].join(' and ');
  const days = Math.ceil((Date.parse(until) - Date.now()) / DAY_MS);
  const left = `${Math.max(1, days)} ${days > 1 ? 'days' : 'day'} left`;
  if (targets !== undefined) {
    return (
      <Alert color="yellow" mb="md" role="status" title={`Observation of ${what} withheld, ${left}`}>
        Everything is enforced, because verifiers do not know observations. <Upgrade targets={targets} />
      </Alert>
    );
  }
  return (
    <Alert color="yellow" mb="md" role="status" title={`Observing ${what}, ${left}`}>
      Denied requests pass without identity, where the verifier allows it.
    </Alert>
  );
}

type Targets = NonNullable<NonNullable<Overview['observation']>['withheld_for']>;

function Upgrade({ targets }: { readonly targets: Targets }) {
  return (
    <>
      Upgrade them, or detach their targets:{' '}
      {targets.map(({ name, target_id }, index) => (
        <span key={target_id}>
          {index > 0 && ', '}
          <UntrustedText value={name} />
        </span>
      ))}
      .
    </>
  );
}
