/** A folder for a part's files, and the processes that it started. Both are removed when the part ends, for whatever reason. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Workspace {
  readonly directory: string;
  /** Stopped in the reverse order of starting. */
  started<T extends { stop(): Promise<void> }>(server: T): T;
}

export async function inWorkspace<T>(work: (workspace: Workspace) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'proofgate-bench-'));
  const servers: { stop(): Promise<void> }[] = [];
  try {
    return await work({
      directory,
      started(server) {
        servers.push(server);
        return server;
      },
    });
  } finally {
    for (const server of servers.reverse()) await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
}
