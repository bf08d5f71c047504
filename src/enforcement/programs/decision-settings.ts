/** Settings that affect decisions, shared by enforcement points and `explain` so that all make the same decisions. */
import { usageError } from '../../process/program/errors.ts';
import {
  choice,
  duration,
  integer,
  list,
  optional,
  parsed,
  text,
  withDefault,
} from '../../process/settings/settings.ts';
import { type Origin, parseOrigin } from '../../protocol/request-target.ts';

export const FRESHNESS_SIGNERS = {
  freshnessKeys: list(
    text('--freshness-key <file>', 'public key that signs freshness statements; default: the bundle keys'),
  ),
  freshnessThreshold: withDefault(
    integer('--freshness-threshold <count>', 'number of freshness keys that must have signed', {
      min: 1,
      max: 16,
    }),
    '1',
  ),
};

export const ORIGIN_AND_STALENESS = {
  externalOrigin: optional(
    parsed(
      text(
        '--external-origin <origin>',
        'behind a proxy that rewrites host or scheme: the only origin served',
      ),
      parseExternalOrigin,
    ),
  ),
  realtimeStalenessMs: withDefault(
    duration('--realtime-staleness <duration>', 'maximum age of the bundle on realtime routes', {
      minMs: 1000,
    }),
    '10s',
  ),
};

function parseExternalOrigin(text: string): Origin {
  const origin = parseOrigin(text);
  if (origin !== undefined) return origin;
  throw usageError(
    'bad_origin',
    '--external-origin must be scheme://host[:port] in lower case, such as https://api.example',
  );
}

/** Settings of Envoy's ext_authz over gRPC. */
export const DECISION_SETTINGS = {
  externalOrigin: ORIGIN_AND_STALENESS.externalOrigin,
  envoyBody: withDefault(
    choice('--envoy-body <mode>', 'whether Envoy sends bodies with the check', ['buffered', 'none']),
    'buffered',
  ),
  realtimeStalenessMs: ORIGIN_AND_STALENESS.realtimeStalenessMs,
};
