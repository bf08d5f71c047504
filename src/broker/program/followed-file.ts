/** A value from files that is read again when they change, with a readiness check. */
import type { ReadinessCheck } from '../../process/admin/admin-server.ts';
import { FileFollower } from '../../process/files/file-follower.ts';
import type { Logger } from '../../process/telemetry/log.ts';

export interface FollowOptions<T> {
  /** Name of the readiness check and in the log. */
  readonly name: string;
  /** Cheap to compute; changes when the files change. */
  readonly fingerprint: () => Promise<string>;
  /** @throws CliError */
  readonly read: () => Promise<T>;
  readonly logger: Logger;
  readonly onReload?: (outcome: 'succeeded' | 'failed') => void;
}

export interface Followed<T> {
  readonly value: T;
  check(): ReadinessCheck;
  close(): void;
}

/** @throws CliError when the first content is bad */
export async function follow<T>(options: FollowOptions<T>): Promise<Followed<T>> {
  const { fingerprint, logger, name, onReload, read } = options;
  // Computed before the content is read, so that the next check detects a change between the two.
  const seen = await fingerprint().catch(() => '');
  let value: T = await read();
  const follower = new FileFollower({
    fingerprint,
    seen,
    read,
    take(content) {
      value = content;
      onReload?.('succeeded');
      logger.info({ event: 'file_reloaded', file: name }, 'changed files are in use');
    },
    onRejected({ code, text }) {
      onReload?.('failed');
      logger.error({ event: 'file_rejected', file: name, code, text }, 'changed files are rejected');
    },
  });
  return {
    get value() {
      return value;
    },
    check() {
      const warning =
        follower.fault &&
        `the changed files are rejected (${follower.fault.code}), the earlier ones stay in use: correct them; they are read again`;
      return { name, problem: undefined, warning };
    },
    close: () => follower.close(),
  };
}

/** A value that never changes, where no file is configured. */
export function fixed<T>(name: string, value: T): Followed<T> {
  return { value, check: () => ({ name, problem: undefined }), close: () => undefined };
}
