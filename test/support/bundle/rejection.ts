import { BundleError } from '../../../src/bundle/format/bundle-error.ts';

/** Code and place of the error that an action ends with; anything but a {@link BundleError} fails the test. */
export async function rejection(
  action: () => unknown,
): Promise<{ code: string; file: string; path: string } | 'no error'> {
  try {
    await action();
    return 'no error';
  } catch (error) {
    if (!(error instanceof BundleError)) throw error;
    const { code, file, path } = error;
    return { code, file, path };
  }
}

/** As `rejection`, without the file. */
export async function codeAndPath(action: () => unknown): Promise<string> {
  const found = await rejection(action);
  return found === 'no error' ? found : `${found.code} ${found.path}`;
}
