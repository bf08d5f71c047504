/** The audit trail, with the state before and after each event. */
import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from '../api/client';
import { csvOf } from '../api/csv';
import { saveFile } from '../api/export';
import { type UrlState, useUrlState } from '../api/url-state';
import { AsCommand } from '../parts/command';
import { FilterMoment, FilterText } from '../parts/filter';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty, Facts, Page } from '../parts/page';
import { Problem } from '../parts/problem';
import { Moment, UntrustedText } from '../parts/values';
import { Difference } from './audit-difference';
import { displayName, isDeletion, Named, namesIn } from './audit-names';

type Event = Schemas['AuditEvent'];

const KIND = 'proofgate.control.';
const EXPORT_PAGE = 200;
/** Maximum number of exported events. More would take minutes; `ctl` and the API have no such limit. */
const MAX_EXPORTED = 20_000;

/** Control's filters, with their names in the URL and in the API. */
const FILTERS = [
  { name: 'site', parameter: 'site_id', label: 'Site' },
  { name: 'kind', parameter: 'kind', label: 'Kind', placeholder: 'target.create' },
  { name: 'resource', parameter: 'resource_id', label: 'Resource ID' },
  { name: 'actor', parameter: 'actor', label: 'Who', placeholder: 'oidc:https://login.example|ada' },
  { name: 'since', parameter: 'since', label: 'From, local time', isMoment: true },
  { name: 'until', parameter: 'until', label: 'Before, local time', isMoment: true },
] as const;

export default function Audit() {
  const { values } = useUrlState();
  const query = queryOf(values);
  return (
    <Page title="Audit" question="Who did what, and when?" actions={<Export query={query} />}>
      <List<Event>
        name="events"
        queryKey={['all', 'audit', query]}
        fetch={(cursor) => readEvents(query, PAGE_ITEMS, cursor)}
        idOf={({ audit_event_id }) => audit_event_id}
        isFiltered={Object.keys(query).length > 0}
        filters={FILTERS.map(({ parameter, ...filter }) =>
          'isMoment' in filter ? (
            <FilterMoment key={parameter} {...filter} />
          ) : (
            <FilterText key={parameter} {...filter} />
          ),
        )}
        columns={[
          { title: 'When', text: ({ at }) => at, cell: ({ at }) => <Moment at={at} /> },
          { title: 'Who', text: ({ actor }) => actor, cell: ({ actor }) => <UntrustedText value={actor} /> },
          {
            title: 'What',
            text: ({ kind }) => kind,
            cell: ({ kind }) => (
              <UntrustedText value={kind.startsWith(KIND) ? kind.slice(KIND.length) : kind} />
            ),
          },
          {
            title: 'Resource',
            text: (event) => `${displayName(event) ?? ''} ${event.resource.id}`,
            cell: (event) => <Resource {...event} />,
          },
          {
            title: 'Site',
            isMinor: true,
            text: ({ site_id }) => site_id ?? '',
            cell: ({ site_id = '' }) => <Named kind="site" id={site_id} siteId={site_id || undefined} />,
          },
          {
            title: 'Reason',
            isMinor: true,
            text: ({ reason }) => reason ?? '',
            cell: ({ reason }) => <UntrustedText value={reason ?? ''} />,
          },
          { title: 'Change', isMinor: true, cell: (event) => <Change event={event} /> },
        ]}
        empty={<Empty>Nothing has happened that you may read.</Empty>}
      />
      <AsCommand
        words={[
          'get',
          'audit',
          ...FILTERS.flatMap(({ name, parameter }) => {
            const value = query[parameter];
            return value === undefined ? [] : [`--${name}`, value];
          }),
        ]}
      />
    </Page>
  );
}

/** Its name with the ID below, or the ID alone. */
function Resource(event: Event) {
  const { resource, site_id: siteId } = event;
  const display = displayName(event);
  return (
    <>
      {isDeletion(event) ? (
        <UntrustedText value={display ?? resource.id} />
      ) : (
        <Named {...resource} siteId={siteId} display={display} />
      )}
      {display !== undefined && display !== resource.id && (
        <Text size="xs" c="dimmed">
          <UntrustedText value={resource.id} />
        </Text>
      )}
    </>
  );
}

