import { establishMasterKeys } from '../../../src/control/secrets/installation-key.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';

/** Whether a Control with this key file starts on the database. */
export async function starts(store: ControlStore, ...lines: readonly string[]): Promise<string> {
  const file = { read: async () => lines.join('\n'), create: async () => false, remove: async () => {} };
  return establishMasterKeys(store, file).then(
    () => 'starts',
    (error: { readonly code: string }) => error.code,
  );
}
