/** `proofgate envoy lint --egress`. Source: docs/operate/gateway-lint.md "Egress". */

import { readGateway } from '../gateway/read-gateway.ts';
import { type LintOptions, type LintReport, reportOf } from '../lint.ts';
import { EGRESS_RULES } from './egress-rules.ts';
import { signingScope } from './signing-scope.ts';

/** Undefined for a text that configures no gateway. @throws UnreadableText */
export function lintEgress(text: string, options: LintOptions): LintReport | undefined {
  const gateway = readGateway(text);
  return gateway && reportOf(text, EGRESS_RULES, signingScope(gateway), options);
}

export function isEgressRule(name: string): boolean {
  return EGRESS_RULES.some(({ id }) => id === name);
}
