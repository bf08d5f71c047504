/** SPIRE for one suite: started on first use, stopped after it. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { SpireAgent, type SpireAgentOptions } from './spire-agent.ts';
import { type SpireEntry, SpireServer, type SpireServerOptions } from './spire-server.ts';

export const TRUST_DOMAIN = 'shop.example';

export interface SpireFixture {
  /** Default: {@link TRUST_DOMAIN}. */
  server(options?: Partial<Omit<SpireServerOptions, 'folder'>>): Promise<SpireServer>;
  agent(server: SpireServer, options?: Pick<SpireAgentOptions, 'svidKeyType'>): Promise<SpireAgent>;
  /** A server, its agent, and entries that have arrived there. */
  start(
    entries: readonly Omit<SpireEntry, 'agentPath'>[],
    options?: Partial<Omit<SpireServerOptions, 'folder'>>,
  ): Promise<StartedSpire>;
  /** A folder that is removed with the fixture. */
  folder(): Promise<string>;
}

export interface StartedSpire {
  readonly server: SpireServer;
  readonly agent: SpireAgent;
  /** Entry IDs, in the order of the entries. */
  readonly entryIds: readonly string[];
}

export function useSpire(): SpireFixture {
  const running: { stop(): Promise<void> }[] = [];
  let root: string | undefined;
  let folders = 0;
  afterAll(async () => {
    for (const program of running.splice(0).reverse()) await program.stop();
    if (root !== undefined) await rm(root, { recursive: true, force: true });
  });
  const folder = async () => {
    root ??= await mkdtemp(join(tmpdir(), 'pg-spire-'));
    folders += 1;
    const path = join(root, `${folders}`);
    await mkdir(path);
    return path;
  };
  const kept = async <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    const program = await starting;
    running.push(program);
    return program;
  };
  const server: SpireFixture['server'] = async (options) =>
    kept(SpireServer.start({ trustDomain: TRUST_DOMAIN, ...options, folder: await folder() }));
  const agent: SpireFixture['agent'] = async (itsServer, options) => {
    const place = await folder();
    return kept(
      SpireAgent.start({ ...options, server: itsServer, folder: place, path: `/agent/${folders}` }),
    );
  };
  return {
    ...{ server, agent, folder },
    start: async (entries, options) => {
      const itsServer = await server(options);
      const itsAgent = await agent(itsServer);
      const entryIds: string[] = [];
      for (const entry of entries) {
        entryIds.push(await itsServer.createEntry({ ...entry, agentPath: itsAgent.path }));
      }
      for (const { path } of entries) await itsAgent.waitForId(itsServer.id(path));
      return { server: itsServer, agent: itsAgent, entryIds };
    },
  };
}
