/** One sentence: whether anything is wrong. Each trouble is a line, with the page that mends it. */
import { Alert, Anchor, List } from '@mantine/core';
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api, bodyOf } from '../api/client';
import { overviewQuery } from '../api/site-overview';
import { troublesOf } from '../parts/troubles';
import { Lasting, UntrustedText } from '../parts/values';

/** Of the list below; each needs a request. */
const SITES = 25;

export const firstSites = {
  queryKey: ['sites', 'first'],
  queryFn: () => bodyOf(api.GET('/v1/sites', { params: { query: { limit: SITES } } })),
};

export function Verdict() {
  const { data: sites } = useQuery(firstSites);
  const ids = sites?.items.map(({ site_id }) => site_id) ?? [];
  const overviews = useQueries({ queries: ids.map(overviewQuery) });
  if (ids.length === 0) return null;
  const failed = ids.filter((_, place) => overviews[place]?.isError === true);
  if (overviews.some(({ data, isError }) => data === undefined && !isError)) return null;
  const troubles = overviews.flatMap(({ data }) =>
    data === undefined
      ? []
      : troublesOf(data)
          .filter(({ isLasting }) => isLasting)
          .map((trouble) => ({ siteId: data.site_id, ...trouble })),
  );
  const count = troubles.length + failed.length;
  if (count === 0) {
    const where = sites?.next_cursor === undefined ? '' : ` at the first ${SITES} sites`;
    return <Alert color="green" role="status" title={`Nothing is wrong${where}.`} />;
  }
  return (
    <Alert
      color="yellow"
      role="status"
      title={count === 1 ? 'One thing needs attention.' : `${count} things need attention.`}
    >
      <List size="sm">
        {failed.map((siteId) => (
          <List.Item key={siteId}>
            <UntrustedText value={siteId} />: not known, because Control did not answer
          </List.Item>
        ))}
        {troubles.map(({ siteId, about, label, page, since }) => (
          <List.Item key={`${siteId} ${about} ${label}`}>
            <UntrustedText value={siteId} />, {about.toLowerCase()}:{' '}
            <Anchor
              component={Link}
              to={`/sites/${encodeURIComponent(siteId)}/${page}`}
              size="sm"
              c="inherit"
              underline="always"
            >
              <UntrustedText value={label} />
            </Anchor>
            {since !== undefined && (
              <>
                {' '}
                <Lasting since={since} />
              </>
            )}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
