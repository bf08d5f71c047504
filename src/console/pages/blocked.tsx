/** Blocked subjects, which cannot enroll, and blocked callers, whose requests are denied. */
import { Group, Stack, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay, useSite } from '../api/session';
import { useSources } from '../api/site-lists';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { type Field, Fields, type Values } from '../parts/fields';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty, Page } from '../parts/page';
import type { Column } from '../parts/table-frame';
import { Id, Moment, UntrustedText } from '../parts/values';
import { Views } from '../parts/views';

type Subject = Schemas['BlockedSubject'];
type Caller = Schemas['BlockedCaller'];

export default function Blocked() {
  return (
    <Page title="Blocked" question="Who may not enroll, and whose requests are denied?">
      <Views
        views={[
          { name: 'subjects', title: 'Subjects: no new keys', show: () => <Subjects /> },
          { name: 'callers', title: 'Callers: no requests', show: () => <Callers /> },
        ]}
      />
    </Page>
  );
}

/** Columns of both lists: when it was blocked, by whom, and the button to unblock it. */
function common<T extends Subject | Caller>(
  unblock: ((item: T) => ReactNode) | undefined,
): readonly Column<T>[] {
  return [
    { title: 'Issuer', text: ({ issuer }) => issuer, cell: ({ issuer }) => <UntrustedText value={issuer} /> },
    {
      title: 'Blocked',
      text: ({ blocked_at }) => blocked_at,
      cell: ({ blocked_at }) => <Moment at={blocked_at} />,
    },
    {
      title: 'By',
      text: ({ blocked_by }) => blocked_by,
      cell: ({ blocked_by }) => <UntrustedText value={blocked_by} />,
    },
    ...(unblock === undefined ? [] : [{ title: 'Action', cell: unblock }]),
  ];
}

function Subjects() {
  const { site_id } = useSite();
  const mayOperate = useMay('operate');
  return (
    <Stack>
      {mayOperate && (
        <Group>
          <BlockSubject />
        </Group>
      )}
      <List<Subject>
        name="blocked subjects"
        queryKey={['site', site_id, 'blocked-subjects']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/blocked-subjects', {
              params: {
                path: { site_id },
                query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) },
              },
            }),
          )
        }
        idOf={({ issuer, subject }) => `${issuer} ${subject}`}
        columns={[
          {
            title: 'Subject',
            text: ({ subject }) => subject,
            cell: ({ subject }) => <UntrustedText value={subject} />,
          },
          ...common<Subject>(mayOperate ? (item) => <UnblockSubject blocked={item} /> : undefined),
        ]}
        empty={
          <Empty>
            No workload is blocked. Block one when its keys are revoked and it must not come back.
          </Empty>
        }
      />
      <AsCommand words={['get', 'blocked-subjects', '--site', site_id]} />
    </Stack>
  );
}

function UnblockSubject({ blocked: { site_id, issuer, subject } }: { readonly blocked: Subject }) {
  return (
    <Action
      label="Unblock"
      command={['unblock', '--site', site_id, '--issuer', issuer, '--subject', subject]}
      confirm={{
        asksReason: true,
        consequence: (
          <>
            <UntrustedText value={subject} /> may enroll again, as far as a policy admits it. Its revoked keys
            stay revoked.
          </>
        ),
      }}
      run={(because) =>
        bodyOf(
          api.DELETE('/v1/sites/{site_id}/blocked-subjects', {
            params: { path: { site_id }, query: { issuer, subject, ...because } },
          }),
        )
      }
    />
  );
}

function BlockSubject() {
  const { site_id } = useSite();
  const issuers = new Set(
    useSources(site_id)?.flatMap(({ revisions }) => revisions.map(({ issuer }) => issuer)),
  );
  const [values, setValues] = useState<Values>({});
  const { issuer = '', subject = '' } = values;
  const fields: readonly Field[] = [
    { name: 'issuer', label: 'Issuer of its token, exactly', suggestions: [...issuers] },
    {
      name: 'subject',
      label: 'Subject of its token, exactly',
      placeholder: 'system:serviceaccount:NAMESPACE:SERVICE-ACCOUNT',
    },
  ];
  return (
    <Action
      label="Block a subject"
      isPrimary
      onOpen={() => setValues({})}
      command={['block', '--site', site_id, '--issuer', issuer, '--subject', subject]}
      confirm={{
        submit: 'Block',
        asksReason: true,
        consequence:
          'It cannot enroll any more. Its keys stay valid until they expire: revoke them under Keys.',
        fields: <Fields fields={fields} values={values} onChange={setValues} />,
      }}
      run={(because) =>
        bodyOf(
          api.POST('/v1/sites/{site_id}/blocked-subjects', {
            params: { path: { site_id }, query: because },
            body: { issuer, subject },
          }),
        )
      }
    />
  );
}

