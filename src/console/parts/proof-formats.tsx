/** The formats of proofs that a route accepts. */
import { Checkbox, Stack } from '@mantine/core';
import type { Schemas } from '../api/client';

type Definition = Schemas['RouteDefinition'];
export type ProofFormat = NonNullable<Definition['accepted_proofs']>[number];

/** What each needs of the caller. */
const LABELS: Readonly<Record<ProofFormat, string>> = {
  'transcript-v1': 'transcript-v1: a passport, and a signer of ours',
  'http-message-signatures': 'http-message-signatures: any library for RFC 9421, with or without a passport',
  dpop: 'dpop: a passport, and any library for RFC 9449; binds less than the others',
};
const FORMATS = Object.keys(LABELS) as readonly ProofFormat[];

export function formatsText({ accepted_proofs: formats = ['transcript-v1'] }: Definition): string {
  return formats.join(', ');
}

interface ProofFormatsFieldProps {
  /** Empty: as without the member. */
  readonly formats: readonly ProofFormat[];
  readonly change: (formats: readonly ProofFormat[]) => void;
}

export function ProofFormatsField({ change, formats }: ProofFormatsFieldProps) {
  return (
    <Checkbox.Group
      label="Accepted proofs"
      description="None checked: transcript-v1 alone."
      value={[...formats]}
      onChange={(chosen) => change(FORMATS.filter((format) => chosen.includes(format)))}
    >
      <Stack gap="xs" mt="xs">
        {FORMATS.map((format) => (
          <Checkbox key={format} value={format} label={LABELS[format]} />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}
