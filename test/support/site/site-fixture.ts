/** The fixture of a suite that starts its own verifiers and gateways: a site with a bundle, and their shutdown. */
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts';
import { createSite, type Site } from './site.ts';
import { startVerifier, type VerifierOptions, type VerifierProcess } from './verifier.ts';

export interface SiteFixture {
  readonly site: Site;
  readonly bundleDirectory: string;
  /** Default: proofs are recorded in memory, the bundle is {@link bundleDirectory}. */
  verifier(options?: Partial<VerifierOptions>): Promise<VerifierProcess>;
  gateway(version: string, verifier: VerifierProcess, options?: GatewayOptions): Promise<Gateway>;
  /** Called in reverse order. */
  readonly stops: (() => Promise<unknown>)[];
}

/** @param lifetime of the processes that are started: until the end of one test, or of the suite */
export function useSite(lifetime: 'test' | 'suite' = 'test'): SiteFixture {
  let started: Pick<SiteFixture, 'site' | 'bundleDirectory'> | undefined;
  const stops: (() => Promise<unknown>)[] = [];
  const stopAll = async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  };
  beforeAll(async () => {
    const site = await createSite();
    started = { site, bundleDirectory: await site.makeBundle() };
  });
  if (lifetime === 'test') afterEach(stopAll);
  afterAll(async () => {
    await stopAll();
    await started?.site.remove();
  });
  const running = () => {
    if (started === undefined) throw new Error('the site has not started yet');
    return started;
  };
  async function stopLater<T extends { stop(): Promise<unknown> }>(starting: Promise<T>): Promise<T> {
    const process = await starting;
    stops.push(() => process.stop());
    return process;
  }
  return {
    get site() {
      return running().site;
    },
    get bundleDirectory() {
      return running().bundleDirectory;
    },
    verifier: (options) => {
      const { bundleDirectory, site } = running();
      return stopLater(startVerifier(site, { replay: 'memory', bundleDirectory, ...options }));
    },
    gateway: (version, verifier, options) => stopLater(startGateway(version, verifier, options)),
    stops,
  };
}
