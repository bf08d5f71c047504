/** Revokes one or more keys. After a failure it goes on with those that are left. */
import { Alert, Checkbox, Code, List, Stack, Text } from '@mantine/core';
import { useQueries } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { publishedKeyQuery } from '../api/keys';
import { useMay } from '../api/session';
import { Action } from '../parts/action';
import { PageLink } from '../parts/named-link';
import { inUtc, Moment, UntrustedText } from '../parts/values';
import { shareOf, TargetsLink, useAcknowledgements } from './acknowledged';

interface RevokeProps {
  readonly keys: readonly Schemas['DerivedKey'][];
  readonly onDone?: () => void;
}

export function Revoke({ keys, onDone }: RevokeProps) {
  const [block, setBlock] = useState(false);
  const revoked = useRef(new Set<string>());
  if (!useMay('operate')) return null;
  const isOne = keys.length === 1;
  return (
    <Action
      label={keys.length > 1 ? `Revoke ${keys.length}` : 'Revoke'}
      isDisabled={keys.length === 0}
      command={keys.map(({ key_id }) => ['revoke', key_id, ...(block ? ['--block-subject'] : []), '--yes'])}
      confirm={{
        finalFor: isOne ? (keys[0]?.verified_subject ?? '') : 'keys',
        consequence: (
          <Stack gap="xs">
            <span>
              For good. Requests that {isOne ? 'this key signs' : 'these keys sign'} are denied as soon as
              each target has the next revision, also under other key IDs of the same public key:
            </span>
            <List size="sm" className="scrolled" tabIndex={0} aria-label="Keys">
              {keys.map(({ key_id, client_id, verified_subject, last_used_at }) => (
                <List.Item key={key_id}>
                  <UntrustedText value={verified_subject} />, client <UntrustedText value={client_id} />,{' '}
                  {last_used_at === undefined ? (
                    'no use reported'
                  ) : (
                    <>
                      last used <Moment at={last_used_at} />
                    </>
                  )}
                  , key <Code className="id">{key_id}</Code>
                </List.Item>
              ))}
            </List>
          </Stack>
        ),
        asksReason: true,
        fields: (
          <Checkbox
            label={
              <Text size="sm">Also refuse new enrollments of {isOne ? 'its subject' : 'their subjects'}</Text>
            }
            checked={block}
            onChange={({ currentTarget }) => setBlock(currentTarget.checked)}
          />
        ),
      }}
      run={async (because) => {
        for (const { key_id } of keys) {
          if (revoked.current.has(key_id)) continue;
          await bodyOf(
            api.POST('/v1/derived-keys/{key_id}/revoke', {
              params: { path: { key_id } },
              body: { block_subject: block, ...because },
            }),
          );
          revoked.current.add(key_id);
        }
      }}
      {...(onDone === undefined ? {} : { onDone })}
    />
  );
}

interface RevokedProps {
  readonly keys: readonly Schemas['DerivedKey'][];
  readonly onClose: () => void;
}

/** What became of keys that were revoked together: not green before every target has the last of them. */
export function Revoked({ keys, onClose }: RevokedProps) {
  const revisions = useQueries({
    queries: keys.map(({ key_id, site_id }) => publishedKeyQuery(site_id, key_id, 'revoked_in_revision')),
  }).map(({ data }) => data?.revoked_in_revision);
  const found = useAcknowledgements(
    revisions.every((revision) => revision !== undefined) ? Math.max(...revisions) : undefined,
  );
  return (
    <Alert
      color={found?.since === undefined ? 'yellow' : 'green'}
      role="status"
      title={`Revoked${keys.length > 1 ? `: ${keys.length} keys` : ''}${whereOf(found)}`}
      withCloseButton
      closeButtonLabel="Close"
      onClose={onClose}
    >
      <List size="sm">
        {keys.map(({ key_id, verified_subject }) => (
          <List.Item key={key_id}>
            <UntrustedText value={verified_subject} />, key <Code className="id">{key_id}</Code>:{' '}
            <PageLink page={`keys/${key_id}`} name="revocation receipt: when no verifier can allow it" />
          </List.Item>
        ))}
      </List>
      <TargetsLink />
    </Alert>
  );
}

function whereOf(found: ReturnType<typeof useAcknowledgements>): string {
  if (found === undefined) return '; not yet everywhere';
  if (found.since !== undefined) return `. Every target reported it at ${inUtc(found.since).slice(-12)}`;
  return `; not yet everywhere: ${shareOf(found)}`;
}
