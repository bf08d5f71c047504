/** Eight connections that send signed requests without an end, with the key and passports that `proofgate agent` keeps in files. */
import { realpath } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { signingProfilesOf } from '../../../src/caller/broker/broker-state.ts';
import { readBrokerState } from '../../../src/caller/broker/broker-state-file.ts';
import { readSigningKeyFile } from '../../../src/process/files/key-files.ts';
import { signRequest } from '../../support/caller/signing.ts';
import { nowSeconds } from '../../support/site/site.ts';

export const CONNECTIONS = 8;
const PAUSE_MS = Number(process.env.PROOFGATE_TEST_PACE_MS ?? 200);
const PROOF_TTL_SECONDS = 60;

export interface LoadOptions {
  /** `--private-key-out` of the agent. */
  readonly keyFile: string;
  readonly url: string;
}

export class PassportLoad {
  /** What did not pass: status, reason and detail, or the client's error. */
  readonly refused: string[] = [];
  /** Thumbprints of the keys that signed. */
  readonly holders = new Set<string>();
  /** Compact JWS of each passport that was shown. */
  readonly passports = new Set<string>();
  readonly #options: LoadOptions;
  readonly #senders: readonly Promise<void>[];
  #isRunning = true;
  #sent = 0;
  #connections = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#senders = Array.from({ length: CONNECTIONS }, () => this.#send());
  }

  get sent(): number {
    return this.#sent;
  }

  /** Connections so far: as many as there are senders, when none was lost. */
  get connections(): number {
    return this.#connections;
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#senders);
  }

  async #send(): Promise<void> {
    const client = new Client(new URL(this.#options.url).origin);
    client.on('connect', () => {
      this.#connections += 1;
    });
    try {
      while (this.#isRunning) {
        const outcome = await this.#once(client).catch(String);
        this.#sent += 1;
        if (outcome !== '200') this.refused.push(outcome);
        await sleep(PAUSE_MS);
      }
    } finally {
      await client.close();
    }
  }

  async #once(client: Client): Promise<string> {
    const { keyFile, url } = this.#options;
    const { body, statusCode } = await client.request({
      ...{ method: 'GET', path: new URL(url).pathname },
      headers: await this.#credentials(keyFile, url),
    });
    const text = await body.text();
    const [, reason = '', detail = ''] = /"reason":"([^"]*)","detail":"([^"]*)"/.exec(text) ?? [];
    return [statusCode, reason, detail].join(' ').trim();
  }

  async #credentials(keyFile: string, url: string): Promise<Record<string, string>> {
    // The link switches key and state together: what it leads to now stays together.
    const file = await realpath(keyFile);
    const holderKey = await readSigningKeyFile(file);
    const { thumbprint } = holderKey.publicKey;
    const state = await readBrokerState(file, thumbprint);
    const [profiles] = signingProfilesOf(state?.profileDocuments ?? [], file);
    const [passport] = state?.passports ?? [];
    if (profiles === undefined || passport === undefined) throw new Error('the agent has no passport');
    this.holders.add(thumbprint);
    this.passports.add(passport.jws);
    const { headers } = signRequest(
      { ...{ method: 'GET', url, headers: [] } },
      {
        ...{ profiles, holderKey, brokerPassport: passport.jws },
        ...{ ttlSeconds: PROOF_TTL_SECONDS, nowSeconds: nowSeconds() },
      },
    );
    return Object.fromEntries(headers.reveal().map(({ name, value }) => [name, value]));
  }
}
