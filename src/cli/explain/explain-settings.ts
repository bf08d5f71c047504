/** Settings of `explain`. Source: docs/operate/explain.md. */

import { DECISION_SETTINGS, FRESHNESS_SIGNERS } from '../../enforcement/programs/decision-settings.ts';
import { optional, type SettingValues, text, toggle } from '../../process/settings/settings.ts';
import { TRUSTED_SIGNERS } from '../bundle/bundle-flags.ts';

export const EXPLAIN_SETTINGS = {
  request: optional(
    text(
      '--request <file>',
      'captured request, audit event or output of sign --format json; - is standard input',
    ),
  ),
  decisionId: optional(
    text('--decision-id <id>', 'instead: the decision whose audit event is in --audit-file'),
  ),
  auditFile: optional(
    text('--audit-file <file>', "the verifier's audit file; rotated files beside it are searched too"),
  ),
  bundle: optional(text('--bundle <directory>', 'where the signed bundle lies')),
  stateDir: optional(
    text('--state-dir <directory>', "a verifier's state directory: the bundle that it keeps; only read"),
  ),
  authSite: optional(
    text('--auth-site <name>', 'the Auth Site that the verifier serves; default: the one of the bundle'),
  ),
  ...TRUSTED_SIGNERS,
  ...FRESHNESS_SIGNERS,
  unverifiedBundle: toggle(
    '--unverified-bundle',
    'explain with a bundle whose signatures are not checked',
    false,
  ),
  at: optional(
    text(
      '--at <time>',
      'time to evaluate at, such as 2026-11-21T04:00:00Z, or now; default: the capture’s time',
    ),
  ),
  showValues: toggle(
    '--show-values',
    'show what the request says and the bundle does not: paths, queries, signed headers, identities; no credentials',
    false,
  ),
  ...DECISION_SETTINGS,
};

export type ExplainSettings = SettingValues<typeof EXPLAIN_SETTINGS>;
