/** Reads the broker's configuration files: YAML or JSON against a closed schema. An error is one line that names the place. */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import { IDENTIFIER_PATTERN } from '../process/http-service/members-contract.ts';
import { TRUST_DOMAIN_PATTERN } from '../protocol/spiffe-id.ts';
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
  // The validator reports a `boolean` fault beside each unknown member.
  const fault = compiled.Errors(value).find(({ keyword }) => keyword !== 'boolean');
  throw new BrokerFileError(fault === undefined ? 'does not match the schema' : faultText(fault));
}

/** Descriptions of the patterns, for messages. */
const PATTERN_WORDS: Readonly<Record<string, string>> = {
  [IDENTIFIER_PATTERN]: 'must be 1 to 512 visible ASCII characters, and neither "." nor ".."',
  [TRUST_DOMAIN_PATTERN]: 'must be a trust domain: lower-case letters, digits, ".", "-" and "_"',
};

function faultText(fault: TLocalizedValidationError): string {
  const steps = fault.instancePath.split('/').slice(1);
  switch (fault.keyword) {
    case 'additionalProperties':
      return `${[...steps, fault.params.additionalProperties[0]].join('.')}: unknown member`;
    case 'required':
      return `${[...steps, fault.params.requiredProperties[0]].join('.')}: missing`;
    case 'pattern':
      return `${steps.join('.')}: ${PATTERN_WORDS[String(fault.params.pattern)] ?? fault.message}`;
    default:
      return `${steps.length === 0 ? 'the file' : `${steps.join('.')}:`} ${fault.message}`;
  }
}

function parseYaml(text: string): unknown {
  try {
    return parseStrictYaml(text);
  } catch (error) {
    if (error instanceof StrictYamlError) throw new BrokerFileError(error.message);
    throw error;
  }
}
