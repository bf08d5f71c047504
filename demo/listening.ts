/** Reads the log line in which a service says where it listens. */
import { isRecord, parseJson, stringMember } from './answer.ts';

/** A member of it; undefined while it has not been written. */
export function listeningMember(lines: readonly string[], name: string): string | undefined {
  const found = lines.map(parseJson).find((line) => isRecord(line) && line.msg === 'listening');
  return stringMember(found, name);
}
