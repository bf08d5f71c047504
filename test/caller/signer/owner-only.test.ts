/** Tests the file mode mask while a listener of the signer opens. */
import { expect, it } from '@jest/globals';
import { openOwnerOnly } from '../../../src/caller/signer/owner-only.ts';

/** The mask can only be read by setting it. */
function currentUmask(): number {
  const umask = process.umask(0o22);
  process.umask(umask);
  return umask;
}

it.each([
  ['unix:/run/signer.sock', 0o177],
  ['127.0.0.1:8081', 0o22],
  ['localhost:8081', 0o22],
])('opens %s under umask %i, and restores the old one, also after a failure', async (listen, expected) => {
  const before = process.umask(0o22);
  try {
    expect(await openOwnerOnly(listen, async () => currentUmask())).toBe(expected);
    await expect(openOwnerOnly(listen, () => Promise.reject(new Error('in use')))).rejects.toThrow('in use');
    expect(currentUmask()).toBe(0o22);
  } finally {
    process.umask(before);
  }
});
