/**
 * A caller's whole way: broker, `proofgate proxy` as the verifier, and a recording API behind it. SPIRE is the caller's and
 * the broker's.
 */
import { afterAll } from '@jest/globals';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { type CommandResult, runProofgate } from '../../support/harness/proofgate-command.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import { startVerifier } from '../../support/site/verifier.ts';
import { type BrokerOptions, type BrokerProcess, startBroker } from './broker-process.ts';
import { type BrokerSite, type BrokerSiteOptions, createBrokerSite, TARGET } from './broker-site.ts';

export interface BrokerStageOptions extends Omit<BrokerSiteOptions, 'origin'> {
  readonly brokerFlags: readonly string[];
}

export class BrokerStage {
  readonly site: BrokerSite;
  readonly certificates: TestCertificates;
  /** URL of a request that the route takes. */
  readonly url: string;
  readonly upstream: Upstream;
  broker: BrokerProcess;
  readonly #brokerFlags: readonly string[];

  private constructor(
    parts: Pick<BrokerStage, 'site' | 'certificates' | 'url' | 'upstream' | 'broker'>,
    flags: readonly string[],
  ) {
    this.site = parts.site;
    this.certificates = parts.certificates;
    this.url = parts.url;
    this.upstream = parts.upstream;
    this.broker = parts.broker;
    this.#brokerFlags = flags;
  }

  /** @param stops what it started, to be stopped in reverse order, also when it throws */
  static async start(options: BrokerStageOptions, stops: Stops): Promise<BrokerStage> {
    const { brokerFlags, ...siteOptions } = options;
    const proxyPort = await freePort();
    const origin = `http://127.0.0.1:${proxyPort}`;
    const certificates = await makeCertificates('localhost', 'spiffe://nobody.example/x', ['127.0.0.1']);
    stops.push(() => certificates.remove());
    const site = await createBrokerSite({ ...siteOptions, origin });
    stops.push(() => site.remove());
    const upstream = await startUpstream();
    stops.push(() => upstream.stop());
    const proxy = await startVerifier(site, {
      ...{
        program: 'proxy',
        replay: 'memory',
        bundleDirectory: site.bundleDirectory,
        listen: { port: proxyPort },
      },
      flags: ['--upstream', `http://${upstream.host}:${upstream.port}`],
    });
    stops.push(() => proxy.stop());
    const broker = await startBroker({ site, certificate: certificates.server, flags: brokerFlags });
    const stage = new BrokerStage(
      { site, certificates, upstream, broker, url: `${origin}${TARGET}` },
      brokerFlags,
    );
    stops.push(() => stage.broker.stop());
    return stage;
  }

  /** After {@link broker} has ended; at the same URL. */
  async startBrokerAgain(
    certificate: BrokerOptions['certificate'] = this.certificates.server,
  ): Promise<void> {
    const { port } = this.broker;
    this.broker = await startBroker({ site: this.site, certificate, flags: this.#brokerFlags, port });
  }

  /** Flags of a caller, for `sign`, `request` and `agent`. */
  get callerFlags(): readonly string[] {
    return ['--broker-url', this.broker.url, '--broker-ca-file', this.certificates.ca.certPath];
  }

  /** One `proofgate request`. */
  request(...flags: readonly string[]): Promise<CommandResult> {
    return runProofgate(['request', 'GET', this.url, ...this.callerFlags, ...flags]);
  }

  /** What the API learned of the last request that passed. */
  lastCaller(): { readonly subject: readonly string[]; readonly keyBinding: readonly string[] } {
    const headers = this.upstream.requests.at(-1)?.headers ?? [];
    return {
      subject: headerValues(headers, 'x-proofgate-subject'),
      keyBinding: headerValues(headers, 'x-proofgate-key-binding'),
    };
  }
}

export type Stops = (() => Promise<unknown>)[];

/** Stages that live until the end of the suite. */
export function useBrokerStages(): (options: BrokerStageOptions) => Promise<BrokerStage> {
  const stops: Stops = [];
  afterAll(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });
  return (options) => BrokerStage.start(options, stops);
}
