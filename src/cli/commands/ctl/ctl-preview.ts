/** `proofgate ctl preview`: shows which recorded decisions a site file would change. */
import { readInputText } from '../../../process/files/input-files.ts';
import { EXIT_CODES, usageError } from '../../../process/program/errors.ts';
import { lettered, required, type SettingValues, text, toggle } from '../../../process/settings/settings.ts';
import type { ChangedRequests, ChangeGroup, PreviewReport } from '../../../verifier/preview/preview.ts';
import type { ControlApi } from '../../ctl/client/control-api.ts';
import { type CtlResult, ctlCommand } from '../../ctl/ctl-connection.ts';
import type { CliContext } from '../../define/define-command.ts';
import { MAX_SITE_FILE_BYTES } from './ctl-apply.ts';

const MAX_SHOWN_CALLERS = 20;

const SETTINGS = {
  file: required(lettered(text('--file <file>', 'site file, YAML or JSON'), 'f')),
  decisions: required(
    text(
      '--decisions <file>',
      'audit events of the verifiers, one a line, also as .gz; - for standard input',
    ),
  ),
  prune: toggle('--prune', 'as if `apply --prune` followed', false),
};

export const ctlPreviewCommand = ctlCommand({
  name: 'preview',
  summary: 'Show which recorded decisions a site file would change; ends with 6 when there are some',
  settings: SETTINGS,
  examples: [
    'preview -f site.yaml --decisions /var/log/proofgate/audit.jsonl',
    'preview -f site.yaml --decisions - --output json',
  ],
  run: (api, { settings }, context) => previewFile(api, settings, context),
});

async function previewFile(
  api: ControlApi,
  { decisions, file: path, prune }: SettingValues<typeof SETTINGS>,
  { output }: CliContext,
): Promise<CtlResult> {
  const { auditLines } = await import('../../audit/audit-lines.ts');
  const { readSiteFile } = await import('../../ctl/client/declaration.ts');
  const { previewedSites } = await import('../../ctl/previewed-sites.ts');
  const { Preview } = await import('../../../verifier/preview/preview.ts');
  const file = readSiteFile(await readInputText(path, MAX_SITE_FILE_BYTES), path);
  const preview = new Preview(await previewedSites(api, file, prune));
  for await (const line of auditLines([decisions])) {
    if (line === undefined) preview.skip('line_too_long');
    else preview.add(line);
  }
  const report = preview.report();
  const isOfSite = report.judged + report.possibly_allowed.requests > 0;
  if (!isOfSite && Object.keys(report.not_judged).every((why) => NO_EVENTS.has(why))) {
    throw usageError(
      'decisions_missing',
      `${decisions} has no decision of ${file.siteId}: give an audit log of its verifiers`,
    );
  }
  const { newly_denied: denied, possibly_allowed: possible } = report;
  if (denied.requests + possible.requests > 0) output.endWith(EXIT_CODES.changed);
  return { lines: linesOf(report), object: { site_id: file.siteId, ...report } };
}

/** Lines that are no decisions of the site. */
const NO_EVENTS: ReadonlySet<string> = new Set(['not_json', 'not_a_decision', 'line_too_long', 'other_site']);

function linesOf(report: PreviewReport): readonly string[] {
  const { denied_otherwise: otherwise, judged, not_judged: notJudged, unchanged } = report;
  const others = Object.entries(notJudged);
  return [
    `judged: ${judged} decisions, ${unchanged} of them unchanged${otherwise === 0 ? '' : `, ${otherwise} denied for another reason`}`,
    ...groupLines('newly denied', report.newly_denied),
    ...groupLines(
      'possibly allowed: no longer denied for this reason, later steps are unknown',
      report.possibly_allowed,
    ),
    ...(others.length === 0 ? [] : [`could not judge: ${others.reduce((sum, [, count]) => sum + count, 0)}`]),
    ...others.map(([why, count]) => `    ${count}  ${why}`),
  ];
}

function groupLines(
  title: string,
  { callers, other_requests: others, requests }: ChangeGroup,
): readonly string[] {
  if (requests === 0) return [];
  const shown = callers.slice(0, MAX_SHOWN_CALLERS);
  const rest = requests - shown.reduce((sum, caller) => sum + caller.requests, 0);
  const more = callers.length - shown.length;
  const hint = others > 0 ? ', not all counted by name' : ' (--output json lists them)';
  return [
    `${title}: ${requests}`,
    ...shown.map(callerLine),
    ...(rest === 0 ? [] : [`    ${rest}  of ${more} more callers${hint}`]),
  ];
}

function callerLine(caller: ChangedRequests): string {
  const { detail, issuer, reason, requests, route_id: route, subject } = caller;
  const why = reason === null ? '' : `  ${reason}${detail === null ? '' : `/${detail}`}`;
  const who = subject === '' ? 'no caller' : `${subject} of ${issuer}`;
  return `    ${requests}  ${route}${why}  ${who}${caller.caller_verified ? '' : ' (claimed)'}`;
}
