/** Lines of series. A reason has the same color in every chart, its detail the same dash, and what was only observed is thin. */
export type Scheme = 'light' | 'dark';

export interface Stroke {
  readonly color: string;
  /** Lengths of strokes and gaps; empty for a whole line. */
  readonly dash: readonly number[];
  /** In pixels. */
  readonly width: number;
}

const WIDTH = 2.5;
const OBSERVED_WIDTH = 1;

/** In the order of the checks; new ones come last, because the place gives the color. */
const REASONS: readonly string[] = [
  'bundle_policy_missing',
  'bundle_route_missing',
  'source_issuer_mismatch',
  'source_trust_domain_mismatch',
  'source_subject_mismatch',
  'insufficient_key_binding',
  'bundle_freshness_unknown',
  'stale_bundle_fail_closed',
  'missing_provenance',
  'provenance_mismatch',
  'missing_context',
  'context_mismatch',
  'invalid_request_proof',
  'request_binding_mismatch',
  'jti_replay',
  'replay_store_unavailable',
  'verifier_unavailable',
];
const OUTCOME_HUES: { readonly [outcome: string]: number } = { allowed: 140, denied: 0, observed: 40 };
const TARGET_HUES = 8;
const DASHES = [[], [8, 4], [3, 3], [12, 3, 3, 3], [1, 4]];
/** Without the greens, which mean allowed. */
const FIRST_HUE = 180;
const HUES = 280;
/** Reasons that often come together are far apart. */
const STRIDE = 5;

export function outcomeStroke(name: string, scheme: Scheme): Stroke {
  return { color: shade(OUTCOME_HUES[name] ?? 220, scheme), dash: [], width: WIDTH };
}

/** @param code a reason, or a reason and its detail: `invalid_request_proof/key_unknown` */
export function reasonStroke(code: string, scheme: Scheme, outcome = 'denied'): Stroke {
  const width = outcome === 'observed' ? OBSERVED_WIDTH : WIDTH;
  const [reason = '', detail = ''] = code.split('/');
  const place = REASONS.indexOf(reason);
  if (place === -1) return { color: scheme === 'dark' ? '#a6a6a6' : '#5c5f66', dash: [], width };
  const sum = [...detail].reduce((all, letter) => all + letter.charCodeAt(0), 0);
  return {
    color: shade(hueOf(place, REASONS.length), scheme),
    dash: DASHES[detail === '' ? 0 : sum % DASHES.length] ?? [],
    width,
  };
}

/** @param place in a list that keeps its order */
export function placeStroke(place: number, scheme: Scheme): Stroke {
  return {
    color: shade(hueOf(place, TARGET_HUES), scheme),
    dash: DASHES[Math.floor(place / TARGET_HUES) % DASHES.length] ?? [],
    width: WIDTH,
  };
}

function hueOf(place: number, count: number): number {
  return FIRST_HUE + (((place * STRIDE) % count) * HUES) / count;
}

/** At least 3 to 1 against the page: WCAG 2.2 success criterion 1.4.11. */
function shade(hue: number, scheme: Scheme): string {
  return `hsl(${Math.round(hue % 360)} 70% ${scheme === 'dark' ? 70 : 34}%)`;
}
