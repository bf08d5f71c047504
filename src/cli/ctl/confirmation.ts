/** Asks for confirmation of an irreversible command on a terminal. Without a terminal the command needs `--yes`. */
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { CliError, usageError } from '../../process/program/errors.ts';
import type { CliContext } from '../../process/program/output.ts';
import { visibleText } from '../../process/program/visible-text.ts';
import { toggle } from '../../process/settings/settings.ts';

export const YES = {
  yes: toggle('--yes', 'do not ask; required where no terminal can answer', false),
};

/**
 * @param what the effect, as in "this deletes …"; may contain texts of other users
 * @throws CliError `yes_required`, `not_confirmed`
 */
export async function confirm(
  what: string,
  yes: boolean,
  { terminal }: Pick<CliContext, 'terminal'>,
): Promise<void> {
  if (yes) return;
  if (terminal === undefined) throw usageError('yes_required', `this ${what}: add --yes`);
  terminal.output.write(`This ${visibleText(what)}. Continue? [y/N] `);
  if (/^\s*y(?:es)?\s*$/i.test(await firstLine(terminal.input))) return;
  throw new CliError('refused', 'not_confirmed', 'nothing was done');
}

/** Empty when the input ends. */
function firstLine(input: Readable): Promise<string> {
  const lines = createInterface({ input });
  return new Promise<string>((resolve) => {
    lines.once('line', resolve).once('close', () => resolve(''));
  }).finally(() => lines.close());
}
