/** Creates a target, whose token is shown once. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { useSite } from '../api/session';
import { Action } from '../parts/action';
import { ShownOnce } from '../parts/shown-once';
import { VerifierStart } from '../parts/verifier-start';

/** The dialogue must stay mounted until the token is saved, even after the target exists. */
export function CreateTarget() {
  const { site_id } = useSite();
  const [name, setName] = useState('');
  const [created, setCreated] = useState<Schemas['TargetWithToken']>();
  return (
    <>
      <Action
        label="Create target"
        isPrimary
        command={{ siteFile: { targets: [name] }, flags: ['--token-dir', 'tokens'] }}
        confirm={{
          consequence:
            'A target stands for one verifier, or for a group of verifiers with the same token. Control shows its token once.',
          fields: (
            <TextInput
              label="Name"
              placeholder="gateway"
              value={name}
              onChange={({ currentTarget }) => setName(currentTarget.value)}
              required
              data-autofocus
            />
          ),
        }}
        run={async () => {
          const params = { path: { site_id } };
          setCreated(await bodyOf(api.POST('/v1/sites/{site_id}/targets', { params, body: { name } })));
        }}
        onDone={() => setName('')}
      />
      <TargetToken target={created} onClose={() => setCreated(undefined)} />
    </>
  );
}

interface TargetTokenProps {
  readonly target: Schemas['TargetWithToken'] | undefined;
  readonly onClose: () => void;
}

export function TargetToken({ target, onClose }: TargetTokenProps) {
  return (
    <ShownOnce title={`Token of target ${target?.name ?? ''}`} secret={target?.token} onClose={onClose}>
      <VerifierStart token={target?.token} />
    </ShownOnce>
  );
}
