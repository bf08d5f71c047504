/**
 * Follows the file of `--break-glass-file`, and attaches its statement to the loaded bundle. Fails closed: a file that
 * vanishes or becomes invalid ends the statement that it held. Only a verified statement is kept.
 * Source: docs/design/bundle.md "Freshness".
 */
import { basename, dirname } from 'node:path';
import { type OpenedBreakGlass, openBreakGlass } from '../../bundle/compile/break-glass-statement.ts';
import type { BreakGlassStatement } from '../../bundle/compile/snapshot.ts';
import { asBundleError } from '../../bundle/format/bundle-error.ts';
import { DOCUMENTS, type Signers } from '../../bundle/format/documents.ts';
import { readRegularFile } from '../../bundle/format/files.ts';
import { fileFingerprint } from '../../process/files/file-fingerprint.ts';
import { type FileFault, FileFollower } from '../../process/files/file-follower.ts';
import { usageError } from '../../process/program/errors.ts';
import type { BundleLoader } from './bundle-loader.ts';

export interface BreakGlassOptions {
  readonly authSite: string;
  /** Path of the file, which need not exist. */
  readonly file: string;
  readonly signers: Signers;
}

/** Each is called once for each change of the file. Must not throw. */
export interface BreakGlassListener {
  accepted(statement: OpenedBreakGlass): void;
  refused(fault: FileFault): void;
  removed(): void;
}

export interface BreakGlassStatus {
  /** The verified statement, whether it applies or not. */
  readonly statement: BreakGlassStatement | undefined;
  /** Why the file holds no valid statement; undefined also when there is no file. */
  readonly fault: FileFault | undefined;
}

export class BreakGlassFile {
  readonly #options: BreakGlassOptions;
  readonly #loader: Pick<BundleLoader, 'setBreakGlass'>;
  readonly #listener: BreakGlassListener;
  readonly #follower: FileFollower<OpenedBreakGlass | undefined>;
  #statement: OpenedBreakGlass | undefined;

  /** Checks the file every second until {@link close}. */
  constructor(
    options: BreakGlassOptions,
    loader: Pick<BundleLoader, 'setBreakGlass'>,
    listener: BreakGlassListener,
  ) {
    this.#options = options;
    this.#loader = loader;
    this.#listener = listener;
    this.#follower = new FileFollower({
      // Reading decides what it means that the file is missing.
      fingerprint: () => fileFingerprint(options.file).catch(() => 'missing'),
      read: () => this.#read(),
      take: (statement) => this.#take(statement),
      onRejected: (fault) => {
        this.#set(undefined);
        listener.refused(fault);
      },
    });
  }

  status(): BreakGlassStatus {
    return { statement: this.#statement, fault: this.#follower.fault };
  }

  close(): void {
    this.#follower.close();
  }

  /** @returns undefined without a file @throws CliError with the code of the BundleError */
  async #read(): Promise<OpenedBreakGlass | undefined> {
    const { authSite, file: path, signers } = this.#options;
    const file = basename(path);
    try {
      const { maxBytes } = DOCUMENTS.breakGlass;
      const bytes = await readRegularFile({ directory: dirname(path), file, maxBytes });
      return openBreakGlass(bytes, { file, authSite, signers });
    } catch (error) {
      const { code, message } = asBundleError(error, file);
      if (code === 'file_missing') return undefined;
      throw usageError(code, message);
    }
  }

  #take(statement: OpenedBreakGlass | undefined): void {
    const had = this.#statement !== undefined;
    this.#set(statement);
    if (statement !== undefined) this.#listener.accepted(statement);
    else if (had) this.#listener.removed();
  }

  #set(statement: OpenedBreakGlass | undefined): void {
    this.#statement = statement;
    this.#loader.setBreakGlass(statement);
  }
}
