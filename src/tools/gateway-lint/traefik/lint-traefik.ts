/** `proofgate traefik lint`: finds settings of Traefik that weaken the check or bypass it. Source: docs/operate/gateway-lint.md. */

import { readSources } from '../gateway/source-file.ts';
import { View } from '../gateway/view.ts';
import { type LintOptions, type LintReport, reportOf } from '../lint.ts';
import { readTraefik } from './configuration.ts';
import { TRAEFIK_RULES } from './rules.ts';

/** Undefined for a text that configures no Traefik. @throws UnreadableText */
export function lintTraefik(text: string, options: LintOptions): LintReport | undefined {
  const documents = readSources(text).flatMap((source) => View.ofDocument(source) ?? []);
  const traefik = readTraefik(documents);
  return traefik && reportOf(text, TRAEFIK_RULES, traefik, options);
}

export function isTraefikRule(name: string): boolean {
  return TRAEFIK_RULES.some(({ id }) => id === name);
}
