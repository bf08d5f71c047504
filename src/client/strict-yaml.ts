/**
 * YAML 1.2 (and so JSON) read strictly: one document, no member twice, no alias, no tag that is not known.
 * What a person reads in the file is then all that it says.
 */
import { parseDocument } from 'yaml';

/** Thrown for text that is not such a document; the message is one line and names the place. */
export class StrictYamlError extends Error {
  override readonly name = 'StrictYamlError';
}

/** Plain objects, arrays and scalars. Throws {@link StrictYamlError}. */
export function parseStrictYaml(text: string): unknown {
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    uniqueKeys: true,
    stringKeys: true,
    prettyErrors: false,
  });
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined) {
    throw new StrictYamlError(`line ${lineAt(text, problem.pos[0])}: ${firstLine(problem.message)}`);
  }
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    throw new StrictYamlError(firstLine(error instanceof Error ? error.message : 'not readable'));
  }
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

function firstLine(message: string): string {
  return message.split('\n', 1)[0] ?? '';
}
