/** `proofgate enroll`: enrolls a workload's key, so that it becomes a derived key. */

import {
  DEFAULT_REFRESH_SKEW_MS,
  ENROLL_SETTINGS,
  type EnrollPlan,
  type EnrollValues,
  planOf,
} from '../../caller/enroll/enroll-settings.ts';
import { type EnrolledKeyRecord, maxRefreshSkewMs } from '../../caller/enroll/enrollment-state.ts';
import type { Output } from '../../process/program/output.ts';
import { formatDurationMs } from '../../process/settings/settings.ts';
import { formatMoment } from '../../protocol/rfc3339.ts';
import { type CliContext, command } from '../define/define-command.ts';

export const enrollCommand = command({
  name: 'enroll',
  summary: "Enroll a key with the workload's token",
  settings: ENROLL_SETTINGS,
  examples: [
    'proofgate enroll --control-url https://control.shop.example --policy epr_7f3c9a --private-key-out /run/proofgate/key.pem',
    'proofgate enroll --control-url https://control.shop.example --policy epr_7f3c9a --private-key-file key.pem --proof-file token --no-wait-for-activation',
  ],
  run: ({ settings }, context) => runEnroll(settings, context),
});

async function runEnroll(settings: EnrollValues, { output }: CliContext): Promise<void> {
  const plan = planOf(settings);
  const record = await enrollByPlan(plan, settings.controlCaFile, output);
  noteShorterSkew(output, plan.refreshSkewMs, record);
  report(output, record);
}

async function enrollByPlan(
  plan: EnrollPlan,
  caFile: string | undefined,
  output: Output,
): Promise<EnrolledKeyRecord> {
  const { parseControlUrl } = await import('../../caller/enroll/control-url.ts');
  const { readCaFile } = await import('../../process/files/input-files.ts');
  const { enrollWithFiles } = await import('../../caller/enroll/enroll-with-files.ts');
  const { EnrollProgress } = await import('../enroll/enroll-progress.ts');
  const { untilStopped } = await import('../../process/program/stop-signal.ts');
  const url = parseControlUrl(plan.target.controlUrl);
  const caPem = await readCaFile(caFile);
  const progress = new EnrollProgress(output);
  const target = { ...plan.target, controlUrl: url.text };
  const { record } = await untilStopped((stop) =>
    enrollWithFiles(
      { ...plan, target },
      { connection: { url, caPem }, stop, report: (event) => progress.report(event) },
    ),
  );
  return record;
}

/** Reports only a skew that the caller set; the documentation states the limit of the default. */
function noteShorterSkew(output: Output, refreshSkewMs: number, record: EnrolledKeyRecord): void {
  const maxMs = maxRefreshSkewMs(record);
  if (refreshSkewMs <= maxMs || refreshSkewMs === DEFAULT_REFRESH_SKEW_MS) return;
  const [given, used] = [refreshSkewMs, Math.floor(maxMs / 1000) * 1000].map(formatDurationMs);
  output.note(
    'refresh_skew_shortened',
    `--refresh-skew ${given} is longer than 15 % of this key's life: the key is enrolled again ${used} before it expires`,
  );
}

/** The complete output: specification "Command-line tool". */
function report(output: Output, { key }: EnrolledKeyRecord): void {
  const expiresAt = formatMoment(key.expiresAtMs);
  output.result(
    [
      `status       ${key.status}`,
      `key id       ${key.keyId}`,
      `fingerprint  ${key.fingerprint}`,
      `expires at   ${expiresAt}`,
    ],
    { status: key.status, key_id: key.keyId, fingerprint: key.fingerprint, expires_at: expiresAt },
  );
}
