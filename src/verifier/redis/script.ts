/** A Lua script with what `EVALSHA` needs. */
import { createHash } from 'node:crypto';

export interface RedisScript {
  readonly source: string;
  /** Hexadecimal SHA-1 of the source, under which Redis caches it. */
  readonly sha1: string;
  /** Number of leading arguments that are keys. */
  readonly keyCount: number;
}

export function redisScript(source: string, keyCount: number): RedisScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex'), keyCount };
}
