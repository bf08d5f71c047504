/** The agent's pairs of a holder key and its broker state: passports and profiles. Source: docs/operate/workloads.md "With a broker". */

import { readSigningKeyFile } from '../../process/files/key-files.ts';
import { writeNewFile } from '../../process/files/output-files.ts';
import { usageError } from '../../process/program/errors.ts';
import { type BrokerState, formatBrokerState } from '../broker/broker-state.ts';
import { brokerStatePathOf, readBrokerState } from '../broker/broker-state-file.ts';
import type { PassportSet } from '../broker/passport-set.ts';
import { PairFolders } from './pair-folders.ts';

export class PassportPairs {
  readonly #keyFile: string;
  readonly #folders: PairFolders;

  constructor(keyFile: string) {
    this.#keyFile = keyFile;
    this.#folders = new PairFolders(keyFile, brokerStatePathOf);
  }

  /** Prepares the folder. @throws CliError `file_exists`, `file_not_written` */
  async open(): Promise<void> {
    const kind = await this.#folders.kind();
    if (kind === 'file' || kind === 'other') {
      const text = `${this.#keyFile} is there and was not made by an agent: name another file with --private-key-out`;
      throw usageError('file_exists', text);
    }
    await this.#folders.prune();
    await this.#folders.dropNext();
    // Fails at startup, not at the first passport, when the folder is not writable.
    await this.#folders.nextKeyFile();
    if ((await this.current()) !== undefined) await this.#folders.linkToCurrent();
  }

  /** State of the installed pair, if it is complete. */
  async current(): Promise<BrokerState | undefined> {
    const keyFile = await this.#folders.currentKeyFile();
    if (keyFile === undefined) return undefined;
    try {
      const { publicKey } = await readSigningKeyFile(keyFile);
      return await readBrokerState(keyFile, publicKey.thumbprint);
    } catch {
      return undefined;
    }
  }

  /** Writes the set and switches to it. @throws CliError `file_not_written` */
  async install({ key, passports, profileDocuments, svid }: PassportSet, brokerUrl: string): Promise<void> {
    const keyThumbprint = key.publicKey.thumbprint;
    await this.#folders.dropNext();
    const keyFile = await this.#folders.nextKeyFile();
    const state = formatBrokerState({ keyThumbprint, brokerUrl, svid, passports, profileDocuments });
    const pem = key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await writeNewFile({ path: brokerStatePathOf(keyFile), content: state, mode: 0o600 });
    await writeNewFile({ path: keyFile, content: pem, mode: 0o600 });
    await this.#folders.publishNext();
  }
}
