/**
 * `--deny-file`: callers that get no passport. Their existing passports stay valid until they expire.
 * Source: docs/operate/broker.md "Deny list".
 */
import Type from 'typebox';
import { IDENTIFIER_PATTERN } from '../process/http-service/members-contract.ts';
import { isBase64urlOf32Bytes } from '../protocol/base64url.ts';
import { isCanonicalSubject, isCanonicalSubjectPrefix, SPIFFE_ID_RULE } from '../protocol/spiffe-id.ts';
import { BrokerFileError, readConfiguration } from './broker-files.ts';
import type { DenyList } from './broker-ports.ts';

const list = (item: Type.TString) => Type.Optional(Type.Array(item, { maxItems: 100_000 }));

const DENY_FILE = Type.Object(
  {
    subjects: list(Type.String({ pattern: IDENTIFIER_PATTERN })),
    subject_prefixes: list(Type.String({ pattern: IDENTIFIER_PATTERN })),
    thumbprints: list(Type.String()),
  },
  { additionalProperties: false },
);

/** @throws BrokerFileError for a file that would deny less than its author means */
export function parseDenyList(text: string): DenyList {
  const { subjects = [], subject_prefixes = [], thumbprints = [] } = readConfiguration(text, DENY_FILE);
  check('subjects', subjects, isCanonicalSubject, `must be ${SPIFFE_ID_RULE}, or no SPIFFE ID`);
  check(
    'subject_prefixes',
    subject_prefixes,
    isCanonicalSubjectPrefix,
    'a prefix of SPIFFE IDs must end with /',
  );
  check('thumbprints', thumbprints, isBase64urlOf32Bytes, 'must be an RFC 7638 thumbprint in base64url');
  const [deniedSubjects, deniedThumbprints] = [new Set(subjects), new Set(thumbprints)];
  return {
    deniesSubject: (subject) =>
      deniedSubjects.has(subject) || subject_prefixes.some((prefix) => subject.startsWith(prefix)),
    deniesThumbprint: (thumbprint) => deniedThumbprints.has(thumbprint),
  };
}

function check(
  member: string,
  values: readonly string[],
  accepts: (value: string) => boolean,
  rule: string,
): void {
  const wrong = values.findIndex((value) => !accepts(value));
  if (wrong >= 0) throw new BrokerFileError(`${member}.${wrong}: ${rule}`);
}
