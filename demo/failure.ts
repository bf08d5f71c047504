/** Formats a failed case: what is wrong, and the last log lines of the processes involved. */
import { readFile } from 'node:fs/promises';
import { waitFor } from '../test/support/wait.ts';
import type { DemoEnvironment } from './environment.ts';
import type { StepResult } from './run-case.ts';

const tailLines = 5;
/** The sidecar writes its decisions in batches. */
const auditTimeoutMs = 2_000;

export async function failureLines(
  demo: DemoEnvironment,
  results: readonly StepResult[],
): Promise<readonly string[]> {
  const failed = results.filter(({ fault }) => fault !== undefined);
  const decisionIds = failed.flatMap(({ decisionId }) => decisionId ?? []);
  const lines = [
    ...results.flatMap(({ fault }, index) => (fault === undefined ? [] : `request ${index + 1}: ${fault}`)),
    ...(await decisionLines(demo, decisionIds)),
    // An answer without a decision is Envoy's own, such as a 503 because the sidecar was silent.
    ...(decisionIds.length < failed.length ? gatewayTail(demo) : []),
    ...tail("sidecar's log", demo.verifier.stderrLines),
    ...tail("broker's log", demo.broker.stderrLines),
    // This log contains every request, so only its warnings are shown.
    ...tail("Control's warnings", demo.control.stderrLines.filter(isWarning)),
  ];
  return lines.map((line) => `    ${line}`);
}

function isWarning(line: string): boolean {
  return !line.startsWith('{"level":"info"');
}

async function decisionLines(
  { files }: DemoEnvironment,
  decisionIds: readonly string[],
): Promise<readonly string[]> {
  if (decisionIds.length === 0) return [];
  const readRecorded = async () => {
    const audit = (await readFile(files.audit, 'utf8')).split('\n');
    const recorded = audit.filter((line) => decisionIds.some((id) => line.includes(id)));
    return recorded.length < decisionIds.length ? undefined : recorded;
  };
  const recorded = await waitFor('the decisions to be recorded', readRecorded, auditTimeoutMs).catch(
    () => [],
  );
  return tail("sidecar's decisions", recorded);
}

function gatewayTail({ envoy }: DemoEnvironment): readonly string[] {
  return [...tail("Envoy's access log", envoy.accessLog), ...tail("Envoy's log", envoy.stderrLines)];
}

function tail(name: string, lines: readonly string[]): readonly string[] {
  const last = lines.slice(-tailLines);
  return last.length === 0 ? [] : [`${name}:`, ...last.map((line) => `  ${line}`)];
}
