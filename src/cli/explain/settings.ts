/** What `explain` can be told. Source: docs/explain.md. */
import { TRUSTED_SIGNERS } from '../bundle/flags.ts';
import {
  choice,
  duration,
  integer,
  list,
  optional,
  required,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../settings.ts';

export const EXPLAIN_SETTINGS = {
  request: required(text('--request <file>', 'the captured request, JSON; - is standard input')),
  bundle: optional(text('--bundle <directory>', 'where the signed bundle lies')),
  stateDir: optional(
    text('--state-dir <directory>', "a verifier's state directory: the bundle that it keeps; only read"),
  ),
  authSite: optional(
    text('--auth-site <name>', 'the Auth Site that the verifier serves; default: the one of the bundle'),
  ),
  ...TRUSTED_SIGNERS,
  freshnessKeys: list(
    text('--freshness-key <file>', 'public key that signs freshness statements; default: the bundle keys'),
  ),
  freshnessThreshold: withDefault(
    integer('--freshness-threshold <count>', 'how many of the keys for freshness must have signed', {
      min: 1,
      max: 16,
    }),
    '1',
  ),
  unverifiedBundle: toggle(
    '--unverified-bundle',
    'explain by a bundle whose signatures nobody checks',
    false,
  ),
  at: optional(
    text(
      '--at <time>',
      'the moment to explain, such as 2026-11-21T04:00:00Z; now; default: that of the capture',
    ),
  ),
  externalOrigin: optional(
    text('--external-origin <origin>', 'behind a proxy that rewrites host or scheme: the one origin served'),
  ),
  envoyBody: withDefault(
    choice('--envoy-body <mode>', 'whether Envoy sends bodies with the check', ['buffered', 'none']),
    'buffered',
  ),
  realtimeStalenessMs: withDefault(
    duration('--realtime-staleness <duration>', 'most age of the bundle on realtime routes', { minMs: 1000 }),
    '10s',
  ),
};

export type ExplainSettings = SettingValues<typeof EXPLAIN_SETTINGS>;
