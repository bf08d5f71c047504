/** Formats an enrollment's state for `status`, without secrets. */
import type { Readiness } from '../../caller/enroll/control-answers.ts';
import type { IssuedKey, KeyStatus } from '../../caller/enroll/enrollment-state.ts';
import {
  type EnrolledKeyRecord,
  type EnrollmentState,
  refreshFromMs,
} from '../../caller/enroll/enrollment-state.ts';
import { oneLine } from '../../process/program/errors.ts';
import type { JsonMembers } from '../../process/program/output.ts';
import { formatDurationMs } from '../../process/settings/settings.ts';
import { formatMoment } from '../../protocol/rfc3339.ts';

export interface StatusCircumstances {
  readonly keyFile: string;
  readonly refreshSkewMs: number;
  readonly nowMs: number;
  /** Undefined when Control was not asked or did not answer. */
  readonly readiness: Readiness | undefined;
}

export interface StatusDescription {
  readonly lines: readonly string[];
  readonly object: JsonMembers;
}

export function describeStatus(state: EnrollmentState, around: StatusCircumstances): StatusDescription {
  const { enrolled, attempt } = state;
  const key = enrolled === undefined ? undefined : describeKey(enrolled, around);
  const pendingId = attempt?.kind === 'submitted' ? attempt.enrollmentId : undefined;
  const target = enrolled?.target ?? state.target;
  return {
    lines: [
      ...(key?.lines ?? [line('status', notEnrolled(around.readiness))]),
      ...(attempt === undefined ? [] : [line('under way', pendingId ?? 'submission without an answer')]),
      line('control', target.controlUrl),
      line('policy', target.policy),
      ...readinessLines(around.readiness),
    ],
    object: {
      key_file: around.keyFile,
      fingerprint: state.keyThumbprint,
      control_url: target.controlUrl,
      policy: target.policy,
      derived_key: key?.object ?? null,
      attempt: attempt === undefined ? null : { kind: attempt.kind, enrollment_id: pendingId ?? null },
      readiness: around.readiness === undefined ? null : readinessObject(around.readiness),
    },
  };
}

export function line(name: string, value: string): string {
  return `${name.padEnd(12)} ${value}`;
}

function describeKey(record: EnrolledKeyRecord, around: StatusCircumstances): StatusDescription {
  const { key, enrollmentId } = record;
  const { nowMs } = around;
  const status = statusNow(key, around);
  const refreshMs = refreshFromMs(record, around.refreshSkewMs);
  const isRefreshDue = status !== 'active' || nowMs >= refreshMs;
  const object = {
    status,
    key_id: key.keyId,
    enrollment_id: enrollmentId,
    expires_at: formatMoment(key.expiresAtMs),
    refresh_from: formatMoment(refreshMs),
    refresh_due: isRefreshDue,
    auth_site: key.coordinates.authSite,
    client_id: key.clientId,
    subject: key.coordinates.subject,
    signing_profiles: key.profiles.map(({ name }) => name),
  };
  const lines = [
    line('status', status),
    line('key id', key.keyId),
    line('fingerprint', key.fingerprint),
    line('expires at', `${object.expires_at} (${fromNow(key.expiresAtMs, nowMs)})`),
    line('refresh', isRefreshDue ? 'due' : fromNow(refreshMs, nowMs)),
    line('auth site', object.auth_site),
    line('client', key.clientId),
    line('profiles', object.signing_profiles.join(', ') || 'none: the client has no grant'),
  ];
  return { lines, object };
}

/** Such as `not enrolled yet: pending_approval`, with the state that Control says. */
function notEnrolled(readiness: Readiness | undefined): string {
  const state = readiness?.conditions.find(({ condition }) => condition === 'derived_key')?.state;
  return state === undefined ? 'not enrolled yet' : `not enrolled yet: ${oneLine(state)}`;
}

/** Control's answer takes precedence, because the state file does not contain a revocation. */
function statusNow(key: IssuedKey, { nowMs, readiness }: StatusCircumstances): KeyStatus {
  const state = readiness?.conditions.find(({ condition }) => condition === 'derived_key')?.state;
  if (state === 'revoked') return state;
  return key.status === 'active' && nowMs >= key.expiresAtMs ? 'expired' : key.status;
}

export function fromNow(momentMs: number, nowMs: number): string {
  const seconds = Math.floor(Math.abs(momentMs - nowMs) / 1000);
  const distance = formatDurationMs(seconds * 1000);
  return momentMs > nowMs ? `in ${distance}` : `${distance} ago`;
}

function readinessLines(readiness: Readiness | undefined): readonly string[] {
  if (readiness === undefined) return [];
  const conditions = readiness.conditions.map(({ condition, state, isSatisfied, since, blockedBy }) => {
    const sinceText = since === undefined ? '' : ` since ${since}`;
    const blocked = blockedBy === undefined ? '' : `, blocked by ${oneLine(blockedBy)}`;
    return `  ${condition.padEnd(20)} ${isSatisfied ? 'yes' : 'no '} ${oneLine(state)}${sinceText}${blocked}`;
  });
  return [line('ready', readiness.isReady ? 'yes' : 'no'), ...conditions];
}

function readinessObject({ isReady, conditions }: Readiness): JsonMembers {
  return {
    ready: isReady,
    conditions: conditions.map(({ condition, state, isSatisfied, since, blockedBy }) => ({
      condition,
      state,
      satisfied: isSatisfied,
      since: since ?? null,
      blocked_by: blockedBy ?? null,
    })),
  };
}