type Query = { readonly [P in (typeof FILTERS)[number]['parameter']]?: string };

function queryOf(values: UrlState['values']): Query {
  const entries = FILTERS.map(({ name, parameter }) => [parameter, values[name]?.trim()] as const);
  const { kind, ...query }: Query = Object.fromEntries(
    entries.filter(([, value]) => value !== undefined && value !== ''),
  );
  if (kind === undefined) return query;
  return { ...query, kind: kind.startsWith(KIND) ? kind : `${KIND}${kind}` };
}

function readEvents(query: Query, limit: number, cursor: string | undefined) {
  return bodyOf(
    api.GET('/v1/audit-events', {
      params: { query: { ...query, limit, ...(cursor === undefined ? {} : { cursor }) } },
    }),
  );
}

function Change({ event }: { readonly event: Event }) {
  const { before, after, kind, resource, request_id, audit_event_id } = event;
  const [opened, { open, close }] = useDisclosure(false);
  const names = namesIn(event);
  return (
    <>
      <Button variant="subtle" size="compact-sm" onClick={open}>
        Show
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        size="xl"
        title={<UntrustedText value={`${kind} ${resource.id}`} />}
      >
        <Stack gap="sm">
          {names.length > 0 && <Facts rows={names} />}
          <Difference before={before} after={after} />
          <Text size="xs" c="dimmed" className="break">
            {audit_event_id} {request_id !== undefined && <>request {request_id}</>}
          </Text>
        </Stack>
      </Modal>
    </>
  );
}

function Export({ query }: { readonly query: Query }) {
  const { mutate, error, isPending, data } = useMutation({
    mutationFn: async (format: 'csv' | 'json') => {
      const { events, isWhole } = await allEvents(query);
      const text = format === 'json' ? JSON.stringify(events, null, 2) : csvOf(CSV_COLUMNS, events);
      saveFile(`audit.${format}`, text, format === 'json' ? 'application/json' : 'text/csv');
      return { saved: events.length, isWhole };
    },
    gcTime: 0,
  });
  return (
    <div>
      <Group gap="xs">
        <Button size="compact-sm" variant="default" loading={isPending} onClick={() => mutate('csv')}>
          Export CSV
        </Button>
        <Button size="compact-sm" variant="default" loading={isPending} onClick={() => mutate('json')}>
          Export JSON
        </Button>
      </Group>
      {error && <Problem error={error} />}
      {data !== undefined && (
        <Text size="sm" role="status">
          {data.saved} events saved
          {data.isWhole ? '' : ': only the newest. The whole trail: proofgate ctl get audit --output jsonl'}
        </Text>
      )}
    </div>
  );
}

const CSV_COLUMNS: readonly (readonly [string, (event: Event) => string])[] = [
  ['at', ({ at }) => at],
  ['actor', ({ actor }) => actor],
  ['kind', ({ kind }) => kind],
  ['resource_kind', ({ resource }) => resource.kind],
  ['resource_id', ({ resource }) => resource.id],
  ['environment_id', ({ environment_id }) => environment_id ?? ''],
  ['fleet_id', ({ fleet_id }) => fleet_id ?? ''],
  ['site_id', ({ site_id }) => site_id ?? ''],
  ['before', ({ before }) => (before === undefined ? '' : JSON.stringify(before))],
  ['after', ({ after }) => (after === undefined ? '' : JSON.stringify(after))],
  ['reason', ({ reason }) => reason ?? ''],
  ['request_id', ({ request_id }) => request_id ?? ''],
  ['audit_event_id', ({ audit_event_id }) => audit_event_id],
];

async function allEvents(
  query: Query,
): Promise<{ readonly events: readonly Event[]; readonly isWhole: boolean }> {
  const events: Event[] = [];
  let cursor: string | undefined;
  do {
    const page = await readEvents(query, EXPORT_PAGE, cursor);
    events.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== undefined && events.length < MAX_EXPORTED);
  return { events, isWhole: cursor === undefined };
}
