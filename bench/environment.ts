/** The Node.js, the program and the environment that the benchmark uses for the processes that it starts from now on. */
import { join } from 'node:path';
import { hasImageTools, IMAGE_TOOLS } from '../test/support/image/built.ts';
import { ENVIRONMENT } from '../test/support/image/container.ts';

interface Stoppable {
  stop(): Promise<void>;
}

/** Until it is stopped, whatever is started has these variables, beside the image's own. */
export function useImageEnvironment(more: Readonly<Record<string, string>>): Stoppable {
  // Its path is of its own root; programs are named in full here.
  const { PATH: _path, ...environment } = ENVIRONMENT;
  const variables = { ...environment, ...more };
  Object.assign(process.env, variables);
  return {
    async stop() {
      for (const name of Object.keys(variables)) delete process.env[name];
    },
  };
}

/** The image's Node.js and environment for this checkout's program, which then does at its start what it does in the image. */
export function useImageNode(): Stoppable {
  if (!hasImageTools()) throw new Error('void run: make image-tools first');
  return useImageEnvironment({ PROOFGATE_TEST_NODE: join(IMAGE_TOOLS, 'node') });
}
