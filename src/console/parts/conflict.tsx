/** Shows a conflict with somebody else's change: the former values, the current ones, and the operator's. */
import { Alert, Table } from '@mantine/core';
import { visibleJson } from '../api/visible';
import type { Field, Values } from './fields';
import { TableHead } from './table-frame';
import { UntrustedText } from './values';

interface ConflictProps {
  readonly labels: readonly Pick<Field, 'name' | 'label'>[];
  /** The resource when editing began. */
  readonly before: object;
  readonly current: object;
  readonly yours: object;
}

export function Conflict({ labels, ...versions }: ConflictProps) {
  const before = textsOf(versions.before);
  const current = textsOf(versions.current);
  const yours = textsOf(versions.yours);
  const concerned = Object.keys(yours).filter(
    (name) => before[name] !== current[name] || before[name] !== yours[name],
  );
  return (
    <Alert color="yellow" title="Somebody else changed it meanwhile">
      What you changed is applied to the new version; the rest stays as it is now.
      <Table mt="xs">
        <TableHead titles={['Field', 'Now', 'Yours']} />
        <Table.Tbody>
          {concerned.map((name) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">
                {labels.find((each) => each.name === name)?.label ?? name.replaceAll('_', ' ')}
              </Table.Th>
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

/** Members as texts, for display and comparison. */
export function textsOf(draft: object): Values {
  const texts = Object.entries(draft).map(([name, value]) => {
    return [name, typeof value === 'string' ? value : visibleJson(value ?? '')] as const;
  });
  return Object.fromEntries(texts);
}
