/** The headers that a signature adds to its request. They are secret, because their owner can send that request once. */
import { Redacted } from '../../protocol/redacted.ts';
import type { RequestHeader } from './request-headers.ts';

/** Header lines, with names in their usual spelling. */
export class CredentialHeaders extends Redacted<readonly RequestHeader[]> {
  /** Whether one of these takes the place of the request's own header. */
  replaces(name: string): boolean {
    return this.reveal().some((line) => line.name.toLowerCase() === name.toLowerCase());
  }
}
