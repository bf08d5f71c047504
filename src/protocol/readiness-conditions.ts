/** The conditions of a derived key's runtime readiness, in the order of the specification's "Derived key". */
export const READINESS_CONDITIONS = [
  'derived_key',
  'route_grant',
  'signing_profile',
  'target_acknowledged',
  'version_current',
] as const;
export type ReadinessConditionName = (typeof READINESS_CONDITIONS)[number];
