/**
 * Brokers whose passports the site accepts, besides those of its own keys. `ctl apply` and `ctl broker-keys` change
 * them.
 */
import { Stack } from '@mantine/core';
import { api, bodyOf, type Schemas } from '../api/client';
import { useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty } from '../parts/page';
import { Moment, UntrustedText } from '../parts/values';
import { issuerColumn, stateColumn } from './issuer-columns';

type Broker = Schemas['Broker'];

export function Brokers() {
  const { site_id } = useSite();
  return (
    <Stack>
      <List<Broker>
        name="brokers"
        queryKey={['site', site_id, 'brokers']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/brokers', {
              params: {
                path: { site_id },
                query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) },
              },
            }),
          )
        }
        idOf={({ issuer, trust_domain }) => `${issuer} ${trust_domain}`}
        columns={[
          issuerColumn('Broker'),
          {
            title: 'Subjects',
            text: ({ definition }) => definition.subject_prefixes.join(' '),
            cell: ({ definition }) => <UntrustedText value={definition.subject_prefixes.join(', ')} />,
          },
          {
            title: 'Key binding',
            text: ({ definition }) => definition.key_binding,
            cell: ({ definition }) => definition.key_binding,
          },
          stateColumn('passports'),
          {
            title: 'Pinned keys',
            cell: ({ keys }) => (
              <Stack gap={0}>
                {keys.map(({ kid, pinned_at }) => (
                  <span key={kid}>
                    <UntrustedText value={kid} /> <Moment at={pinned_at} />
                  </span>
                ))}
              </Stack>
            ),
          },
          {
            title: 'URL',
            text: ({ url }) => url ?? '',
            cell: ({ url }) => <UntrustedText value={url ?? ''} />,
          },
        ]}
        empty={
          <Empty>
            No broker signs passports for this site. Declare brokers in the site file, and apply it.
          </Empty>
        }
      />
      <AsCommand words={['get', 'brokers', '--site', site_id]} />
    </Stack>
  );
}
