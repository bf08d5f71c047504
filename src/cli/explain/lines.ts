/** Formats the report as text: the decision, each step, then advice. */
import type { ClockReading } from './clock.ts';
import type { ExplainReport } from './report.ts';
import { stepLines } from './step-lines.ts';

export function linesOf(report: ExplainReport): readonly string[] {
  const lines = linesWithoutNote(report);
  const isRedacted = report.values === 'veiled' && lines.some((line) => REDACTED.test(line));
  return isRedacted ? [...lines, '', REDACTED_NOTE] : lines;
}

const REDACTED = /\[[0-9]+ characters?\]/;
const REDACTED_NOTE =
  'What the request says and the bundle does not is shown by its length; --show-values shows it, but no credentials';

function linesWithoutNote(report: ExplainReport): readonly string[] {
  return [
    headline(report),
    `explained as of ${report.at}, ${MOMENTS[report.at_source]}`,
    ...bundleLines(report),
    ...recordedLines(report),
    requestLine(report),
    '',
    ...report.steps.flatMap((step) => stepLines(step, report)),
    ...clockLines(report),
    ...endLines(report),
  ];
}

const MOMENTS: { readonly [S in ExplainReport['at_source']]: string } = {
  flag: 'as --at says',
  event: "the audit event's time",
  check_request: "the CheckRequest's time",
  now: "this machine's clock: the capture names no moment, --at does",
};

function headline({ decision }: ExplainReport): string {
  if (decision.outcome === 'denied') {
    return `DENIED  ${named(decision)}, status ${decision.status}`;
  }
  return 'ALLOWED  if the jti has not been used: explain does not look it up';
}

interface Named {
  readonly reason: string | null;
  readonly detail: string | null;
}

export function named({ reason, detail }: Named): string {
  return detail === null ? `${reason}` : `${reason} (${detail})`;
}

function bundleLines({ bundle }: ExplainReport): readonly string[] {
  const trust = bundle.signatures === 'hold' ? 'signatures hold' : 'SIGNATURES WERE NOT CHECKED';
  return [
    `bundle: ${bundle.auth_site}, revision ${bundle.revision}, head ${bundle.head}, ${trust}`,
    ...bundle.warnings.map((warning) => `  warning: ${warning}`),
  ];
}

const COMPARISONS = {
  agrees: 'the same as here',
  beyond: 'decided after all that is explained here',
  differs: 'NOT what is explained here',
} as const;

function recordedLines({ recorded }: ExplainReport): readonly string[] {
  if (recorded === null) return [];
  const outcome = recorded.reason === null ? recorded.outcome : `denied ${named(recorded)}`;
  const lines = [`recorded: ${outcome} at ${recorded.time}, ${COMPARISONS[recorded.comparison]}`];
  if (!recorded.same_bundle) {
    lines.push(`  by another bundle: revision ${recorded.bundle_revision ?? 'unknown'}`);
  }
  if (recorded.same_transcript === false)
    lines.push('  of another proof: the transcript is not the one recorded');
  if (recorded.comparison === 'differs') {
    lines.push('  the bundle, its freshness, a clock or what was captured was otherwise then');
  }
  return lines;
}

function requestLine({ request }: ExplainReport): string {
  const { authority, body, method, scheme, target } = request;
  return `request: ${method} ${scheme}://${authority}${target}, body ${body}`;
}

function clockLines({ at_source, caller, clock }: ExplainReport): readonly string[] {
  if (clock === null) return [];
  const { passport, proof, skew_seconds } = clock;
  // A derived key signs its own passports.
  const issuer = caller?.known_from === 'bundle' ? "the caller's clock" : "the issuer's clock";
  const by = at_source === 'now' || at_source === 'flag' ? 'the moment explained' : "the verifier's clock";
  return [
    '',
    `Clocks, against ${by}; the site allows ${skew_seconds} s`,
    `  passport  ${clockText('passport', passport, issuer, skew_seconds)}`,
    `  proof     ${clockText('proof', proof, "the caller's clock", skew_seconds)}`,
  ];
}

function clockText(what: string, reading: ClockReading, whose: string, skewSeconds: number): string {
  const { age_seconds, ahead_seconds, ends_at, late_seconds, starts_at } = reading;
  const span = `${starts_at} to ${ends_at}`;
  if (ahead_seconds > 0) {
    return (
      `${span}: issued ${ahead_seconds} s in the future: ${whose} is about ${ahead_seconds} s ahead; ` +
      `the site allows ${skewSeconds} s`
    );
  }
  if (late_seconds > 0) {
    return (
      `${span}: issued ${age_seconds} s before, expired for ${late_seconds} s: the ${what} was late or kept, ` +
      `or ${whose} is behind; the site allows ${skewSeconds} s`
    );
  }
  return `${span}: issued ${age_seconds} s before, valid`;
}

function endLines({ hint, recorded, when_made }: ExplainReport): readonly string[] {
  const lines: string[] = [];
  if (when_made !== null) {
    const { at, decision } = when_made;
    const then = decision.outcome === 'denied' ? `denied ${named(decision)}` : 'allowed';
    lines.push('', `At ${at}, when the proof says it was made, by this bundle: ${then}`);
  }
  if (hint !== null) lines.push('', `What to do: ${hint}`);
  else if (recorded?.comparison === 'beyond') lines.push('', `What to do: ${recorded.hint}`);
  return lines;
}
