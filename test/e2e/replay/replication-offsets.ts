/** Compares how far a primary has written with how much of that its replica had when it was promoted. */
import { infoFields } from '../../support/harness/redis-reply.ts';

interface Asked {
  readonly server: { ask(...command: string[]): Promise<unknown> };
}

export async function writtenBy(primary: Asked): Promise<number> {
  return await replicationNumber(primary, 'master_repl_offset');
}

/** Up to where a promoted replica has what its former primary wrote; its own offset soon holds new writes too. */
export async function inheritedBy(promoted: Asked): Promise<number> {
  return (await replicationNumber(promoted, 'second_repl_offset')) - 1;
}

async function replicationNumber({ server }: Asked, field: string): Promise<number> {
  const value = Number(infoFields(String(await server.ask('INFO', 'replication'))).get(field));
  if (!(value > 0)) throw new Error(`Redis does not say its ${field}`);
  return value;
}
