/** Columns that the lists of brokers and of OAuth issuers share. */
import { Stack } from '@mantine/core';
import type { Column } from '../parts/table-frame';
import { UntrustedText } from '../parts/values';

interface Issuer {
  readonly issuer: string;
  readonly trust_domain: string;
  readonly published: boolean;
}

export function issuerColumn<T extends Issuer>(title: string): Column<T> {
  return {
    title,
    text: ({ issuer, trust_domain }) => `${issuer} ${trust_domain}`,
    cell: ({ issuer, trust_domain }) => (
      <Stack gap={0}>
        <UntrustedText value={issuer} />
        <UntrustedText value={trust_domain} />
      </Stack>
    ),
  };
}

/** @param signed what it signs */
export function stateColumn<T extends Issuer>(signed: 'passports' | 'tokens'): Column<T> {
  return {
    title: 'State',
    cell: ({ published }) => (published ? 'published' : `no keys: ${signed} rejected`),
  };
}
