/** Gives something that has only a name for people another one. */
import type { Schemas } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { Edit } from './edit';

interface RenameProps {
  readonly label?: string;
  /** As `ctl rename` names it. */
  readonly kind: 'environment' | 'fleet' | 'target';
  readonly id: string;
  readonly read: () => Promise<{ readonly body: Schemas['Named']; readonly etag: string }>;
  readonly save: (body: Schemas['Named'], etag: string) => Promise<unknown>;
}

export function Rename({ label = 'Rename', kind, id, read, save }: RenameProps) {
  return (
    <Edit
      label={label}
      consequence="The name is for people, and for site files: change it there, too. Nothing else changes."
      command={(_, { name = '' }) => ['rename', kind, id, nameWord(name)]}
      fields={[{ name: 'name', label: 'Name' }]}
      load={async () => {
        const { body, etag } = await read();
        return { draft: { name: body.name }, etag };
      }}
      save={({ name = '' }, etag) => save({ name: String(name) }, etag)}
    />
  );
}
