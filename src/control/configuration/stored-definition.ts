/** Definitions that the database keeps as JSON text, read again as what their schema says. */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

/** What the database holds is not what was written there. Ours to mend: nobody's request is at fault. */
export class StoredDefinitionError extends Error {
  override readonly name = 'StoredDefinitionError';
}

/** @returns a reader; it throws StoredDefinitionError */
export function storedDefinition<T extends TSchema>(schema: T): (text: string) => Static<T> {
  const compiled = Compile(schema);
  return (text) => {
    const value: unknown = JSON.parse(text);
    if (compiled.Check(value)) return value;
    throw new StoredDefinitionError('a stored definition does not fit its schema');
  };
}
