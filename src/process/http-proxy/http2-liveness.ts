/** Closes HTTP/2 connections whose peer no longer answers. */
import type { Http2Session } from 'node:http2';

const PING_INTERVAL_MS = 30_000;
const PING_TIMEOUT_MS = 10_000;

/**
 * After a connection error (RFC 9113 section 5.4.1) Node.js 20 reads nothing more and reports nothing: it does not
 * detect that the peer has left, and neither the connection nor its streams end. Such a session sends no PING and gets
 * no answer.
 */
export function closeWhenSilent(session: Http2Session): void {
  const timer = setInterval(() => {
    // Node.js sends no PING on a connection that closes after its last stream.
    if (!session.closed) destroyUnlessAlive(session, PING_TIMEOUT_MS);
  }, PING_INTERVAL_MS);
  session.once('close', () => clearInterval(timer));
  timer.unref();
}

/** Expects the answer to a PING within this time. */
export function destroyUnlessAlive(session: Http2Session, timeoutMs: number): void {
  if (session.destroyed) return;
  const timer = setTimeout(() => session.destroy(), timeoutMs);
  timer.unref();
  const isSent = session.ping((error) => {
    // After an error the session is already being destroyed.
    if (error === null) clearTimeout(timer);
  });
  if (!isSent) session.destroy();
}
