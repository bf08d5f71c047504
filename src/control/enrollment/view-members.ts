/** Members that views of stored records share. */
import type { RowOf } from '../store/repositories/records.ts';

/** RFC 3339, UTC. */
export function moment(ms: number): string {
  return new Date(ms).toISOString();
}

export function versionMembers(
  row: Pick<RowOf<'enrollmentPolicy'>, 'version' | 'createdAtMs' | 'updatedAtMs'>,
): { version: number; created_at: string; updated_at: string } {
  return {
    version: row.version,
    created_at: moment(row.createdAtMs),
    updated_at: moment(row.updatedAtMs),
  };
}
