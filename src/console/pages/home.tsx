/** Is anything wrong now? */
import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { api, bodyOf, type Schemas } from '../api/client';
import { List } from '../parts/list';
import { Empty, Page } from '../parts/page';
import { Foreign, Moment } from '../parts/values';

export default function Home() {
  return (
    <Page title="Home" question="Is anything wrong now?">
      <List<Schemas['Site']>
        name="sites"
        queryKey={['sites']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites', {
              params: { query: { limit: 100, ...(cursor === undefined ? {} : { cursor }) } },
            }),
          )
        }
        idOf={({ site_id }) => site_id}
        columns={[
          {
            title: 'Site',
            text: ({ site_id }) => site_id,
            cell: ({ site_id }) => (
              <Anchor component={Link} to={`/sites/${encodeURIComponent(site_id)}/keys`}>
                {site_id}
              </Anchor>
            ),
          },
          {
            title: 'Name',
            text: ({ display_name }) => display_name,
            cell: ({ display_name }) => <Foreign value={display_name} />,
          },
          {
            title: 'Created',
            text: ({ created_at }) => created_at,
            cell: ({ created_at }) => <Moment at={created_at} />,
          },
        ]}
        empty={<Empty>There is no Auth Site yet.</Empty>}
      />
    </Page>
  );
}
