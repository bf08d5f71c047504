/** `proofgate ctl block|unblock`: blocks new enrollments of a workload, which need not have a key. */
import { blockedSubjectsPath } from '../../../client/operator/paths.ts';
import { required, text } from '../../../program/settings.ts';
import { CTL_SETTINGS, withControl } from '../../ctl/ctl-connection.ts';
import { type CliContext, defineCommand, type ProofgateCommand } from '../../define-command.ts';

const SETTINGS = {
  ...CTL_SETTINGS,
  site: required(text('--site <site>', 'Auth Site')),
  issuer: required(text('--issuer <url>', "the workload token's iss, exactly")),
  subject: required(text('--subject <subject>', "the workload token's sub, exactly")),
};

export function registerCtlBlock(parent: ProofgateCommand, context: CliContext): void {
  const { output } = context;
  defineCommand(parent, context, {
    name: 'block',
    summary: 'Refuse new enrollments of a subject; its keys stay valid until they expire or are revoked',
    settings: SETTINGS,
    examples: [exampleOf('block')],
    run: ({ settings }) =>
      withControl(settings, context, async (api) => {
        const { site, issuer, subject } = settings;
        const { body } = await api.create(blockedSubjectsPath(site), { issuer, subject });
        output.result([`${subject} is blocked`], body);
      }),
  });
  defineCommand(parent, context, {
    name: 'unblock',
    summary: 'Let a blocked subject enroll again',
    settings: SETTINGS,
    examples: [exampleOf('unblock')],
    run: ({ settings }) =>
      withControl(settings, context, async (api) => {
        const { site, issuer, subject } = settings;
        await api.remove(
          `${blockedSubjectsPath(site)}?${new URLSearchParams({ issuer, subject })}`,
          undefined,
        );
        output.result([`${subject} may enroll again`], { site_id: site, issuer, subject });
      }),
  });
}

function exampleOf(verb: string): string {
  const subject = '--issuer https://oidc.example/id/4F2A --subject system:serviceaccount:prod:billing';
  return `proofgate ctl ${verb} --site shop-eu-1 ${subject} --control-url https://control.example --token-file token`;
}
