/**
 * `proofgate ctl approve|deny|revoke|detach|raise-floor|suspend|resume|retire|block|unblock|retire-signing-key|rotate-target-token`:
 * an operator's decisions, each one request to Control.
 */
import { MAX_FLOOR_REVISION } from '../../../bundle/format/bundle-limits.ts';
import type { ControlApi } from '../../../client/operator/control-api.ts';
import { blockedSubjectsPath, revisionPath, sitePath } from '../../../client/operator/paths.ts';
import { CliError, usageError } from '../../../program/errors.ts';
import { replaceFile } from '../../../program/output-files.ts';
import {
  duration,
  formatDurationMs,
  integer,
  optional,
  required,
  text,
  toggle,
  withDefault,
} from '../../../program/settings.ts';
import { isJsonObject, type JsonObject } from '../../../protocol/strict-json.ts';
import { ctlCommand } from '../../ctl/ctl-connection.ts';
import type { CommandLineNode } from '../../define-command.ts';

const REASON = { reason: optional(text('--reason <text>', 'for the audit trail')) };

function reasonOf(reason: string | undefined): object {
  return reason === undefined ? {} : { reason };
}

const approve = ctlCommand({
  name: 'approve',
  summary: 'Approve an enrollment that waits: its key is issued',
  positionals: { enrollment: 'its ID' },
  settings: {},
  examples: ['approve enr_06cz…'],
  run: (api, { positionals: { enrollment } }) => decide(api, enrollment, 'approve', undefined),
});

const deny = ctlCommand({
  name: 'deny',
  summary: 'Deny an enrollment that waits',
  positionals: { enrollment: 'its ID' },
  settings: REASON,
  examples: ["deny enr_06cz… --reason 'not ours'"],
  run: (api, { positionals: { enrollment }, settings }) =>
    decide(api, enrollment, 'deny', reasonOf(settings.reason)),
});

async function decide(
  api: ControlApi,
  enrollmentId: string,
  verb: 'approve' | 'deny',
  reason: object | undefined,
) {
  const { body } = await api.act(`/v1/enrollments/${encodeURIComponent(enrollmentId)}/${verb}`, reason);
  return { lines: [`${enrollmentId} is ${String(body.state)}`], object: body };
}

const revoke = ctlCommand({
  name: 'revoke',
  summary:
    'Revoke a derived key and every living key ID of its public key, for good; refuse the public key of an expired key',
  positionals: { key: 'key ID' },
  settings: {
    ...REASON,
    blockSubject: toggle('--block-subject', 'also refuse new enrollments of its verified subject', false),
  },
  examples: ["revoke dk_06cz… --reason 'laptop lost'"],
  async run(api, { positionals: { key }, settings: { blockSubject, reason } }) {
    const { body } = await api.act(`/v1/derived-keys/${encodeURIComponent(key)}/revoke`, {
      ...reasonOf(reason),
      ...(blockSubject ? { block_subject: true } : {}),
    });
    const ids = Array.isArray(body.revoked_key_ids) ? body.revoked_key_ids.map(String) : [key];
    const lines = ids.map((id) => `${id} is revoked`);
    if (!ids.includes(key)) lines.unshift(`${key} has expired; its public key is refused from now on`);
    return { lines, object: body };
  },
});

const detach = ctlCommand({
  name: 'detach',
  summary: 'Detach a target that is gone, for good: nothing waits for it any more, and its token ends',
  positionals: { target: 'its ID' },
  settings: {},
  examples: ['detach tgt_06cz…'],
  async run(api, { positionals: { target } }) {
    const { body } = await api.act(`/v1/targets/${encodeURIComponent(target)}/detach`);
    return { lines: [`${target} is ${String(body.state)}`], object: body };
  },
});

const ABOVE = { min: 1, max: MAX_FLOOR_REVISION };

const raiseFloor = ctlCommand({
  name: 'raise-floor',
  summary: 'Raise the revision of a site, for good, so that targets that are ahead accept its bundles again',
  positionals: { site: 'Auth Site' },
  settings: {
    above: required(integer('--above <revision>', 'the highest revision of your verifiers', ABOVE)),
  },
  examples: ['raise-floor shop-eu-1 --above 2500000'],
  async run(api, { positionals: { site }, settings: { above } }) {
    const { body } = await api.act(`${sitePath(site)}/raise-floor`, { above_revision: above });
    return { lines: [`${site} is published above revision ${above}`], object: body };
  },
});

/** @param from states of revisions to which the action applies */
function sourceCommand(
  verb: 'suspend' | 'resume' | 'retire',
  summary: string,
  from: readonly string[],
): CommandLineNode {
  return ctlCommand({
    name: verb,
    summary,
    positionals: { source: 'its ID' },
    settings: {},
    examples: [`${verb} tas_06cz…`],
    async run(api, { positionals: { source } }) {
      const revision = await revisionIn(api, source, from);
      const { body } = await api.act(`${revisionPath(source, revision)}/${verb}`);
      return { lines: [`${source} revision ${revision} is ${String(body.state)}`], object: body };
    },
  });
}

