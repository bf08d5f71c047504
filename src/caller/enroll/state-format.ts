/** Parses and formats the state file, which is JSON. Source: docs/operate/cli.md "The state file". */
import { isBase64urlOf32Bytes } from '../../protocol/base64url.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';
import { ObjectReader, oneOf, textThat } from '../../protocol/object-reader.ts';
import { formatMoment, isMoment } from '../../protocol/rfc3339.ts';
import { parseStrictJson, StrictJsonError } from '../../protocol/strict-json.ts';
import { isChallengeId, isEnrollmentId } from './control-answers.ts';
import { EnrollError } from './enroll-error.ts';
import type { Attempt, EnrolledKeyRecord, EnrollmentState, EnrollmentTarget } from './enrollment-state.ts';
import { formatIssuedKey, readIssuedKey } from './enrollment-state.ts';

const STATE_FORMAT = 'proofgate.enrollment-state/v1';

/** Ends with a line break. */
export function formatEnrollmentState(state: EnrollmentState): string {
  const { keyThumbprint, target, enrolled, attempt, mayBeIssued } = state;
  const document = {
    format: STATE_FORMAT,
    key_thumbprint: keyThumbprint,
    ...formatTarget(target),
    ...(enrolled === undefined ? {} : { enrolled: formatEnrolled(enrolled) }),
    ...(attempt === undefined ? {} : { attempt: formatAttempt(attempt) }),
    ...(mayBeIssued === undefined ? {} : { may_be_issued: mayBeIssued }),
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function formatTarget({ controlUrl, policy }: EnrollmentTarget) {
  return { control_url: controlUrl, policy };
}

function formatEnrolled({ target, enrollmentId, createdAtMs, key }: EnrolledKeyRecord) {
  return {
    ...formatTarget(target),
    enrollment_id: enrollmentId,
    auth_site: key.coordinates.authSite,
    created_at: formatMoment(createdAtMs),
    ...formatIssuedKey(key),
  };
}

function formatAttempt(attempt: Attempt) {
  return attempt.kind === 'submitting'
    ? {
        kind: attempt.kind,
        challenge_id: attempt.challengeId,
        auth_site: attempt.authSite,
        sealed_challenge: attempt.sealedChallenge,
      }
    : {
        kind: attempt.kind,
        enrollment_id: attempt.enrollmentId,
        auth_site: attempt.authSite,
        created_at: formatMoment(attempt.createdAtMs),
      };
}

/**
 * Ignores unknown members.
 * @param fileName for error messages
 * @throws EnrollError `enrollment_state_invalid`, naming file and place
 */
export function parseEnrollmentState(text: string, fileName: string): EnrollmentState {
  const root = new ObjectReader(parseJson(text, fileName), '', (place, problem) =>
    stateInvalid(fileName, `${place} ${problem}`),
  );
  root.required('format', (value) => value === STATE_FORMAT, STATE_FORMAT);
  const enrolled = root.optionalObject('enrolled');
  const attempt = root.optionalObject('attempt');
  return {
    keyThumbprint: root.required('key_thumbprint', textThat(isBase64urlOf32Bytes), 'a thumbprint'),
    target: readTarget(root),
    enrolled: enrolled === undefined ? undefined : readEnrolled(enrolled),
    attempt: attempt === undefined ? undefined : readAttempt(attempt),
    mayBeIssued: root.optional('may_be_issued', (value) => value === true, 'true'),
  };
}

function parseJson(text: string, fileName: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    if (error instanceof StrictJsonError) throw stateInvalid(fileName, error.message);
    throw error;
  }
}

function stateInvalid(fileName: string, problem: string): EnrollError {
  return new EnrollError(
    'usage',
    'enrollment_state_invalid',
    `${fileName}: ${problem.trim()}; delete it to enroll anew`,
  );
}

function readTarget(reader: ObjectReader): EnrollmentTarget {
  return {
    controlUrl: reader.required('control_url', isIdentifier, 'a URL'),
    policy: reader.required('policy', isIdentifier, 'a policy reference'),
  };
}

function readEnrolled(reader: ObjectReader): EnrolledKeyRecord {
  const authSite = reader.required('auth_site', isIdentifier, 'an identifier');
  return {
    target: readTarget(reader),
    enrollmentId: reader.required('enrollment_id', isEnrollmentId, 'an identifier'),
    createdAtMs: Date.parse(reader.required('created_at', isMoment, 'a moment')),
    key: readIssuedKey(reader, authSite),
  };
}

function readAttempt(reader: ObjectReader): Attempt {
  const kind = reader.required(
    'kind',
    oneOf(['submitting', 'submitted'] as const),
    'submitting or submitted',
  );
  const authSite = reader.required('auth_site', isIdentifier, 'an identifier');
  return kind === 'submitting'
    ? {
        kind,
        authSite,
        challengeId: reader.required('challenge_id', isChallengeId, 'an identifier'),
        sealedChallenge: reader.required('sealed_challenge', isIdentifier, 'a sealed challenge'),
      }
    : {
        kind,
        authSite,
        enrollmentId: reader.required('enrollment_id', isEnrollmentId, 'an identifier'),
        createdAtMs: Date.parse(reader.required('created_at', isMoment, 'a moment')),
      };
}
