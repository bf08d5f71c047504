/** What a break-glass file opens, what it never opens, and what ends it: real files, a real loader, real decisions. */
import { rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { isBreakGlassInForce } from '../../../src/bundle/compile/break-glass-statement.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { breakGlassDocument } from '../../support/bundle/break-glass.ts';
import { freshnessDocument, putBundle } from '../../support/bundle/bundle-directory.ts';
import { AUTH_SITE, NOW_SECONDS } from '../../support/fixtures/bundle-content.ts';
import { factsOfWire, signRequest, withoutHeader } from '../../support/fixtures/signed-request.ts';
import { newSiteKeys } from '../../support/fixtures/snapshot.ts';
import { checkNow, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { waitFor } from '../../support/wait.ts';
import { ATTEMPTS, validContent } from './break-glass-attempts.ts';
import { type Aged, LATER_SECONDS, STALE, signers, startAged } from './break-glass-fixture.ts';

const seenAs = (aged: Aged, what: string) =>
  waitFor(what, () => (aged.seen.at(-1) === what ? true : undefined));

async function put(aged: Aged, changes: object = {}): Promise<void> {
  const bytes = breakGlassDocument({ ...validContent(aged), ...changes }, [signers.offline]);
  await writeFile(`${aged.file}.new`, bytes);
  await rename(`${aged.file}.new`, aged.file);
}

async function startOpened(): Promise<Aged> {
  const aged = await startAged();
  await put(aged);
  await seenAs(aged, 'accepted');
  expect([aged.answer('prices'), aged.answer('orders-read')]).toEqual(['allowed', 'allowed']);
  return aged;
}

describe('a valid statement', () => {
  it('opens routes that are stale, and marks each request in the audit trail', async () => {
    const aged = await startAged();
    const { answer, clock, events, loader } = aged;
    expect([answer('prices'), answer('orders-read')]).toEqual([STALE, STALE]);
    clock.nowSeconds = NOW_SECONDS;
    expect(answer('orders-read')).toBe('allowed');
    clock.nowSeconds = LATER_SECONDS;
    await put(aged);
    await seenAs(aged, 'accepted');
    expect([answer('prices'), answer('orders-read')]).toEqual(['allowed', 'allowed']);
    expect(events.map((event) => event.break_glass)).toEqual([undefined, undefined, undefined, true, true]);
    clock.nowSeconds = NOW_SECONDS;
    // Fresh by itself, and the statement has not begun.
    expect([answer('orders-read'), events.at(-1)?.break_glass]).toEqual(['allowed', undefined]);
    clock.nowSeconds = LATER_SECONDS + 3599;
    expect(answer('prices')).toBe('allowed');
    clock.nowSeconds += 1;
    expect([answer('prices'), loader.snapshot?.breakGlass !== undefined]).toEqual([STALE, true]);
    expect(aged.internalErrors).toEqual([]);
  });

  it('opens nothing else: not the clock, the end of the bundle, an unknown class, a revoked key, a request without proof', async () => {
    const aged = await startOpened();
    const { answer, clock, events, verifier } = aged;
    expect(answer('future')).toBe('bundle_freshness_unknown 503');
    expect(answer('orders-read', 'revoked')).toBe('invalid_request_proof/key_revoked 401');
    const { wire } = signRequest(newSiteKeys(), { caller: 'broker', route: 'prices' });
    expect(outcomeOf(checkNow(verifier, factsOfWire(withoutHeader(wire, 'authorization'))))).not.toBe(
      'allowed',
    );
    clock.nowSeconds = NOW_SECONDS - 60;
    expect(answer('prices')).toBe('stale_bundle_fail_closed/clock 503');
    const end = NOW_SECONDS + 86_400 + 5;
    await put(aged, { from: formatTime(end - 3600), until: formatTime(end + 3600) });
    clock.nowSeconds = end;
    await waitFor('the other statement', () => aged.loader.snapshot?.breakGlass?.untilSeconds === end + 3600);
    expect(answer('prices')).toBe('stale_bundle_fail_closed/expired 503');
    const denied = events.filter(({ outcome }) => outcome === 'denied');
    expect(denied.filter((event) => event.break_glass !== undefined)).toEqual([]);
  });

  it('counts behind links, as Kubernetes mounts it', async () => {
    const aged = await startAged();
    const target = join(aged.folder, '..data');
    await writeFile(target, breakGlassDocument(validContent(aged), [signers.offline]));
    await symlink(target, aged.file);
    await seenAs(aged, 'accepted');
    expect(aged.answer('prices')).toBe('allowed');
  });
});

describe('it ends', () => {
  it('when its file goes, and when the file becomes invalid', async () => {
    const aged = await startOpened();
    await rm(aged.file);
    await seenAs(aged, 'removed');
    expect(aged.answer('prices')).toBe(STALE);
    await put(aged);
    await seenAs(aged, 'accepted');
    expect(aged.answer('prices')).toBe('allowed');
    await writeFile(aged.file, 'no statement');
    await seenAs(aged, 'document_malformed');
    expect([aged.answer('prices'), aged.breakGlass.status().statement]).toEqual([STALE, undefined]);
    expect(aged.breakGlass.status().fault?.code).toBe('document_malformed');
    await put(aged);
    await seenAs(aged, 'accepted');
    expect([aged.answer('prices'), aged.breakGlass.status().fault]).toEqual(['allowed', undefined]);
  });

  it('with a freshness statement newer than its start, also when that is stale again', async () => {
    const aged = await startOpened();
    const { answer, clock, directory, loader, position } = aged;
    const freshen = async (asOfSeconds: number) => {
      const statement = { authSite: AUTH_SITE, ...position, asOfSeconds };
      await writeFile(join(directory, 'freshness.jws'), freshnessDocument(statement, signers.freshness));
      await loader.reload();
    };
    await freshen(LATER_SECONDS);
    clock.nowSeconds = LATER_SECONDS + 1200;
    expect(answer('prices')).toBe('allowed');
    await freshen(LATER_SECONDS + 1);
    expect([answer('prices'), answer('orders-read')]).toEqual([STALE, STALE]);
  });

  it('with the next revision, and does not come back with the same one', async () => {
    const aged = await startOpened();
    const { answer, clock, content, directory, loader, position } = aged;
    const next = { ...content, revision: position.revision + 1, previous_head: position.head };
    await putBundle(directory, next, signers.bundle);
    await loader.reload();
    expect([loader.snapshot?.revision, answer('prices')]).toEqual([position.revision + 1, STALE]);
    expect(loader.snapshot && isBreakGlassInForce(loader.snapshot, clock.nowSeconds)).toBe(false);
    await putBundle(directory, content, signers.bundle);
    await loader.reload();
    expect([loader.snapshot?.revision, answer('prices')]).toEqual([position.revision + 1, STALE]);
  });
});

it('never counts otherwise', async () => {
  expect(ATTEMPTS.length).toBeGreaterThanOrEqual(50);
  const results = await Promise.all(
    ATTEMPTS.map(async ({ put: attempt, seen, why }) => {
      const aged = await startAged();
      await attempt(aged);
      if (seen !== undefined) await waitFor(why, () => aged.seen.length > 0);
      return { aged, seen, why };
    }),
  );
  // What is missing has been looked at, too: the others were found later.
  const outcomes = () =>
    results.map(({ aged, why }) => [
      why,
      aged.seen.at(-1),
      aged.answer('prices'),
      aged.answer('orders-read'),
    ]);
  expect(outcomes()).toEqual(results.map(({ seen, why }) => [why, seen, STALE, STALE]));
  const kept = results.filter(
    ({ aged, seen }) => (seen === 'accepted') !== (aged.breakGlass.status().statement !== undefined),
  );
  expect(kept.map(({ why }) => why)).toEqual([]);
  // The same verifiers take the right statement, so that it was the attempt that failed.
  await Promise.all(
    results.map(async ({ aged }) => {
      await rm(aged.file, { recursive: true, force: true });
      await put(aged);
      // Its end is that of several attempts: only the answer shows that it was read.
      await waitFor('the right one', () => aged.answer('prices') === 'allowed');
    }),
  );
  expect(results.flatMap(({ aged }) => aged.internalErrors)).toEqual([]);
});
