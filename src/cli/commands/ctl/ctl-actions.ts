/** `proofgate ctl approve|deny|revoke|detach|raise-floor|suspend|resume|retire`: an operator's decisions. */
import { MAX_FLOOR_REVISION } from '../../../bundle/format/distribution-limits.ts';
import type { ControlApi } from '../../../client/operator/control-api.ts';
import { revisionPath, sitePath } from '../../../client/operator/paths.ts';
import { CliError } from '../../../program/errors.ts';
import { integer, optional, required, text, toggle } from '../../../program/settings.ts';
import { isJsonObject, type JsonObject } from '../../../protocol/strict-json.ts';
import { CTL_SETTINGS, withControl } from '../../ctl/ctl-connection.ts';
import { type CliContext, defineCommand, type ProofgateCommand } from '../../define-command.ts';

const REASON = { reason: optional(text('--reason <text>', 'for the audit trail')) };

export function registerCtlActions(parent: ProofgateCommand, context: CliContext): void {
  registerApprove(parent, context);
  registerDeny(parent, context);
  registerRevoke(parent, context);
  registerDetach(parent, context);
  registerRaiseFloor(parent, context);
  registerSourceAction(parent, context, {
    verb: 'suspend',
    summary: 'Suspend a source: no new enrollments until it is resumed',
    from: ['active'],
  });
  registerSourceAction(parent, context, {
    verb: 'resume',
    summary: 'Resume a suspended source',
    from: ['suspended'],
  });
  registerSourceAction(parent, context, {
    verb: 'retire',
    summary: 'Retire a source for good: no new enrollments',
    from: ['active', 'suspended', 'publishing', 'activating'],
  });
}

const FROM_CONTROL = '--control-url https://control.example --token-file token';

function registerApprove(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'approve',
    summary: 'Approve an enrollment that waits: its key is issued',
    positionals: { enrollment: 'its ID' },
    settings: CTL_SETTINGS,
    examples: [`proofgate ctl approve enr_06cz… ${FROM_CONTROL}`],
    run: ({ settings, positionals }) =>
      withControl(settings, context, (api) =>
        decide(api, positionals.enrollment, 'approve', undefined, context),
      ),
  });
}

function registerDeny(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'deny',
    summary: 'Deny an enrollment that waits',
    positionals: { enrollment: 'its ID' },
    settings: { ...CTL_SETTINGS, ...REASON },
    examples: [`proofgate ctl deny enr_06cz… --reason 'not ours' ${FROM_CONTROL}`],
    run: ({ settings, positionals }) =>
      withControl(settings, context, (api) =>
        decide(api, positionals.enrollment, 'deny', reasonOf(settings.reason), context),
      ),
  });
}

async function decide(
  api: ControlApi,
  enrollmentId: string,
  verb: 'approve' | 'deny',
  reason: object | undefined,
  { output }: CliContext,
): Promise<void> {
  const { body } = await api.act(`/v1/enrollments/${encodeURIComponent(enrollmentId)}/${verb}`, reason);
  output.result([`${enrollmentId} is ${String(body.state)}`], body);
}

function reasonOf(reason: string | undefined): object {
  return reason === undefined ? {} : { reason };
}

function registerRevoke(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'revoke',
    summary:
      'Revoke a derived key and every living key ID of its public key, for good; refuse the public key of an expired key',
    positionals: { key: 'key ID' },
    settings: {
      ...CTL_SETTINGS,
      ...REASON,
      blockSubject: toggle('--block-subject', 'also refuse new enrollments of its verified subject', false),
    },
    examples: [`proofgate ctl revoke dk_06cz… --reason 'laptop lost' ${FROM_CONTROL}`],
    run: ({ settings, positionals }) =>
      withControl(settings, context, async (api) => {
        const { body } = await api.act(`/v1/derived-keys/${encodeURIComponent(positionals.key)}/revoke`, {
          ...reasonOf(settings.reason),
          ...(settings.blockSubject ? { block_subject: true } : {}),
        });
        const ids = Array.isArray(body.revoked_key_ids)
          ? body.revoked_key_ids.map(String)
          : [positionals.key];
        const lines = ids.map((id) => `${id} is revoked`);
        if (!ids.includes(positionals.key)) {
          lines.unshift(`${positionals.key} has expired; its public key is refused from now on`);
        }
        context.output.result(lines, body);
      }),
  });
}

function registerDetach(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'detach',
    summary: 'Detach a target that is gone, for good: nothing waits for it any more, and its token ends',
    positionals: { target: 'its ID' },
    settings: CTL_SETTINGS,
    examples: [`proofgate ctl detach tgt_06cz… ${FROM_CONTROL}`],
    run: ({ settings, positionals }) =>
      withControl(settings, context, async (api) => {
        const { body } = await api.act(`/v1/targets/${encodeURIComponent(positionals.target)}/detach`);
        context.output.result([`${positionals.target} is ${String(body.state)}`], body);
      }),
  });
}

const ABOVE = { min: 1, max: MAX_FLOOR_REVISION };

function registerRaiseFloor(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'raise-floor',
    summary:
      'Raise the revision of a site, for good, so that targets that are ahead accept its bundles again',
    positionals: { site: 'Auth Site' },
    settings: {
      ...CTL_SETTINGS,
      above: required(integer('--above <revision>', 'the highest revision of your verifiers', ABOVE)),
    },
    examples: [`proofgate ctl raise-floor shop-eu-1 --above 2500000 ${FROM_CONTROL}`],
    run: ({ settings, positionals }) =>
      withControl(settings, context, async (api) => {
        const path = `${sitePath(positionals.site)}/raise-floor`;
        const { body } = await api.act(path, { above_revision: settings.above });
        context.output.result([`${positionals.site} is published above revision ${settings.above}`], body);
      }),
  });
}

interface SourceAction {
  readonly verb: 'suspend' | 'resume' | 'retire';
  readonly summary: string;
  /** States in which a revision can be meant. */
  readonly from: readonly string[];
}

function registerSourceAction(
  parent: ProofgateCommand,
  context: CliContext,
  { verb, summary, from }: SourceAction,
): void {
  defineCommand(parent, context, {
    name: verb,
    summary,
    positionals: { source: 'its ID' },
    settings: CTL_SETTINGS,
    examples: [`proofgate ctl ${verb} tas_06cz… ${FROM_CONTROL}`],
    run: ({ settings, positionals }) =>
      withControl(settings, context, async (api) => {
        const revision = await revisionIn(api, positionals.source, from);
        const { body } = await api.act(`${revisionPath(positionals.source, revision)}/${verb}`);
        context.output.result([`${positionals.source} revision ${revision} is ${String(body.state)}`], body);
      }),
  });
}

/** The newest revision in one of the states. */
async function revisionIn(api: ControlApi, sourceId: string, states: readonly string[]): Promise<number> {
  const { body } = await api.get(`/v1/sources/${encodeURIComponent(sourceId)}`);
  const revisions = (Array.isArray(body.revisions) ? body.revisions : []).filter(isJsonObject);
  const fitting = revisions.filter(({ state }: JsonObject) => states.includes(String(state)));
  const newest = Math.max(...fitting.map(({ revision }) => Number(revision)));
  if (fitting.length === 0) {
    const all = revisions.map(({ revision, state }) => `${String(revision)}: ${String(state)}`).join(', ');
    throw new CliError(
      'refused',
      'source_state_conflict',
      `no revision of ${sourceId} is ${states.join(' or ')} (${all})`,
    );
  }
  return newest;
}
