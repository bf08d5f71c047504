/** A verifier over a bundle that is an hour old, with a break-glass file: its loader, file and decisions. */
import { join } from 'node:path';
import { BreakGlassFile } from '../../../src/verifier/loading/break-glass-file.ts';
import { newDirectory, putBundle } from '../../support/bundle/bundle-directory.ts';
import { AUTH_SITE, NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { newSiteKeys, type RouteId, type SiteContent, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { closeAfterTest, newTestLoader } from './loader-fixture.ts';

export const STALE = 'stale_bundle_fail_closed/stale 503';
/** When the tests begin: too late for every route. */
export const LATER_SECONDS = NOW_SECONDS + 3600;

const siteKeys = newSiteKeys();
export const signers = {
  bundle: newSigningKey(),
  freshness: newSigningKey(),
  /** The break-glass key. */
  offline: newSigningKey(),
};

export async function startAged(change: (content: SiteContent) => void = () => undefined) {
  const [directory, folder] = [await newDirectory(), await newDirectory()];
  const content = siteContent(siteKeys);
  change(content);
  const position = await putBundle(directory, content, signers.bundle);
  const { clock, loader } = newTestLoader({
    signer: signers.bundle,
    freshnessSigners: { keys: [signers.freshness.publicKey], threshold: 1 },
    directory,
    pollIntervalMs: 3_600_000,
  });
  await loader.start();
  clock.nowSeconds = LATER_SECONDS;
  const file = join(folder, 'break-glass.jws');
  /** What the file was found to be, in order: `accepted`, a code, `removed`. */
  const seen: string[] = [];
  const breakGlass = new BreakGlassFile(
    { authSite: AUTH_SITE, file, signers: { keys: [signers.offline.publicKey], threshold: 1 } },
    loader,
    {
      accepted: () => seen.push('accepted'),
      refused: ({ code }) => seen.push(code),
      removed: () => seen.push('removed'),
    },
  );
  closeAfterTest(() => breakGlass.close());
  const tested = createTestVerifier({
    currentSnapshot: () => loader.snapshot,
    nowMs: () => clock.nowSeconds * 1000,
  });
  /** `allowed`, or `reason/detail status`. */
  const answer = (route: RouteId, caller: 'broker' | 'revoked' = 'broker') => {
    const { facts } = signRequest(siteKeys, { caller, route, nowSeconds: clock.nowSeconds });
    return outcomeOf(checkNow(tested.verifier, facts));
  };
  return { ...tested, answer, breakGlass, clock, content, directory, file, folder, loader, position, seen };
}

export type Aged = Awaited<ReturnType<typeof startAged>>;
