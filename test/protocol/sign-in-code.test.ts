import { expect, it } from '@jest/globals';
import { signInCode } from '../../src/protocol/sign-in-code.ts';

// Reckoned with another program from docs/operate/control.md "Operators".
it.each([
  ['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', '0J3M-Q1DC'],
  ['challenge', 'A2NK-0FJF'],
])('the code of the challenge %s is %s', (challenge, code) => {
  expect(signInCode(challenge)).toBe(code);
});
