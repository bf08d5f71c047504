/** `proofgate nginx lint`: finds settings of nginx that weaken the check or bypass it. Source: docs/operate/gateway-lint.md. */
import { type LintOptions, type LintReport, reportOf } from '../lint.ts';
import { readNginx } from './configuration.ts';
import { NGINX_RULES } from './rules.ts';

/** Undefined for a text that configures no nginx. @throws UnreadableText */
export function lintNginx(text: string, options: LintOptions): LintReport | undefined {
  const nginx = readNginx(text);
  return nginx && reportOf(text, NGINX_RULES, nginx, options);
}

export function isNginxRule(name: string): boolean {
  return NGINX_RULES.some(({ id }) => id === name);
}
