/** OAuth authorization servers whose access tokens the site accepts. */
import { Group, Stack, Text } from '@mantine/core';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty } from '../parts/page';
import type { Column } from '../parts/table-frame';
import { duration, Moment, UntrustedText } from '../parts/values';
import { issuerColumn, stateColumn } from './issuer-columns';
import {
  CreateOAuthIssuer,
  EditOAuthIssuer,
  EndTokens,
  markerText,
  RemoveOAuthIssuer,
} from './oauth-issuer-forms';

type OAuthIssuer = Schemas['OAuthIssuer'];

const subjectText = ({ definition: { subject_claim = 'sub' } }: OAuthIssuer) => `${subject_claim}:VALUE`;

const COLUMNS: readonly Column<OAuthIssuer>[] = [
  issuerColumn('Issuer'),
  stateColumn('tokens'),
  {
    title: 'Callers',
    text: subjectText,
    cell: (item) => (
      <Stack gap={0}>
        <UntrustedText value={subjectText(item)} />
        <UntrustedText value={markerText(item.definition.service_marker)} />
      </Stack>
    ),
  },
  {
    title: 'Tokens',
    cell: ({ definition: { max_token_ttl_seconds = 300, not_before, token_types = ['at+jwt'] } }) => (
      <Stack gap={0}>
        <Text size="sm">
          {token_types.join(', ')}, at most {duration(max_token_ttl_seconds)}
        </Text>
        {not_before !== undefined && (
          <Text component="div" size="sm">
            issued since <Moment at={not_before} />
          </Text>
        )}
      </Stack>
    ),
  },
  {
    title: 'Keys',
    isMinor: true,
    cell: ({ keys }) => (
      <Stack gap={0}>
        {keys.map(({ alg, kid }) => (
          <UntrustedText key={kid} value={`${kid} ${alg}`} />
        ))}
      </Stack>
    ),
  },
  {
    title: 'Fetched',
    isMinor: true,
    cell: ({ fetched_at, failure }) => (
      <Stack gap={0}>
        {fetched_at === undefined ? null : <Moment at={fetched_at} />}
        <UntrustedText value={failure ?? ''} />
      </Stack>
    ),
  },
];

const ACTIONS: Column<OAuthIssuer> = {
  title: 'Actions',
  cell: (item) => (
    <Group gap="xs" wrap="nowrap">
      <EditOAuthIssuer {...item} />
      <EndTokens {...item} />
      <RemoveOAuthIssuer {...item} />
    </Group>
  ),
};

export function OAuthIssuers() {
  const { site_id } = useSite();
  const mayAdminister = useMay('administer');
  return (
    <Stack>
      {mayAdminister && (
        <Group justify="flex-end">
          <CreateOAuthIssuer />
        </Group>
      )}
      <List<OAuthIssuer>
        name="OAuth issuers"
        queryKey={['site', site_id, 'oauth-issuers']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/oauth-issuers', {
              params: {
                path: { site_id },
                query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) },
              },
            }),
          )
        }
        idOf={({ issuer }) => issuer}
        columns={mayAdminister ? [...COLUMNS, ACTIONS] : COLUMNS}
        empty={<Empty>The site accepts access tokens of no OAuth authorization server.</Empty>}
      />
      <AsCommand words={['get', 'oauth-issuers', '--site', site_id]} />
    </Stack>
  );
}
