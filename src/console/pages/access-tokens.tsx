/** Tokens for automation. */
import { Group, NumberInput, Select, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { Action } from '../parts/action';
import { AsCommand } from '../parts/command';
import { List, PAGE_ITEMS } from '../parts/list';
import { Empty } from '../parts/page';
import { ROLES, useAdministers, useAdministersSome } from '../parts/roles';
import { ScopeFields, ScopeName, scopeWord } from '../parts/scope';
import { ShownOnce } from '../parts/shown-once';
import { Id, Moment, UntrustedText } from '../parts/values';

type Token = Schemas['AccessToken'];
type WithSecret = Schemas['AccessTokenWithSecret'];

export function AccessTokens() {
  const administers = useAdministers();
  const administersSome = useAdministersSome();
  const [shown, setShown] = useState<WithSecret>();
  return (
    <Stack>
      {administersSome && (
        <Group justify="flex-end">
          <CreateToken onSecret={setShown} />
        </Group>
      )}
      <List<Token>
        name="access tokens"
        queryKey={['all', 'access-tokens']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/access-tokens', {
              params: { query: { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) } },
            }),
          )
        }
        idOf={({ access_token_id }) => access_token_id}
        columns={[
          { title: 'Name', text: ({ name }) => name, cell: ({ name }) => <UntrustedText value={name} /> },
          { title: 'Role', text: ({ role }) => role, cell: ({ role }) => role },
          {
            title: 'Scope',
            text: ({ scope }) => scopeWord(scope),
            cell: ({ scope }) => <ScopeName scope={scope} />,
          },
          {
            title: 'Created by',
            isMinor: true,
            text: ({ created_by }) => created_by ?? '',
            cell: ({ created_by }) => <UntrustedText value={created_by ?? 'not known'} />,
          },
          {
            title: 'Last used',
            text: ({ last_used_at }) => last_used_at ?? '',
            cell: ({ last_used_at }) => <Moment at={last_used_at} />,
          },
          {
            title: 'Ends',
            isMinor: true,
            text: ({ expires_at }) => expires_at ?? '',
            cell: ({ expires_at }) => <Moment at={expires_at} />,
          },
          { title: 'Token', isMinor: true, cell: ({ access_token_id }) => <Id value={access_token_id} /> },
          ...(administersSome
            ? [
                {
                  title: 'Actions',
                  isMinor: true,
                  cell: (token: Token) =>
                    administers(token.scope) && (
                      <Group gap="xs" wrap="nowrap">
                        <RotateToken token={token} onSecret={setShown} />
                        <DeleteToken token={token} />
                      </Group>
                    ),
                },
              ]
            : []),
        ]}
        empty={<Empty>There is no access token. Create one for automation, such as a pipeline.</Empty>}
      />
      <AsCommand words={['get', 'access-tokens']} />
      <ShownOnce
        title={`Access token ${shown?.name ?? ''}`}
        secret={shown?.token}
        onClose={() => setShown(undefined)}
      />
    </Stack>
  );
}

interface Secret {
  readonly onSecret: (token: WithSecret) => void;
}

function CreateToken({ onSecret }: Secret) {
  const [name, setName] = useState('');
  const [role, setRole] = useState<Token['role']>('viewer');
  const [scope, setScope] = useState<Schemas['Scope']>({ kind: 'installation' });
  const [days, setDays] = useState<number>();
  return (
    <Action
      label="Create access token"
      isPrimary
      command={[
        ...['create', 'access-token', nameWord(name), '--role', role, '--scope', scopeWord(scope)],
        ...(days === undefined ? [] : ['--expires-in', `${days * 24}h`]),
        ...['--out', 'access.token'],
      ]}
      confirm={{
        asksReason: true,
        consequence: (
          <>
            The token gives its bearer the role {role} at <ScopeName scope={scope} /> and everything below it
            {days === undefined ? ', until it is deleted' : `, for ${days} days`}. Control shows the token
            once.
          </>
        ),
        fields: (
          <>
            <TextInput
              label="Name"
              placeholder="ci"
              value={name}
              onChange={({ currentTarget }) => setName(currentTarget.value)}
              required
              data-autofocus
            />
            <Select
              label="Role"
              data={[...ROLES]}
              value={role}
              allowDeselect={false}
              onChange={(next: Token['role'] | null) => setRole(next ?? role)}
            />
            <ScopeFields scope={scope} change={setScope} />
            <NumberInput
              label="Days until it ends"
              description="Empty: it does not end."
              min={1}
              value={days ?? ''}
              onChange={(next) => setDays(next === '' ? undefined : Number(next))}
            />
          </>
        ),
      }}
      run={async (query) => {
        const expires_at = days === undefined ? undefined : new Date(Date.now() + days * 86_400_000);
        const ends = expires_at === undefined ? {} : { expires_at: expires_at.toISOString() };
        const body = { name, role, scope, ...ends };
        onSecret(await bodyOf(api.POST('/v1/access-tokens', { params: { query }, body })));
      }}
      onDone={() => setName('')}
    />
  );
}

function RotateToken({ token: { access_token_id }, onSecret }: { readonly token: Token } & Secret) {
  return (
    <Action
      label="Rotate"
      command={['rotate-access-token', access_token_id, '--out', 'access.token']}
      confirm={{ consequence: 'Control shows another secret once. The old secret stops working at once.' }}
      run={async () =>
        onSecret(
          await bodyOf(
            api.POST('/v1/access-tokens/{access_token_id}/rotate', { params: { path: { access_token_id } } }),
          ),
        )
      }
    />
  );
}

function DeleteToken({ token: { access_token_id, name, version } }: { readonly token: Token }) {
  return (
    <Action
      label="Delete"
      command={['delete', 'access-token', access_token_id, '--yes']}
      confirm={{
        finalFor: name,
        asksReason: true,
        consequence: 'For good. What uses it is refused with the next request.',
      }}
      run={(query) =>
        bodyOf(
          api.DELETE('/v1/access-tokens/{access_token_id}', {
            params: { path: { access_token_id }, query, header: { 'if-match': `"${version}"` } },
          }),
        )
      }
    />
  );
}
