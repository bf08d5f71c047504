/** How many targets have a revision, and once all do, by when they had it. */
import { useQuery } from '@tanstack/react-query';
import { api, bodyOf } from '../api/client';
import { useSite } from '../api/session';
import { PageLink } from '../parts/named-link';
import { Moment } from '../parts/values';

export function propagationQuery(siteId: string) {
  return {
    queryKey: ['site', siteId, 'propagation'],
    queryFn: () =>
      bodyOf(api.GET('/v1/sites/{site_id}/propagation', { params: { path: { site_id: siteId } } })),
    refetchInterval: 5_000,
  };
}

/** @param revision undefined until the change is published */
export function Acknowledged({ revision }: { readonly revision: number | undefined }) {
  const { data } = useQuery(propagationQuery(useSite().site_id));
  if (revision === undefined || data === undefined) return <>not published yet</>;
  const having = data.targets.filter(({ acked_revision = 0 }) => acked_revision >= revision);
  const last = having
    .map(({ acked_at = '' }) => acked_at)
    .toSorted()
    .at(-1);
  if (last === undefined || having.length < data.targets.length)
    return (
      <>
        {having.length} of {data.targets.length} targets have it
      </>
    );
  return (
    <>
      every target had it, at the latest <Moment at={last} />
    </>
  );
}

export function TargetsLink() {
  return <PageLink page="targets" name="See which targets have the newest revision" />;
}
