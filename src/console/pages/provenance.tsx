/** What a workload's token says of where it runs. */
import { Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import type { Schemas } from '../api/client';
import { capital } from '../api/visible';
import { Facts } from '../parts/page';
import { UntrustedText } from '../parts/values';
import { provenanceName } from './decide';

type Provenance = Schemas['Enrollment']['provenance'];

const UID = /_uid$/;

/** Rows without the opaque identifiers. */
export function provenanceRows(provenance: Provenance) {
  return rowsOf(Object.entries(provenance).filter(([name]) => !UID.test(name)));
}

/** The opaque identifiers, folded on a telephone. */
export function Uids({ provenance }: { readonly provenance: Provenance }) {
  const isWide = useMediaQuery('(min-width: 48em)', undefined, { getInitialValueInEffect: false });
  const uids = Object.entries(provenance).filter(([name]) => UID.test(name));
  if (uids.length === 0) return null;
  return (
    <details open={isWide}>
      <Text component="summary" size="sm">
        UIDs
      </Text>
      <Facts rows={rowsOf(uids)} />
    </details>
  );
}

function rowsOf(facts: readonly (readonly [name: string, value: string])[]) {
  return facts.map(
    ([name, value]) => [capital(provenanceName(name)), <UntrustedText key={name} value={value} />] as const,
  );
}
