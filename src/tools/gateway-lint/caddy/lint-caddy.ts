/** `proofgate caddy lint`: finds settings of Caddy that weaken the check or bypass it. Source: docs/operate/gateway-lint.md. */

import { readSources } from '../gateway/source-file.ts';
import { View } from '../gateway/view.ts';
import { type LintOptions, type LintReport, reportOf } from '../lint.ts';
import { readCaddy } from './configuration.ts';
import { CADDY_RULES } from './rules.ts';

/** Undefined for a text without an HTTP server of Caddy. @throws UnreadableText */
export function lintCaddy(text: string, options: LintOptions): LintReport | undefined {
  const caddy = readCaddy(readSources(text).flatMap((source) => View.ofDocument(source) ?? []));
  return caddy && reportOf(text, CADDY_RULES, caddy, options);
}

export function isCaddyRule(name: string): boolean {
  return CADDY_RULES.some(({ id }) => id === name);
}
