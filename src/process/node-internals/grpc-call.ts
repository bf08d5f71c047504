/**
 * Functions that a server interceptor of grpc-js lacks in its public API: it resets a stream whose client does not end
 * it, and detects compressed messages. Limits depend on both (docs/operate/enforcement.md "Overload, limits and
 * time-outs"), so no benchmark justifies this file: test/enforcement/ext-authz-grpc/open-calls.test.ts fails when
 * grpc-js changes.
 */

/** @returns false when grpc-js stores the stream elsewhere; the caller then ends the call through the public API */
export function closeStream(call: object, code: number): boolean {
  const stream: unknown = Reflect.get(call, 'stream');
  if (typeof stream !== 'object' || stream === null) return false;
  if (!('close' in stream) || typeof stream.close !== 'function') return false;
  stream.close(code);
  return true;
}

/** Whether messages of the call may be compressed. grpc-js decompresses them before the interceptor sees their size. */
export function isCompressed(call: object): boolean {
  const encoding: unknown = Reflect.get(call, 'incomingEncoding');
  return encoding !== undefined && encoding !== 'identity';
}
