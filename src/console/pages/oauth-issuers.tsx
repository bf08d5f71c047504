/** OAuth authorization servers whose access tokens the site accepts. `ctl apply` changes them. */
import { Stack } from '@mantine/core';
import { api, bodyOf, type Schemas } from '../api/client';
import { useSite } from '../api/session';
import { AsCommand } from '../parts/command';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty } from '../parts/page';
import { Moment, UntrustedText } from '../parts/values';

type OAuthIssuer = Schemas['OAuthIssuer'];

export function OAuthIssuers() {
  const { site_id } = useSite();
  return (
    <Stack>
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
        columns={[
          {
            title: 'Issuer',
            text: ({ issuer, trust_domain }) => `${issuer} ${trust_domain}`,
            cell: ({ issuer, trust_domain }) => (
              <Stack gap={0}>
                <UntrustedText value={issuer} />
                <UntrustedText value={trust_domain} />
              </Stack>
            ),
          },
          {
            title: 'State',
            cell: ({ published }) => (published ? 'published' : 'no keys: tokens rejected'),
          },
          {
            title: 'Keys',
            cell: ({ keys }) => (
              <Stack gap={0}>
                {keys.map(({ kid }) => (
                  <UntrustedText key={kid} value={kid} />
                ))}
              </Stack>
            ),
          },
          {
            title: 'Fetched',
            cell: ({ fetched_at, failure }) => (
              <Stack gap={0}>
                {fetched_at === undefined ? null : <Moment at={fetched_at} />}
                <UntrustedText value={failure ?? ''} />
              </Stack>
            ),
          },
        ]}
        empty={<Empty>The site has no OAuth issuers. Declare them in the site file, and apply it.</Empty>}
      />
      <AsCommand words={['get', 'oauth-issuers', '--site', site_id]} />
    </Stack>
  );
}
