/** Help of the command line in terminals of several widths. */
import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import { buildProgram } from '../../src/cli/program.ts';
import { Output } from '../../src/process/program/output.ts';

function programOf(width: number) {
  const stream = new PassThrough();
  const context = { env: {}, output: new Output(stream, stream, {}), version: '1.0.0' };
  return buildProgram(context).then((program) => {
    const all = [program, ...program.commands, ...program.commands.flatMap(({ commands }) => commands)];
    for (const command of all) command.configureOutput({ getOutHelpWidth: () => width });
    return all;
  });
}

/** Usage, a flag with its value's name, and a command with its arguments are not broken. */
const isUnbroken = (line: string) =>
  !/\S {2,}\S/.test(line) && /^(?:Usage: |\s+(?:-|\S+(?: [[<]\S+)*$))/.test(line);

it.each([40, 80, 200])('fits a terminal of %p columns', async (width) => {
  for (const command of await programOf(width)) {
    const help = command.helpInformation({ error: false });
    const long = help.split('\n').filter((line) => line.length > width && !isUnbroken(line));
    expect([command.name(), long]).toEqual([command.name(), []]);
  }
});
