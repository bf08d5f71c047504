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

interface Acknowledgements {
  /** Targets that have the revision. */
  readonly having: number;
  readonly total: number;
  /** When the last target had it at the latest; undefined until every one has. */
  readonly since: string | undefined;
}

/**
 * @param revision undefined until the change is published: no target has it
 * @returns undefined until Control has answered
 */
export function useAcknowledgements(revision: number | undefined): Acknowledgements | undefined {
  const { data } = useQuery(propagationQuery(useSite().site_id));
  if (data === undefined) return undefined;
  const { targets } = data;
  const having = targets.filter(({ acked_revision = 0 }) => acked_revision >= (revision ?? Infinity));
  const last = having
    .map(({ acked_at = '' }) => acked_at)
    .toSorted()
    .at(-1);
  const since = having.length === targets.length ? last : undefined;
  return { having: having.length, total: targets.length, since };
}

/** @param revision undefined until the change is published */
export function Acknowledged({ revision }: { readonly revision: number | undefined }) {
  const found = useAcknowledgements(revision);
  if (revision === undefined || found === undefined) return <>not published yet</>;
  if (found.since === undefined) return <>{shareOf(found)}</>;
  return (
    <>
      every target had it, at the latest <Moment at={found.since} />
    </>
  );
}

export function shareOf({ having, total }: Pick<Acknowledgements, 'having' | 'total'>): string {
  return total === 0 ? 'the site has no target' : `${having} of ${total} targets have it`;
}

export function TargetsLink() {
  return (
    <PageLink page="targets" name="See which targets (verifiers with one token) have the newest revision" />
  );
}
