/** Access: role grants, access tokens, and the current session. */
import { Group, Select, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { may } from '../api/permissions';
import { endSession, useSession } from '../api/session';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty, Facts, Page } from '../parts/page';
import { ROLES, useAdministers, useAdministersSome } from '../parts/roles';
import { ScopeFields, ScopeName, scopeWord } from '../parts/scope';
import { Id, Moment, UntrustedText } from '../parts/values';
import { type View, Views } from '../parts/views';
import { AccessTokens } from './access-tokens';
import { Sessions } from './sessions';

type Role = Schemas['RoleGrant']['role'];
type Scope = Schemas['Scope'];

const VIEWS: readonly View[] = [
  { name: 'roles', title: 'Role grants', show: () => <RoleGrants /> },
  { name: 'tokens', title: 'Access tokens', show: () => <AccessTokens /> },
  { name: 'sessions', title: 'Sessions', show: () => <Sessions /> },
  { name: 'session', title: 'This session', show: () => <ThisSession /> },
];

export default function Access() {
  return (
    <Page title="Operators" question="Which operator may do what in Control?">
      <Views views={VIEWS} />
    </Page>
  );
}

function ThisSession() {
  const { actor, display_name, via, expires_at, roles } = useSession();
  return (
    <Stack>
      <Facts
        rows={[
          ['Name', <UntrustedText key="name" value={display_name} />],
          ['Actor', <UntrustedText key="actor" value={actor} />],
          ['Signed in by', via.replaceAll('_', ' ')],
          ['Ends', expires_at === undefined ? 'never' : <Moment key="ends" at={expires_at} />],
          [
            'Roles',
            <Stack key="roles" gap={0}>
              {roles.map(({ role, scope }) => (
                <span key={`${role} ${scopeWord(scope)}`}>
                  {role} of <ScopeName scope={scope} />
                </span>
              ))}
              {roles.length === 0 && 'none: someone who administers Control can grant you one'}
            </Stack>,
          ],
        ]}
      />
      <Group>
        <AsCommand words={['whoami']} />
        <DisableBootstrapToken />
      </Group>
    </Stack>
  );
}

function DisableBootstrapToken() {
  const session = useSession();
  if (!may(session, 'administer', {})) return null;
  return (
    <Action
      label="Disable the bootstrap token"
      command={['disable-bootstrap-token', '--yes']}
      confirm={{
        finalFor: 'bootstrap token',
        consequence:
          'Sessions that began with the token end. First grant an operator the role admin of the installation. Start Control with --reset-bootstrap-token to get another.',
      }}
      run={() => bodyOf(api.DELETE('/v1/bootstrap-token'))}
      onDone={() => {
        if (session.actor === 'bootstrap') endSession();
      }}
    />
  );
}

function RoleGrants() {
  const administers = useAdministers();
  const administersSome = useAdministersSome();
  return (
    <Stack>
      {administersSome && (
        <Group justify="flex-end">
          <GrantRole />
        </Group>
      )}
      <List<Schemas['RoleGrant']>
        name="role grants"
        queryKey={['all', 'role-grants']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/role-grants', {
              params: { query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) } },
            }),
          )
        }
        idOf={({ role_grant_id }) => role_grant_id}
        columns={[
          {
            title: 'Principal',
            text: ({ principal }) => principal,
            cell: ({ principal }) => <UntrustedText value={principal} />,
          },
          { title: 'Role', text: ({ role }) => role, cell: ({ role }) => role },
          {
            title: 'Scope',
            text: ({ scope }) => scopeWord(scope),
            cell: ({ scope }) => <ScopeName scope={scope} />,
          },
          {
            title: 'Granted by',
            isMinor: true,
            text: ({ created_by }) => created_by,
            cell: ({ created_by }) => <UntrustedText value={created_by} />,
          },
          {
            title: 'Granted',
            isMinor: true,
            text: ({ created_at }) => created_at,
            cell: ({ created_at }) => <Moment at={created_at} />,
          },
          { title: 'Grant', isMinor: true, cell: ({ role_grant_id }) => <Id value={role_grant_id} /> },
          ...(administersSome
            ? [
                {
                  title: 'Actions',
                  cell: (grant: Schemas['RoleGrant']) =>
                    administers(grant.scope) && <RemoveGrant grant={grant} />,
                },
              ]
            : []),
        ]}
        empty={<Empty>No role was granted yet: only the bootstrap token and access tokens work.</Empty>}
      />
      <AsCommand words={['get', 'role-grants']} />
    </Stack>
  );
}

function GrantRole() {
  const [principal, setPrincipal] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const [scope, setScope] = useState<Scope>({ kind: 'installation' });
  return (
    <Action
      label="Grant a role"
      isPrimary
      command={['create', 'role-grant', nameWord(principal), '--role', role, '--scope', scopeWord(scope)]}
      confirm={{
        asksReason: true,
        consequence: (
          <>
            {principal === '' ? 'The principal' : <UntrustedText value={principal} />} gets the role {role} at{' '}
            <ScopeName scope={scope} /> and everything below it, from the next request on. Groups are those of
            the last sign-in.
          </>
        ),
        fields: (
          <>
            <TextInput
              label="Principal"
              description="group:NAME, or oidc:ISSUER|SUBJECT: the operator finds it here under This session, Actor."
              placeholder="group:platform"
              value={principal}
              onChange={({ currentTarget }) => setPrincipal(currentTarget.value)}
              required
              data-autofocus
            />
            <Select
              label="Role"
              data={[...ROLES]}
              value={role}
              allowDeselect={false}
              onChange={(next: Role | null) => setRole(next ?? role)}
            />
            <ScopeFields scope={scope} change={setScope} />
          </>
        ),
      }}
      run={(query) =>
        bodyOf(api.POST('/v1/role-grants', { params: { query }, body: { principal, role, scope } }))
      }
      onDone={() => setPrincipal('')}
    />
  );
}

function RemoveGrant({
  grant: { role_grant_id, principal, role },
}: {
  readonly grant: Schemas['RoleGrant'];
}) {
  return (
    <Action
      label="Remove"
      command={['delete', 'role-grant', role_grant_id, '--yes']}
      confirm={{
        finalFor: role,
        asksReason: true,
        consequence: (
          <>
            <UntrustedText value={principal} /> loses the role {role} with the next request, in open sessions,
            too.
          </>
        ),
      }}
      run={(query) =>
        bodyOf(api.DELETE('/v1/role-grants/{role_grant_id}', { params: { path: { role_grant_id }, query } }))
      }
    />
  );
}
