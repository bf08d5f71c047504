/** Formats the report as text: the decision, each step, then advice. */

import { AUTHORIZATION_HEADER } from '../../../protocol/wire-names.ts';
import type { Verdict } from './explain.ts';
import type { ExplainReport } from './report.ts';
import type { ClockReading, Difference } from './report-members.ts';

/** The text output of `explain`. */
export function linesOf(report: ExplainReport): readonly string[] {
  const lines = linesWithoutNote(report);
  const isRedacted = report.values === 'redacted' && lines.some((line) => REDACTED.test(line));
  return isRedacted ? [...lines, '', REDACTED_NOTE] : lines;
}

const REDACTED = /\[[0-9]+ characters?\]/;
const REDACTED_NOTE =
  'What the request says and the bundle does not is shown by its length; --show-values shows it, but no credentials';

/** Without the note that `--show-values` shows more. */
export function linesWithoutNote(report: ExplainReport): readonly string[] {
  return [
    headline(report),
    `explained as of ${report.at}, ${MOMENTS[report.at_source]}`,
    ...bundleLines(report),
    ...recordedLines(report),
    ...requestLines(report),
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

function headline({ decision, request }: ExplainReport): string {
  if (decision.outcome === 'denied') {
    return `DENIED  ${named(decision)}, status ${decision.status}`;
  }
  if (request === null) return 'ALLOWED  as the audit event says';
  return 'ALLOWED  if the jti has not been used: explain does not look it up';
}

interface Named {
  readonly reason: string | null;
  readonly detail: string | null;
}

function named({ reason, detail }: Named): string {
  return detail === null ? `${reason}` : `${reason} (${detail})`;
}

function bundleLines({ bundle }: ExplainReport): readonly string[] {
  if (bundle === null) return [];
  const trust = bundle.signatures === 'valid' ? 'signatures valid' : 'SIGNATURES WERE NOT CHECKED';
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
  const outcome = recorded.reason === null ? recorded.outcome : `${recorded.outcome} ${named(recorded)}`;
  const comparison =
    recorded.comparison === null
      ? `decision ID ${recorded.decision_id ?? 'unknown'}`
      : COMPARISONS[recorded.comparison];
  const lines = [`recorded: ${outcome} at ${recorded.time}, ${comparison}`];
  if (recorded.same_bundle === false) {
    lines.push(`  by another bundle: revision ${recorded.bundle_revision ?? 'unknown'}`);
  }
  if (recorded.same_transcript === false)
    lines.push('  of another proof: the transcript is not the one recorded');
  if (recorded.comparison === 'differs') {
    lines.push('  the bundle, its freshness, a clock or what was captured was otherwise then');
  }
  return lines;
}

function requestLines({ request }: ExplainReport): readonly string[] {
  if (request === null) return [];
  const { as_signed, authority, body, method, scheme, target } = request;
  const line = `${method} ${scheme}://${authority}${target}, body ${body}`;
  return [as_signed ? `request, as it was signed: ${line}` : `request: ${line}`];
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
    ...(passport === null ? [] : [`  passport  ${clockText('passport', passport, issuer, skew_seconds)}`]),
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

function endLines({ hint, needs, recorded, when_made }: ExplainReport): readonly string[] {
  const lines: string[] = [];
  if (when_made !== null) {
    const { at, decision } = when_made;
    const then = decision.outcome === 'denied' ? `denied ${named(decision)}` : 'allowed';
    lines.push('', `At ${at}, when the proof says it was made, by this bundle: ${then}`);
  }
  if (hint !== null) lines.push('', `What to do: ${hint}`);
  else if (recorded?.comparison === 'beyond') lines.push('', `What to do: ${recorded.hint}`);
  if (needs.length > 0)
    lines.push('', 'The event alone does not say more. Give:', ...needs.map((need) => `  ${need}`));
  return lines;
}

/** Formats one step of the report as text: its verdict, then its inputs. */

type Step = ExplainReport['steps'][number];

const VERDICTS: { readonly [V in Verdict]: string } = {
  passed: 'passed',
  failed: 'FAILED',
  would_pass: 'would pass',
  would_fail: 'would also fail',
  not_reached: 'not reached',
  not_checked: 'not checked',
};

function stepLines(step: Step, report: ExplainReport): readonly string[] {
  const { detail, reason } = step;
  const fault = reason === undefined ? '' : `: ${detail == null ? reason : `${reason} (${detail})`}`;
  const head = `${step.step}  ${step.name}: ${VERDICTS[step.verdict]}${fault}`;
  return [head, ...detailsOf(step, report).map((line) => `     ${line}`)];
}

function detailsOf({ step, verdict }: Step, report: ExplainReport): readonly string[] {
  switch (step) {
    case 1:
      return [...routeLines(report), ...credentialLines(report)];
    case 2:
      return [...callerLines(report), ...ruleLines(report)];
    case 3:
      return freshnessLines(report);
    case 4:
      return attributeLines(report);
    case 5:
      return [...proofLines(report), ...transcriptLines(report)];
    case 6:
      return verdict === 'not_checked' && report.request !== null
        ? ['explaining consumes nothing; a second copy is refused']
        : [];
    case 7:
      return report.upstream_headers.map(({ name, value }) => `${name}: ${value}`);
  }
}

function routeLines({ route }: ExplainReport): readonly string[] {
  if (route === null) return [];
  if (!('method' in route)) return [`route ${route.route_id}`];
  const headers =
    route.signed_headers.length === 0 ? '' : `, signed headers ${route.signed_headers.join(', ')}`;
  const place =
    route.passport_header === AUTHORIZATION_HEADER ? '' : `, passport in ${route.passport_header}`;
  return [
    `route ${route.route_id}: ${route.method} ${route.path_template}, audience ${route.audience}, ` +
      `resource ${route.resource} (${route.access}), body ${route.body}${headers}${place}`,
  ];
}

function credentialLines({ credentials }: ExplainReport): readonly string[] {
  if (credentials === null) return [];
  const { dpop, http_signature: http, passport, signature, token, transcript } = credentials;
  if (http !== undefined) {
    const missing = http.unknown === null ? '' : `, ${http.unknown} does not occur exactly once`;
    const ofPassport = passport === undefined ? [] : [passportLine(passport)];
    return [...ofPassport, `HTTP message signature of key ${http.key_id}${missing}; its base:`, ...http.base];
  }
  if (dpop !== undefined) {
    const whose = dpop.of_holder ? 'its holder key' : 'another key than its holder key';
    const ofToken =
      token === undefined
        ? passportLine(passport)
        : `access token of ${token.issuer}, key ${token.key_id} (${token.algorithm}), sha256 ${token.sha256}`;
    return [ofToken, `DPoP proof of ${whose}, sha256 ${dpop.sha256}`];
  }
  if (passport === undefined) {
    return [
      `credentials: authorization ${credentials.authorization}, transcript ${transcript}, signature ${signature}`,
    ];
  }
  return [
    passportLine(passport),
    `transcript of ${transcript.bytes} bytes, sha256 ${transcript.sha256}; signature of ${signature.bytes} bytes`,
  ];
}

type ShownPassport = NonNullable<NonNullable<ExplainReport['credentials']>['passport']>;

function passportLine({ algorithm, key_id, passport_id, sha256 }: ShownPassport): string {
  return `passport ${passport_id}, key ${key_id} (${algorithm}), sha256 ${sha256}`;
}

const KNOWN_FROM = {
  bundle: "by the bundle's entry of its key",
  verified: 'as the verifier verified it',
  claimed: 'as the passport claims',
} as const;

function callerLines({ caller }: ExplainReport): readonly string[] {
  if (caller === null) return [];
  const from = KNOWN_FROM[caller.known_from];
  const lines = [
    `caller, ${from}: issuer ${caller.issuer}, trust domain ${caller.trust_domain}, ` +
      `subject ${caller.subject}, key binding ${caller.key_binding}`,
  ];
  if (caller.client_id !== null) {
    if (caller.grants === null) return [...lines, `client ${caller.client_id}`];
    const grants = Object.entries(caller.grants).map(([resource, access]) => `${resource} (${access})`);
    lines.push(`client ${caller.client_id}, granted: ${grants.join(', ') || 'nothing'}`);
  }
  return lines;
}

function ruleLines({ rules }: ExplainReport): readonly string[] {
  return rules.map((rule) => {
    const subject = rule.subject_exact ?? `${rule.subject_prefix}…`;
    const verdict = rule.matches ? 'matches' : `no: ${rule.fault}`;
    return (
      `rule ${rule.rule} ${verdict}: issuer ${rule.issuer}, trust domain ${rule.trust_domain}, ` +
      `subject ${subject}${rule.canonical ? '' : ' (no canonical SPIFFE ID: matches nothing)'}, at least ${rule.required_key_binding}`
    );
  });
}

function freshnessLines({ bundle, freshness }: ExplainReport): readonly string[] {
  if (freshness === null || bundle === null) return [];
  const limit = freshness.limit_seconds === null ? 'no limit known' : `at most ${freshness.limit_seconds} s`;
  const lines = [
    `${freshness.class}: the bundle is ${freshness.age_seconds} s old, ${limit}; ` +
      `the latest as of ${bundle.fresh_as_of}, expires at ${bundle.expires_at}`,
  ];
  if (freshness.age_seconds < 0) {
    lines.push('the newest statement is younger than the moment: what the verifier had then is not known');
  }
  return lines;
}

function attributeLines({ attributes }: ExplainReport): readonly string[] {
  return attributes.map(({ actual, allowed, fault, kind, name }) => {
    const value = actual === null ? 'absent' : actual;
    return `${kind} ${name}: ${value}, allowed ${allowed.join(', ')}${fault === null ? '' : `: ${fault}`}`;
  });
}

function proofLines({ bundle, caller, proof_checks }: ExplainReport): readonly string[] {
  if (caller === null) return [];
  const expiry =
    caller.key_expires_at === null ? '' : `, ${caller.key_status}, expires at ${caller.key_expires_at}`;
  const key =
    bundle === null
      ? `key ${caller.key_id}`
      : caller.key === null
        ? `key ${caller.key_id}: not in the bundle`
        : `key ${caller.key_id}: ${caller.key}, thumbprint ${caller.key_thumbprint}${expiry}`;
  const checks = proof_checks.map(({ check, detail, verdict }) => {
    const fault = detail === null ? '' : `: ${detail}`;
    return `${check.replaceAll('_', ' ')}: ${VERDICTS[verdict]}${fault}`;
  });
  return [key, ...checks];
}

const WHY: { readonly [why: string]: string } = {
  body_unavailable: '(the body is not known exactly)',
  header_missing: '(the header is missing)',
  header_repeated: '(the header is there more than once, or may be joined from several)',
};

function transcriptLines({ credentials, transcript }: ExplainReport): readonly string[] {
  if (transcript.length === 0) return [];
  const what = credentials?.dpop === undefined ? 'transcript' : 'DPoP proof';
  const differing = transcript.filter(({ equal }) => !equal);
  const count = `${what}: ${transcript.length - differing.length} of ${transcript.length} lines equal`;
  return [
    differing.length === 0 ? count : `${count}; - is signed, + is made again from the request`,
    ...differing.flatMap(({ difference, line, rebuilt, signed, why }) => [
      signed === null ? `- (${line} is not signed)` : `- ${line}=${signed}`,
      rebuilt === null ? `+ ${line} ${WHY[why ?? ''] ?? ''}` : `+ ${line}=${rebuilt}`,
      ...(difference === null ? [] : [`  ${differenceText(difference)}`]),
    ]),
  ];
}

const ONLY_IN = { case: ', in upper and lower case alone', escapes: ', in escapes alone' } as const;

function differenceText({ character, only_in, place }: Difference): string {
  const where = place === null ? '' : `, in ${place}`;
  return `they differ from character ${character} on${where}${only_in === null ? '' : ONLY_IN[only_in]}`;
}
