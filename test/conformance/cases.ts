/** All cases of the conformance suite. */
import { PUBLIC_CASES } from '../../src/tools/conformance/public-cases.ts';
import { ALLOWED_CASES } from './cases/allowed.ts';
import { DENIAL_CASES } from './cases/denials.ts';
import { HEADER_CASES } from './cases/headers.ts';
import { atSite, type ConformanceCase } from './conformance-case.ts';

export const CASES: readonly ConformanceCase[] = [
  ...ALLOWED_CASES,
  ...HEADER_CASES,
  ...PUBLIC_CASES.map(atSite),
  ...DENIAL_CASES,
];
