/** Formats one step of the report as text: its verdict, then its inputs. */
import type { Verdict } from '../../verifier/decision/explain/verdicts.ts';
import type { Difference } from './difference.ts';
import type { ExplainReport } from './report.ts';

type Step = ExplainReport['steps'][number];

const VERDICTS: { readonly [V in Verdict]: string } = {
  passed: 'passed',
  failed: 'FAILED',
  would_pass: 'would pass',
  would_fail: 'would also fail',
  not_reached: 'not reached',
  not_checked: 'not checked',
};

export function stepLines(step: Step, report: ExplainReport): readonly string[] {
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
      return verdict === 'not_checked' ? ['explaining consumes nothing; a second copy is refused'] : [];
    case 7:
      return report.upstream_headers.map(({ name, value }) => `${name}: ${value}`);
  }
}

function routeLines({ route }: ExplainReport): readonly string[] {
  if (route === null) return [];
  const headers =
    route.signed_headers.length === 0 ? '' : `, signed headers ${route.signed_headers.join(', ')}`;
  return [
    `route ${route.route_id}: ${route.method} ${route.path_template}, audience ${route.audience}, ` +
      `resource ${route.resource} (${route.access}), body ${route.body}${headers}`,
  ];
}

function credentialLines({ credentials }: ExplainReport): readonly string[] {
  const { passport, signature, transcript } = credentials;
  if (passport === undefined) {
    return [
      `credentials: authorization ${credentials.authorization}, transcript ${transcript}, signature ${signature}`,
    ];
  }
  return [
    `passport ${passport.passport_id}, key ${passport.key_id} (${passport.algorithm}), sha256 ${passport.sha256}`,
    `transcript of ${transcript.bytes} bytes, sha256 ${transcript.sha256}; signature of ${signature.bytes} bytes`,
  ];
}

function callerLines({ caller }: ExplainReport): readonly string[] {
  if (caller === null) return [];
  const from = caller.known_from === 'bundle' ? "by the bundle's entry of its key" : 'as the passport claims';
  const lines = [
    `caller, ${from}: issuer ${caller.issuer}, trust domain ${caller.trust_domain}, ` +
      `subject ${caller.subject}, key binding ${caller.key_binding}`,
  ];
  if (caller.client_id !== null) {
    const grants = Object.entries(caller.grants ?? {}).map(([resource, access]) => `${resource} (${access})`);
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
  if (freshness === null) return [];
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

function proofLines({ caller, proof_checks }: ExplainReport): readonly string[] {
  if (caller === null) return [];
  const expiry =
    caller.key_expires_at === null ? '' : `, ${caller.key_status}, expires at ${caller.key_expires_at}`;
  const key =
    caller.key === null
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

function transcriptLines({ transcript }: ExplainReport): readonly string[] {
  if (transcript.length === 0) return [];
  const differing = transcript.filter(({ equal }) => !equal);
  const count = `transcript: ${transcript.length - differing.length} of ${transcript.length} lines equal`;
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
