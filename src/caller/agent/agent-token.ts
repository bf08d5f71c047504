/**
 * Reads the agent's token file, following symbolic links. The result is the token's expiry and a digest that identifies
 * it.
 */
import { hash } from 'node:crypto';
import { CliError } from '../../process/program/errors.ts';
import type { Redacted } from '../../protocol/redacted.ts';
import { isJsonObject, parseStrictJson, StrictJsonError } from '../../protocol/strict-json.ts';
import { readWorkloadToken } from '../enroll/enroll-with-files.ts';
import type { TokenReading } from './keeper-ports.ts';

export async function readTokenFile(path: string): Promise<TokenReading> {
  try {
    const token = await readWorkloadToken(path);
    const digest = hash('sha256', token.reveal(), 'base64url');
    return { content: { kind: 'token', digest, expiresAtMs: expiryOf(token) }, text: '' };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return { content: { kind: 'fault', code: error.code }, text: error.message };
  }
}

/** The expiry in milliseconds. The token is not verified here: its expiry only schedules the next attempt. */
function expiryOf(token: Redacted<string>): number | undefined {
  const [, payload = ''] = token.reveal().split('.');
  try {
    const claims = parseStrictJson(Buffer.from(payload, 'base64url').toString('utf8'));
    const exp = isJsonObject(claims) ? claims.exp : undefined;
    return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : undefined;
  } catch (error) {
    if (error instanceof StrictJsonError) return undefined;
    throw error;
  }
}
