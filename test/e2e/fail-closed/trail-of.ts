/** Counts what an audit trail contains. */
export interface TrailOf {
  /** Decision IDs. */
  readonly allowed: ReadonlySet<string>;
  readonly decisions: number;
  /** Number of decisions that the trail reports as missing. */
  readonly lost: number;
  /** Lines that are no JSON. */
  readonly torn: readonly string[];
}

interface Line {
  readonly event: string;
  readonly decision_id?: string;
  readonly outcome?: string;
  readonly lost?: number;
}

export function readTrailOf(text: string): TrailOf {
  const torn: string[] = [];
  const lines: Line[] = [];
  for (const line of text.split('\n').filter((each) => each !== '')) {
    try {
      lines.push(JSON.parse(line));
    } catch {
      torn.push(line);
    }
  }
  const decisions = lines.filter(({ event }) => event === 'proofgate.decision');
  const allowed = decisions.filter(({ outcome }) => outcome === 'allowed');
  const gaps = lines.filter(({ event }) => event === 'proofgate.audit_gap');
  return {
    allowed: new Set(allowed.map(({ decision_id }) => decision_id ?? '')),
    decisions: decisions.length,
    lost: gaps.reduce((sum, { lost }) => sum + (lost ?? 0), 0),
    torn,
  };
}