function Callers() {
  const { site_id } = useSite();
  const mayOperate = useMay('operate');
  return (
    <Stack>
      {mayOperate && (
        <Group>
          <BlockCaller />
        </Group>
      )}
      <List<Caller>
        name="blocked callers"
        queryKey={['site', site_id, 'blocked-callers']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites/{site_id}/blocked-callers', {
              params: {
                path: { site_id },
                query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) },
              },
            }),
          )
        }
        idOf={({ issuer, subject, holder_thumbprint }) =>
          `${issuer} ${subject ?? ''} ${holder_thumbprint ?? ''}`
        }
        columns={[
          {
            title: 'Caller',
            text: ({ subject, holder_thumbprint }) => subject ?? holder_thumbprint ?? '',
            cell: ({ subject, holder_thumbprint, waiting_for }) => (
              <>
                {subject === undefined ? (
                  <Id value={holder_thumbprint ?? ''} />
                ) : (
                  <UntrustedText value={subject} />
                )}
                {waiting_for !== undefined && (
                  <Text size="xs" fw={600}>
                    Not in force yet: update or detach these targets, which do not know blocked callers:{' '}
                    {waiting_for.map(({ target_id, name }) => (
                      <UntrustedText key={target_id} value={`${name} `} />
                    ))}
                  </Text>
                )}
              </>
            ),
          },
          ...common<Caller>(mayOperate ? (item) => <UnblockCaller blocked={item} /> : undefined),
        ]}
        empty={
          <Empty>No caller is blocked. Block one to deny all its requests before its passport ends.</Empty>
        }
      />
      <AsCommand words={['get', 'blocked-callers', '--site', site_id]} />
    </Stack>
  );
}

/** Names a caller to Control and to `ctl`. */
function selectorOf({ subject, holder_thumbprint }: Pick<Caller, 'subject' | 'holder_thumbprint'>) {
  return subject === undefined
    ? {
        query: { holder_thumbprint: holder_thumbprint ?? '' },
        flag: ['--holder-thumbprint', holder_thumbprint ?? ''],
      }
    : { query: { subject }, flag: ['--subject', subject] };
}

function UnblockCaller({ blocked }: { readonly blocked: Caller }) {
  const { site_id, issuer, subject, holder_thumbprint } = blocked;
  const { query, flag } = selectorOf(blocked);
  return (
    <Action
      label="Unblock"
      command={['unblock-caller', '--site', site_id, '--issuer', issuer, ...flag]}
      confirm={{
        asksReason: true,
        consequence: (
          <>
            Requests of <UntrustedText value={subject ?? holder_thumbprint ?? ''} /> are judged by their
            routes again, as soon as each target has the next revision.
          </>
        ),
      }}
      run={(because) =>
        bodyOf(
          api.DELETE('/v1/sites/{site_id}/blocked-callers', {
            params: { path: { site_id }, query: { issuer, ...query, ...because } },
          }),
        )
      }
    />
  );
}

function BlockCaller() {
  const { site_id, issuer_url } = useSite();
  const [values, setValues] = useState<Values>({});
  const { issuer = '', by = 'subject', value = '' } = values;
  const { query, flag } = selectorOf(by === 'subject' ? { subject: value } : { holder_thumbprint: value });
  const fields: readonly Field[] = [
    {
      name: 'issuer',
      label: 'Issuer of its passport, exactly',
      description: 'The issuer URL of the site, or that of a broker or an OAuth issuer.',
      suggestions: [issuer_url],
    },
    {
      name: 'by',
      label: 'Blocked is',
      options: [
        { value: 'subject', label: 'the subject of the passport' },
        { value: 'holder', label: 'one key, by its RFC 7638 thumbprint' },
      ],
    },
    { name: 'value', label: by === 'subject' ? 'Subject, exactly' : 'Thumbprint' },
  ];
  return (
    <Action
      label="Block a caller"
      isPrimary
      onOpen={() => setValues({})}
      command={['block-caller', '--site', site_id, '--issuer', issuer, ...flag]}
      confirm={{
        submit: 'Block',
        asksReason: true,
        consequence: 'Every target denies its requests on every route as soon as it has the next revision.',
        fields: <Fields fields={fields} values={values} onChange={setValues} />,
      }}
      run={(because) =>
        bodyOf(
          api.POST('/v1/sites/{site_id}/blocked-callers', {
            params: { path: { site_id }, query: because },
            body: { issuer, ...query },
          }),
        )
      }
    />
  );
}
