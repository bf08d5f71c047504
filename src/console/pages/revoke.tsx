/** Revokes one or more keys. After a failure it goes on with those that are left. */
import { Checkbox, List, Stack, Text } from '@mantine/core';
import { useRef, useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useMay } from '../api/session';
import { Action } from '../parts/action';
import { Moment, UntrustedText } from '../parts/values';

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
                  <UntrustedText value={verified_subject} />, client <UntrustedText value={client_id} />, last
                  used <Moment at={last_used_at} />
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
