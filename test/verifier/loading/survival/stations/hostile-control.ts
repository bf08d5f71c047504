/**
 * A Control, or an impostor, that gives any answer that a test wants, over real HTTP, with correct hashes of the files it
 * sends. It follows the contract, so a verifier processes its answers.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ACK_PATH, POLL_PATH } from '../../../../../src/bundle/format/bundle-limits.ts';
import type {
  DistributedBundle,
  PollAnswer,
} from '../../../../../src/bundle/format/distribution-contract.ts';

/** An answer to a poll; undefined at the end of the script: then the poll waits. */
export type Answering = (isAskedForWhole: boolean) => PollAnswer | undefined;

const FILES_PATH = '/v1/targets/self/bundles/1/';

export class HostileControl {
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #answering: Answering = () => undefined;
  #onSilence: (() => void) | undefined;
  #parked: { readonly url: URL; readonly response: ServerResponse } | undefined;
  #files: ReadonlyMap<string, Buffer> = new Map();
  #answers = 0;
  /** Codes of what the verifier refused, in order. */
  readonly refusals: string[] = [];

  static async start(): Promise<HostileControl> {
    const control = new HostileControl();
    control.#server.listen(0, '127.0.0.1');
    await once(control.#server, 'listening');
    return control;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Answers polls until the script ends, and returns when the verifier polls once more. */
  async say(answering: Answering): Promise<void> {
    this.#answering = answering;
    const silence = new Promise<void>((resolve) => {
      this.#onSilence = resolve;
    });
    const { url, response } = this.#parked ?? {};
    this.#parked = undefined;
    if (url !== undefined && response !== undefined) this.#poll(url, response);
    await silence;
  }

  /**
   * How a bundle of these files is named; from now on these are the files that are sent.
   * @param claimed files that it says it sends
   */
  offering(files: ReadonlyMap<string, Buffer>, claimed = files): DistributedBundle['files'] {
    this.#files = files;
    return [...claimed].map(([name, bytes]) => {
      const sha256 = createHash('sha256').update(bytes).digest('base64url');
      return { name, bytes: Math.max(1, bytes.length), sha256, path: FILES_PATH + name };
    });
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    if (url.pathname === POLL_PATH) this.#poll(url, response);
    else if (url.pathname === ACK_PATH) await this.#acknowledge(request, response);
    else response.writeHead(200).end(this.#files.get(url.pathname.slice(FILES_PATH.length)));
  }

  #poll(url: URL, response: ServerResponse): void {
    const answer = this.#answering(!url.searchParams.has('revision'));
    if (answer === undefined) {
      this.#parked = { url, response };
      this.#onSilence?.();
      this.#onSilence = undefined;
      return;
    }
    this.#answers += 1;
    const headers = { 'content-type': 'application/json', etag: `"${this.#answers}"` };
    response.writeHead(200, headers).end(JSON.stringify(answer));
  }

  async #acknowledge(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { code, outcome } = JSON.parse(Buffer.concat(chunks).toString());
    if (outcome === 'refused') this.refusals.push(code);
    response.writeHead(204).end();
  }
}
