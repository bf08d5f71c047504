/** The receipt of a key's revocation: from when on no verifier can allow its requests, for an auditor to keep. */
import { Button, Group, List, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from '../api/client';
import { saveFile } from '../api/export';
import { AsCommand } from '../parts/command';
import { Loading } from '../parts/loading';
import { Section } from '../parts/page';
import { Problem } from '../parts/problem';
import { Id, Moment, State, UntrustedText } from '../parts/values';

type ReceiptView = Schemas['RevocationReceipt'];

export function Receipt({ keyId, siteId }: { readonly keyId: string; readonly siteId: string }) {
  const { data, error } = useQuery({
    queryKey: ['site', siteId, 'receipt', keyId],
    queryFn: () =>
      bodyOf(
        api.GET('/v1/derived-keys/{key_id}/revocation-receipt', { params: { path: { key_id: keyId } } }),
      ),
    refetchInterval: ({ state }) => (state.data?.state === 'effective' ? false : 10_000),
  });
  return (
    <Section title="Revocation receipt">
      {error && <Problem error={error} />}
      {data === undefined ? !error && <Loading height={120} /> : <Shown receipt={data} />}
      <AsCommand
        words={{
          saved: [
            { words: ['get', 'revocation-receipt', keyId, '--output', 'json'], file: 'receipt.json' },
            { words: ['get', 'receipt-keys', siteId, '--output', 'json'], file: 'receipt-keys.json' },
          ],
          use: 'proofgate bundle verify-receipt receipt.json --receipt-key receipt-keys.json',
        }}
      />
    </Section>
  );
}

function Shown({ receipt }: { readonly receipt: ReceiptView }) {
  const { key_id, receipt: jws, state, waiting_for } = receipt;
  return (
    <>
      <Group gap="xs">
        <State value={state} />
        <Text size="sm" component="div">
          <Meaning receipt={receipt} />
        </Text>
      </Group>
      {waiting_for.length > 0 && (
        <div>
          <Text size="sm">Not acknowledged yet by</Text>
          <List size="sm" aria-label="Not acknowledged yet">
            {waiting_for.map(({ acked_revision, instance_id, target_name }) => (
              <List.Item key={instance_id}>
                <UntrustedText value={target_name} />, revision {acked_revision ?? 'none'}, instance{' '}
                <Id value={instance_id} />
              </List.Item>
            ))}
          </List>
        </div>
      )}
      <Group>
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => saveFile(`revocation-receipt-${key_id}.jws`, jws, 'application/jose')}
        >
          Download receipt
        </Button>
      </Group>
    </>
  );
}

/** A pending receipt also waits for verifiers that Control does not know, such as one that starts from an old state directory. */
function Meaning({ receipt: { no_use_from, state } }: { readonly receipt: ReceiptView }) {
  if (state === 'effective')
    return (
      <>
        No verifier can allow a request of this key. The last possible use ended <Moment at={no_use_from} />
      </>
    );
  return (
    <>
      A verifier that has not heard of the revocation may still allow requests of this key.{' '}
      {no_use_from === undefined ? (
        'When this ends is not known yet: when the key has expired, at the latest.'
      ) : (
        <>
          This ends, at the latest, <Moment at={no_use_from} />
        </>
      )}
    </>
  );
}
