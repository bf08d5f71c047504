/** Reads the broker's configuration files: YAML or JSON against a closed schema. An error is one line that names the place. */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { parseStrictYaml, StrictYamlError } from '../protocol/strict-yaml.ts';

/** The message is one line, without the file's name. */
export class BrokerFileError extends Error {
  override readonly name = 'BrokerFileError';
}

/** @throws BrokerFileError */
export function readConfiguration<S extends TSchema>(text: string, schema: S): Static<S> {
  const value = parseYaml(text);
  const compiled = Compile(schema);
  if (compiled.Check(value)) return value;
  const [fault] = compiled.Errors(value);
  throw new BrokerFileError(
    fault === undefined ? 'does not match the schema' : placeOf(fault.instancePath) + fault.message,
  );
}

function placeOf(instancePath: string): string {
  return instancePath === '' ? '' : `${instancePath.slice(1).replaceAll('/', '.')}: `;
}

function parseYaml(text: string): unknown {
  try {
    return parseStrictYaml(text);
  } catch (error) {
    if (error instanceof StrictYamlError) throw new BrokerFileError(error.message);
    throw error;
  }
}
