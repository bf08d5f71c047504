/** The issuer's keys that Control holds for a source, and whether it can still refresh them. */
import { Alert, Code, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from '../api/client';
import { useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { Loading } from '../parts/loading';
import { Empty, Facts, Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { ItemTable } from '../parts/table-frame';
import { Id, Moment, UntrustedText } from '../parts/values';

type Keys = Schemas['SourceKeys'];

export function SourceKeys({ sourceId }: { readonly sourceId: string }) {
  const { site_id } = useSite();
  const { data, error } = useQuery({
    queryKey: ['site', site_id, 'source', sourceId, 'keys'],
    queryFn: () =>
      bodyOf(api.GET('/v1/sources/{source_id}/keys', { params: { path: { source_id: sourceId } } })),
    // Polled, because a refresh of keys is not reported as a change of the site.
    refetchInterval: 30_000,
  });
  return (
    <Section title="Keys of the issuer">
      {error && <Problem error={error} />}
      {data === undefined && !error && <Loading height={120} />}
      {data?.key_sets.map((keySet) => (
        <KeySet key={keySet.revision} keySet={keySet} isOnly={data.key_sets.length === 1} />
      ))}
      {data?.key_sets.length === 0 && (
        <Empty>Control holds no keys: it fetches them when a revision is validated.</Empty>
      )}
      {data !== undefined && data.keys.length > 0 && <KeyTable keys={data.keys} />}
      <AsCommand words={['get', 'source-keys', sourceId]} />
    </Section>
  );
}

interface KeySetProps {
  readonly keySet: Keys['key_sets'][number];
  /** If true, the revision need not be named. */
  readonly isOnly: boolean;
}

function KeySet({
  keySet: { revision, refreshed_at, usable_until, next_refresh_at, last_failure },
  isOnly,
}: KeySetProps) {
  const isFailing = last_failure !== undefined && last_failure.at > refreshed_at;
  return (
    <>
      {isFailing && next_refresh_at !== undefined && (
        <Alert color="red" variant="light" title="The last refresh failed">
          Control uses the keys below at most 24 hours after the last refresh. No workload of this cluster can
          enroll after that.
        </Alert>
      )}
      {Date.parse(usable_until) < Date.now() && (
        <Alert color="red" variant="light" title="The keys are too old">
          Control uses them again when it has fetched them again. A draft must be validated again.
        </Alert>
      )}
      <Facts
        rows={[
          ...(isOnly ? [] : [['Revision', String(revision)] as const]),
          ['Last refresh', <Moment key="refreshed" at={refreshed_at} />],
          ...(next_refresh_at === undefined
            ? []
            : [['Next refresh', <Moment key="next" at={next_refresh_at} />] as const]),
          ['Usable until', <Moment key="until" at={usable_until} />],
          ...(last_failure === undefined
            ? []
            : [
                [
                  'Last failure',
                  <Text key="failed" component="div" size="sm">
                    <Moment at={last_failure.at} /> <Code>{last_failure.code}</Code>
                  </Text>,
                ] as const,
              ]),
        ]}
      />
    </>
  );
}

function KeyTable({ keys }: { readonly keys: Keys['keys'] }) {
  return (
    <ItemTable
      label="Keys of the issuer"
      items={keys}
      idOf={({ revision, kid, algorithms, thumbprint }) =>
        `${revision} ${thumbprint} ${kid} ${algorithms.join()}`
      }
      columns={[
        { title: 'Key', cell: ({ kid }) => <UntrustedText value={kid} /> },
        { title: 'Algorithms', cell: ({ algorithms }) => algorithms.join(', ') },
        { title: 'Thumbprint', cell: ({ thumbprint }) => <Id value={thumbprint} /> },
        { title: 'Revision', cell: ({ revision }) => revision },
      ]}
    />
  );
}
