/** The table of cases: the published vectors are its requests, in this order. `on-wire.ts` takes those that reach a real point. */
import { BINDING_CASES } from './binding-cases.ts';
import { BLOCKED_CASES } from './blocked-cases.ts';
import { CALLER_CASES } from './caller-cases.ts';
import { KEY_CASES } from './holder-key-cases.ts';
import { PASSPORT_CASES } from './passport-cases.ts';
import { PROOF_CASES } from './proof-cases.ts';
import type { CaseGroup } from './request-cases.ts';
import { ROUTE_CASES } from './route-cases.ts';
import { TABLE_CASES } from './table-cases.ts';
import { TIME_CASES } from './time-cases.ts';
import { UPSTREAM_CASES } from './upstream-cases.ts';
import type { VectorCase } from './vector-case.ts';

const fromGroup = ({ cases, title }: CaseGroup): readonly VectorCase[] =>
  cases.map((entry) => ({ ...entry, name: `${title}: ${entry.name}` }));

export const TABLE: readonly VectorCase[] = [
  ...TABLE_CASES,
  ...ROUTE_CASES,
  ...PASSPORT_CASES,
  ...PROOF_CASES,
  ...CALLER_CASES.flatMap(fromGroup),
  ...KEY_CASES,
  ...BLOCKED_CASES,
  ...TIME_CASES,
  ...BINDING_CASES.flatMap(fromGroup),
  ...UPSTREAM_CASES,
];
