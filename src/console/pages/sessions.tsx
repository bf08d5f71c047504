/** Sessions of signed-in operators, and ending them. */
import { Group, Stack } from '@mantine/core';
import { api, bodyOf, type Schemas } from '../api/client';
import { may } from '../api/permissions';
import { endSession, useSession } from '../api/session';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty } from '../parts/page';
import { Moment, UntrustedText } from '../parts/values';

type OperatorSession = Schemas['OperatorSession'];

export function Sessions() {
  const session = useSession();
  const { actor } = session;
  const mayEndAny = may(session, 'administer', {});
  return (
    <Stack>
      <List<OperatorSession>
        name="sessions"
        queryKey={['all', 'sessions']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sessions', {
              params: { query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) } },
            }),
          )
        }
        idOf={({ session_id }) => session_id}
        columns={[
          {
            title: 'Operator',
            text: ({ display_name, principal }) => `${display_name} ${principal}`,
            cell: ({ display_name, principal }) => (
              <Stack gap={0}>
                <UntrustedText value={display_name} />
                <UntrustedText value={principal} />
              </Stack>
            ),
          },
          {
            title: 'Signed in',
            text: ({ created_at }) => created_at,
            cell: ({ created_at }) => <Moment at={created_at} />,
          },
          {
            title: 'Ends',
            text: ({ expires_at }) => expires_at,
            cell: ({ expires_at }) => <Moment at={expires_at} />,
          },
          { title: 'Current', cell: ({ current }) => (current ? 'this session' : '') },
          {
            title: 'Actions',
            cell: (session) =>
              (mayEndAny || session.principal === actor) && (
                <Group gap="xs" wrap="nowrap">
                  <EndSession session={session} />
                  <EndAllSessions session={session} isOwn={session.principal === actor} />
                </Group>
              ),
          },
        ]}
        empty={<Empty>There are no sessions from the identity provider.</Empty>}
      />
      <AsCommand words={['get', 'sessions']} />
    </Stack>
  );
}

function EndSession({
  session: { session_id, display_name, current },
}: {
  readonly session: OperatorSession;
}) {
  return (
    <Action
      label="End"
      command={['delete', 'session', session_id, '--yes']}
      confirm={{
        consequence: (
          <>
            <UntrustedText value={display_name} /> is signed out with the next request. Remove role grants,
            too, if the operator may not sign in again.
          </>
        ),
      }}
      run={() => bodyOf(api.DELETE('/v1/sessions/{session_id}', { params: { path: { session_id } } }))}
      onDone={() => {
        if (current) endSession();
      }}
    />
  );
}

function EndAllSessions({
  session: { principal, display_name },
  isOwn,
}: {
  readonly session: OperatorSession;
  readonly isOwn: boolean;
}) {
  return (
    <Action
      label="End all"
      command={['end-sessions', principal, '--yes']}
      confirm={{
        consequence: (
          <>
            <UntrustedText value={display_name} /> is signed out everywhere. Remove role grants, too, if the
            operator may not sign in again.
          </>
        ),
      }}
      run={() => bodyOf(api.DELETE('/v1/sessions', { params: { query: { principal } } }))}
      onDone={() => {
        if (isOwn) endSession();
      }}
    />
  );
}
