import { describe, expect, it } from '@jest/globals';
import { enrollmentText, POLL_SCHEME, pollText } from '../../src/protocol/enrollment.ts';

const STATEMENT = {
  controlUrl: 'https://control.example/base',
  policyReference: 'pol_7Q2M',
  challengeId: 'chl_1',
  challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  keyThumbprint: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
  workloadToken: 'eyJhbGciOiJSUzI1NiJ9.e30.c2ln',
};

describe('what a workload signs while it enrolls', () => {
  it('is this text, each line ended by one LF; of the token only the hash', () => {
    expect(enrollmentText(STATEMENT).toString('latin1')).toBe(
      [
        'proofgate-enroll-v1',
        'control-url=https://control.example/base',
        'policy=pol_7Q2M',
        'challenge-id=chl_1',
        'challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        'key-thumbprint=kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
        // Reckoned with another program.
        'token-sha256=zFKdmxuKgzYy8vEAuCkuLyGSikxbBoqoUZj3nHYBBGk',
        '',
      ].join('\n'),
    );
  });

  it('is another text with any other member', () => {
    const texts = Object.keys(STATEMENT).map((name) =>
      enrollmentText({ ...STATEMENT, [name]: 'other' }).toString('latin1'),
    );
    expect(new Set([enrollmentText(STATEMENT).toString('latin1'), ...texts]).size).toBe(7);
  });
});

it('what a workload signs to ask how its enrollment stands is this text', () => {
  expect(pollText('enr_1', 1_800_000_000).toString('latin1')).toBe(
    'proofgate-poll-v1\nenrollment-id=enr_1\ntime=1800000000\n',
  );
  expect(POLL_SCHEME).toBe('Proofgate-Key');
});
