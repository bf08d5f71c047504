/** All cases of the conformance suite. */
import { PUBLIC_CASES } from '../../src/tools/conformance/public-cases.ts';
import { atSite, type ConformanceCase } from '../support/points/conformance-case.ts';
import { ALLOWED_CASES } from './cases/allowed.ts';
import { DENIAL_CASES } from './cases/denials.ts';
import { HEADER_CASES } from './cases/headers.ts';
import { STANDARD_CASES } from './cases/standard.ts';

export const CASES: readonly ConformanceCase[] = [
  ...ALLOWED_CASES,
  ...HEADER_CASES,
  ...PUBLIC_CASES.map(atSite),
  ...DENIAL_CASES,
  ...STANDARD_CASES,
];
