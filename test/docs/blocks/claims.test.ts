/** Checks that every code block and every file to copy has a row in the table of claims, and that every row has a block. */
import { describe, expect, it } from '@jest/globals';
import { blocksOf, DOCUMENTS, MANIFESTS, placeOf } from '../../support/docs/blocks.ts';
import { matchClaims } from '../../support/docs/claimed.ts';
import { filesOfCheckout, isInCheckout, readText } from '../../support/docs/markdown.ts';
import { SESSIONS } from '../sessions/sessions.ts';
import { faultOf } from './checks.ts';
import { CLAIMS, MANIFEST_CLAIMS } from './claims.ts';

const { claimed, idle, unclaimed } = matchClaims();

it('leaves no code block without a claim', () => {
  expect(claimed.length).toBeGreaterThan(50);
  expect(unclaimed).toEqual([]);
});

it('has no claim without a code block', () => {
  expect(idle).toEqual([]);
  expect(Object.keys(CLAIMS).filter((file) => !DOCUMENTS.includes(file))).toEqual([]);
});

it('fails for a block without a claim, and for a claim without a block', () => {
  const { 'docs/operate/ctl.md': _taken, ...others } = CLAIMS;
  expect(matchClaims(DOCUMENTS, others).unclaimed).toEqual([
    expect.stringMatching(/^docs\/operate\/ctl\.md:\d+ /),
  ]);
  const more = {
    ...CLAIMS,
    'docs/operate/ctl.md': { ctl: [...(CLAIMS['docs/operate/ctl.md']?.ctl ?? []), { kind: 'held', by: '' }] },
  } as const;
  expect(matchClaims(DOCUMENTS, more).idle).toEqual(['docs/operate/ctl.md, ctl: 1']);
});

it('pastes every shell block, and nothing else', () => {
  const wrong = claimed.filter(
    ({ block, claim }) => (block.language === 'sh') !== ['pasted', 'followed'].includes(claim.kind),
  );
  expect(wrong.map(({ block }) => placeOf(block))).toEqual([]);
});

it('has no session that pastes and shows nothing', () => {
  const used = new Set(claimed.flatMap(({ claim }) => ('session' in claim ? [claim.session] : [])));
  expect([...used].toSorted()).toEqual(Object.keys(SESSIONS).toSorted());
});

describe.each(
  claimed.flatMap(({ block, claim }) =>
    claim.kind === 'loaded' ? [[placeOf(block), block, claim.check] as const] : [],
  ),
)('%s', (_at, block, check) => {
  it(`is right as ${check.as}`, () => {
    expect(faultOf(block, check)).toBeUndefined();
  });

  it('would not be with another word in it', () => {
    const broken = { ...block, text: brokenText(block.text) };
    expect(check.as === 'drawing' ? 'a fault' : attempt(() => faultOf(broken, check))).toBeDefined();
  });
});

/** The text with the first word that could be a name changed. */
function brokenText(text: string): string {
  const broken = text.replace(/"?[a-z][a-z_-]{2,}(?:-v1)?(?=[="]|\n| [a-zA-Z]|$)/, (word) => `${word}x`);
  return broken === text ? `x${text}` : broken;
}

function attempt(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

describe('what a test of its own holds', () => {
  const held = claimed.flatMap(({ block, claim }) =>
    claim.kind === 'held' ? [[claim.by, block.file] as const] : [],
  );
  const files = Object.entries(MANIFEST_CLAIMS).map(([file, by]) => [by, file] as const);

  it.each([...new Set([...held, ...files].map((pair) => pair.join(' of ')))])('%s', (pair) => {
    const [test = '', file = ''] = pair.split(' of ');
    const tests = isInCheckout(test) && test.endsWith('.ts') ? [test] : filesOfCheckout(test, '.sh');
    const texts = tests.map(readText).join('\n');
    const name = file.split('/').at(-1) ?? '';
    expect([name, texts.includes(file) || texts.includes(name)]).toEqual([name, true]);
  });
});

it('has a test for each file to copy from', () => {
  expect(MANIFESTS.filter((file) => !(file in MANIFEST_CLAIMS))).toEqual([]);
  expect(Object.keys(MANIFEST_CLAIMS).filter((file) => !MANIFESTS.includes(file))).toEqual([]);
});

it('leaves nothing of docs/tutorials/kubernetes.md at the root for Git to take', () => {
  const saved = claimed.flatMap(({ block, claim }) =>
    block.file === 'docs/tutorials/kubernetes.md' && claim.kind === 'saved' ? [claim.path] : [],
  );
  const ignored = readText('.gitignore').split('\n');
  const made = ['*.key', '*.crt', '*.csr', '*.srl', 'bootstrap-token', 'tokens/', 'pins/', 'keys.yaml'];
  expect([...saved, ...made].filter((path) => !ignored.includes(`/${path}`))).toEqual([]);
});

it('finds blocks by their fences', () => {
  const blocks = blocksOf('docs/design/protocol.md');
  const fences = readText('docs/design/protocol.md').match(/^```/gm) ?? [];
  expect(blocks.length * 2).toBe(fences.length);
});
