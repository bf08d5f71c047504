/** Where the demo keeps what a user would have in files: one folder, removed at the end. */
import { join } from 'node:path';
import type { Caller } from './site.ts';

export class DemoFiles {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  get bundleYaml(): string {
    return this.#path('bundle.yaml');
  }

  /** The signed documents. */
  get bundle(): string {
    return this.#path('bundle');
  }

  get signerKey(): string {
    return this.#path('signer.pem');
  }

  get signerPublicKey(): string {
    return this.#path('signer.jwk.json');
  }

  /** The verifier's `--state-dir`. */
  get state(): string {
    return this.#path('state');
  }

  /** Where Envoy asks the verifier. */
  get socket(): string {
    return this.#path('verifier.sock');
  }

  /** One JSON line a decision. */
  get audit(): string {
    return this.#path('audit.jsonl');
  }

  key(caller: Caller): string {
    return this.#path(`${caller.name}.pem`);
  }

  publicKey(caller: Caller): string {
    return this.#path(`${caller.name}.jwk.json`);
  }

  profile(caller: Caller): string {
    return this.#path(`${caller.name}.profile.yaml`);
  }

  /** A signed request's headers, as `proofgate sign --out` writes them. */
  headers(name: string): string {
    return this.#path(`${name}.headers.txt`);
  }

  /** A request's body. */
  body(name: string): string {
    return this.#path(`${name}.json`);
  }

  #path(name: string): string {
    return join(this.directory, name);
  }
}
