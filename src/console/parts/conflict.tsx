/** Somebody else changed what is being edited: what it was, what it is now, and what the operator wants. */
import { Alert, Table } from '@mantine/core';
import type { Field, Values } from './fields';
import { TableHead } from './table-frame';
import { UntrustedText } from './values';

interface ConflictProps {
  readonly fields: readonly Pick<Field, 'name' | 'label'>[];
  /** When the editing began. */
  readonly before: Values;
  readonly current: Values;
  readonly yours: Values;
}

export function Conflict({ fields, before, current, yours }: ConflictProps) {
  const concerned = fields.filter(
    ({ name }) => before[name] !== current[name] || before[name] !== yours[name],
  );
  return (
    <Alert color="yellow" title="Somebody else changed it meanwhile">
      What you changed is applied to the new version; the rest stays as it is now.
      <Table mt="xs">
        <TableHead titles={['Field', 'Now', 'Yours']} />
        <Table.Tbody>
          {concerned.map(({ name, label }) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{label}</Table.Th>
              <Table.Td>
                <UntrustedText value={current[name] ?? ''} />
              </Table.Td>
              <Table.Td>
                {before[name] === yours[name] ? 'not changed' : <UntrustedText value={yours[name] ?? ''} />}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Alert>
  );
}
