/** The fixture of a suite: the site, verifiers in the states that it needs, and gateways in front of them. */
import { afterAll, beforeAll, expect } from '@jest/globals';
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts';
import { createSite, type Site } from './site.ts';
import type { VerifierProcess } from './verifier.ts';
import { type StartedVerifiers, startVerifiers, type VerifierState } from './verifier-states.ts';

export interface Environment {
  readonly site: Site;
  verifier(state: VerifierState): VerifierProcess;
  /** Started on first use and kept, by version, state and variant. */
  gateway(version: string, state?: VerifierState, variant?: GatewayVariant): Promise<Gateway>;
}

/** A configuration that is not the shipped one, by name. */
export interface GatewayVariant extends GatewayOptions {
  readonly name: string;
}

const shippedVariant: GatewayVariant = { name: 'shipped' };

/** Everything runs from the suite's first test to its last; then no output may contain a secret. */
export function useEnvironment(wanted: readonly VerifierState[]): Environment {
  let site: Site | undefined;
  let states: StartedVerifiers | undefined;
  const gateways = new Map<string, Promise<Gateway>>();
  beforeAll(async () => {
    site = await createSite();
    states = await startVerifiers(site, wanted);
  });
  afterAll(async () => {
    const settled = await Promise.allSettled(gateways.values());
    const running = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const leaked = site && states ? await leaks(site, [...states.verifiers.values()], running) : [];
    for (const gateway of running) await gateway.stop();
    await states?.stop();
    await site?.remove();
    expect(leaked).toEqual([]);
  });
  const started = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the environment has not started yet');
    return value;
  };
  return {
    get site() {
      return started(site);
    },
    verifier: (state) => started(states).of(state),
    gateway: (version, state = 'usual', variant = shippedVariant) => {
      const key = [version, state, variant.name].join(' ');
      const verifier = started(states).of(state);
      const gateway = gateways.get(key) ?? startGateway(version, verifier, variant);
      gateways.set(key, gateway);
      return gateway;
    },
  };
}

/** Secrets found in outputs, such as `a passport in the log`. */
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
