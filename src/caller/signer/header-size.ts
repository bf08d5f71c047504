/** Detects headers that gateways would refuse with 431, so that the signer can report them instead. */
import { MAX_HEADER_LINES } from '../../protocol/header-line-limit.ts';
import type { Refusal } from './signing-refusals.ts';

/** Envoy's default for all header lines together, the smallest of the gateways that are supported. */
const MAX_HEADER_BYTES = 60 * 1024;
/** Bytes of `: ` and of the line end. */
const BYTES_OF_SEPARATORS = 4;

/** @param lines of the request with its credentials, without pseudo-headers */
export function headersTooLarge(lines: readonly (readonly [name: string, value: string])[]): boolean {
  const bytes = lines.reduce(
    (sum, [name, value]) => sum + name.length + value.length + BYTES_OF_SEPARATORS,
    0,
  );
  return bytes > MAX_HEADER_BYTES || lines.length > MAX_HEADER_LINES;
}

export const HEADERS_TOO_LARGE: Refusal = {
  code: 'credentials_too_large',
  message:
    'with passport and proof, the headers are more than 60 KiB or 100 lines, which gateways refuse with 431: send less in headers, such as a shorter token',
};
