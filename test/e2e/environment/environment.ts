/** The fixture of a suite: the site, verifiers in the circumstances that it needs, and gateways in front of them. */
import { afterAll, beforeAll } from '@jest/globals';
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts';
import { createSite, type Site } from './site.ts';
import type { VerifierProcess } from './verifier.ts';
import { type Circumstance, type Circumstances, startCircumstances } from './verifier-states.ts';

export interface Stage {
  readonly site: Site;
  verifier(circumstance: Circumstance): VerifierProcess;
  /** Started on first use and kept, by version, circumstance and variant. */
  gateway(version: string, circumstance?: Circumstance, variant?: GatewayVariant): Promise<Gateway>;
  /** Which secrets stand where they must not, `a passport in the log`; none is right. */
  leaks(): Promise<readonly string[]>;
}

/** A configuration that is not the shipped one, by name. */
export interface GatewayVariant extends GatewayOptions {
  readonly name: string;
}

const shippedVariant: GatewayVariant = { name: 'shipped' };

/** Everything is there from the suite's first test to its last. */
export function setStage(wanted: readonly Circumstance[]): Stage {
  let site: Site | undefined;
  let circumstances: Circumstances | undefined;
  const gateways = new Map<string, Promise<Gateway>>();
  beforeAll(async () => {
    site = await createSite();
    circumstances = await startCircumstances(site, wanted);
  });
  afterAll(async () => {
    const started = await Promise.allSettled(gateways.values());
    for (const result of started) if (result.status === 'fulfilled') await result.value.stop();
    await circumstances?.stop();
    await site?.remove();
  });
  const there = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the stage is not set yet');
    return value;
  };
  return {
    get site() {
      return there(site);
    },
    verifier: (circumstance) => there(circumstances).of(circumstance),
    gateway: (version, circumstance = 'usual', variant = shippedVariant) => {
      const key = [version, circumstance, variant.name].join(' ');
      const verifier = there(circumstances).of(circumstance);
      const gateway = gateways.get(key) ?? startGateway(version, verifier, variant);
      gateways.set(key, gateway);
      return gateway;
    },
    leaks: async () => {
      const verifiers = [...there(circumstances).verifiers.values()];
      return leaks(there(site), verifiers, await Promise.all(gateways.values()));
    },
  };
}

export async function leaks(
  { secrets }: Site,
  verifiers: readonly VerifierProcess[],
  gateways: readonly Gateway[],
): Promise<readonly string[]> {
  const outputs = await Promise.all(verifiers.map((verifier) => verifier.outputs()));
  const places = [
    ...outputs.flatMap((byPlace) => [...byPlace]),
    ...gateways.flatMap(({ envoy }) => [
      ['the access log', envoy.accessLog.join('\n')] as const,
      ["Envoy's log", envoy.stderrLines.join('\n')] as const,
    ]),
  ];
  const found = places.flatMap(([place, text]) => secrets.foundIn(text).map((what) => `${what} in ${place}`));
  return [...new Set(found)];
}
