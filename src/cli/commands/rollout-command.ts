/** `proofgate rollout status`: whether a route's callers are ready for it to be enforced. Source: docs/operate/observe.md. */

import { visibleText } from '../../process/program/visible-text.ts';
import { requiredList, type SettingValues, text } from '../../process/settings/settings.ts';
import { type CliContext, command, group } from '../define/define-command.ts';

const STATUS_SETTINGS = {
  auditFiles: requiredList(
    text('--audit-file <file>', 'audit file of a verifier, also a rotated one (.gz); - is standard input'),
  ),
};

const statusCommand = command({
  name: 'status',
  summary: 'Show verified and other callers by route, from audit files',
  positionals: { 'route?': 'only this route' },
  settings: STATUS_SETTINGS,
  examples: [
    'proofgate rollout status --audit-file /var/log/proofgate/audit.jsonl',
    'proofgate rollout status orders-read --audit-file audit.jsonl.1.gz --audit-file audit.jsonl --output json',
  ],
  run: ({ positionals, settings }, context) => showStatus(positionals.route, settings, context),
});

async function showStatus(
  route: string | undefined,
  { auditFiles }: SettingValues<typeof STATUS_SETTINGS>,
  { output }: CliContext,
): Promise<void> {
  const { auditLines } = await import('../audit/audit-lines.ts');
  const { Rollout, rolloutLines } = await import('../rollout/rollout-report.ts');
  const rollout = new Rollout(route);
  for await (const line of auditLines(auditFiles)) rollout.add(line);
  const report = rollout.report();
  output.result(rolloutLines(report).map(visibleText), { ...report });
}

export const rolloutCommand = group('rollout', 'See whether callers are ready for enforcement', [
  statusCommand,
]);
