/**
 * `proofgate envoy lint`: finds settings of a gateway that weaken the check or bypass it.
 * Source: docs/operate/gateway-lint.md.
 */
import type { Finding, Rule } from './gateway/gateway.ts';
import { readGateway } from './gateway/read-gateway.ts';
import { ANSWER_RULES } from './rules/answers-rules.ts';
import { CHAIN_RULES } from './rules/chain-rules.ts';
import { CONNECTION_RULES } from './rules/connection-rules.ts';
import { CONTENT_RULES } from './rules/contents-rules.ts';
import { DECISION_RULES } from './rules/decision-rules.ts';
import { DELIVERY_RULES } from './rules/delivery-rules.ts';
import { HEADER_RULES } from './rules/headers-rules.ts';
import { HTTP_SERVICE_RULES } from './rules/http-service-rules.ts';
import { MANIFEST_RULES } from './rules/manifests-rules.ts';
import { VERIFIER_RULES } from './rules/verifier-rules.ts';

/** All rules, in the order of docs/operate/gateway-lint.md. */

export const RULES: readonly Rule[] = [
  ...ANSWER_RULES,
  ...HTTP_SERVICE_RULES,
  ...CONTENT_RULES,
  ...CHAIN_RULES,
  ...DECISION_RULES,
  ...DELIVERY_RULES,
  ...HEADER_RULES,
  ...CONNECTION_RULES,
  ...VERIFIER_RULES,
  ...MANIFEST_RULES,
];

export interface LintReport {
  /** Findings, sorted by their places. */
  readonly findings: readonly Finding[];
  /** Number of findings that comments or `--allow` suppressed. */
  readonly allowed: number;
}

export interface LintOptions {
  /** Rules whose findings are suppressed. */
  readonly allowedRules: readonly string[];
}

/** Undefined for a text that configures no gateway. @throws UnreadableText */
export function lintGateway(text: string, options: LintOptions): LintReport | undefined {
  const gateway = readGateway(text);
  return gateway && reportOf(text, RULES, gateway, options);
}

/** @param configuration the configuration in the text */
export function reportOf<C>(
  text: string,
  rules: readonly Rule<C>[],
  configuration: C,
  { allowedRules }: LintOptions,
): LintReport {
  const lines = text.split('\n');
  const all = rules.flatMap((rule) => findingsOf(rule, configuration)).toSorted(byPlace);
  const findings = all.filter(
    ({ place, rule }) => !allowedRules.includes(rule) && !allowedByComment(lines, place.line).includes(rule),
  );
  return { findings, allowed: all.length - findings.length };
}

export function isRule(name: string): boolean {
  return RULES.some(({ id }) => id === name);
}

/** Returns one finding for each place, to which several aliases can refer. */
function findingsOf<C>({ effect, find, fix, id, severity }: Rule<C>, configuration: C): readonly Finding[] {
  const byKey = new Map<string, Finding>();
  for (const { place } of find(configuration)) {
    byKey.set(`${place.line}:${place.column}`, { rule: id, severity, place, effect, fix });
  }
  return [...byKey.values()];
}

function byPlace(a: Finding, b: Finding): number {
  return a.place.line - b.place.line || a.place.column - b.place.column || (a.rule < b.rule ? -1 : 1);
}

/** `# proofgate: allow route-unchecked` at the end of the line, or alone on the line above. */
function allowedByComment(lines: readonly string[], line: number): readonly string[] {
  const own = lines[line - 1] ?? '';
  const above = /^\s*#/.test(lines[line - 2] ?? '') ? (lines[line - 2] ?? '') : '';
  return [own, above].flatMap((text) => {
    const [, rules = ''] = /(?:^|\s)# proofgate: allow ([a-z0-9, -]+?)\s*(?:#|$)/.exec(text) ?? [];
    return rules.split(',').map((rule) => rule.trim());
  });
}