/** The newest revision in one of the states. */
async function revisionIn(api: ControlApi, sourceId: string, states: readonly string[]): Promise<number> {
  const { body } = await api.get(`/v1/sources/${encodeURIComponent(sourceId)}`);
  const revisions = (Array.isArray(body.revisions) ? body.revisions : []).filter(isJsonObject);
  const fitting = revisions.filter(({ state }: JsonObject) => states.includes(String(state)));
  if (fitting.length > 0) return Math.max(...fitting.map(({ revision }) => Number(revision)));
  const all = revisions.map(({ revision, state }) => `${String(revision)}: ${String(state)}`).join(', ');
  throw new CliError(
    'refused',
    'source_state_conflict',
    `no revision of ${sourceId} is ${states.join(' or ')} (${all})`,
  );
}

/** A workload, which need not have a key. */
const SUBJECT = {
  site: required(text('--site <site>', 'Auth Site')),
  issuer: required(text('--issuer <url>', "the workload token's iss, exactly")),
  subject: required(text('--subject <subject>', "the workload token's sub, exactly")),
};
const SUBJECT_EXAMPLE =
  '--site shop-eu-1 --issuer https://oidc.example/id/4F2A --subject system:serviceaccount:prod:billing';

const block = ctlCommand({
  name: 'block',
  summary: 'Refuse new enrollments of a subject; its keys stay valid until they expire or are revoked',
  settings: SUBJECT,
  examples: [`block ${SUBJECT_EXAMPLE}`],
  async run(api, { settings: { site, issuer, subject } }) {
    const { body } = await api.create(blockedSubjectsPath(site), { issuer, subject });
    return { lines: [`${subject} is blocked`], object: body };
  },
});

const unblock = ctlCommand({
  name: 'unblock',
  summary: 'Let a blocked subject enroll again',
  settings: SUBJECT,
  examples: [`unblock ${SUBJECT_EXAMPLE}`],
  async run(api, { settings: { site, issuer, subject } }) {
    const query = new URLSearchParams({ issuer, subject });
    await api.remove(`${blockedSubjectsPath(site)}?${query}`, undefined);
    return { lines: [`${subject} may enroll again`], object: { site_id: site, issuer, subject } };
  },
});

/** The longest time that a rotation may set. */
const MAX_RETIRING_MS = 90 * 24 * 3_600_000;

const retireSigningKey = ctlCommand({
  name: 'retire-signing-key',
  summary: 'End a retiring signing key now, or sooner than planned; verifiers must pin the new key before',
  positionals: { site: 'Auth Site', key: 'ID of the signing key' },
  settings: {
    inMs: withDefault(
      duration('--in <duration>', 'how long the key still signs, whole seconds', {
        minMs: 0,
        maxMs: MAX_RETIRING_MS,
      }),
      '0s',
    ),
  },
  examples: ['retire-signing-key shop-eu-1 sk_06cz…'],
  async run(api, { positionals: { site, key }, settings: { inMs } }, { output }) {
    const path = `${sitePath(site)}/signing-keys/${encodeURIComponent(key)}/retire`;
    const { body } = await api.act(path, { retiring_seconds: wholeSeconds(inMs) });
    const warning = { code: 'signing_key_ends', message: keyEndWarning(key, inMs) };
    output.note(warning.code, `warning: ${warning.message}`);
    const end = inMs === 0 ? 'is retired' : `signs for ${formatDurationMs(inMs)} more`;
    return { lines: [`${key} ${end}`], object: { ...body, warnings: [warning] } };
  },
});

function wholeSeconds(inMs: number): number {
  if (inMs % 1000 !== 0) throw usageError('bad_duration', '--in must be whole seconds');
  return inMs / 1000;
}

function keyEndWarning(key: string, inMs: number): string {
  const when = inMs === 0 ? 'from now on' : `after ${formatDurationMs(inMs)}`;
  return (
    `${when} verifiers that pin ${key} and not the key after it refuse what Control publishes, and deny once what they have is too old;` +
    ' give them the keys of `proofgate ctl signing-keys` and restart them'
  );
}

const rotateTargetToken = ctlCommand({
  name: 'rotate-target-token',
  summary: 'Give a target another token; the one before works on for a while',
  positionals: { target: 'its ID' },
  settings: {
    out: required(text('--out <file>', 'where the new token is written, mode 0600; replaces the file')),
  },
  examples: ['rotate-target-token tgt_06cz… --out gateway.token'],
  async run(api, { positionals: { target }, settings: { out } }) {
    const { body } = await api.act(`/v1/targets/${encodeURIComponent(target)}/rotate-token`, {});
    const { token, ...shown } = body;
    if (typeof token !== 'string') {
      throw new CliError('unreachable', 'answer_unexpected', 'Control answered without a token');
    }
    await replaceFile({ path: out, content: `${token}\n`, mode: 0o600 });
    return { lines: [`token of ${target} is in ${out}`], object: shown };
  },
});

/** In the order of the help. */
export const ctlDecisionCommands: readonly CommandLineNode[] = [
  approve,
  deny,
  revoke,
  detach,
  raiseFloor,
  sourceCommand('suspend', 'Suspend a source: no new enrollments until it is resumed', ['active']),
  sourceCommand('resume', 'Resume a suspended source', ['suspended']),
  sourceCommand('retire', 'Retire a source for good: no new enrollments', [
    'active',
    'suspended',
    'publishing',
    'activating',
  ]),
  block,
  unblock,
];
export const ctlSecretCommands: readonly CommandLineNode[] = [retireSigningKey, rotateTargetToken];
