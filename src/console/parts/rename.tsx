/** Renames a resource that has only a display name. */
import type { Schemas } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { Edit } from './edit';

interface RenameProps {
  readonly label?: string;
  /** Kind of the resource, as in `ctl rename`. */
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
